"""A network that predicts given labels: its linear maps by ridge regression."""

from __future__ import annotations

import torch
from torch import Tensor

from sagl.nn.network import Network
from sagl.partition.space import Space, one_hot

# Scores between samples of one cluster come out near this, and near 0 between
# clusters: entmax then keeps neighbours of the own cluster alone.
_SHARPNESS = 1.0
_BISECTIONS = 40
_MAX_SHARPENING = 20.0


@torch.no_grad()
def predict_labels(
    network: Network, space: Space, labels: Tensor, row_length: float
) -> None:
    """Set the weights of ``network`` so that it predicts the labels (n,) of ``space``.

    Per view W is the ridge regression to the labels, each cluster scaled to unit
    deviation; U and V are multiples of the identity, so that the graph joins samples
    of like z. One factor on all z makes the mean confidence what it should be: the
    share of samples whose label the views predict without having seen it.
    ``row_length`` is the length of the rows that the network is given.
    """
    C = len(network.view_networks[0].bias)
    Y = one_hot(labels, C)
    centred = Y - Y.mean(dim=0)
    maps, left_out = [], []
    for fit in space.fits:
        W = fit.weights(centred)
        z = fit.x @ W
        deviation = z.std(dim=0).clamp_min(1e-6)
        mean = z.mean(dim=0) / deviation
        maps.append((W / deviation, mean))
        left_out.append(fit.left_out(centred) / deviation - mean)
    right = (sum(left_out[1:], start=left_out[0]).argmax(dim=1) == labels).float()
    factor = _sharpening(left_out, float(right.mean()))
    for view, (W, mean) in zip(network.view_networks, maps, strict=True):
        weight = factor * W.T / row_length
        view.encoder.v.copy_(weight)
        view.encoder.g.copy_(weight.norm(dim=1))
        view.encoder.b.copy_(-factor * mean)
        view.bias.zero_()
        if view.graph != "identity":
            size = (_SHARPNESS**0.5) / factor
            identity = torch.eye(C, device=W.device) * size
            view.U.copy_(identity)
            view.V.copy_(identity)


def _sharpening(left_out: list[Tensor], agreement: float) -> float:
    """The factor on z at which mean confidence equals the agreement.

    p = A z + z is about 2 z where neighbours agree.
    """
    low, high = 0.0, _MAX_SHARPENING
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        q = torch.stack([torch.softmax(2 * middle * z, dim=1) for z in left_out])
        if float(q.mean(dim=0).amax(dim=1).mean()) < agreement:
            low = middle
        else:
            high = middle
    return max((low + high) / 2, 1e-3)
