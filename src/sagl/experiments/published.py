"""The paper's published figures, to be shown beside measured ones.

They were made with other backbones (DINOv3 and SigLIP 2, both large) and the paper's
batch protocol: a figure to compare the order of methods with, not one to expect. The
linear probe's is the better of the two backbones. ``published.csv`` holds the paper's
Tables 1 (methods), 2 (linear probe) and 4 (ablations), ``published_views.csv`` its
Table 3 (SAGL on other combinations of backbones).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple, TypeVar

# Rows that cannot be run: SRLF has neither a public description nor code, and
# MIM-Refiner is a backbone (k-means is what evaluates it on its features).
ONLY_PUBLISHED = {
    "srlf": "SRLF",
    "mim-refiner": "MIM-Refiner",
}


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
    return dict(_of_dataset(_table(), name) or {})


def published_combination(name: str, views: Sequence[str]) -> Published | None:
    """SAGL's figures on these views of a data set, if the paper has them.

    Views are recognised by the model family in their names, one view per family.

    >>> published_combination("pets", ["dinov3-l", "convnextv2-l"]).acc
    0.9463
    >>> published_combination("pets", ["dinov3-l", "resnet50"]) is None
    True
    """
    families = [_family(view) for view in views]
    if None in families or len(set(families)) < len(families):
        return None
    return (_of_dataset(_combinations(), name) or {}).get(frozenset(families))


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
    found = (family for word, family in _FAMILIES.items() if plain.startswith(word))
    return next(found, None)


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


_Figures = TypeVar("_Figures")


def _of_dataset(table: Mapping[str, _Figures], name: str) -> _Figures | None:
    """The entry of the data set that the name begins with."""
    found = (
        figures
        for dataset, figures in table.items()
        if _plain(name).startswith(_plain(dataset))
    )
    return next(found, None)


def _rows(file: str) -> list[dict[str, str]]:
    text = files("sagl.experiments").joinpath(file).read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


@cache
def _combinations() -> dict[str, dict[frozenset[str | None], Published]]:
    table: dict[str, dict[frozenset[str | None], Published]] = {}
    for row in _rows("published_views.csv"):
        views = row["views"].split("+")
        table.setdefault(row["dataset"], {})[frozenset(views)] = Published(
            " + ".join(views),
            _fraction(row["acc"]) or 0.0,
            _fraction(row["nmi"]),
            _fraction(row["ari"]),
            only_published=False,
        )
    return table


@cache
def _table() -> dict[str, dict[str, Published]]:
    table: dict[str, dict[str, Published]] = {}
    for row in _rows("published.csv"):
        method = row["method"]
        table.setdefault(row["dataset"], {})[method] = Published(
            ONLY_PUBLISHED.get(method, method),
            _fraction(row["acc"]) or 0.0,
            _fraction(row["nmi"]),
            _fraction(row["ari"]),
            method in ONLY_PUBLISHED,
        )
    return table


def _fraction(percent: str) -> float | None:
    return round(float(percent) / 100, 6) if percent else None
