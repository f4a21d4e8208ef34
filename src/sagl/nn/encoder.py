"""The linear map of one view: z = W h, weight-normalised (eq. linearfeat)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from sagl.nn.neighbours import unit_rows

# A matrix product; prediction passes one that is free of rounding (nn/inference.py).
Product = Callable[[Tensor, Tensor], Tensor]


class LinearEncoder(nn.Module):
    """z = (g · v / ||v||) h + b, with C output dimensions.

    ``shift`` and ``scale`` bring raw features to the scale on which the recipe trains:
    ``h = standardize(raw)``. They are constants, not parameters, and travel with the
    weights.
    """

    shift: Tensor
    scale: Tensor
    row_length: Tensor

    def __init__(
        self, width: int, n_clusters: int, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.v = nn.Parameter(uniform_fan_in((n_clusters, width), width, generator))
        # Of tensors without numbers only the shape is asked; torch would import a
        # second of code to find that of their norm.
        v = self.v.detach()
        self.g = nn.Parameter(v[:, 0] if v.is_meta else v.norm(dim=1))
        self.b = nn.Parameter(uniform_fan_in((n_clusters,), width, generator))
        self.register_buffer("shift", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))
        self.register_buffer("row_length", torch.zeros(()))

    def standardize(self, h: Tensor) -> Tensor:
        """(h − shift) · scale, then rows of length ``row_length`` unless that is 0."""
        h = (h - self.shift) * self.scale
        if self.row_length == 0:
            return h
        return unit_rows(h) * self.row_length

    def weight(self) -> Tensor:
        """W, of shape (C, d): each row has the length g."""
        length: Tensor = self.v.norm(dim=1)
        return self.v * (self.g / length)[:, None]

    def forward(self, h: Tensor, matmul: Product = torch.matmul) -> Tensor:
        """Standardised features (n, d) to linear features (n, C)."""
        return matmul(h, self.weight().T) + self.b


def uniform_fan_in(
    shape: tuple[int, ...], fan_in: int, generator: torch.Generator | None
) -> Tensor:
    """Uniform in ±1/sqrt(fan_in), the start that torch gives its linear layers."""
    bound = float(fan_in**-0.5)
    return torch.empty(shape).uniform_(-bound, bound, generator=generator)
