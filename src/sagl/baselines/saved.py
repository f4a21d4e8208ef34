"""A trained peer on disk: ``method.json`` (written last) and ``model.safetensors``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sagl._version import __version__
from sagl.run import make_writable
from sagl.storage import read_tensors, sha256, write_json, write_tensors

FORMAT = 1
CONFIG = "method.json"
MODEL = "model.safetensors"
_LABELS = "labels"


class SavedMethod(NamedTuple):
    """All that a fitted peer consists of."""

    method: str
    params: dict[str, Any]
    views: dict[str, int]  # name and width
    state: dict[str, Tensor]
    labels: NDArray[np.int64]


def write_method(directory: Path, saved: SavedMethod) -> None:
    """Write both files; a directory without the configuration is not a model."""
    for name in (CONFIG, MODEL):
        if (directory / name).exists():
            raise ValueError(
                f"{directory / name} is there already; choose another directory or "
                "remove it"
            )
    make_writable(directory)
    tensors = {f"state.{name}": tensor for name, tensor in saved.state.items()}
    tensors[_LABELS] = torch.from_numpy(saved.labels)
    write_tensors(directory / MODEL, tensors)
    config = {
        "format": FORMAT,
        "sagl": __version__,
        "method": saved.method,
        "params": saved.params,
        "views": saved.views,
        "sha256": sha256(directory / MODEL),
    }
    write_json(directory / CONFIG, config)


def read_method(directory: Path) -> SavedMethod:
    """Read a model back and check that it is whole."""
    path = directory / CONFIG
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        version, checksum = int(config["format"]), config["sha256"]
        method, params, views = config["method"], config["params"], config["views"]
    except OSError:
        raise ValueError(f"{directory} holds no model: there is no {CONFIG}") from None
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{path} is damaged: not a model's configuration") from None
    if version > FORMAT:
        raise ValueError(
            f"{directory} is of format {version}; this sagl {__version__} reads up to "
            f"format {FORMAT}: upgrade sagl"
        )
    model = directory / MODEL
    if not model.is_file() or sha256(model) != checksum:
        raise ValueError(f"{model} is missing or damaged; restore it or fit again")
    tensors, _ = read_tensors(model)
    labels = tensors.pop(_LABELS).numpy()
    state = {name.removeprefix("state."): t for name, t in tensors.items()}
    return SavedMethod(method, params, views, state, labels)
