"""What the standard downloads have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sagl.features._errors import file_error
from sagl.features.readers.folder import find_images

Split = Literal["train", "test", "all"]
_SEED = 42  # of every split that was drawn at random


class Listing(NamedTuple):
    """Pictures of a split by their path below ``base``, and their classes."""

    base: Path
    paths: list[str]
    labels: list[str]


@dataclass(frozen=True)
class Layout:
    """Where a download may have been unpacked, and what must be there.

    Attributes
    ----------
    title : str
    folders : sequence of str
        Folders below the one that the user names in which the data may lie.
    needed : sequence of str
        Files and folders that must be there.
    download : str
        What to get, and where.
    """

    title: str
    folders: Sequence[str]
    needed: Sequence[str]
    download: str

    def find(self, root: Path) -> Path:
        """The folder below ``root`` that has everything."""
        bases = [root / folder for folder in ("", *self.folders)]
        for base in bases:
            if all((base / name).exists() for name in self.needed):
                return base
        # Name what is missing where something of it is there already.
        best = max(bases, key=lambda base: self._n_found(base))
        missing = [name for name in self.needed if not (best / name).exists()]
        raise self.error(best, f"there is no {' and no '.join(missing)}")

    def error(self, path: Path, what: str) -> ValueError:
        return file_error(path, f"{what}; {self.title} needs {self.download}")

    def _n_found(self, base: Path) -> int:
        return sum((base / name).exists() for name in self.needed)


def read_names(path: Path) -> list[str]:
    """Lines of a list that are neither blank nor comments."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise file_error(path, f"cannot be read ({error}); download it again") from None
    lines = (line.strip() for line in text.split("\n"))
    return [line for line in lines if line and not line.startswith("#")]


def read_matlab(path: Path, key: str) -> Any:
    """One variable of a MATLAB file."""
    from scipy.io import loadmat

    try:
        return loadmat(path, squeeze_me=True, variable_names=[key])[key]
    # SciPy raises whatever the damaged bytes lead it to.
    except Exception as error:
        raise file_error(
            path, f"cannot be read ({type(error).__name__}: {error}); download it again"
        ) from None


def images_by_class(base: Path) -> dict[str, list[str]]:
    """Paths of pictures, sorted, by the folder of ``base`` that they lie in."""
    classes: dict[str, list[str]] = {}
    for path in find_images(base).paths:
        folder, slash, _ = path.partition("/")
        if slash:
            classes.setdefault(folder, []).append(path)
    return classes


def shuffled(count: int) -> NDArray[np.int64]:
    """The numbers below ``count``, in the order of the fixed seed.

    The generator is NumPy's frozen one: its stream is the same in every version.
    """
    return np.random.RandomState(_SEED).permutation(count)
