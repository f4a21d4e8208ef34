"""EuroSAT: satellite images of ten kinds of land."""

from __future__ import annotations

from pathlib import Path

from sagl.features.readers.datasets.layout import (
    Layout,
    Listing,
    Split,
    images_by_class,
    shuffled,
)

_CLASSES = (
    "AnnualCrop",
    "Forest",
    "HerbaceousVegetation",
    "Highway",
    "Industrial",
    "Pasture",
    "PermanentCrop",
    "Residential",
    "River",
    "SeaLake",
)
LAYOUT = Layout(
    "EuroSAT",
    ["2750", "EuroSAT_RGB", "EuroSAT", "EuroSAT/2750", "eurosat", "eurosat/2750"],
    _CLASSES,
    "the RGB images, EuroSAT_RGB.zip from https://zenodo.org/records/7711810",
)
_N_TRAIN, _N_TEST = 1_000, 500


def read(root: Path, split: Split) -> Listing:
    """1,000 images of each class at random, or 500 others."""
    base = LAYOUT.find(root)
    classes = images_by_class(base)
    paths, labels = [], []
    for name in _CLASSES:
        images = classes.get(name, [])
        if len(images) < _N_TRAIN + _N_TEST:
            raise LAYOUT.error(
                base / name,
                f"there are {len(images)} images, expected {_N_TRAIN + _N_TEST:,} or "
                "more",
            )
        order = shuffled(len(images))
        test = slice(_N_TRAIN, _N_TRAIN + _N_TEST)
        rows = {"train": order[:_N_TRAIN], "test": order[test], "all": order}
        paths += [images[row] for row in rows[split]]
        labels += [name] * len(rows[split])
    return Listing(base, paths, labels)
