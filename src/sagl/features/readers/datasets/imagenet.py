"""ImageNet-1K (ILSVRC 2012). The official test set has no labels: val is the test."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np

from sagl.features._errors import file_error
from sagl.features.readers.datasets.layout import (
    Layout,
    Listing,
    Split,
    read_matlab,
    read_names,
)
from sagl.features.readers.folder import find_images

_DOWNLOAD = (
    "ILSVRC2012_img_train.tar, unpacked to train/n01440764/*.JPEG and so on, "
    "ILSVRC2012_img_val.tar, unpacked to val, and ILSVRC2012_devkit_t12.tar.gz, from "
    "https://www.image-net.org"
)
_FOLDERS = ["imagenet", "ILSVRC/Data/CLS-LOC", "Data/CLS-LOC"]
_PARTS: dict[str, list[str]] = {
    "train": ["train"],
    "test": ["val"],
    "all": ["train", "val"],
}
_DEVKIT = ("ILSVRC2012_devkit_t12/data", "devkit/data", "data")
_ANSWERS = "ILSVRC2012_validation_ground_truth.txt"
_KAGGLE_ANSWERS = "LOC_val_solution.csv"


def read(root: Path, split: Split) -> Listing:
    """The official parts; a class is a synset such as n01440764."""
    layout = Layout("ImageNet-1K", _FOLDERS, _PARTS[split], _DOWNLOAD)
    base = layout.find(root)
    paths: list[str] = []
    labels: list[str] = []
    for part in _PARTS[split]:
        names = find_images(base / part).paths
        if not names:
            raise layout.error(base / part, "there are no images")
        if all("/" in name for name in names):
            labels += [name.partition("/")[0] for name in names]
        elif part == "val" and not any("/" in name for name in names):
            labels += _answers(layout, root, base, names)
        else:
            raise layout.error(base / part, f"{names[-1]} lies in no folder of a class")
        paths += [f"{part}/{name}" for name in names]
    return Listing(base, paths, labels)


def _answers(layout: Layout, root: Path, base: Path, names: list[str]) -> list[str]:
    """Classes of validation images that lie side by side."""
    sources: list[tuple[str, Callable[[Path], dict[str, str]]]]
    sources = [(f"{folder}/{_ANSWERS}", _devkit_answers) for folder in _DEVKIT]
    sources.append((_KAGGLE_ANSWERS, _kaggle_answers))
    for folder in (root, base):
        for below, read_answers in sources:
            if (folder / below).is_file():
                answers = read_answers(folder / below)
                return [_answer(folder / below, answers, name) for name in names]
    raise layout.error(
        base,
        f"the images in val lie side by side, and there is neither {_DEVKIT[0]}/"
        f"{_ANSWERS} nor {_KAGGLE_ANSWERS} to tell their classes",
    )


def _answer(path: Path, answers: dict[str, str], name: str) -> str:
    try:
        return answers[Path(name).stem]
    except KeyError:
        raise file_error(
            path, f"says nothing of val/{name}; download both again"
        ) from None


def _devkit_answers(path: Path) -> dict[str, str]:
    """Line i holds the number of the class of validation image i."""
    synsets = np.atleast_1d(read_matlab(path.with_name("meta.mat"), "synsets"))
    by_number = {
        int(synset["ILSVRC2012_ID"]): str(synset["WNID"]) for synset in synsets
    }
    try:
        classes = [by_number[int(line)] for line in read_names(path)]
    except (KeyError, ValueError) as error:
        raise file_error(
            path, f"names a class that meta.mat does not know ({error})"
        ) from None
    return {f"ILSVRC2012_val_{i:08d}": name for i, name in enumerate(classes, start=1)}


def _kaggle_answers(path: Path) -> dict[str, str]:
    """Rows of an image and its boxes, each of which begins with the synset."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    return {row[0]: row[1].split()[0] for row in rows if len(row) > 1}
