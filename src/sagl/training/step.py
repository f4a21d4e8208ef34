"""What one step computes, and the parameters as the optimiser sees them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from sagl.nn import fused_step
from sagl.nn.fused_step import Gradients
from sagl.nn.network import Network
from sagl.nn.objective import Loss, Objective
from sagl.nn.ranks import Ranks, SharedBatch


def loss_and_gradients(
    network: Network,
    objective: Objective,
    features: Sequence[Tensor],
    generator: torch.Generator,
    target: Tensor | None = None,
    batch: SharedBatch | None = None,
    present: Tensor | None = None,
) -> tuple[Loss, Gradients]:
    """The loss of a batch and the gradient of every trained parameter.

    With a ``target``, clusters (n,) of the batch, the graph of each view learns to
    join samples of one cluster; without, the views are each other's teachers.

    Of a ``batch`` that processes share, features are those of own rows, and so are the
    labels of the loss and what is added to the gradients. ``present``, (n, L), says
    which samples have which view, if some miss one: only with a target.
    """
    if target is not None:
        clusters = one_hot(target, len(network.view_networks[0].bias)).to(features[0])
        log_q = network.neighbour_log_q(features, clusters, generator, batch, present)
        aim = target if batch is None else target[batch.own]
        loss = objective(log_q, aim, batch, present)
    elif batch is None and fused_step.takes(network, len(features[0])):
        return fused_step.loss_and_gradients(network, objective, features, generator)
    else:
        loss = objective(network(features, generator, batch), batch=batch)
    parameters = trained_parameters(network)
    gradients = torch.autograd.grad(loss.total, parameters)
    detached = Loss(*(term.detach() for term in loss))
    return detached, dict(zip(parameters, gradients, strict=True))


def trained_parameters(module: nn.Module) -> list[nn.Parameter]:
    """Those that gradients reach; the others are solved in closed form."""
    return [p for p in module.parameters() if p.requires_grad]


class FlatParameters:
    """All trained parameters of a module as one vector, stepped at once.

    The module's own parameters, and their gradients, become views of the vector: they
    follow its steps, and what is loaded into them is in it. The module must stay on its
    device meanwhile.
    """

    def __init__(self, module: nn.Module) -> None:
        self._parameters = trained_parameters(module)
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

    def sum_gradients(self, ranks: Ranks) -> None:
        """Add up what several processes have of them."""
        assert self.values.grad is not None
        ranks.sum_(self.values.grad)

    def release(self) -> None:
        """Give every parameter memory of its own again."""
        for p in self._parameters:
            p.data, p.grad = p.data.clone(), None
