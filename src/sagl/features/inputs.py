"""What a model is fitted on or asked about: files, or a feature store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from sagl.features.files import read_labels
from sagl.features.split import read_views
from sagl.features.store import FeatureStore, Join, is_store
from sagl.views import Views


@dataclass(frozen=True)
class Input:
    """Views, and from a store also what the samples are called and where they are.

    Attributes
    ----------
    views : Views
    ids : list of str or None
    labels : ndarray or None
        For evaluation alone.
    source : dict or None
        What the samples' reader says of itself, with ``store`` and ``views``.
    """

    views: Views
    ids: list[str] | None = None
    labels: NDArray[Any] | None = None
    source: dict[str, Any] | None = None

    def truth(self, file: Path | None) -> NDArray[Any]:
        """Labels to score with: those of a file, else the store's own."""
        if file is not None:
            return read_labels(file)
        if self.labels is None:
            raise ValueError("there are no labels to score with; give --labels")
        return self.labels


def read_input(
    store: str | Path | None,
    files: Sequence[str] | None,
    names: Sequence[str] | None = None,
    join: Join = "error",
) -> Input:
    """Views of a store, or of ``NAME=FILE`` options: one or the other."""
    if (store is None) == (not files):
        raise ValueError("give a feature store, or views with --view; one of the two")
    if files:
        return Input(read_views(files))
    return open_input(Path(str(store)), names, join)


def open_input(path: Path, names: Sequence[str] | None, join: Join) -> Input:
    """Views of a store."""
    if path.is_dir() and not is_store(path):
        raise ValueError(
            f"{path} is not a feature store; make one with sagl extract {path}"
        )
    joined = FeatureStore.open(path).join(names, join)
    source = {
        **_absolute(joined.source),
        "store": str(path.resolve()),
        "views": list(joined.views.names),
    }
    return Input(joined.views, joined.ids, joined.labels, source)


def _absolute(source: dict[str, Any]) -> dict[str, Any]:
    """A description of samples that holds from other directories, too."""
    place = Path(str(source.get("path", "")))
    if "path" not in source or not place.exists():  # a name, or a pattern of shards
        return source
    return {**source, "path": str(place.resolve())}
