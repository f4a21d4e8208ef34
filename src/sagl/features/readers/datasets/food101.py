"""Food-101: 101 dishes."""

from __future__ import annotations

from pathlib import Path

from sagl.features.readers.datasets.layout import Layout, Listing, Split, read_names

LAYOUT = Layout(
    "Food-101",
    ["food-101", "food101"],
    ["images", "meta/train.txt", "meta/test.txt"],
    "food-101.tar.gz from https://data.vision.ee.ethz.ch/cvl/datasets_extra/food-101",
)
_LISTS = {"train": ["train"], "test": ["test"], "all": ["train", "test"]}


def read(root: Path, split: Split) -> Listing:
    """The official lists; a class is a folder."""
    base = LAYOUT.find(root)
    names = [
        name
        for part in _LISTS[split]
        for name in read_names(base / "meta" / f"{part}.txt")
    ]
    paths = [f"images/{name}.jpg" for name in names]
    return Listing(base, paths, [name.partition("/")[0] for name in names])
