"""KITTI: how far away is the nearest vehicle?

The classes are those of the Visual Task Adaptation Benchmark: no car, van or truck at
all, or the nearest one up to 8 m, up to 20 m or farther along the camera's axis. The
official test set has no annotations, so the annotated images are divided at random.
"""

from __future__ import annotations

from pathlib import Path

from sagl.features._errors import file_error
from sagl.features.readers.datasets.layout import (
    Layout,
    Listing,
    Split,
    read_names,
    shuffled,
)
from sagl.features.readers.folder import find_images

LAYOUT = Layout(
    "KITTI",
    ["Kitti", "Kitti/raw", "kitti", "raw"],
    ["training/image_2", "training/label_2"],
    "data_object_image_2.zip and data_object_label_2.zip from "
    "https://www.cvlibs.net/datasets/kitti/eval_object.php, unpacked side by side",
)
NO_VEHICLE, NEAR, MIDDLE, FAR = "no vehicle", "up to 8 m", "up to 20 m", "farther"
_VEHICLES = {"Car", "Van", "Truck"}
_TRAIN_SHARE = 0.8
_DEPTH = 13  # column of an object's distance along the camera's axis, in metres


def read(root: Path, split: Split) -> Listing:
    """80 % of the annotated images, or the other 20 %."""
    base = LAYOUT.find(root)
    names = find_images(base / "training/image_2").paths
    order = shuffled(len(names))
    cut = round(_TRAIN_SHARE * len(names))
    rows = {"train": order[:cut], "test": order[cut:], "all": order}[split]
    chosen = [names[row] for row in rows]
    annotations = base / "training/label_2"
    return Listing(
        base,
        [f"training/image_2/{name}" for name in chosen],
        [_distance_class(annotations / f"{Path(name).stem}.txt") for name in chosen],
    )


def _distance_class(path: Path) -> str:
    depths = [
        _depth(path, line) for line in read_names(path) if line.split()[0] in _VEHICLES
    ]
    if not depths:
        return NO_VEHICLE
    nearest = min(depths)
    return NEAR if nearest <= 8 else MIDDLE if nearest <= 20 else FAR


def _depth(path: Path, line: str) -> float:
    try:
        return float(line.split()[_DEPTH])
    except (IndexError, ValueError):
        raise file_error(
            path, f"{line!r} has no distance as its 14th value; download it again"
        ) from None
