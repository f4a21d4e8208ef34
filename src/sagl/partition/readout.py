"""A network that predicts given labels: its linear maps by ridge regression."""

from __future__ import annotations

import torch
from torch import Tensor

from sagl.nn.network import Network, ViewNetwork
from sagl.partition.anneal import Sizes
from sagl.partition.evidence import Line, line
from sagl.partition.space import Space, one_hot

# Of the scores between samples. Higher, a sample has fewer neighbours, and where the
# view is poor the wrong ones; lower, the graph is not sparse.
_SHARPNESS = 0.25
_NEVER = -10.0  # linear features of a cluster that nobody is to be put into
_BISECTIONS = 40
_MAX_SHARPENING = 20.0


@torch.no_grad()
def predict_labels(
    network: Network,
    space: Space,
    labels: Tensor,
    row_length: float,
    sizes: Sizes = "even",
) -> None:
    """Set the weights of ``network`` so that it predicts the labels (n,) of ``space``.

    Per view W is the ridge regression to the labels, scaled to a deviation by the
    weight of the view, 1 on average: each cluster alike, or as log odds where clusters
    are of any size. U and V are multiples of the identity, so that the graph joins
    samples of like z. ``row_length`` is the length of the rows that the network is
    given.
    """
    C = len(network.view_networks[0].bias)
    Y = one_hot(labels, C)
    centred = Y - Y.mean(dim=0)
    views = network.view_networks
    odds = _odds(space, centred, Y) if sizes == "free" else None
    for view, fit, share in zip(views, space.fits, space.weights, strict=True):
        W = fit.weights(centred)
        middle, slope = odds or _standard(fit.x @ W)
        weight = (W * slope).T / row_length
        size, empty = weight.norm(dim=1), ~Y.any(dim=0)
        # A map of an empty cluster keeps its direction, which must not be zero.
        view.encoder.v.copy_(torch.where(size[:, None] > 0, weight, view.encoder.v))
        view.encoder.g.copy_(size)
        view.encoder.b.copy_((-middle * slope).masked_fill(empty, _NEVER))
        view.bias.zero_()
        if view.graph != "identity":
            identity = torch.eye(C, device=W.device) * _SHARPNESS**0.5
            view.U.copy_(identity)
            view.V.copy_(identity)
        _multiply(view, share * len(views))


def _standard(z: Tensor) -> Line:
    """Every cluster to mean zero and deviation one."""
    return Line(z.mean(dim=0), 1 / z.std(dim=0).clamp_min(1e-6))


def _odds(space: Space, centred: Tensor, Y: Tensor) -> Line:
    """What all views say together to log odds with their prior, of deviation one.

    By predictions that leave the sample out, which is what new samples are like.
    """
    z = space.mean([fit.left_out(centred) for fit in space.fits])
    middle, slope = line(z, Y)
    prior = Y.mean(dim=0).clamp_min(1e-9).log()
    used = Y.any(dim=0)
    deviation = (z.std(dim=0) * slope)[used].mean()
    return Line(middle - prior / slope, slope / deviation)


@torch.no_grad()
def sharpen(network: Network, factor: float) -> None:
    """Multiply all representations by a factor, and leave the graphs as they are."""
    for view in network.view_networks:
        _multiply(view, factor)


def _multiply(view: ViewNetwork, factor: float) -> None:
    view.encoder.g.mul_(factor)
    view.encoder.b.mul_(factor)
    view.bias.mul_(factor)
    if view.graph != "identity":
        view.U.div_(factor)
        view.V.div_(factor)


def sharpening(p: Tensor, mean_confidence: float) -> float:
    """The factor on representations p, (n, C), that brings about a confidence.

    The nearest that can be had, where the confidence cannot be had.
    """
    low, high = 0.0, _MAX_SHARPENING
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        q = torch.softmax(middle * p, dim=-1)
        if float(q.amax(dim=1).mean()) < mean_confidence:
            low = middle
        else:
            high = middle
    return max((low + high) / 2, 1e-3)
