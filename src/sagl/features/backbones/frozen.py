"""What all frozen networks share: how they are run, and what is said of labels."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn


def run_frozen(compute: Callable[[], Tensor], device: torch.device) -> Tensor:
    """What ``compute`` returns, in float32 on the CPU, without any gradient.

    On CUDA products are in half precision; where that overflows, all is done again in
    full precision.
    """
    half = device.type == "cuda"
    with torch.inference_mode():
        with torch.autocast(device.type, torch.float16, enabled=half):
            features = compute().float()
        if half and not features.isfinite().all():
            features = compute().float()
    return features.cpu().clone()  # a copy that autograd may use


def check_features(features: Tensor, rows: int, dim: int | None = None) -> None:
    """Refuse what is not one row of equally many numbers per sample."""
    width = "width" if dim is None else str(dim)
    fits = features.ndim == 2 and len(features) == rows and features.shape[1] > 0
    if not fits or (dim is not None and features.shape[1] != dim):
        raise ValueError(
            f"features of shape {tuple(features.shape)} for {rows} samples; expected "
            f"({rows}, {width})"
        )


def check_finite(features: Tensor) -> None:
    """Refuse a model that gives nothing usable; for a single sample this may happen."""
    if not features.isfinite().all():
        raise ValueError("its features are infinite or not numbers: it is damaged")


def digest_weights(model: nn.Module) -> str:
    """A checksum of all weights of a model, whatever file they came from."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def warn_about_labels(name: str, taught: str) -> None:
    """Say that a backbone has seen labels, and why that matters."""
    warnings.warn(
        f"{name} was trained with labels ({taught}): the classes it was taught may "
        "overlap with those looked for, and then the result is not label-free",
        stacklevel=3,
    )
