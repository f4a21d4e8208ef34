"""Backbones that have a short name, and what is known of them.

Sizes count the weights that features need: of CLIP and SigLIP, one side of the two.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sagl.features.samples import Kind

_DISTILLED = "self-distillation"
_CLIP = "image-text contrast"
_SIGLIP = "image-text contrast, captions"
_MASKED = "masked images, then labels"
_SENTENCES = "contrast of sentence pairs"
_IMAGENET = "ImageNet-1k"
_IMAGENET_BOTH = "ImageNet-22k and 1k"


@dataclass(frozen=True)
class KnownBackbone:
    """A row of ``sagl backbones``.

    Attributes
    ----------
    name : str
        The short name.
    model : str
        Its name on the Hugging Face hub; ``hf:`` and this name mean the same.
    kind : "image" or "text"
        What it embeds.
    millions : float
        Weights, in millions.
    dim : int
        Width of its features.
    objective : str
        What it was trained to do.
    licence : str
        As its authors state it.
    labels : str or None
        The labels that it was trained with, if any.
    gated : bool
        Whether its terms have to be accepted on the hub first.
    paper : bool
        Whether it is one of the paper's four.
    """

    name: str
    model: str
    kind: Kind
    millions: float
    dim: int
    objective: str
    licence: str
    labels: str | None = None
    gated: bool = False
    paper: bool = False

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "backbone": f"hf:{self.model}"}


def _dinov3(
    name: str, size: str, millions: float, dim: int, paper: bool = False
) -> KnownBackbone:
    model = f"facebook/dinov3-{size}-pretrain-lvd1689m"
    return KnownBackbone(
        *(name, model, "image", millions, dim, _DISTILLED, "DINOv3"),
        gated=True,
        paper=paper,
    )


def _dinov2(name: str, size: str, millions: float, dim: int) -> KnownBackbone:
    return KnownBackbone(
        *(name, f"facebook/dinov2-{size}", "image", millions, dim, _DISTILLED),
        licence="Apache-2.0",
    )


def _image_text(
    name: str, model: str, millions: float, dim: int, paper: bool = False
) -> KnownBackbone:
    openai = model.startswith("openai/")
    return KnownBackbone(
        *(name, model, "image", millions, dim, _CLIP if openai else _SIGLIP),
        licence="MIT" if openai else "Apache-2.0",
        paper=paper,
    )


def _convnextv2(
    name: str, size: str, millions: float, dim: int, labels: str, paper: bool = False
) -> KnownBackbone:
    return KnownBackbone(
        *(name, f"facebook/convnextv2-{size}-224", "image", millions, dim, _MASKED),
        licence="Apache-2.0",
        labels=labels,
        paper=paper,
    )


def _text(
    name: str, model: str, millions: float, dim: int, licence: str
) -> KnownBackbone:
    return KnownBackbone(name, model, "text", millions, dim, _SENTENCES, licence)


KNOWN: dict[str, KnownBackbone] = {
    known.name: known
    for known in (
        _dinov3("dinov3-l", "vitl16", 303.1, 1024, paper=True),
        _image_text(
            *("siglip2-l-384", "google/siglip2-large-patch16-384", 316.3, 1024),
            paper=True,
        ),
        _image_text(
            "clip-l14", "openai/clip-vit-large-patch14", 304.0, 768, paper=True
        ),
        _convnextv2("convnextv2-l", "large-22k", 196.4, 1536, _IMAGENET_BOTH, True),
        _dinov3("dinov3-b", "vitb16", 85.7, 768),
        _dinov3("dinov3-s", "vits16", 21.6, 384),
        _dinov2("dinov2-g", "giant", 1136.5, 1536),
        _dinov2("dinov2-l", "large", 304.4, 1024),
        _dinov2("dinov2-b", "base", 86.6, 768),
        _dinov2("dinov2-s", "small", 22.1, 384),
        _image_text("siglip2-b", "google/siglip2-base-patch16-224", 92.9, 768),
        _image_text("clip-b16", "openai/clip-vit-base-patch16", 86.2, 512),
        _image_text("clip-b32", "openai/clip-vit-base-patch32", 87.8, 512),
        _convnextv2("convnextv2-t", "tiny-22k", 27.9, 768, _IMAGENET_BOTH),
        _convnextv2("convnextv2-atto", "atto-1k", 3.4, 320, _IMAGENET),
        _text(
            "mpnet", "sentence-transformers/all-mpnet-base-v2", 109.5, 768, "Apache-2.0"
        ),
        _text("e5-base", "intfloat/e5-base-v2", 109.5, 768, "MIT"),
        _text("e5-small", "intfloat/e5-small-v2", 33.4, 384, "MIT"),
        _text("bge-small", "BAAI/bge-small-en-v1.5", 33.4, 384, "MIT"),
        _text(
            "minilm", "sentence-transformers/all-MiniLM-L6-v2", 22.7, 384, "Apache-2.0"
        ),
    )
}
KNOWN_MODELS: dict[str, KnownBackbone] = {k.model: k for k in KNOWN.values()}
