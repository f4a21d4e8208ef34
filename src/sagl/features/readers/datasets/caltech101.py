"""Caltech 101: objects of 101 kinds, and a 102nd folder of background."""

from __future__ import annotations

from pathlib import Path

from sagl.features.readers.datasets.layout import (
    Layout,
    Listing,
    Split,
    images_by_class,
    shuffled,
)

LAYOUT = Layout(
    "Caltech 101",
    [
        "101_ObjectCategories",
        "caltech-101/101_ObjectCategories",
        "caltech101/101_ObjectCategories",
        "caltech-101",
    ],
    ["BACKGROUND_Google", "accordion"],
    "caltech-101.zip from https://data.caltech.edu/records/mzrjq-6wc02, with "
    "101_ObjectCategories.tar.gz inside of it unpacked",
)
_N_CLASSES = 102  # the paper counts the background as a class
_N_TRAIN = 30


def read(root: Path, split: Split) -> Listing:
    """Thirty images of each folder at random, or the others."""
    base = LAYOUT.find(root)
    classes = images_by_class(base)
    if len(classes) != _N_CLASSES:
        raise LAYOUT.error(
            base, f"there are {len(classes)} folders of images, expected {_N_CLASSES}"
        )
    paths, labels = [], []
    for name, images in classes.items():
        if len(images) <= _N_TRAIN:
            raise LAYOUT.error(
                base / name,
                f"there are {len(images)} images, expected more than {_N_TRAIN}",
            )
        order = shuffled(len(images))
        rows = {"train": order[:_N_TRAIN], "test": order[_N_TRAIN:], "all": order}
        paths += [images[row] for row in rows[split]]
        labels += [name] * len(rows[split])
    return Listing(base, paths, labels)
