"""What a search of few samples found, annealed once more among many."""

from __future__ import annotations

import torch
from torch import Tensor

from sagl.search.anneal import Sizes, reanneal
from sagl.search.evidence import Line, left_out, line
from sagl.search.space import Space, deviations, one_hot


@torch.no_grad()
def widened(
    space: Space,
    labels: Tensor,
    wide: Space,
    place: Tensor,
    n_clusters: int,
    sizes: Sizes = "balanced",
) -> Tensor:
    """Clusters of all samples of a ``wide`` space, (m,).

    Known are the ``labels``, (n,), of the samples of ``space``, which are at these
    places among them. The others begin with what regressions to those say.
    """
    Y = one_hot(labels, n_clusters)
    centred = Y - Y.mean(dim=0)
    middle, slope = head_line(left_out(space, Y), Y, sizes)
    pairs = zip(wide.views, space.fits, strict=True)
    p = (wide.said(x @ fit.weights(centred) for x, fit in pairs) - middle) * slope
    start = p.masked_fill(~Y.any(dim=0), -torch.inf).argmax(dim=1)
    start[place] = labels
    return reanneal(wide, start, n_clusters, sizes=sizes)


def head_line(p: Tensor, Y: Tensor, sizes: Sizes) -> Line:
    """From what regressions say, (n, C), to what heads say: (p − middle) · slope.

    By predictions that leave the sample out, which is what new samples are like.
    """
    used = Y.any(dim=0)
    if sizes == "balanced":
        slope = (1 / deviations(p)).masked_fill(~used, 0)
        return Line(p.mean(dim=0), slope)
    middle, slope = line(p, Y)
    prior = Y.mean(dim=0).clamp_min(1e-9).log()
    deviation = (p.std(dim=0) * slope)[used].mean()
    return Line(middle - prior / slope, slope / deviation)
