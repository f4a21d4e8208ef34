"""Oxford-IIIT Pets: 37 breeds of cats and dogs."""

from __future__ import annotations

from pathlib import Path

from sagl.features.readers.datasets.layout import Layout, Listing, Split, read_names

LAYOUT = Layout(
    "Oxford-IIIT Pets",
    ["oxford-iiit-pet", "pets"],
    ["images", "annotations/trainval.txt", "annotations/test.txt"],
    "images.tar.gz and annotations.tar.gz from "
    "https://www.robots.ox.ac.uk/~vgg/data/pets, unpacked side by side",
)
_LISTS = {"train": ["trainval"], "test": ["test"], "all": ["trainval", "test"]}


def read(root: Path, split: Split) -> Listing:
    """The official lists; the breed is the file's name without its number."""
    base = LAYOUT.find(root)
    names = [
        line.split()[0]
        for part in _LISTS[split]
        for line in read_names(base / "annotations" / f"{part}.txt")
    ]
    paths = [f"images/{name}.jpg" for name in names]
    return Listing(base, paths, [name.rpartition("_")[0] for name in names])
