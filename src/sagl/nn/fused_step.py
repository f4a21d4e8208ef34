"""One training step of a small batch by hand: the loss and all gradients.

What a small batch costs is not arithmetic but operations: several microseconds each,
and autograd doubles them. This is the network and the objective once more, all views
at once and their gradient written out, in a third of the operations. It must equal what
autograd makes of ``Network`` and ``Objective``; the tests hold it to that.

It takes 0.60 of autograd's time for batches of 100 and 10 clusters, 0.76 for 222 and
37, 0.9 from 500 on (benchmarks/attention_paths.py): it is for the recipes that train
on the views' consensus, not for the default, whose steps have a target.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sagl.nn.attention import is_small, score_scale
from sagl.nn.dense import Options, attended, attended_gradient
from sagl.nn.gate import SparsityGate, row_factor, row_factor_slope
from sagl.nn.network import Network
from sagl.nn.objective import Loss, Objective

Gradients = dict[nn.Parameter, Tensor]


def takes(network: Network, n: int) -> bool:
    """Whether a batch of n samples is small, has a graph, and no autocast is on."""
    view = network.view_networks[0]
    if view.graph == "identity" or torch.is_autocast_enabled(view.bias.device.type):
        return False
    return is_small(n, n)


@torch.inference_mode()
def loss_and_gradients(
    network: Network,
    objective: Objective,
    features: Sequence[Tensor],
    generator: torch.Generator | None = None,
) -> tuple[Loss, Gradients]:
    """The loss of one batch and the gradient of every parameter of the network."""
    views = network.view_networks
    one = views[0]  # the views differ in nothing but their parameters
    L, C = len(views), len(one.bias)

    z, weights, lengths = _encode(network, features)
    UV = torch.cat([M for view in views for M in (view.U, view.V)], dim=1)
    UV = UV.view(C, L, 2 * C).transpose(0, 1)  # (L, C, 2 C)
    queries, keys = torch.bmm(z, UV).tensor_split(2, dim=2)
    gates = _gates(network, z, features)
    scale: Tensor | float = score_scale(C, one.alpha)
    if gates:
        omega = torch.cat([gate.forward() for gate in gates])  # (L, n)
        scale = row_factor(omega, one.gate_form).unsqueeze(2) * scale
    q = queries * scale
    dropout = one.dropout if network.training else 0.0
    options = Options(one.alpha, one.excluded(z), dropout, generator)
    out, _, saved = attended(q, keys, z, options)
    bias = torch.stack([view.bias for view in views]).unsqueeze(1)
    log_q = torch.log_softmax(out.add_(z).add_(bias), dim=2)

    loss, d = objective.with_gradient(log_q)
    dp = d.sub_(log_q.exp_().mul_(d.sum(dim=2, keepdim=True)))
    dq, dkeys, dz = attended_gradient(q, keys, z, one.alpha, saved, dp)
    dz.add_(dp)
    grads: Gradients = {}
    if gates:
        slope = row_factor_slope(omega, one.gate_form) * score_scale(C, one.alpha)
        domega = torch.linalg.vecdot(dq, queries).mul_(slope)
        for gate, part in zip(gates, domega.tensor_split(len(gates)), strict=True):
            gate.backward(part, dz if one.gate_input == "z" else None, grads)
    dqk = torch.cat([dq.mul_(scale), dkeys], dim=2)
    dUV = torch.bmm(z.mT, dqk)
    dz.baddbmm_(dqk, UV.mT)
    for i, (view, dbias) in enumerate(zip(views, dp.sum(dim=1), strict=True)):
        grads[view.U], grads[view.V] = dUV[i].tensor_split(2, dim=1)
        grads[view.bias] = dbias
    _encode_backward(network, features, dz, weights, lengths, grads)
    return loss, grads


def _encode(
    network: Network, features: Sequence[Tensor]
) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """z of all views, (L, n, C); W of each view and ||v|| of its rows."""
    views = network.view_networks
    z = features[0].new_empty(len(views), len(features[0]), len(views[0].bias))
    weights, lengths = [], []
    for view, h, z_view in zip(views, features, z, strict=True):
        v, g, b = view.encoder.v, view.encoder.g, view.encoder.b
        length = torch.linalg.vector_norm(v, dim=1)
        W = v * (g / length).unsqueeze(1)
        torch.addmm(b, h, W.T, out=z_view)
        weights.append(W)
        lengths.append(length)
    return z, weights, lengths


def _encode_backward(
    network: Network,
    features: Sequence[Tensor],
    dz: Tensor,
    weights: list[Tensor],
    lengths: list[Tensor],
    grads: Gradients,
) -> None:
    """With W = g v / ||v||: dg = <dW, W> / g and dv = (g dW − dg W) / ||v||."""
    db = dz.sum(dim=1)
    for i, (view, h) in enumerate(zip(network.view_networks, features, strict=True)):
        encoder, W, length = view.encoder, weights[i], lengths[i]
        dW = dz[i].T @ h
        dg = torch.linalg.vecdot(dW, encoder.v).div_(length)
        dv = dW.mul_((encoder.g / length).unsqueeze(1))
        dv.addcmul_(W, (dg / length).unsqueeze(1), value=-1)
        grads[encoder.v], grads[encoder.g], grads[encoder.b] = dv, dg, db[i]


def _gates(network: Network, z: Tensor, features: Sequence[Tensor]) -> list[_Gates]:
    """All gates together where they read z; one by one where they read features."""
    gates = [view.gate for view in network.view_networks if view.gate is not None]
    if gates and network.view_networks[0].gate_input == "z":
        return [_Gates(gates, z)]
    return [_Gates([gate], h[None]) for gate, h in zip(gates, features, strict=False)]


class _Gates:
    """ω = sigmoid(W2 relu(W1 x + b1) + b2) of k gates, and its gradient."""

    def __init__(self, gates: list[SparsityGate], x: Tensor) -> None:
        self.gates = gates
        self.x = x  # (k, n, width)
        self.W1 = torch.stack([gate.W1 for gate in gates])
        self.W2 = torch.stack([gate.W2 for gate in gates])

    def forward(self) -> Tensor:
        """ω, (k, n)."""
        b1 = torch.stack([gate.b1 for gate in self.gates]).unsqueeze(1)
        b2 = torch.stack([gate.b2 for gate in self.gates]).unsqueeze(1)
        self.hidden = torch.baddbmm(b1, self.x, self.W1.mT).relu_()
        self.omega = torch.baddbmm(b2, self.hidden, self.W2.mT).sigmoid_()
        return self.omega.squeeze(2)

    def backward(self, domega: Tensor, dx: Tensor | None, grads: Gradients) -> None:
        """Gradients of the parameters, and to ``dx`` what x receives."""
        d2 = domega.unsqueeze(2) * (self.omega * (1 - self.omega))
        d1 = (d2 * self.W2).mul_(self.hidden > 0)
        dW1, dW2 = d1.mT @ self.x, d2.mT @ self.hidden
        db1, db2 = d1.sum(dim=1), d2.sum(dim=1)
        if dx is not None:
            dx.baddbmm_(d1, self.W1)
        for i, gate in enumerate(self.gates):
            grads[gate.W1], grads[gate.b1] = dW1[i], db1[i]
            grads[gate.W2], grads[gate.b2] = dW2[i], db2[i]
