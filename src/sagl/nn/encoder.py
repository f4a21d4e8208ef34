"""The linear map of one view: z = W h, weight-normalised (eq. linearfeat)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

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

    def __init__(
        self, width: int, n_clusters: int, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self.v = nn.Parameter(uniform_fan_in((n_clusters, width), width, generator))
        self.g = nn.Parameter(self.v.detach().norm(dim=1))
        self.b = nn.Parameter(uniform_fan_in((n_clusters,), width, generator))
        self.register_buffer("shift", torch.zeros(width))
        self.register_buffer("scale", torch.ones(()))

    def standardize(self, h: Tensor) -> Tensor:
        return (h - self.shift) * self.scale

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
