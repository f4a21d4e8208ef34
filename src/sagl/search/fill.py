"""What a missing view might have shown: the mean of neighbours in the other views.

Where samples are compared as wholes (k-means, halves of clusters, who is near whom),
zeros in place of what is missing would set those apart that miss the same. Where views
are asked one by one nothing is filled in.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sagl.nn.missing import shared
from sagl.nn.neighbours import unit_rows
from sagl.nn.sparse import CSR

_BLOCK_SCORES = 1 << 22


def check_enough(present: Tensor, names: Sequence[str], n_clusters: int) -> None:
    """Refuse a view that fewer samples, (n, L), have than there are clusters."""
    counts = present.sum(dim=0)
    least = int(counts.argmin())
    if counts[least] < n_clusters:
        raise ValueError(
            f"only {int(counts[least])} of the {len(present):,} samples that the "
            f"search looks at have view {names[least]!r}, fewer than the {n_clusters} "
            "clusters; leave it out"
        )


def fillers(
    rows: Sequence[Tensor], present: Tensor, neighbours: int
) -> list[CSR | None]:
    """Per view, A with which A x is x where it is missing, zero elsewhere, (n, n).

    ``rows``, (n, d) per view, by which neighbours are found, are zeros where
    ``present``, (n, L), says that the view is missing. None for a view that all have.
    """
    whole = unit_rows(torch.cat(list(rows), dim=1))
    return [
        None if there.all() else _filler(whole, present, there, neighbours)
        for there in present.unbind(dim=1)
    ]


def _filler(whole: Tensor, present: Tensor, there: Tensor, neighbours: int) -> CSR:
    n = len(whole)
    lacking, having = (torch.nonzero(mask).flatten() for mask in (~there, there))
    count = min(neighbours, len(having))
    cols, found = [], []
    for block in torch.split(lacking, max(1, _BLOCK_SCORES // len(having))):
        similar = whole[block] @ whole[having].T
        common = shared(present[block], present[having])
        if common is not None:
            similar.masked_fill_(~common, -torch.inf)
        best = similar.topk(count, dim=1)
        cols.append(having[best.indices])
        found.append(best.values.isfinite())
    good = torch.cat(found)
    share = 1 / good.sum(dim=1, keepdim=True).clamp_min(1).to(whole)
    counts = torch.zeros(n, dtype=torch.int64, device=whole.device)
    counts[lacking] = good.sum(dim=1)
    crow = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    entries = share.expand(good.shape)[good]
    return CSR(crow, torch.cat(cols)[good], entries, (n, n))
