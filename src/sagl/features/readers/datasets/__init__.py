"""The paper's eight data sets, from their standard downloads, in the paper's parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sagl.features._errors import file_error
from sagl.features.decode import require_pillow
from sagl.features.readers.base import ImageFiles
from sagl.features.readers.datasets import (
    caltech101,
    eurosat,
    flowers,
    food101,
    imagenet,
    kitti,
    pets,
    sun397,
)
from sagl.features.readers.datasets.layout import Listing, Split
from sagl.features.readers.folder import image_files


@dataclass(frozen=True)
class PaperData:
    """A data set of the paper: how it is read, and how many images it should have."""

    read: Callable[[Path, Split], Listing]
    n_train: int
    n_test: int
    n_classes: int


DATASETS = {
    "pets": PaperData(pets.read, 3_680, 3_669, 37),
    "kitti": PaperData(kitti.read, 5_985, 1_496, 4),
    "flowers": PaperData(flowers.read, 2_040, 6_149, 102),
    "caltech101": PaperData(caltech101.read, 3_060, 6_084, 102),
    "eurosat": PaperData(eurosat.read, 10_000, 5_000, 10),
    "sun397": PaperData(sun397.read, 19_850, 19_850, 397),
    "food101": PaperData(food101.read, 75_750, 25_250, 101),
    "imagenet": PaperData(imagenet.read, 1_281_167, 50_000, 1_000),
}


def open_dataset(name: str, root: Path, split: str | None) -> ImageFiles:
    """A part of one of the paper's data sets: ``train``, ``test`` or ``all``.

    Ids are paths below the folder that the download unpacks to, sorted.
    """
    data = DATASETS[name]
    if not root.is_dir():
        raise file_error(root, f"there is no such folder to read {name} from")
    match split:
        case "train" | "test" | "all":
            listing = data.read(root, split)
        case _:
            raise file_error(
                root, f"choose a part of {name} (--split): train, test or all"
            )
    require_pillow()
    if not listing.paths:
        raise file_error(root, f"the {split} part of {name} is empty")
    rows = sorted(zip(listing.paths, listing.labels, strict=True))
    expected = {"train": data.n_train, "test": data.n_test, "all": None}[split]
    source = {
        "reader": "data set",
        "name": name,
        "path": str(root),
        "split": split,
        "expected_samples": expected,
    }
    paths, labels = map(list, zip(*rows, strict=True))
    return image_files(listing.base, paths, labels, source, 0)
