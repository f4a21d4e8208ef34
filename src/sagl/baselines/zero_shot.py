"""Zero-shot transfer: the class whose prompts are nearest. Uses the class names.

Prompts are sentences around the name of a class; a text encoder puts them into the
space of a view. LaFTer starts from the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sagl.baselines.base import Baseline, State, real
from sagl.features.huggingface import load_huggingface
from sagl.nn.inference import exact_matmul
from sagl.nn.neighbours import unit_rows
from sagl.views import Views

__all__ = ["TEMPLATES", "TextBaseline", "ZeroShot"]

# A name stands where {} is. Several wordings are averaged, so none matters much; what
# helps is to say what kind of thing the names are.
TEMPLATES: dict[str, tuple[str, ...]] = {
    name: tuple(sentences)
    for name, sentences in json.loads(
        files("sagl.baselines").joinpath("templates.json").read_text("utf-8")
    ).items()
}
Templates = str | Sequence[str]

# A directory or a name on the hub, a function of a list of texts, or what such a
# function gave elsewhere: an array of shape (C, d), or (C, texts per class, d).
TextEncoder = str | Path | Callable[[list[str]], Any] | Any

_BATCH = 256


@dataclass(eq=False, repr=False, kw_only=True)
class TextBaseline(Baseline):
    """A method that starts from texts about classes: ``W``, a direction for each.

    Parameters
    ----------
    class_names : list of str
        The name of each class; predicted numbers are positions in this list.
    text_encoder : str, callable or array
        A directory or hub name of a model of transformers that embeds texts, such as
        CLIP or SigLIP; or a function from a list of texts to an array; or embeddings
        made elsewhere, of shape (n_clusters, width) or (n_clusters, texts per class,
        width), which need no names.
    view : str, optional
        The view of the same model; by default the only one as wide as the embeddings.
    templates : str or list of str, default="generic"
        A set of ``sagl.baselines.zero_shot.TEMPLATES``, or templates with ``{}`` for
        the name.
    """

    class_names: Sequence[str] | None = None
    text_encoder: TextEncoder = None
    view: str | None = None
    templates: Templates = "generic"

    def _texts(self) -> list[list[str]]:
        """The texts that describe each class."""
        names = self.class_names
        if (
            names is None
            or isinstance(names, str)
            or not all(isinstance(name, str) and name.strip() for name in names)
        ):
            raise ValueError(
                "class_names must be a list of the name of every class, in order; got "
                f"{names!r}"
            )
        if len(names) != self.n_clusters:
            raise ValueError(
                f"{self.n_clusters} clusters need as many class_names; got {len(names)}"
            )
        return fill(self.templates, names)

    def _embed(self) -> tuple[Tensor, Tensor]:
        """Embeddings of texts, (N, d) of length one, and the class of each, (N,)."""
        encoder, C = self.text_encoder, self.n_clusters
        if encoder is None:
            raise ValueError(
                "text_encoder is missing: give a CLIP directory or its name on the "
                "hub, a function of a list of texts, or an array of text embeddings"
            )
        if isinstance(encoder, str | Path):
            encoder = partial(_embed_texts, encoder, self.device_)
        if callable(encoder):
            texts = self._texts()
            counts = [len(of_class) for of_class in texts]
            embeddings = _as_tensor(encoder(list(chain.from_iterable(texts))))
            shape, form = embeddings.shape, f"({sum(counts)}, width)"
        else:
            embeddings = _as_tensor(encoder)
            shape, form = embeddings.shape, f"({C}, width) or ({C}, texts, width)"
            counts = [shape[1] if len(shape) == 3 else 1] * C
            embeddings = embeddings.flatten(0, 1) if len(shape) == 3 else embeddings
        if embeddings.ndim != 2 or len(embeddings) != sum(counts):
            raise ValueError(
                f"text_encoder gives an array of shape {tuple(shape)}; expected {form}"
            )
        if not embeddings.isfinite().all() or (embeddings == 0).all(dim=1).any():
            raise ValueError("some text embeddings are zero, infinite or not numbers")
        if len(embeddings) > 1 and (embeddings == embeddings[0]).all():
            raise ValueError(
                "the text embeddings are all equal; the text encoder is broken"
            )
        classes = torch.arange(C).repeat_interleave(torch.tensor(counts))
        return unit_rows(embeddings), classes

    def _shared_view(self, width: int) -> int:
        """Position of the view that lives in the space of texts of this width."""
        views = list(zip(self.view_names_, self.view_widths_, strict=True))
        fitting = [
            i for i, (n, w) in enumerate(views) if w == width and self.view in (None, n)
        ]
        if len(fitting) == 1:
            return fitting[0]
        called = "" if self.view is None else f" called {self.view!r}"
        which = "several views are" if fitting else f"no view{called} is"
        listed = ", ".join(f"{name} ({w})" for name, w in views)
        raise ValueError(
            f"{which} as wide as the text embeddings ({width}); there are {listed}: "
            "name the one of the same model with view="
        )

    def _scores(self, features: list[Tensor]) -> Tensor:
        """Cosines."""
        W = self.state_["W"].double()
        h = features[self._shared_view(W.shape[1])]
        return exact_matmul(unit_rows(h), W.T)


@dataclass(eq=False, repr=False, kw_only=True)
class ZeroShot(TextBaseline):
    """CLIP's zero-shot classifier. **Uses class names**, and a text encoder.

    Each class is the mean of its prompts' embeddings of length one; a sample belongs to
    the class of the largest cosine. Nothing is learned from the samples. One view is
    used, the one that shares its space with the text encoder; others are ignored.

    ``decision_function`` is cosine / ``temperature``, whose softmax is CLIP's
    probability; other parameters are those of
    :class:`~sagl.baselines.zero_shot.TextBaseline`.

    References
    ----------
    Radford et al., "Learning transferable visual models from natural language
    supervision", ICML 2021.

    Examples
    --------
    >>> from sagl.baselines import ZeroShot
    >>> texts = np.eye(2, 4)  # an embedding of each class's name
    >>> images = np.array([[0.9, 0.1, 0, 0], [0, 1, 0.2, 0], [0.8, 0, 0, 0.1]])
    >>> ZeroShot(n_clusters=2, text_encoder=texts).fit({"clip": images}).labels_
    array([0, 1, 0])
    """

    temperature: float = real(0.01, strict=True)

    def _fit(self, views: Views, generator: torch.Generator) -> State:
        embeddings, classes = self._embed()
        width = embeddings.shape[1]
        self._shared_view(width)  # refuses views without one
        sums = torch.zeros(self.n_clusters, width, dtype=torch.float64)
        return {"W": unit_rows(sums.index_add_(0, classes, embeddings.double()))}

    def _scores(self, features: list[Tensor]) -> Tensor:
        return super()._scores(features) / self.temperature


def fill(templates: Templates, names: Sequence[str]) -> list[list[str]]:
    """The prompts of each class.

    >>> fill(["a {}.", "my {}."], ["house_cat", "dog"])
    [['a house cat.', 'my house cat.'], ['a dog.', 'my dog.']]
    """
    if isinstance(templates, str):
        if templates not in TEMPLATES:
            raise ValueError(
                f"no templates {templates!r}; there are {', '.join(TEMPLATES)}, or "
                "give a list of your own such as ['a photo of a {}.']"
            )
        templates = TEMPLATES[templates]
    if not templates:
        raise ValueError("templates is empty; give at least one, such as ['{}']")
    for template in templates:
        if "{}" not in template:
            raise ValueError(f"template {template!r} has no {{}} where the name goes")
    readable = [" ".join(name.replace("_", " ").split()) for name in names]
    return [[t.replace("{}", name) for t in templates] for name in readable]


def _embed_texts(source: str | Path, device: torch.device, texts: list[str]) -> Tensor:
    """By a model of transformers."""
    backbone = load_huggingface(source, side="text", device=device)
    batches = range(0, len(texts), _BATCH)
    return torch.cat([backbone.embed(texts[i : i + _BATCH]) for i in batches])


def _as_tensor(array: Any) -> Tensor:
    if isinstance(array, Tensor):
        return array.detach().cpu().float()
    return torch.from_numpy(np.array(array, dtype=np.float32))
