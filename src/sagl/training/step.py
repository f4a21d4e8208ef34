"""What one step computes, and the parameters as the optimiser sees them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sagl.nn import lean
from sagl.nn.lean import Gradients
from sagl.nn.network import Network
from sagl.nn.objective import Loss, Objective


def loss_and_gradients(
    network: Network,
    objective: Objective,
    features: Sequence[Tensor],
    generator: torch.Generator,
) -> tuple[Loss, Gradients]:
    """The loss of a batch and the gradient of every parameter."""
    if lean.takes(network, len(features[0])):
        return lean.loss_and_gradients(network, objective, features, generator)
    loss = objective(network(features, generator))
    parameters = list(network.parameters())
    gradients = torch.autograd.grad(loss.total, parameters)
    detached = Loss(*(term.detach() for term in loss))
    return detached, dict(zip(parameters, gradients, strict=True))


class FlatParameters:
    """All parameters of a module as one vector, which an optimiser steps at once.

    The module's own parameters, and their gradients, become views of the vector: they
    follow its steps, and what is loaded into them is in it. The module must stay on its
    device meanwhile.
    """

    def __init__(self, module: nn.Module) -> None:
        self._parameters = list(module.parameters())
        with torch.no_grad():
            flat = torch.cat([p.reshape(-1) for p in self._parameters])
        self.values = nn.Parameter(flat)
        self.values.grad = grad = torch.zeros_like(flat)
        start = 0
        for p in self._parameters:
            part = slice(start, start + p.numel())
            p.data, p.grad = flat[part].view_as(p), grad[part].view_as(p)
            start = part.stop

    def set_gradients(self, gradients: Gradients) -> None:
        """Lay out the gradient of each parameter where the optimiser looks for it."""
        parts = [gradients[p].reshape(-1) for p in self._parameters]
        torch.cat(parts, out=self.values.grad)

    def release(self) -> None:
        """Give every parameter memory of its own again."""
        for p in self._parameters:
            p.data, p.grad = p.data.clone(), None
