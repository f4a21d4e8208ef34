"""From the name of a backbone to the backbone.

A name is ``source:id`` (``hf:``, ``timm:``, ``npy:`` or ``module:function``) or one of
the short names of :data:`~sagl.features.backbones.known.KNOWN`. ``#image`` or ``#text``
behind it chooses the side of a model that has two.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, get_args

from sagl.device import pick_device
from sagl.features.backbones.base import Backbone
from sagl.features.backbones.callables import as_backbone, load_callable
from sagl.features.backbones.known import KNOWN
from sagl.features.files import SUFFIXES
from sagl.features.samples import Kind

SOURCES = ("hf", "timm", "npy")
_ALIASES = {
    **dict.fromkeys(("huggingface", "transformers", "hub", "hf-hub"), "hf"),
    **dict.fromkeys(("numpy", "file"), "npy"),
}
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_FORMS = (
    "hf:ID, timm:NAME, npy:FILE, module:function or a short name (sagl backbones "
    "lists them)"
)


class BackboneName(NamedTuple):
    """The parts of a name."""

    text: str  # as the user wrote it
    source: str  # hf, timm, npy, or python
    identifier: str
    side: Kind | None
    revision: str | None


def load_backbone(
    name: str | Callable[[list[Any]], Any] | Backbone,
    *,
    device: str = "auto",
    trust_remote_code: bool = False,
) -> Backbone:
    """A frozen model by its name.

    Parameters
    ----------
    name : str or object
        ``hf:ID`` with a name on the Hugging Face hub or a directory
        (``hf:facebook/dinov2-small``, ``hf:./model``, perhaps with ``@revision``);
        ``timm:NAME``; ``module:function``; or a short name such as ``dinov2-s``.
        ``#image`` or ``#text`` behind it chooses the side of a model that embeds both.
        Also an object that is a :class:`~sagl.features.backbones.base.Backbone`, or a
        function with an attribute ``kind``.
    device : str, default="auto"
    trust_remote_code : bool, default=False
        Whether code that comes with a model on the hub may be run.
    """
    if not isinstance(name, str):
        return as_backbone(name)
    parts = parse_name(name)
    if parts.source == "npy":
        raise ValueError(
            f"{name}: holds features and not a model; give it as a view of its own"
        )
    if parts.source == "python":
        return load_callable(parts.identifier, name=name, side=parts.side)
    if parts.source == "timm":
        from sagl.features.backbones.timm import load_timm

        return load_timm(parts.identifier, name=name, device=pick_device(device))
    from sagl.features.backbones.huggingface import load_huggingface

    return load_huggingface(
        parts.identifier,
        name=name,
        side=parts.side,
        revision=parts.revision,
        device=pick_device(device),
        trust_remote_code=trust_remote_code,
    )


def parse_name(name: str) -> BackboneName:
    """The parts of a name; refuses what is unknown or could mean two things.

    Examples
    --------
    >>> from sagl.features.backbones import parse_name
    >>> parse_name("clip-b32#text")[1:4]
    ('hf', 'openai/clip-vit-base-patch32', 'text')
    """
    text = name.strip()
    if text.startswith("npy:"):
        return BackboneName(name, "npy", text[4:], None, None)
    rest, side = _split_side(text)
    if rest in KNOWN:
        return BackboneName(name, "hf", KNOWN[rest].model, side, None)
    source, colon, identifier = rest.partition(":")
    if not colon:
        raise ValueError(f"no backbone {name!r}; {_advice(rest)}")
    if not identifier:
        raise ValueError(f"{name!r}: nothing follows {source}:; write {_FORMS}")
    if source == "hf":
        return _hub_name(name, identifier, side)
    if source == "timm":
        if side == "text":
            raise ValueError(f"{name}: timm has models of images alone")
        return BackboneName(name, "timm", identifier, side, None)
    return _python_name(name, source, identifier, side)


def _split_side(text: str) -> tuple[str, Kind | None]:
    rest, mark, side = text.rpartition("#")
    if not mark or Path(text.removeprefix("hf:")).expanduser().is_dir():
        return text, None
    if side not in get_args(Kind):
        raise ValueError(
            f"{text!r}: {side!r} follows the #; expected #image or #text, or nothing"
        )
    return rest, "image" if side == "image" else "text"


def _hub_name(name: str, identifier: str, side: Kind | None) -> BackboneName:
    path = Path(identifier).expanduser()
    if path.is_dir():
        if not path.is_absolute() and identifier[0] not in ".~":
            raise ValueError(
                f"{name}: {identifier} is a directory here, and could be a name on the "
                f"hub; write hf:./{identifier} for the directory"
            )
        return BackboneName(name, "hf", identifier, side, None)
    if identifier in KNOWN:
        raise ValueError(
            f"{name}: {identifier} is a short name; write it without hf:, or "
            f"hf:{KNOWN[identifier].model}"
        )
    repository, _, revision = identifier.partition("@")
    return BackboneName(name, "hf", repository, side, revision or None)


def _python_name(
    name: str, source: str, identifier: str, side: Kind | None
) -> BackboneName:
    right = _ALIASES.get(source.lower(), source.lower())
    if right in SOURCES:
        raise ValueError(f"{name}: no source {source!r}; write {right}:{identifier}")
    if source.endswith(".py"):
        module = source.removesuffix(".py").strip("./").replace("/", ".")
        raise ValueError(f"{name}: name the module: {module}:{identifier}")
    if not _MODULE.fullmatch(source) or not _MODULE.fullmatch(identifier):
        raise ValueError(f"{name}: no source {source!r}; a backbone is {_FORMS}")
    return BackboneName(name, "python", f"{source}:{identifier}", side, None)


def _advice(text: str) -> str:
    """What a name without a source was probably meant to be."""
    path = Path(text).expanduser()
    if text and path.is_dir():
        dotted = path.is_absolute() or text[0] in ".~"
        return f"write hf:{text if dotted else f'./{text}'} for this directory"
    if path.suffix.lower() in SUFFIXES:
        return f"write npy:{text} for saved features"
    if re.fullmatch(r"[\w.-]+/[\w.-]+(@\S+)?", text):
        return f"write hf:{text} for a model on the Hugging Face hub"
    close = difflib.get_close_matches(text.lower(), KNOWN, n=3, cutoff=0.5)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"a backbone is {_FORMS}"
