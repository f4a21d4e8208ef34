"""Pretrained models of the transformers library, from a directory or from the hub.

Weights are read from safetensors files alone, code that comes with a model is never
run, and whatever goes wrong is said in one line with its cure.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

EXTRA = 'pip install "sagl[backbones]"'
_HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")


def optional_module(name: str) -> Any:
    """A module of the extra ``backbones``, imported when it is needed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0].replace("PIL", "pillow")
        raise ImportError(f"this needs {package}: {EXTRA} ({error})") from None


def load_model(source: str | Path, classes: Mapping[str, str]) -> Any:
    """A model in float32, ready to be used.

    Parameters
    ----------
    source : str or Path
        A directory, or a name on the Hugging Face hub.
    classes : mapping of str to str
        The class of transformers for each kind of model (``model_type``) that will do.
    """
    with _reading(source) as (transformers, where):
        config = transformers.AutoConfig.from_pretrained(**where)
        if config.model_type not in classes:
            raise ValueError(
                f"it is a model of kind {config.model_type!r}; needed is one of "
                f"{', '.join(classes)}"
            )
        model, report = getattr(
            transformers, classes[config.model_type]
        ).from_pretrained(
            **where,
            use_safetensors=True,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
        # transformers draws such weights at random and goes on.
        wrong = [*report["missing_keys"], *(k for k, *_ in report["mismatched_keys"])]
        if wrong:
            raise ValueError(
                f"{len(wrong)} of its weights are missing or of another shape, such as "
                f"{min(wrong)}; use the whole model with its projection"
            )
    return model.float().eval().requires_grad_(False)


def load_tokenizer(source: str | Path) -> Any:
    """The tokenizer that belongs to a model."""
    with _reading(source) as (transformers, where):
        tokenizer = transformers.AutoTokenizer.from_pretrained(**where)
        # Without its files transformers makes one that knows no words, and goes on.
        if len(tokenizer) <= len(tokenizer.all_special_tokens) + 1:
            raise ValueError("its tokenizer is missing; save it beside the model")
    return tokenizer


@contextmanager
def _reading(source: str | Path) -> Iterator[tuple[Any, dict[str, Any]]]:
    transformers = optional_module("transformers")
    where = _where(source)
    log = transformers.utils.logging
    verbosity, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        yield transformers, where
    except (OSError, ValueError, ImportError, SafetensorError) as error:
        local = where["local_files_only"]
        raise ValueError(f"{source}: {_reason(error, str(source), local)}") from None
    finally:
        log.set_verbosity(verbosity)
        if bars:
            log.enable_progress_bar()


def _where(source: str | Path) -> dict[str, Any]:
    """What ``from_pretrained`` has to be told about the place."""
    path = Path(source).expanduser()
    if not path.is_dir() and (
        isinstance(source, Path) or not _HUB_NAME.fullmatch(source)
    ):
        raise ValueError(
            f"{source}: no such directory; give one that holds a model of "
            "transformers, or a name on the Hugging Face hub such as "
            "openai/clip-vit-base-patch16"
        )
    return {
        "pretrained_model_name_or_path": str(path) if path.is_dir() else str(source),
        "local_files_only": path.is_dir(),
        "trust_remote_code": False,
    }


def _reason(error: BaseException, name: str, local: bool) -> str:
    """Why a model could not be read, and what helps."""
    said, causes = " ".join(str(error).split()), _causes(error)
    if "trust_remote_code" in said:
        return (
            "it brings code of its own, which is never run; use a CLIP or SigLIP model"
        )
    if "safetensors" in said:
        return f"{said.rstrip('.')}; other formats are not read: save it once more"
    if local or not isinstance(error, OSError):
        return said
    if "GatedRepoError" in causes:
        return (
            "this model is gated: accept its terms at "
            f"https://huggingface.co/{name}, then log in with: hf auth login"
        )
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


def _causes(error: BaseException | None) -> set[str]:
    """Names of the classes of an error and of what led to it."""
    names: set[str] = set()
    while error is not None:
        names.update(cls.__name__ for cls in type(error).__mro__)
        error = error.__cause__ or error.__context__
    return names
