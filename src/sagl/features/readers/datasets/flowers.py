"""Oxford Flowers: 102 species."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sagl.features._errors import file_error
from sagl.features.readers.datasets.layout import Layout, Listing, Split, read_matlab

LAYOUT = Layout(
    "Oxford Flowers 102",
    ["flowers-102", "flowers"],
    ["jpg", "imagelabels.mat", "setid.mat"],
    "102flowers.tgz, imagelabels.mat and setid.mat from "
    "https://www.robots.ox.ac.uk/~vgg/data/flowers/102, side by side",
)
# The official training part is small; the paper adds the validation part to it.
_TRAIN = ["trnid", "valid"]
_KEYS = {"train": _TRAIN, "test": ["tstid"], "all": [*_TRAIN, "tstid"]}


def read(root: Path, split: Split) -> Listing:
    """The official lists; a class is a number from 1 to 102."""
    base = LAYOUT.find(root)
    species = np.atleast_1d(read_matlab(base / "imagelabels.mat", "labels"))
    numbers = np.concatenate(
        [np.atleast_1d(read_matlab(base / "setid.mat", key)) for key in _KEYS[split]]
    )
    if not 1 <= numbers.min() <= numbers.max() <= len(species):
        raise file_error(
            base / "setid.mat",
            f"names image {numbers.max()}, but imagelabels.mat knows {len(species)}; "
            "download both again",
        )
    paths = [f"jpg/image_{number:05d}.jpg" for number in numbers.tolist()]
    return Listing(base, paths, [str(label) for label in species[numbers - 1]])
