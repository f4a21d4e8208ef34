"""What extraction asks of a pretrained model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from torch import Tensor

from sagl.features.samples import Kind


class Backbone(Protocol):
    """A frozen model. It prepares samples in workers and embeds them in batches.

    Attributes
    ----------
    name : str
        ``source:id``, as the user wrote it.
    kind : "image" or "text"
        What it embeds.
    dim : int
        Width of its features.
    """

    name: str
    kind: Kind
    dim: int

    def prepare(self, sample: Any) -> Any:
        """One decoded sample as the model wants it. Needs no weights: runs in workers.

        What it needs must be picklable without the weights.
        """
        ...

    def embed(self, prepared: Sequence[Any]) -> Tensor:
        """Features of a batch of prepared samples, (b, dim), float32, on the CPU."""
        ...

    def describe(self) -> dict[str, Any]:
        """Model id, revision, preprocessing, pooling and licence, as JSON."""
        ...
