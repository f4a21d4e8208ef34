"""Zero-shot transfer: the class whose prompts are nearest. Uses the class names.

Prompts are sentences around the name of a class; a text encoder puts them into the
space of a view. LaFTer starts from the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sagl.baselines.base import Baseline, State, unit_rows
from sagl.features.huggingface import load_huggingface
from sagl.nn.inference import exact_matmul
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
    n_clusters : int
    class_names : list of str
        The name of each class; predicted numbers are positions in this list.
    text_encoder : str, callable or array
        A directory or hub name of a CLIP or SigLIP model of transformers; or a function
        from a list of texts to an array; or embeddings made elsewhere, of shape
        (n_clusters, width) or (n_clusters, texts per class, width), which need no
        names.
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

    def _embed(self) -> ClassTexts:
        encoder, n_clusters = self.text_encoder, self.n_clusters
        return embed_classes(encoder, self._texts, n_clusters, self.device_)

    def _texts(self) -> list[list[str]]:
        names = check_class_names(self.class_names, self.n_clusters)
        return fill(self.templates, names)

    def _scores(self, features: list[Tensor]) -> Tensor:
        """Cosines."""
        W = self.state_["W"].double()
        i = find_view(self.view, self.view_names_, self.view_widths_, W.shape[1])
        return exact_matmul(unit_rows(features[i]), W.T)


@dataclass(eq=False, repr=False, kw_only=True)
class ZeroShot(TextBaseline):
    """CLIP's zero-shot classifier. **Uses class names**, and a text encoder.

    Each class is the mean of its prompts' embeddings of length one; a sample belongs to
    the class of the largest cosine. Nothing is learned from the samples. One view is
    used, the one that shares its space with the text encoder; others are ignored.

    Parameters
    ----------
    n_clusters : int
    class_names, text_encoder, view, templates
        As in :class:`~sagl.baselines.zero_shot.TextBaseline`.
    temperature : float, default=0.01
        ``decision_function`` is cosine / temperature, whose softmax is CLIP's
        probability.

    References
    ----------
    Radford et al., "Learning transferable visual models from natural language
    supervision", ICML 2021.
    """

    temperature: float = 0.01

    def _fit(self, views: Views, generator: torch.Generator) -> State:
        if not self.temperature > 0:
            raise ValueError(f"temperature must be above 0; got {self.temperature}")
        W = self._embed().mean_of_each_class(self.n_clusters)
        find_view(self.view, views.names, views.widths, W.shape[1])
        return {"W": W}

    def _scores(self, features: list[Tensor]) -> Tensor:
        return super()._scores(features) / self.temperature


def fill(templates: Templates, names: Sequence[str]) -> list[list[str]]:
    """The prompts of each class.

    >>> fill(["a {}.", "my {}."], ["house_cat", "dog"])
    [['a house cat.', 'my house cat.'], ['a dog.', 'my dog.']]
    """
    chosen = _chosen(templates)
    readable = [" ".join(name.replace("_", " ").split()) for name in names]
    return [[t.replace("{}", name) for t in chosen] for name in readable]


def check_class_names(names: Sequence[str] | None, n_clusters: int) -> list[str]:
    """The names as a list, if there is one for each class."""
    if names is None:
        raise ValueError(
            "class_names is missing: give the name of every class, in order"
        )
    if isinstance(names, str) or not all(
        isinstance(n, str) and n.strip() for n in names
    ):
        raise ValueError(f"class_names must be a list of names; got {names!r}")
    if len(names) != n_clusters:
        raise ValueError(
            f"{n_clusters} clusters need as many class_names; got {len(names)}"
        )
    return list(names)


def _chosen(templates: Templates) -> Sequence[str]:
    if isinstance(templates, str):
        if templates not in TEMPLATES:
            raise ValueError(
                f"no templates {templates!r}; there are {', '.join(TEMPLATES)}, or "
                "give a list of your own such as ['a photo of a {}.']"
            )
        return TEMPLATES[templates]
    if not templates:
        raise ValueError("templates is empty; give at least one, such as ['{}']")
    for template in templates:
        if "{}" not in template:
            raise ValueError(f"template {template!r} has no {{}} where the name goes")
    return templates


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


def _read(source: str | Path, texts: list[str], device: torch.device) -> Tensor:
    """Embed texts with a text encoder of transformers."""
    backbone = load_huggingface(source, side="text", device=device)
    batches = range(0, len(texts), _BATCH)
    return torch.cat([backbone.embed(texts[i : i + _BATCH]) for i in batches])


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
