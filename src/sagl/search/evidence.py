"""How much speaks for each cluster, in nats, whatever the sizes of the clusters.

What predicts the members of a small cluster, a ridge regression or a vote of
neighbours, gives small numbers: compared as they are, they favour large clusters. Per
cluster, two groups with one number p each and the same variance, the classical rule is

    log odds = (p − middle) · slope
    middle   = half way between the means of p inside and outside of the cluster
    slope    = distance of these means / variance within the two groups

to which a prior adds the logarithm of the cluster's share.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from sagl.search.score import counted, joint, neighbour_information
from sagl.search.space import Space, one_hot

_TINY = 1e-6
_LEAST = -10.0  # log probability: one sample cannot ruin a partition


class Line(NamedTuple):
    """Log odds of each cluster, (C,) each: (p − middle) · slope."""

    middle: Tensor
    slope: Tensor


def line(p: Tensor, membership: Tensor) -> Line:
    """Of predictions p, (n, C), for samples that belong so much, 0 to 1, (n, C)."""
    n = len(p)
    inside = membership.sum(dim=0).clamp_min(_TINY)
    outside = (n - inside).clamp_min(_TINY)
    mean_inside = (p * membership).sum(dim=0) / inside
    mean_outside = (p.sum(dim=0) - mean_inside * inside) / outside
    apart = (mean_inside - mean_outside).clamp_min(_TINY)
    between = inside * outside / n**2 * apart**2
    within = (p.var(dim=0) - between).clamp_min(_TINY)
    return Line((mean_inside + mean_outside) / 2, apart / within)


def log_odds(p: Tensor, membership: Tensor) -> Tensor:
    """Of each sample and cluster, (n, C)."""
    middle, slope = line(p, membership)
    return (p - middle) * slope


def left_out_evidence(space: Space, labels: Tensor, n_clusters: int) -> list[Tensor]:
    """Per view, what speaks for each cluster without the sample's own label, (n, C).

    Of the samples that have the view.
    """
    Y = one_hot(labels, n_clusters)
    centred = Y - Y.mean(dim=0)
    return [
        _with_prior(space, fit.of(fit.left_out(centred)), fit.of(Y))
        for fit in space.fits
    ]


def _with_prior(space: Space, p: Tensor, Y: Tensor) -> Tensor:
    """Log odds by predictions p of clusters Y, as far as trusted, and their shares."""
    prior = Y.mean(dim=0).clamp_min(1e-9).log()
    return space.config.trust * log_odds(p, Y) + prior


def mistaken(space: Space, labels: Tensor, n_clusters: int) -> Tensor:
    """As ``score.confusion``, with clusters of any size told apart fairly."""
    views = left_out_evidence(space, labels, n_clusters)
    return space.mean(
        [
            counted(fit, e.argmax(dim=1), labels, n_clusters)
            for fit, e in zip(space.fits, views, strict=True)
        ]
    )


def left_out(space: Space, Y: Tensor) -> Tensor:
    """What the regressions of all views say without a sample's own cluster, (n, C)."""
    centred = Y - Y.mean(dim=0)
    return space.said([fit.left_out(centred) for fit in space.fits])


@torch.no_grad()
def recall(space: Space, labels: Tensor, n_clusters: int) -> float:
    """The share of a cluster that is known as such, mean over clusters.

    By the regressions of all views, each sample left out. Clusters count alike,
    whatever their sizes, so that partitions of any sizes can be compared; an empty one
    is not counted.
    """
    Y = one_hot(labels, n_clusters)
    used = Y.any(dim=0)
    e = _with_prior(space, left_out(space, Y), Y)
    known = joint(labels, e.argmax(dim=1), n_clusters)
    return float((known.diagonal()[used] / known.sum(dim=1)[used]).mean())


def clarity(space: Space, labels: Tensor, n_clusters: int) -> float:
    """How clearly clusters of any sizes are told apart: information and recall, 0 to 3.

    Information alone, per entropy, favours clusters that throw together what overlaps
    and leave crumbs, whose recall is low. Recall alone favours large clusters.
    """
    share = evidence(space, labels, n_clusters).share
    return share + recall(space, labels, n_clusters)


class Evidence(NamedTuple):
    """What views and neighbours tell of the labels, and all there is to tell."""

    information: float
    entropy: float
    power: float  # of the entropy, in the value

    @property
    def share(self) -> float:
        """Of what there is to tell, by views and again by neighbours: 0 to 2."""
        return self.information / max(self.entropy, _TINY)

    @property
    def value(self) -> float:
        """What partitions of unequal clusters are compared by."""
        value: float = self.information / max(self.entropy, _TINY) ** self.power
        return value


@torch.no_grad()
def evidence(space: Space, labels: Tensor, n_clusters: int) -> Evidence:
    """Of labels 0 … C − 1, (n,).

    The information of a view is bounded from below by the entropy of the labels plus
    the mean log probability that it gives them, each sample left out.
    """
    share = torch.bincount(labels, minlength=n_clusters).double() / len(labels)
    entropy = -float(torch.special.xlogy(share, share).sum())
    information = neighbour_information(space, labels, n_clusters)
    views = left_out_evidence(space, labels, n_clusters)
    for weight, fit, e in zip(space.weights, space.fits, views, strict=True):
        of = fit.of(labels)[:, None]
        own = e.log_softmax(dim=1).gather(1, of).clamp_min(_LEAST)
        information += weight * (entropy + float(own.mean()))
    return Evidence(information, entropy, space.config.size_power)
