"""How good a partition is, without knowing the truth.

    score = what the views together, asked about a sample that they did not see, tell of
            its label                                                        (linear)
          + what the label of a neighbour tells of the label, mean over views (graph)

in nats. The first is a lower bound of the mutual information of sample and label: the
mean of log q(label | sample) / q(label), where q is the softmax of the left-out ridge
predictions. Arbitrary labels cannot be predicted, so both are zero; one big cluster
tells nothing, so both are zero; a cluster split in two without reason is confused with
its other half and gains nothing. Linear models and neighbourhoods can each alone be
cheated by a partition that only they would draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from sagl.partition.space import Ridge, Space, one_hot

_NEWTON_STEPS = 6
_FIRST_SHARPNESS, _MAX_SHARPNESS = 2.0, 50.0


class Score(NamedTuple):
    """Both terms, in nats, and how often a view's prediction is the label."""

    linear: float
    graph: float
    agreement: float

    @property
    def total(self) -> float:
        return self.linear + self.graph


@torch.no_grad()
def score(space: Space, labels: Tensor, n_clusters: int) -> Score:
    """Score of labels 0 … C − 1, (n,)."""
    Y = one_hot(labels, n_clusters)
    share = Y.mean(dim=0)
    z = [fit.left_out(Y - share) for fit in space.fits]
    right = [(part + share).argmax(dim=1) == labels for part in z]
    agreed = space.mean([part.double().mean() for part in right])
    evidence = space.mean([part / part.std(dim=0).clamp_min(1e-6) for part in z])
    linear = evidence_information(evidence, labels, share)
    graph = neighbour_information(space, labels, n_clusters)
    return Score(linear, graph, float(agreed))


def evidence_information(evidence: Tensor, labels: Tensor, share: Tensor) -> float:
    """What evidence (n, C) tells of labels (n,) of clusters with shares (C,), in nats.

    The mean of log q(label) / share, q = softmax(b · evidence + log share), for the
    sharpness b ≥ 0 at which it is largest; it is concave in b, and zero at b = 0.
    """
    prior = share.log()  # −∞, and nobody's, where a cluster is empty
    own = labels[:, None]
    low, high, b = 0.0, _MAX_SHARPNESS, _FIRST_SHARPNESS
    for _ in range(_NEWTON_STEPS):
        q = torch.softmax(b * evidence + prior, dim=1)
        weighted = q * evidence
        mean = weighted.sum(dim=1)
        slope = float((evidence.gather(1, own)[:, 0] - mean).mean())
        variance = float(((weighted * evidence).sum(dim=1) - mean.square()).mean())
        low, high = (b, high) if slope > 0 else (low, b)
        step = b + slope / max(variance, 1e-12)
        b = step if low <= step <= high else (low + high) / 2
    q = torch.log_softmax(b * evidence + prior, dim=1)
    information = (q - prior).gather(1, own).double().mean()
    return max(0.0, float(information))


def neighbour_information(space: Space, labels: Tensor, n_clusters: int) -> float:
    """What the label of a neighbour in one view tells of the label, mean over views.

    In each view alone, not in the graph of all views, which the search follows: what
    was drawn along a graph must not be judged by it.
    """
    alone = [space.only(view) for view in range(len(space.views))]
    told = [graph_information(place, labels, n_clusters) for place in alone]
    return sum(w * nats for w, nats in zip(space.weights, told, strict=True))


def graph_information(space: Space, labels: Tensor, n_clusters: int) -> float:
    """What the label of a neighbour in the graph tells of the label, in nats."""
    A = space.affinity
    ends = _joint(labels[A.rows()], labels[A.cols], n_clusters, A.entries)
    return mutual_information(ends)


def confusion(space: Space, labels: Tensor, n_clusters: int) -> Tensor:
    """How many samples of cluster j (column) are predicted as i, mean over views."""
    return space.mean(guesses(space.fits, labels, n_clusters))


def guesses(judges: Sequence[Ridge], labels: Tensor, n_clusters: int) -> list[Tensor]:
    """Per view, counts of (predicted without the sample, label), (C, C)."""
    Y = one_hot(labels, n_clusters)
    share = Y.mean(dim=0)
    # An empty cluster has no share to be predicted: nobody is put into it.
    predicted = [(judge.left_out(Y - share) + share).argmax(dim=1) for judge in judges]
    return [_joint(p, labels, n_clusters) for p in predicted]


def best_of(
    space: Space, partitions: Sequence[Tensor], n_clusters: int
) -> tuple[int, list[Score]]:
    """The position of the partition with the highest score, and all scores."""
    scores = [score(space, labels, n_clusters) for labels in partitions]
    return max(range(len(scores)), key=lambda i: scores[i].total), scores


def mutual_information(joint: Tensor) -> float:
    """Of two variables, in nats, from a table of their counts, (C, C)."""
    p = joint.double() / joint.sum()
    expected = p.sum(dim=1, keepdim=True) * p.sum(dim=0)
    seen = p > 0
    return float((p[seen] * (p[seen] / expected[seen]).log()).sum())


def _joint(a: Tensor, b: Tensor, n: int, weights: Tensor | None = None) -> Tensor:
    return torch.bincount(a * n + b, weights=weights, minlength=n * n).reshape(n, n)
