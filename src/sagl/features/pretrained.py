"""Reading models of transformers, from a directory or the Hugging Face hub.

Weights are read from safetensors files; where a model has none, from its older files,
as plain tensors. Whatever goes wrong is said in one line with its cure: transformers
draws missing weights at random, and its errors are paragraphs.
"""

from __future__ import annotations

import hashlib
import json
import logging
import pickle
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from sagl.environment import MissingExtra, optional_module, torchvision_cure
from sagl.storage import sha256

__all__ = ["MissingExtra", "load_model", "optional_module"]

_HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")
_SETTINGS = ("*.json", "*.txt", "*.model", "*.py")  # all that a model needs but weights
# What errors of the hub mean, by the names of their classes.
_HUB_ERRORS = {
    "GatedRepoError": "this model is gated: accept its terms at "
    "https://huggingface.co/{}, then log in with: hf auth login",
    "RevisionNotFoundError": "the hub has this model, but not this revision; check "
    "what follows the @",
    "RepositoryNotFoundError": "neither a directory here nor a model that the Hugging "
    "Face hub shows you; check the name, or log in if it is private: hf auth login",
}
_UNREACHABLE = (
    "no directory here, and the Hugging Face hub cannot be reached; download the model "
    "where there is a network and give its directory"
)
_LICENCE = re.compile(r"\A---\n.*?^license:\s*(\S+)", re.MULTILINE | re.DOTALL)


def load_model(source: str | Path, classes: Mapping[str, str]) -> Any:
    """A model of one of a few kinds, in float32, ready to be used.

    ``source`` is a directory or a name on the Hugging Face hub; ``classes`` gives the
    class of transformers for each kind of model (``model_type``) that will do.
    """
    with reading(source) as transformers:
        place = place_of(*find_model(source))
        config = transformers.AutoConfig.from_pretrained(**place)
        if config.model_type not in classes:
            raise ValueError(
                f"it is a model of kind {config.model_type!r}; needed is one of "
                f"{', '.join(classes)}"
            )
        cls = getattr(transformers, classes[config.model_type])
        model, missing = load_weights(cls, place)
        refuse_missing(missing)
    return model


@contextmanager
def reading(source: str | Path) -> Iterator[Any]:
    """The transformers library, kept silent; its errors become one line."""
    transformers = optional_module("transformers")
    bars = transformers.utils.logging
    with ExitStack() as restore:
        for logger in map(logging.getLogger, ("transformers", "huggingface_hub")):
            restore.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.ERROR)
        if bars.is_progress_bar_enabled():
            restore.callback(bars.enable_progress_bar)
        bars.disable_progress_bar()
        try:
            yield transformers
        except MissingExtra:
            raise
        except (
            *(OSError, ValueError, ImportError, RuntimeError, KeyError, TypeError),
            *(SafetensorError, pickle.UnpicklingError),
        ) as error:
            raise ValueError(f"{source}: {_reason(error)}") from None


def _reason(error: BaseException) -> str:
    """Why a model could not be read, and what helps."""
    message = " ".join(str(error).split())
    if "trust_remote_code" in message:
        return (
            "it brings code of its own, which is not run; use a model that "
            "transformers knows, or allow it (--trust-remote-code) if you trust it"
        )
    if "timm" in message and isinstance(error, ImportError):
        return 'it needs timm: pip install "sagl[timm]"'
    if "torchvision" in f"{message} {error.__cause__}":
        return torchvision_cure()
    if isinstance(error, pickle.UnpicklingError):
        return "its weights hold more than tensors (pickle), which is never read"
    if isinstance(error, SafetensorError) or "PytorchStreamReader" in message:
        return f"its weights are damaged or cut short ({message}); copy them again"
    if "no file named" in message:
        return f"{message.rstrip('.')}; copy the whole directory of the model"
    return message


def find_model(
    source: str | Path, revision: str | None = None
) -> tuple[Path, str | None]:
    """The directory of a model, and its commit if it was downloaded from the hub."""
    directory = Path(source).expanduser()
    if directory.is_dir():
        return directory, None
    if isinstance(source, Path) or not _HUB_NAME.fullmatch(source):
        raise ValueError(
            "no such directory; give one that holds a model of transformers, or a name "
            "on the Hugging Face hub such as openai/clip-vit-base-patch16"
        )
    hub = optional_module("huggingface_hub")
    if sys.stderr.isatty():  # downloads take minutes
        hub.utils.enable_progress_bars()
    try:
        for weights in ("*.safetensors", "pytorch_model*.bin"):
            snapshot = hub.snapshot_download(
                source,
                revision=revision,
                allow_patterns=[*_SETTINGS, weights],
                ignore_patterns=f"*/{weights}",
            )
            directory = Path(snapshot)
            if any(directory.glob(weights)):
                break
    except Exception as error:  # those of its HTTP library are of many kinds
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of this machine: no space, no permission
        classes = [cls.__name__ for cls in type(error).__mro__]
        reasons = (_HUB_ERRORS[name] for name in classes if name in _HUB_ERRORS)
        raise ValueError(next(reasons, _UNREACHABLE).format(source)) from None
    return directory, directory.name


def place_of(
    directory: Path, commit: str | None, *, trust_remote_code: bool = False
) -> dict[str, Any]:
    """Arguments of ``from_pretrained``."""
    return {
        "pretrained_model_name_or_path": directory,
        "local_files_only": commit is None,  # code may be in another repository
        "trust_remote_code": trust_remote_code,  # if not said, transformers asks
    }


def load_weights(cls: Any, place: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """A model in float32, ready to be used, and the names of weights it lacks."""
    model, report = cls.from_pretrained(
        **place,
        weights_only=True,
        ignore_mismatched_sizes=True,
        output_loading_info=True,
    )
    # transformers draws such weights at random and goes on.
    wrong = [*report["missing_keys"], *(k for k, *_ in report["mismatched_keys"])]
    return model.float().eval().requires_grad_(False), sorted(wrong)


def refuse_missing(missing: Sequence[str]) -> None:
    if missing:
        raise ValueError(
            f"{len(missing)} of its weights are missing or of another shape, such as "
            f"{missing[0]}; use the whole model with its projection"
        )


def read_json(path: Path, default: Any) -> Any:
    """The content of a file of a model, if there is one."""
    if not path.is_file():
        return default
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path.name} is damaged ({error}); copy it again") from None


def licence_of(directory: Path) -> str | None:
    card = directory / "README.md"
    text = card.read_text(encoding="utf-8", errors="replace") if card.is_file() else ""
    licence = _LICENCE.search(text)
    return licence.group(1).strip("\"'") if licence else None


def digest_weights(directory: Path) -> str:
    """A checksum of the weights: of the file, or of all files if there are several."""
    files = sorted(directory.glob("*.safetensors")) or sorted(directory.glob("*.bin"))
    sums = [sha256(file) for file in files]
    if len(sums) == 1:
        return sums[0]
    return hashlib.sha256("".join(sums).encode()).hexdigest()
