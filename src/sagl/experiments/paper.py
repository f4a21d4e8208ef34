"""What the paper says of its eight data sets: settings, and the figures it published.

Of the settings (``presets.csv``) the paper's text gives the learning rates, 600 epochs
and the ranges of all else; which batch size, γ, β and dropout belong to which data set
only its released code says. A note stands where the two differ. Sizes and classes are
those of the readers, which make the paper's splits.

Published figures were made with other backbones (DINOv3 and SigLIP 2, both large) and
the paper's batch protocol: figures to compare the order of methods with, not ones to
expect. The linear probe's is the better of the two backbones. ``published.csv`` holds
the paper's Tables 1 (methods), 2 (linear probe) and 4 (ablations),
``published_views.csv`` its Table 3 (SAGL on other combinations of backbones).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, TypeVar

from sagl.features.readers import DATASETS

__all__ = [
    "BACKBONES",
    "PRESETS",
    "Preset",
    "Published",
    "find_preset",
    "published_combination",
    "published_figures",
]

# The paper's two backbones, as `sagl backbones` calls them.
BACKBONES = ("dinov3-l", "siglip2-l-384")


@dataclass(frozen=True)
class Preset:
    """One data set of the paper and the settings it is trained with there."""

    name: str  # as the user writes it; the reader has the same name
    title: str  # as the paper writes it
    download: str  # the official name of the data and the files to get
    splits: str  # what is fitted / what is scored
    learning_rate: float
    batch_size: int
    gamma: float
    beta: float
    dropout: float
    epochs: int = 600
    note: str = ""  # where the paper and its released code differ

    @property
    def n_train(self) -> int:
        return DATASETS[self.name].n_train

    @property
    def n_test(self) -> int:
        return DATASETS[self.name].n_test

    @property
    def n_classes(self) -> int:
        return DATASETS[self.name].n_classes

    def settings(self, epochs: int | None = None) -> dict[str, Any]:
        """Parameters for ``SAGL``; ``epochs`` shortens the training."""
        names = ("learning_rate", "batch_size", "gamma", "beta", "dropout")
        own = {name: getattr(self, name) for name in names}
        return {"recipe": "paper", **own, "epochs": epochs or self.epochs}

    def as_dict(self) -> dict[str, Any]:
        sizes = ("n_train", "n_test", "n_classes")
        return {**asdict(self), **{name: getattr(self, name) for name in sizes}}


def _rows(file: str) -> list[dict[str, str]]:
    text = files("sagl.experiments").joinpath(file).read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


def _preset(row: Mapping[str, str]) -> Preset:
    names = ("learning_rate", "gamma", "beta", "dropout")
    numbers: dict[str, Any] = {name: float(row[name]) for name in names}
    return Preset(**{**row, **numbers, "batch_size": int(row["batch_size"])})


PRESETS = {row["name"]: _preset(row) for row in _rows("presets.csv")}


def find_preset(name: str) -> Preset:
    """The preset of a data set, however its name is written.

    >>> find_preset("ImageNet-1K").batch_size
    10000
    """
    plain = _plain(name)
    for preset in PRESETS.values():
        if plain in (_plain(preset.name), _plain(preset.title)):
            return preset
    raise ValueError(
        f"no data set {name!r} in the paper; there are {', '.join(PRESETS)}"
    )


# Rows that cannot be run: SRLF has neither a public description nor code, and
# MIM-Refiner is a backbone (k-means is what evaluates it on its features).
ONLY_PUBLISHED = {"srlf": "SRLF", "mim-refiner": "MIM-Refiner"}


class Published(NamedTuple):
    """ACC, NMI and ARI of one method on one data set, as fractions."""

    title: str
    acc: float
    nmi: float | None
    ari: float | None
    only_published: bool


def published_figures(name: str) -> dict[str, Published]:
    """Figures by method for the data set that ``name`` begins with, else none.

    >>> published_figures("pets_clip")["turtle"].acc
    0.9605
    >>> published_figures("my_photos")
    {}
    """
    return dict(_of_dataset(_tables()[0], name) or {})


def published_combination(name: str, views: Sequence[str]) -> Published | None:
    """SAGL's figures on these views of a data set, if the paper has them.

    Views are recognised by the model family in their names, one view per family.

    >>> published_combination("pets", ["dinov3-l", "convnextv2-l"]).acc
    0.9463
    >>> published_combination("pets", ["dinov3-l", "resnet50"]) is None
    True
    """
    families = {_family(view) for view in views}
    if None in families or len(families) < len(views):
        return None
    return (_of_dataset(_tables()[1], name) or {}).get(frozenset(families))


# How a family may be called in a view's name; of CLIP the paper used ViT-L/14 only.
_FAMILIES = {
    "dinov3": "DINOv3",
    "siglip2": "SigLIP 2",
    "convnextv2": "ConvNeXt V2",
    "clipl14": "CLIP ViT-L/14",
    "clipvitl14": "CLIP ViT-L/14",
}


def _family(view: str) -> str | None:
    plain = _plain(view)
    matching = (family for word, family in _FAMILIES.items() if plain.startswith(word))
    return next(matching, None)


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


_Figures = TypeVar("_Figures")


def _of_dataset(table: Mapping[str, _Figures], name: str) -> _Figures | None:
    """The entry of the data set that the name begins with."""
    plain = _plain(name)
    return next((v for key, v in table.items() if plain.startswith(_plain(key))), None)


_ByViews = dict[frozenset[str | None], Published]


@cache
def _tables() -> tuple[dict[str, dict[str, Published]], dict[str, _ByViews]]:
    """By data set: figures by method, and SAGL's by families of backbones."""
    methods: dict[str, dict[str, Published]] = {}
    for row in _rows("published.csv"):
        name = row["method"]
        figures = _published(ONLY_PUBLISHED.get(name, name), row)
        methods.setdefault(row["dataset"], {})[name] = figures
    combinations: dict[str, _ByViews] = {}
    for row in _rows("published_views.csv"):
        views = row["views"].split("+")
        figures = _published(" + ".join(views), row)
        combinations.setdefault(row["dataset"], {})[frozenset(views)] = figures
    return methods, combinations


def _published(title: str, row: Mapping[str, str]) -> Published:
    acc, nmi, ari = (
        round(float(row[m]) / 100, 6) if row[m] else None for m in ("acc", "nmi", "ari")
    )
    only_published = row.get("method") in ONLY_PUBLISHED
    return Published(title, acc or 0.0, nmi, ari, only_published)
