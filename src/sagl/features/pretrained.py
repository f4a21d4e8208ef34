"""Frozen networks: reading those of transformers, and running those of any library.

Weights are read from safetensors files; where a model has none, from its older files,
as plain tensors. Code that comes with a model runs only if the user asks for it, and
whatever goes wrong is said in one line with its cure.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import pickle
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

__all__ = ["MissingExtra", "load_model", "load_tokenizer", "optional_module"]

_HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
_COMMIT = re.compile(r"[/\\]snapshots[/\\]([0-9a-f]{40})[/\\]")
_NO_CONVERSION = "DISABLE_SAFETENSORS_CONVERSION"


class MissingExtra(ImportError, ValueError):  # noqa: N818
    """A package that is not installed; the message says how to install it."""


def optional_module(name: str, extra: str = "backbones") -> Any:
    """A module of an extra, imported when it is needed."""
    package = name.partition(".")[0].replace("PIL", "pillow")
    try:
        return importlib.import_module(name)
    except ImportError as error:
        cure = f'pip install "sagl[{extra}]"'
        raise MissingExtra(f"this needs {package}: {cure} ({error})") from None
    except RuntimeError as error:
        if "torchvision" not in str(error):
            raise
        raise MissingExtra(f"{package}: {_torchvision_cure()}") from None


@dataclass(frozen=True)
class Place:
    """Where the files of a model are: a directory, or a repository of the hub."""

    source: str  # the path of the directory, or the name of the repository
    local: bool
    revision: str | None = None  # of a repository
    trust_remote_code: bool = False

    @property
    def name(self) -> str:
        """The same on every machine: of a directory, only its own name."""
        return Path(self.source).resolve().name if self.local else self.source

    @property
    def arguments(self) -> dict[str, Any]:
        """What ``from_pretrained`` has to be told about the place."""
        return {
            "pretrained_model_name_or_path": self.source,
            "local_files_only": self.local,
            "revision": self.revision or "main",
            "trust_remote_code": self.trust_remote_code,
        }


def find_place(
    source: str | Path, revision: str | None = None, trust_remote_code: bool = False
) -> Place:
    """The place of a model, without looking whether it is one."""
    path = Path(source).expanduser()
    if path.is_dir():
        return Place(str(path), True, None, trust_remote_code)
    if isinstance(source, Path) or not _HUB_NAME.fullmatch(source):
        raise ValueError(
            f"{source}: no such directory; give one that holds a model of "
            "transformers, or a name on the Hugging Face hub such as "
            "openai/clip-vit-base-patch16"
        )
    return Place(source, False, revision, trust_remote_code)


@contextmanager
def reading(place: Place) -> Iterator[Any]:
    """The transformers library, kept silent; its errors become one line."""
    transformers = optional_module("transformers")
    log, hub = transformers.utils.logging, optional_module("huggingface_hub.utils")
    verbosity, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    hub_verbosity = hub.logging.get_verbosity()
    conversion = os.environ.get(_NO_CONVERSION)
    log.set_verbosity_error()
    log.disable_progress_bar()
    hub.logging.set_verbosity_error()
    if not place.local and sys.stderr.isatty():  # downloads take minutes
        hub.enable_progress_bars()
    # Otherwise reading older weights asks a service on the hub to convert them.
    os.environ[_NO_CONVERSION] = "1"
    try:
        yield transformers
    except MissingExtra:
        raise
    except (
        *(OSError, ValueError, ImportError, RuntimeError, KeyError, TypeError),
        *(SafetensorError, pickle.UnpicklingError),
    ) as error:
        raise ValueError(f"{place.source}: {_reason(error, place)}") from None
    finally:
        log.set_verbosity(verbosity)
        hub.logging.set_verbosity(hub_verbosity)
        if bars:
            log.enable_progress_bar()
        if conversion is None:
            del os.environ[_NO_CONVERSION]
        else:
            os.environ[_NO_CONVERSION] = conversion


def load_config(place: Place) -> tuple[Any, Place]:
    """The configuration of a model, and its place pinned to one commit."""
    with reading(place) as transformers:
        config = transformers.AutoConfig.from_pretrained(**place.arguments)
        if not place.local:
            file = find_file(place, "config.json")
            commit = _COMMIT.search(str(file))
            if commit:
                place = replace(place, revision=commit.group(1))
    return config, place


def find_file(place: Place, name: str) -> Path | None:
    """The path of a file of a model, downloaded if it has to be; None if there is none.

    To be called while ``reading``.
    """
    if place.local:
        path = Path(place.source) / name
        return path if path.is_file() else None
    path = optional_module("transformers.utils.hub").cached_file(
        place.source,
        name,
        revision=place.revision,
        _raise_exceptions_for_missing_entries=False,
    )
    return None if path is None else Path(path)


def read_settings(place: Place, name: str) -> Any:
    """The content of a JSON file of a model; None if there is none."""
    with reading(place):
        path = find_file(place, name)
        if path is None:
            return None
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{name} is damaged ({error}); copy it again") from None


def load_weights(cls: Any, place: Place, **more: Any) -> tuple[Any, list[str]]:
    """A model in float32, ready to be used, and the names of weights it lacks.

    To be called while ``reading``.
    """
    model, report = cls.from_pretrained(
        **place.arguments,
        **more,
        weights_only=True,
        ignore_mismatched_sizes=True,
        output_loading_info=True,
    )
    # transformers draws such weights at random and goes on.
    wrong = [*report["missing_keys"], *(k for k, *_ in report["mismatched_keys"])]
    return model.float().eval().requires_grad_(False), sorted(wrong)


def refuse_missing(missing: list[str]) -> None:
    if missing:
        raise ValueError(
            f"{len(missing)} of its weights are missing or of another shape, such as "
            f"{missing[0]}; use the whole model with its projection"
        )


def load_model(source: str | Path, classes: Mapping[str, str]) -> Any:
    """A model of one of a few kinds, in float32, ready to be used.

    ``source`` is a directory or a name on the Hugging Face hub; ``classes`` gives the
    class of transformers for each kind of model (``model_type``) that will do.
    """
    config, place = load_config(find_place(source))
    with reading(place) as transformers:
        if config.model_type not in classes:
            raise ValueError(
                f"it is a model of kind {config.model_type!r}; needed is one of "
                f"{', '.join(classes)}"
            )
        cls = getattr(transformers, classes[config.model_type])
        model, missing = load_weights(cls, place)
        refuse_missing(missing)
    return model


def load_tokenizer(source: str | Path | Place) -> Any:
    """The tokenizer that belongs to a model."""
    place = source if isinstance(source, Place) else find_place(source)
    with reading(place) as transformers:
        tokenizer = transformers.AutoTokenizer.from_pretrained(**place.arguments)
        # Without its files transformers makes one that knows no words, and goes on.
        if len(tokenizer) <= len(tokenizer.all_special_tokens) + 1:
            raise ValueError("its tokenizer is missing; save it beside the model")
    return tokenizer


def _reason(error: BaseException, place: Place) -> str:
    """Why a model could not be read, and what helps."""
    said, causes = " ".join(str(error).split()), _causes(error)
    whole = " ".join([said, *causes.values()])
    if "trust_remote_code" in said:
        return (
            "it brings code of its own, which is not run; use a model that "
            "transformers knows, or allow it (--trust-remote-code) if you trust it"
        )
    if "timm" in said and isinstance(error, ImportError):
        return 'it needs timm: pip install "sagl[timm]"'
    if "torchvision" in whole:
        return _torchvision_cure()
    if "UnpicklingError" in causes:
        return (
            "its weights are stored as pickle and hold more than tensors, which is "
            "not read; save the model once more, as safetensors"
        )
    if "SafetensorError" in causes or "PytorchStreamReader" in said:
        return f"its weights are damaged or cut short ({said}); copy them again"
    if place.local and "no file named" in said:
        return f"{said.rstrip('.')}; copy the whole directory of the model"
    if place.local or not isinstance(error, OSError):
        return said
    return _hub_reason(said, set(causes), place.source)


def _hub_reason(said: str, causes: set[str], name: str) -> str:
    if "GatedRepoError" in causes:
        return (
            "this model is gated: accept its terms at "
            f"https://huggingface.co/{name}, then log in with: hf auth login"
        )
    if "RevisionNotFoundError" in causes:
        return "the hub has this model, but not this revision; check what follows the @"
    if "RepositoryNotFoundError" in causes:
        return (
            "neither a directory here nor a model that the Hugging Face hub shows you; "
            "check the name, or log in if it is private: hf auth login"
        )
    if "EntryNotFoundError" in causes and "LocalEntryNotFoundError" not in causes:
        return f"a file of this model is missing on the hub: {said}"
    return (
        "no directory here, and the Hugging Face hub cannot be reached; download the "
        "model where there is a network and give its directory"
    )


def _torchvision_cure() -> str:
    return (
        f"the torchvision that belongs to torch {torch.__version__} is needed, and "
        "what is installed is another one or none; install the build of the same "
        "release and device as torch, or, if nothing else needs torchvision, "
        "remove it: pip uninstall torchvision"
    )


def _causes(error: BaseException | None) -> dict[str, str]:
    """Names of the classes of an error and of what led to it, and what each said."""
    names: dict[str, str] = {}
    while error is not None:
        for cls in type(error).__mro__:
            names.setdefault(cls.__name__, str(error))
        error = error.__cause__ or error.__context__
    return names


def describe_model(
    source: str, model: str, revision: str | None, dim: int, **more: Any
) -> dict[str, Any]:
    """What a backbone says of itself, as JSON, whatever its source."""
    unknown = ("kind", "pooling", "preprocessing", "licence", "labels", "library")
    return {
        "source": source,
        "model": model,
        "revision": revision,
        "dim": dim,
        "normalized": False,
        **dict.fromkeys(unknown),
        **more,
    }


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
