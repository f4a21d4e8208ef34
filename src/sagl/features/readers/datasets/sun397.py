"""SUN397: 397 kinds of scenes."""

from __future__ import annotations

from pathlib import Path

from sagl.features.readers.datasets.layout import Layout, Listing, Split, read_names
from sagl.features.readers.folder import find_images

LAYOUT = Layout(
    "SUN397",
    ["SUN397", "sun397"],
    ["a/abbey"],
    "SUN397.tar.gz and Partitions.zip from "
    "https://vision.princeton.edu/projects/2010/SUN, the lists beside or in SUN397",
)
_LISTS = {"train": "Training_01.txt", "test": "Testing_01.txt"}
_FOLDERS_OF_LISTS = ("", "Partitions", "SUN397", "SUN397/Partitions")


def read(root: Path, split: Split) -> Listing:
    """The first of the ten official partitions, or every image there is.

    A class is a folder without its initial: ``a/apse/indoor`` is ``apse/indoor``.
    """
    base = LAYOUT.find(root)
    if split == "all":
        # Depth tells images from strays: letter/class[/place]/image.
        found = find_images(base).paths
        paths = [path for path in found if path.count("/") >= 2]
    else:
        paths = [line.lstrip("/") for line in read_names(_list(root, base, split))]
    return Listing(base, paths, ["/".join(path.split("/")[1:-1]) for path in paths])


def _list(root: Path, base: Path, split: Split) -> Path:
    name = _LISTS[split]
    for folder in (base, root):
        for below in _FOLDERS_OF_LISTS:
            if (folder / below / name).is_file():
                return folder / below / name
    raise LAYOUT.error(base, f"there is no {name}")
