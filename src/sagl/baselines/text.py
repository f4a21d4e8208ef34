"""Texts in the space of a view: what a text encoder makes of the prompts of a class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sagl.baselines.features import unit_rows
from sagl.features.model_io import tokens_for
from sagl.features.pretrained import load_model, load_tokenizer

# A directory or a name on the hub, a function of a list of texts, or what such a
# function gave elsewhere: an array of shape (C, d), or (C, texts per class, d).
TextEncoder = str | Path | Callable[[list[str]], Any] | Any

_CLASSES = {
    "clip": "CLIPTextModelWithProjection",
    "clip_text_model": "CLIPTextModelWithProjection",
    "siglip": "SiglipTextModel",
    "siglip_text_model": "SiglipTextModel",
    "siglip2": "Siglip2TextModel",
    "siglip2_text_model": "Siglip2TextModel",
}
_BATCH = 256


class ClassTexts(NamedTuple):
    """Texts that describe classes, as points in the space of a view."""

    embeddings: Tensor  # (N, d), rows of length one, float32
    classes: Tensor  # (N,), the class that each text describes

    def mean_of_each_class(self, n_clusters: int) -> Tensor:
        """One direction for each class, (C, d) in float64, rows of length one."""
        sums = torch.zeros(n_clusters, self.embeddings.shape[1], dtype=torch.float64)
        return unit_rows(sums.index_add_(0, self.classes, self.embeddings.double()))


def embed_classes(
    encoder: TextEncoder,
    texts: Callable[[], Sequence[Sequence[str]]],
    n_clusters: int,
    device: torch.device,
) -> ClassTexts:
    """Embed the texts of every class; ``texts()`` is asked only if there is a need."""
    if encoder is None:
        raise ValueError(
            "text_encoder is missing: give a CLIP directory or its name on the hub, a "
            "function of a list of texts, or an array of text embeddings"
        )
    if not isinstance(encoder, str | Path) and not callable(encoder):
        return _ready_made(encoder, n_clusters)
    of_each = texts()
    flat = [text for of_class in of_each for text in of_class]
    counts = torch.tensor([len(of_class) for of_class in of_each])
    classes = torch.arange(len(of_each)).repeat_interleave(counts)
    if callable(encoder):
        embeddings = _as_tensor(encoder(flat))
    else:
        embeddings = _read(encoder, flat, device)
    if embeddings.ndim != 2 or len(embeddings) != len(flat):
        raise ValueError(
            f"text_encoder made an array of shape {tuple(embeddings.shape)} of "
            f"{len(flat)} texts; expected ({len(flat)}, width)"
        )
    return ClassTexts(_checked(embeddings), classes)


def find_view(
    view: str | None, names: Sequence[str], widths: Sequence[int], width: int
) -> int:
    """Position of the view that lives in the space of texts of this width."""
    if view is None:
        fitting = [i for i, w in enumerate(widths) if w == width]
        if len(fitting) == 1:
            return fitting[0]
        listed = ", ".join(f"{n} ({w})" for n, w in zip(names, widths, strict=True))
        which = "several views are" if fitting else "no view is"
        raise ValueError(
            f"{which} as wide as the text embeddings ({width}); there are {listed}: "
            "name the one of the same model with view="
        )
    if view not in names:
        raise ValueError(f"no view {view!r}; there are {', '.join(names)}")
    position = list(names).index(view)
    if widths[position] != width:
        raise ValueError(
            f"view {view!r} has {widths[position]} columns, the text embeddings have "
            f"{width}; they must come from the same model"
        )
    return position


def _ready_made(array: Any, n_clusters: int) -> ClassTexts:
    embeddings = _as_tensor(array)
    if embeddings.ndim not in (2, 3) or len(embeddings) != n_clusters:
        raise ValueError(
            f"text_encoder is an array of shape {tuple(embeddings.shape)}; expected "
            f"({n_clusters}, width) or ({n_clusters}, texts per class, width)"
        )
    per_class = 1 if embeddings.ndim == 2 else embeddings.shape[1]
    classes = torch.arange(n_clusters).repeat_interleave(per_class)
    return ClassTexts(_checked(embeddings.reshape(len(classes), -1)), classes)


@torch.no_grad()
def _read(source: str | Path, texts: list[str], device: torch.device) -> Tensor:
    """Embed texts with a text encoder of transformers."""
    model = load_model(source, _CLASSES).to(device)
    tokens = tokens_for(load_tokenizer(source), model)
    siglip = model.config.model_type.startswith("siglip")
    embeddings = []
    for start in range(0, len(texts), _BATCH):
        batch = tokens.batch([tokens(t) for t in texts[start : start + _BATCH]])
        # No attention mask: SigLIP has none, and CLIP never looks past the end.
        output = model(input_ids=batch["input_ids"].to(device))
        embeddings.append(output.pooler_output if siglip else output.text_embeds)
    return torch.cat(embeddings).cpu()


def _as_tensor(array: Any) -> Tensor:
    if isinstance(array, Tensor):
        return array.detach().cpu().float()
    return torch.from_numpy(np.array(array, dtype=np.float32))


def _checked(embeddings: Tensor) -> Tensor:
    """Rows of length one, if they can tell texts apart."""
    if not embeddings.isfinite().all() or (embeddings == 0).all(dim=1).any():
        raise ValueError("some text embeddings are zero, infinite or not numbers")
    if len(embeddings) > 1 and (embeddings == embeddings[0]).all():
        raise ValueError(
            "the text embeddings are all equal; the text encoder is broken"
        )
    return unit_rows(embeddings)
