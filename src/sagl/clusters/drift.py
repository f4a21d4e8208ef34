"""How far samples of today are from those of before: of each view, of each cluster."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from sagl.clusters.names import name_of
from sagl.later import ClusterDrift, ViewDrift
from sagl.model import Model

_ROWS = 500  # of each side, at most, that distances are taken between
_PERMUTATIONS = 199


@torch.no_grad()
def energy(old: Tensor, new: Tensor, seed: int) -> tuple[float, float]:
    """Energy coefficient of two samples of rows, and its p-value by permutation.

    The energy distance of Székely and Rizzo (2004), 2 E|X − Y| − E|X − X'| − E|Y − Y'|,
    per 2 E|X − Y|: 0 if and only if both come from one distribution, at most 1. The
    p-value is the share of random divisions of all rows that are as far apart.

    >>> rows = torch.arange(40.0)[:, None]
    >>> alike, apart = energy(rows[::2], rows[1::2], 0), energy(rows[:20], rows[20:], 0)
    >>> alike[0] < 0.01 < apart[0], alike[1] > 0.5, apart[1]
    (True, True, 0.005)
    """
    rng = np.random.default_rng(seed)
    some = [
        rows[
            torch.from_numpy(np.sort(rng.permutation(len(rows))[:_ROWS])).to(
                rows.device
            )
        ]
        for rows in (old, new)
    ]
    n, m = len(some[0]), len(some[1])
    rows = torch.cat(some).double()
    apart = torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist")
    first = np.zeros((_PERMUTATIONS + 1, n + m), dtype=bool)
    first[0, :n] = True
    first[1:, :n] = True
    first[1:] = rng.permuted(first[1:], axis=1)
    one = torch.from_numpy(first.T).to(apart)  # (n + m, permutations + 1)
    other = 1 - one
    to_one = apart @ one
    cross = (other * to_one).sum(dim=0) / (n * m)
    within = (one * to_one).sum(dim=0) / n**2
    within += (other * (apart @ other)).sum(dim=0) / m**2
    coefficient = 1 - within / (2 * cross).clamp_min(1e-12)
    as_far = int((coefficient[1:] >= coefficient[0] - 1e-12).sum())
    value = max(float(coefficient[0]), 0.0) if float(cross[0]) > 0 else 0.0
    return value, (1 + as_far) / (1 + _PERMUTATIONS)


def view_drift(
    names: Sequence[str], old: Sequence[Tensor], new: Sequence[Tensor], seed: int
) -> tuple[ViewDrift, ...]:
    """Of each view, from rows of earlier and of new samples."""
    pairs = zip(names, old, new, strict=True)
    return tuple(ViewDrift(name, *energy(a, b, seed)) for name, a, b in pairs)


def cluster_drift(
    model: Model, x: Tensor, before: Tensor, after: Tensor, is_new: Tensor
) -> tuple[ClusterDrift, ...]:
    """Of each cluster that was there before.

    ``x`` are rows of all views side by side; ``before`` the clusters of all samples as
    the model had or would have them, ``after`` as they are now.
    """
    drifts = []
    for k in range(model.settings.n_clusters):
        inside = after == k
        earlier, new = x[inside & ~is_new], x[inside & is_new]
        shift = None
        if len(earlier) > 1 and len(new) > 0:
            spread = (earlier - earlier.mean(dim=0)).square().sum(dim=1).mean().sqrt()
            moved = (new.mean(dim=0) - earlier.mean(dim=0)).norm()
            shift = float(moved / spread.clamp_min(1e-12))
        shares = (
            float((before[~is_new] == k).float().mean()),
            float(inside[~is_new].float().mean()),
            float(inside[is_new].float().mean()),
        )
        drifts.append(ClusterDrift(k, name_of(model.names, k), *shares, shift))
    return tuple(drifts)
