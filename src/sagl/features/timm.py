"""``timm:`` Vision models of the timm library."""

from __future__ import annotations

import json
import re
from typing import Any

import torch
from torch import Tensor

from sagl.environment import optional_module
from sagl.features.callables import FunctionBackbone, run_frozen
from sagl.storage import tensors_sha256

__all__ = ["load_timm"]

# Tags such as fcmae_ft_in22k_in1k name the labelled sets that a model was trained on.
_LABELLED = re.compile(r"(?:^|_)in(1k|12k|21k|22k)(?=_|$)")


def load_timm(
    identifier: str, *, name: str | None = None, device: torch.device | None = None
) -> FunctionBackbone:
    """A frozen model by its name in timm, such as ``convnextv2_tiny.fcmae``.

    It comes without its classifier and with its own preprocessing.
    """
    timm = optional_module("timm", "timm")
    data = optional_module("timm.data", "timm")
    name, target = name or f"timm:{identifier}", device or torch.device("cpu")
    try:
        model = timm.create_model(identifier, pretrained=True, num_classes=0)
    except (RuntimeError, OSError, ValueError, ImportError) as error:
        raise ValueError(f"{name}: {_reason(error)}") from None
    model = model.float().eval().requires_grad_(False)
    settings = data.resolve_model_data_config(model)
    pretrained = dict(getattr(model, "pretrained_cfg", None) or {})
    about = {
        "source": "timm",
        "model": identifier,
        "revision": tensors_sha256(model.state_dict()),
        "pooling": "pooler",
        "preprocessing": json.loads(json.dumps(settings, default=str)),
        "licence": pretrained.get("license"),
        "labels": _labels(pretrained),
        "library": f"timm {timm.__version__}",
    }
    model = model.to(target)

    def embed(prepared: list[Tensor]) -> Tensor:
        pixels = torch.stack(prepared).to(target)
        return run_frozen(lambda: model(pixels), target)

    transform = data.create_transform(**settings, is_training=False)
    return FunctionBackbone(embed, "image", name=name, prepare=transform, about=about)


def _labels(pretrained: dict[str, Any]) -> str | None:
    sizes = _LABELLED.findall(str(pretrained.get("tag") or ""))
    if not sizes or not pretrained.get("num_classes"):
        return None
    return " and ".join(f"ImageNet-{size}" for size in sizes)


def _reason(error: Exception) -> str:
    message = " ".join(str(error).split())
    if not isinstance(error, OSError):
        return f"timm cannot make this model ({message})"
    return (
        f"its weights cannot be had ({message}); download them where there is a "
        "network and point HF_HOME at them"
    )
