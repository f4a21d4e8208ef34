"""Pretrained models that turn an image or a text into a row of features, by name.

A name is ``source:id`` (``hf:``, ``timm:``, ``npy:`` or ``module:function``) or one of
the short names of ``KNOWN``. ``#image`` or ``#text`` behind it chooses the side of a
model that has two.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, get_args

from torch import Tensor

from sagl.environment import pick_device
from sagl.features.callables import FunctionBackbone, as_backbone, load_callable
from sagl.features.files import SUFFIXES
from sagl.features.manifest import VIEW_NAME, check_view_name
from sagl.features.samples import Kind
from sagl.features.saved import SavedFeatures, read_saved

__all__ = [
    "KNOWN",
    "Backbone",
    "BackboneName",
    "FunctionBackbone",
    "KnownBackbone",
    "SavedFeatures",
    "load_backbone",
    "parse_backbones",
    "parse_name",
    "read_saved",
]


class Backbone(Protocol):
    """A frozen model. It prepares samples in workers and embeds them in batches."""

    name: str  # source:id, as the user wrote it
    kind: Kind  # what it embeds
    dim: int  # width of its features

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


@dataclass(frozen=True)
class KnownBackbone:
    """A row of ``sagl backbones``."""

    name: str  # the short one
    model: str  # its name on the Hugging Face hub; hf: and this mean the same
    millions: float  # weights that features need: of CLIP and SigLIP, one side of two
    dim: int  # width of its features
    objective: str  # what it was trained to do
    licence: str  # as its authors state it
    kind: Kind = "image"  # what it embeds
    labels: str | None = None  # those that it was trained with, if any
    gated: bool = False  # whether its terms have to be accepted on the hub first
    paper: bool = False  # whether it is one of the paper's four

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "backbone": f"hf:{self.model}"}


# What models of one training share.
_DINOV3 = {"objective": "self-distillation", "licence": "DINOv3", "gated": True}
_DINOV2 = {"objective": "self-distillation", "licence": "Apache-2.0"}
_SIGLIP2 = {"objective": "image-text contrast, captions", "licence": "Apache-2.0"}
_CLIP = {"objective": "image-text contrast", "licence": "MIT"}
_IN1K = {
    "objective": "masked images, then labels",
    "licence": "Apache-2.0",
    "labels": "ImageNet-1k",
}
_IN22K = {**_IN1K, "labels": "ImageNet-22k and 1k"}
_TEXT = {"objective": "contrast of sentence pairs", "licence": "MIT", "kind": "text"}
_APACHE = {**_TEXT, "licence": "Apache-2.0"}
# Short name, name on the hub, millions of weights, width; the paper's four come first.
_ROWS: tuple[tuple[str, str, float, int, dict[str, Any]], ...] = (
    ("dinov3-l", "facebook/dinov3-vitl16-pretrain-lvd1689m", 303.1, 1024, _DINOV3),
    ("siglip2-l-384", "google/siglip2-large-patch16-384", 316.3, 1024, _SIGLIP2),
    ("clip-l14", "openai/clip-vit-large-patch14", 304.0, 768, _CLIP),
    ("convnextv2-l", "facebook/convnextv2-large-22k-224", 196.4, 1536, _IN22K),
    ("dinov3-b", "facebook/dinov3-vitb16-pretrain-lvd1689m", 85.7, 768, _DINOV3),
    ("dinov3-s", "facebook/dinov3-vits16-pretrain-lvd1689m", 21.6, 384, _DINOV3),
    ("dinov2-g", "facebook/dinov2-giant", 1136.5, 1536, _DINOV2),
    ("dinov2-l", "facebook/dinov2-large", 304.4, 1024, _DINOV2),
    ("dinov2-b", "facebook/dinov2-base", 86.6, 768, _DINOV2),
    ("dinov2-s", "facebook/dinov2-small", 22.1, 384, _DINOV2),
    ("siglip2-b", "google/siglip2-base-patch16-224", 92.9, 768, _SIGLIP2),
    ("clip-b16", "openai/clip-vit-base-patch16", 86.2, 512, _CLIP),
    ("clip-b32", "openai/clip-vit-base-patch32", 87.8, 512, _CLIP),
    ("convnextv2-t", "facebook/convnextv2-tiny-22k-224", 27.9, 768, _IN22K),
    ("convnextv2-atto", "facebook/convnextv2-atto-1k-224", 3.4, 320, _IN1K),
    ("mpnet", "sentence-transformers/all-mpnet-base-v2", 109.5, 768, _APACHE),
    ("e5-base", "intfloat/e5-base-v2", 109.5, 768, _TEXT),
    ("e5-small", "intfloat/e5-small-v2", 33.4, 384, _TEXT),
    ("bge-small", "BAAI/bge-small-en-v1.5", 33.4, 384, _TEXT),
    ("minilm", "sentence-transformers/all-MiniLM-L6-v2", 22.7, 384, _APACHE),
)
KNOWN: dict[str, KnownBackbone] = {
    name: KnownBackbone(name, model, millions, dim, **shared, paper=row < 4)
    for row, (name, model, millions, dim, shared) in enumerate(_ROWS)
}

FORMS = (
    "hf:ID, timm:NAME, npy:FILE, module:function or a short name (sagl backbones "
    "lists them)"
)
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


class BackboneName(NamedTuple):
    text: str  # as the user wrote it
    source: str  # hf, timm, npy, or python
    identifier: str
    side: Kind | None = None
    revision: str | None = None


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
        Also an object that is a ``Backbone``, or a function with an attribute ``kind``.
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
        from sagl.features.timm import load_timm

        return load_timm(parts.identifier, name=name, device=pick_device(device))
    from sagl.features.huggingface import load_huggingface

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
        return BackboneName(name, "npy", text[4:])
    rest, side = _split_side(text)
    if rest in KNOWN:
        return BackboneName(name, "hf", KNOWN[rest].model, side)
    source, colon, identifier = rest.partition(":")
    if not colon:
        raise ValueError(f"no backbone {name!r}; {_advice(rest)}")
    if not identifier:
        raise ValueError(f"{name!r}: nothing follows {source}:; write {FORMS}")
    if source == "hf":
        return _hub_name(name, identifier, side)
    if source == "timm":
        if side == "text":
            raise ValueError(f"{name}: timm has models of images alone")
        return BackboneName(name, "timm", identifier, side)
    if not _MODULE.fullmatch(source) or not _MODULE.fullmatch(identifier):
        raise ValueError(f"{name}: no source {source!r}; a backbone is {FORMS}")
    return BackboneName(name, "python", f"{source}:{identifier}", side)


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
        return BackboneName(name, "hf", identifier, side)
    repository, _, revision = identifier.partition("@")
    return BackboneName(name, "hf", repository, side, revision or None)


def _advice(text: str) -> str:
    """What a name without a source was probably meant to be."""
    path = Path(text).expanduser()
    if path.suffix.lower() in SUFFIXES:
        return f"write npy:{text} for saved features"
    if "/" in text:
        here = "" if path.is_absolute() or text[0] in ".~" else "./"
        place = "a directory" if path.is_dir() else "a model on the Hugging Face hub"
        return f"write hf:{here if path.is_dir() else ''}{text} for {place}"
    close = difflib.get_close_matches(text.lower(), KNOWN, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(close)}?" if close else f"a backbone is {FORMS}"


def parse_backbones(options: Sequence[str]) -> dict[str, str]:
    """Backbones by the name of their view.

    >>> parse_backbones(["dinov3-l", "small=hf:facebook/dinov2-small"])
    {'dinov3-l': 'dinov3-l', 'small': 'hf:facebook/dinov2-small'}
    >>> parse_backbones(["hf:google/siglip2-base#text", "npy:./saved/clip.npy"])
    {'siglip2-base': 'hf:google/siglip2-base#text', 'clip': 'npy:./saved/clip.npy'}
    """
    if not options:
        raise ValueError("give --backbone, once per view; sagl backbones lists some")
    named: dict[str, str] = {}
    for option in options:
        name, equals, backbone = option.partition("=")
        # A path may hold a "=", too, but it comes after a ":" or a "/".
        if not (equals and VIEW_NAME.fullmatch(name)):
            name, backbone = _view_name(option), option
        check_view_name(name)
        if not backbone:
            raise ValueError(f"--backbone {option}: nothing after the '='")
        if name in named:
            raise ValueError(
                f"--backbone {option}: there is a view {name!r} already; NAME=BACKBONE"
            )
        named[name] = backbone
    return named


def _view_name(backbone: str) -> str:
    """The last part of a model's name, without revision, side or suffix."""
    source, colon, identifier = backbone.partition(":")
    path = re.split(r"[#@]|::", identifier if colon else source)[0]
    last = Path(path).resolve().name if path.startswith(".") else Path(path).name
    if source == "npy":
        last = Path(last).stem
    return re.sub(r"[^A-Za-z0-9._-]+", "-", last).strip("-._") or "view"
