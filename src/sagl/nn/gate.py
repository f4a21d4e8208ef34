"""The dynamic sparsity gate: one factor per sample that sharpens or flattens a row."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from sagl.checks import check_choice
from sagl.nn.encoder import Product, uniform_fan_in

GateForm = Literal["none", "shrink", "sharpen"]
_EPSILON = 1e-6


class SparsityGate(nn.Module):
    """ω = sigmoid(W2 relu(W1 x)), in (0, 1), one number per row (eq. gate).

    The hidden width is half the input's. The layers carry biases, as in the released
    code; the paper's equation leaves them out.
    """

    def __init__(self, width: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        hidden = max(1, width // 2)
        self.W1 = nn.Parameter(uniform_fan_in((hidden, width), width, generator))
        self.b1 = nn.Parameter(uniform_fan_in((hidden,), width, generator))
        self.W2 = nn.Parameter(uniform_fan_in((1, hidden), hidden, generator))
        self.b2 = nn.Parameter(uniform_fan_in((1,), hidden, generator))

    def forward(self, x: Tensor, matmul: Product = torch.matmul) -> Tensor:
        hidden = torch.relu(matmul(x, self.W1.T) + self.b1)  # (n, width // 2)
        omega = torch.sigmoid(matmul(hidden, self.W2.T) + self.b2)  # (n, 1)
        return omega.squeeze(1)


def row_factor(omega: Tensor, form: GateForm) -> Tensor:
    """The factor on a row's scores: 1 − ω (eq. sim) or 1 / (1 − ω + ε) (eq. alsim).

    *Shrink* flattens the row as ω grows, so entmax keeps more neighbours; *sharpen*
    does the opposite, which is what the paper's text asks of the gate.
    """
    if form == "shrink":
        return 1 - omega
    check_choice("gate form", form, Literal["shrink", "sharpen"])
    return 1 / (1 - omega + _EPSILON)


def row_factor_slope(omega: Tensor, form: GateForm) -> Tensor | float:
    """How fast the factor follows ω."""
    return -1.0 if form == "shrink" else row_factor(omega, form).square()
