"""The paper's published figures, to be shown beside measured ones.

They were made with other backbones (DINOv3 and SigLIP 2, both large) and the paper's
batch protocol: a figure to compare the order of methods with, not one to expect. The
linear probe's is the better of the two backbones.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple

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
    plain = name.lower().replace("-", "").replace("_", "")
    for dataset, figures in _table().items():
        if plain.startswith(dataset.lower().replace("-", "")):
            return dict(figures)
    return {}


@cache
def _table() -> dict[str, dict[str, Published]]:
    text = files("sagl.experiments").joinpath("published.csv").read_text("utf-8")
    table: dict[str, dict[str, Published]] = {}
    for row in csv.DictReader(text.splitlines()):
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
