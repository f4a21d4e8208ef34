"""Slow, obvious twins of the fast code: one row at a time, gradient by autograd."""

import torch
from torch import Tensor


def normal(*shape: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Standard normal numbers which depend on the seed alone."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def slow_entmax(scores: Tensor, alpha: float) -> Tensor:
    """entmax over the last dimension, row by row; finite scores only."""
    rows = scores.reshape(-1, scores.shape[-1])
    return torch.stack([_entmax(row, alpha) for row in rows]).reshape(scores.shape)


def slow_attend(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    gate: Tensor | None = None,
    alpha: float = 1.5,
    exclude: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Output (m, D) and graph (m, n), query by query, key by key.

    An excluded key is left out of the row, so no infinity is ever involved.
    """
    m, n, C = len(queries), len(keys), queries.shape[1]
    outs, graph = [], []
    for i in range(m):
        columns = [j for j in range(n) if exclude is None or j != int(exclude[i])]
        factor = 1.0 if gate is None else gate[i]
        scores = [factor * torch.dot(queries[i], keys[j]) / C**0.5 for j in columns]
        weights = slow_entmax(torch.stack(scores), alpha)
        outs.append(sum(w * values[j] for w, j in zip(weights, columns, strict=True)))
        index = torch.tensor(columns)
        graph.append(weights.new_zeros(n).index_put((index,), weights))
    return torch.stack(outs), torch.stack(graph)


def slow_threshold(scores: Tensor, alpha: float) -> float:
    """τ of one row by 200 halvings: sum_j [(α − 1) s_j − τ]_+^(1/(α−1)) = 1."""
    x = [(alpha - 1) * float(s) for s in scores]
    low, high = max(x) - 1, max(x)
    for _ in range(200):
        middle = (low + high) / 2
        mass = sum(max(entry - middle, 0.0) ** (1 / (alpha - 1)) for entry in x)
        low, high = (middle, high) if mass >= 1 else (low, middle)
    return low


def slow_support(scores: Tensor, alpha: float) -> list[bool]:
    """Which entries are nonzero, without τ.

    Entry j is in the support exactly if, with τ put at its own level, the entries
    above it weigh less than one: sum_i [(α − 1)(s_i − s_j)]_+^(1/(α−1)) < 1.
    """
    s = [float(entry) for entry in scores]
    power = 1 / (alpha - 1)
    return [
        sum(((alpha - 1) * max(other - mine, 0.0)) ** power for other in s) < 1
        for mine in s
    ]


def support_distance(scores: Tensor, alpha: float) -> float:
    """How far the scaled scores of any row are from a change of support."""
    rows = scores.double().reshape(-1, scores.shape[-1])
    gaps = [(alpha - 1) * row - slow_threshold(row, alpha) for row in rows]
    return float(torch.stack(gaps).abs().min())


def _entmax(s: Tensor, alpha: float) -> Tensor:
    if alpha == 1:
        unnormalised = torch.exp(s - s.detach().max())
        return unnormalised / unnormalised.sum()
    x = (alpha - 1) * s
    if alpha == 2:
        support, tau = _sorted_sparsemax(x)
    elif alpha == 1.5:
        support, tau = _sorted_entmax15(x)
    else:
        support, tau = _bisected(x, slow_threshold(s.detach(), alpha), alpha)
    weights = (x[support] - tau) ** (1 / (alpha - 1))
    return torch.zeros_like(s).index_put((support,), weights)


def _sorted_sparsemax(x: Tensor) -> tuple[Tensor, Tensor]:
    """The largest k for which the k-th largest entry stays above τ_k."""
    order = x.detach().argsort(descending=True)
    best = order[:1], x[order[:1]].sum() - 1
    for k in range(2, len(x) + 1):
        top = x[order[:k]]
        tau = (top.sum() - 1) / k
        if top[-1] > tau:
            best = order[:k], tau
    return best


def _sorted_entmax15(x: Tensor) -> tuple[Tensor, Tensor]:
    """The same for α = 1.5, where τ_k solves a quadratic equation."""
    order = x.detach().argsort(descending=True)
    best = order[:1], x[order[:1]].sum() - 1
    for k in range(2, len(x) + 1):
        top = x[order[:k]]
        spread = ((top - top.mean()) ** 2).sum()
        if spread >= 1:
            break
        tau = top.mean() - torch.sqrt((1 - spread) / k)
        if top[-1] > tau:
            best = order[:k], tau
    return best


def _bisected(x: Tensor, tau: float, alpha: float) -> tuple[Tensor, Tensor]:
    """τ is found; one Newton step at the root makes it a function of x.

    The step changes the value by rounding only, and its derivative is the one that
    the implicit function theorem gives for τ(x).
    """
    power = 1 / (alpha - 1)
    support = (x.detach() > tau).nonzero().squeeze(1)
    gap = x[support] - tau
    slope = power * (gap.detach() ** (power - 1)).sum()
    return support, tau + ((gap**power).sum() - 1) / slope
