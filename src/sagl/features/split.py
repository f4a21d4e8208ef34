"""Views and labels on disk: those named one by one, and directories of a known shape.

A directory to compare on holds ``train`` and, if there is one, ``test``; each of them
one file per view (the file's name is the view's) and ``labels`` in the same formats:

    pets/train/dino.npy  pets/train/clip.npy  pets/train/labels.npy
    pets/test/dino.npy   pets/test/clip.npy   pets/test/labels.npy
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from sagl.features.files import SUFFIXES, parse_view_option, read_array, read_labels
from sagl.views import Views

_LABELS = "labels"


def read_views(options: Sequence[str]) -> Views:
    """The views of ``NAME=FILE`` options; what is wrong with one names its file."""
    arrays: dict[str, Any] = {}
    for option in options:
        name, path, key = parse_view_option(option)
        if name in arrays:
            raise ValueError(
                f"--view {option}: there is a view {name!r} already; name it "
                "differently with NAME=FILE"
            )
        arrays[name] = read_array(path, key)
        try:
            Views({name: arrays[name]}).check_values()
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    return Views(arrays)


@dataclass(frozen=True)
class Part:
    """Files of some samples: ``NAME=FILE`` of each view, and the labels if known."""

    views: tuple[str, ...]
    labels: str | None = None

    def read(self) -> tuple[Views, NDArray[Any] | None]:
        """Views and labels, as many of the one as of the other."""
        views = read_views(self.views)
        if self.labels is None:
            return views, None
        labels = read_labels(self.labels)
        if len(labels) != len(views):
            raise ValueError(
                f"{self.labels}: {len(labels)} labels for {len(views)} samples; there "
                "must be one label per sample"
            )
        return views, labels


@dataclass(frozen=True)
class Source:
    """What is compared on. Without a test part the fitted samples are scored."""

    name: str
    train: Part
    test: Part | None = None

    @property
    def scored(self) -> Part:
        """The part whose samples are scored."""
        return self.train if self.test is None else self.test

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Source:
        train, test = value["train"], value["test"]
        return cls(value["name"], _part(train), None if test is None else _part(test))


def find_source(directory: Path, views: Sequence[str] | None = None) -> Source:
    """The files of a directory with ``train`` and perhaps ``test`` in it.

    ``views`` picks some of the views, in this order; by default all, by name.
    """
    if not (directory / "train").is_dir():
        raise ValueError(
            f"{directory}: there is no directory train in it; expected train/VIEW.npy, "
            "train/labels.npy and perhaps the same under test"
        )
    train = _find_part(directory / "train", views)
    test = None
    if (directory / "test").is_dir():
        names = [_view_name(option) for option in train.views]
        test = _find_part(directory / "test", names)
    return Source(directory.resolve().name, train, test)


def _find_part(directory: Path, wanted: Sequence[str] | None) -> Part:
    files: dict[str, Path] = {}
    for path in sorted(directory.iterdir()):
        if path.suffix.lower() not in SUFFIXES or path.name.startswith("."):
            continue
        if path.stem in files:
            raise ValueError(f"{path}: {files[path.stem].name} has the same name")
        files[path.stem] = path
    labels = files.pop(_LABELS, None)
    if not files:
        raise ValueError(f"{directory}: no view in it; expected files such as clip.npy")
    names = list(files) if wanted is None else list(wanted)
    for name in names:
        if name not in files:
            raise ValueError(
                f"{directory}: there is no view {name!r}, only {', '.join(files)}"
            )
    options = tuple(f"{name}={files[name]}" for name in names)
    return Part(options, None if labels is None else str(labels))


def _view_name(option: str) -> str:
    return parse_view_option(option)[0]


def _part(value: dict[str, Any]) -> Part:
    return Part(tuple(value["views"]), value["labels"])
