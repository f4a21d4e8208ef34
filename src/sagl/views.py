"""Views: several feature matrices of the same samples, the input of everything."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Float = NDArray[np.float32]

# Rows looked at together when a whole view is scanned: bounded memory on big files.
_SCAN_VALUES = 1 << 22


class Views:
    """Named, row-aligned feature matrices of the same samples.

    Arrays are kept as they are: a memory-mapped file stays on disk until rows of it
    are asked for. ``views["name"]`` is one matrix; indexing with a slice, a mask or
    positions gives the same views of fewer samples; ``len(views)`` counts samples.

    Parameters
    ----------
    views : Views, mapping of name to array, sequence of arrays, or one 2-D array
        Row i of every array describes sample i; pandas DataFrames are brought into the
        order of the first one's index. Unnamed views are called ``view0``, ``view1``
        and so on.
    view_sizes : sequence of int, optional
        Widths by which one 2-D array is cut, column-wise, into views.

    Examples
    --------
    >>> import numpy as np
    >>> from sagl import Views
    >>> views = Views({"dino": np.zeros((5, 8)), "clip": np.ones((5, 3))})
    >>> views
    Views(5 samples: dino 8, clip 3)
    >>> views[1:3]
    Views(2 samples: dino 8, clip 3)
    """

    def __init__(
        self,
        views: Views | Mapping[str, Any] | Sequence[Any] | Array,
        *,
        view_sizes: Sequence[int] | None = None,
    ) -> None:
        self._arrays = _named_arrays(views, view_sizes)
        self._named = isinstance(views, Mapping) or getattr(views, "_named", False)
        # Whether they have passed ``check_values`` and cannot have changed since.
        self.values_checked: bool = isinstance(views, Views) and views.values_checked
        rows = {name: len(array) for name, array in self._arrays.items()}
        if len(set(rows.values())) > 1:
            counts = ", ".join(f"{name} has {count}" for name, count in rows.items())
            raise ValueError(
                f"the views have different numbers of rows: {counts}; "
                "row i of every view must describe the same sample"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The views' names, in order."""
        return tuple(self._arrays)

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of columns of each view."""
        return tuple(array.shape[1] for array in self._arrays.values())

    @property
    def shape(self) -> tuple[int, int]:
        """Samples, and columns of all views together."""
        return len(self), sum(self.widths)

    def items(self) -> Iterator[tuple[str, Array]]:
        """Pairs of a view's name and its matrix."""
        yield from self._arrays.items()

    def __len__(self) -> int:
        return len(next(iter(self._arrays.values())))

    def __repr__(self) -> str:
        views = ", ".join(
            f"{n} {w}" for n, w in zip(self.names, self.widths, strict=True)
        )
        return f"Views({len(self)} samples: {views})"

    @overload
    def __getitem__(self, key: str) -> Array: ...
    @overload
    def __getitem__(
        self, key: slice | Array | Sequence[int] | tuple[Any, ...]
    ) -> Views: ...
    def __getitem__(self, key: Any) -> Array | Views:
        if isinstance(key, str):
            if key not in self._arrays:
                raise KeyError(f"no view {key!r}; there are {', '.join(self.names)}")
            return self._arrays[key]
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]  # how scikit-learn's splitters take rows
        if isinstance(key, int | np.integer):
            raise TypeError(
                f"views[{key}] is not a set of samples; write views[{key}:{key + 1}]"
            )
        chosen = Views({name: array[key] for name, array in self.items()})
        chosen._named = self._named
        return chosen

    def as_fitted(self, names: Sequence[str], widths: Sequence[int]) -> Views:
        """These views in the order of a fit; refused unless they are its views.

        They are joined by name; those that were given no names are taken in order.
        """
        if set(self.names) == set(names):
            arrays = {name: self._arrays[name] for name in names}
        elif not self._named and len(self.names) == len(names):
            arrays = dict(zip(names, self._arrays.values(), strict=True))
        else:
            missing = [
                f"{name!r} is missing" for name in names if name not in self.names
            ]
            unknown = [
                f"{name!r} is not known" for name in self.names if name not in names
            ]
            raise ValueError(_not_fitted(names, widths, ", ".join(missing + unknown)))
        views = Views(arrays)
        for name, given, width in zip(names, views.widths, widths, strict=True):
            if given != width:
                fault = f"{name!r} has {given} columns here"
                raise ValueError(_not_fitted(names, widths, fault))
        views.values_checked = self.values_checked
        return views

    def take(self, rows: NDArray[np.int64]) -> list[Float]:
        """The given rows of every view as float32, read in file order."""
        order = np.argsort(rows, kind="stable")
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return [
            np.ascontiguousarray(array[rows[order]][back], dtype=np.float32)
            for array in self._arrays.values()
        ]

    def blocks(self, rows: int, within: slice = slice(None)) -> Iterator[list[Float]]:
        """All samples in order, or those of a slice, at most ``rows`` at a time, as
        float32."""
        first, last, _ = within.indices(len(self))
        for start in range(first, last, rows):
            stop = min(start + rows, last)
            yield [
                np.array(array[start:stop], dtype=np.float32, order="C")
                for array in self._arrays.values()
            ]

    def fingerprint(self) -> str:
        """Names, shapes and some evenly spaced rows: enough to notice other data."""
        rows = np.unique(np.linspace(0, len(self) - 1, 64).astype(np.int64))
        digest = hashlib.sha256(repr(self).encode())
        for h in self.take(rows):
            digest.update(h.tobytes())
        return digest.hexdigest()

    def check_values(self) -> None:
        """Refuse NaN, infinity and values beyond float32; name the first of them.

        What cannot be written to, such as files, is looked at once.
        """
        if self.values_checked:
            return
        for name, array in self.items():
            for start, block in _scan(array):
                bad = ~np.isfinite(block)
                if bad.any():
                    row, column = (int(i) for i in np.argwhere(bad)[0])
                    value = np.asarray(array[start + row, column])
                    shown = "NaN" if np.isnan(value) else f"{value}"
                    raise ValueError(
                        f"view {name!r} holds {shown} at row {start + row}, column "
                        f"{column}; NaN, inf and values beyond float32 cannot be used: "
                        "remove or replace them"
                    )
        self.values_checked = all(map(_is_read_only, self._arrays.values()))

    def check_spread(self) -> None:
        """Refuse a view in which all samples are the same."""
        for name, array in self.items():
            first = np.asarray(array[:1], dtype=np.float32)  # as training sees it
            if all((block == first).all() for _, block in _scan(array)):
                raise ValueError(
                    f"view {name!r} is constant: all {len(array)} rows are equal, so "
                    "it cannot tell samples apart; leave it out"
                )


def _not_fitted(names: Sequence[str], widths: Sequence[int], fault: str) -> str:
    pairs = zip(names, widths, strict=True)
    listed = ", ".join(f"{name} ({width} columns)" for name, width in pairs)
    return f"the model was fitted on the views {listed}; {fault}"


def _scan(array: Array) -> Iterator[tuple[int, Float]]:
    """Some rows after others as float32, each with the number of its first row."""
    step = max(1, _SCAN_VALUES // array.shape[1])
    for start in range(0, len(array), step):
        with np.errstate(over="ignore"):
            block = np.asarray(array[start : start + step]).astype(np.float32)
        yield start, block


def _named_arrays(
    views: Views | Mapping[str, Any] | Sequence[Any] | Array,
    view_sizes: Sequence[int] | None,
) -> dict[str, Array]:
    if isinstance(views, Views):
        named: dict[str, Any] = dict(views.items())
    elif hasattr(views, "tocsr"):  # some sparse matrices are mappings, too
        return {"view0": _as_matrix("view0", views)}
    elif isinstance(views, Mapping):
        named = dict(views)
    elif is_list_of_views(views):
        named = {f"view{i}": array for i, array in enumerate(views)}
    else:
        array = _as_matrix("X", views)
        if view_sizes is None:
            return {"view0": array}
        return _cut(array, view_sizes)
    if view_sizes is not None:
        raise ValueError(
            "view_sizes cuts one 2-D array into views; the input has "
            f"{len(named)} separate views already"
        )
    if not named:
        raise ValueError("no views given; at least one is needed")
    for name in named:
        if not isinstance(name, str) or not name:
            raise ValueError(f"a view's name must be a non-empty string, got {name!r}")
    named = _aligned(named)
    return {name: _as_matrix(name, array) for name, array in named.items()}


def _aligned(named: dict[str, Any]) -> dict[str, Any]:
    """pandas DataFrames in the order of the first one's index, others as they are."""
    frames = {k: v for k, v in named.items() if hasattr(v, "reindex")}
    if not frames:
        return named
    (first, index), *others = [(name, frame.index) for name, frame in frames.items()]
    for name, other in others:
        if index.equals(other):
            continue
        repeated = index[index.duplicated()].append(other[other.duplicated()])
        apart = index.symmetric_difference(other)
        for labels, fault in ((repeated, "is repeated"), (apart, "is not in both")):
            if len(labels):
                raise ValueError(
                    f"the rows of views {first!r} and {name!r} cannot be matched: the "
                    f"row label {labels[0]!r} {fault}; give both the same index, or "
                    "reset_index(drop=True) where their rows are in the same order"
                )
        named = {**named, name: frames[name].reindex(index)}
    return named


def _is_read_only(array: Any) -> bool:
    on_disk = getattr(array, "stays_on_disk", False)
    return bool(on_disk or not array.flags.writeable)


def is_list_of_views(views: Any) -> bool:
    """Whether this is a list of matrices rather than one matrix written as a list."""
    if not isinstance(views, list | tuple):
        return False
    return not views or any(hasattr(v, "shape") and len(v.shape) > 1 for v in views)


def _cut(array: Array, view_sizes: Sequence[int]) -> dict[str, Array]:
    try:
        sizes = [operator.index(size) for size in view_sizes]
    except TypeError:
        sizes = []
    if not sizes or min(sizes) < 1 or sum(sizes) != array.shape[1]:
        raise ValueError(
            f"view_sizes {view_sizes!r} must be whole positive numbers that add up to "
            f"the {array.shape[1]} columns of X"
        )
    edges = np.cumsum([0, *sizes])
    return {f"view{i}": array[:, a:b] for i, (a, b) in enumerate(pairwise(edges))}


def _as_matrix(name: str, array: Any) -> Array:
    if hasattr(array, "tocsr") or getattr(array, "is_sparse", False):
        raise ValueError(f"view {name!r} is a sparse matrix; pass a dense array")
    if hasattr(array, "detach"):  # a torch tensor, without importing torch
        array = array.detach().cpu()
        array = (
            array.float() if str(array.dtype) == "torch.bfloat16" else array
        ).numpy()
    stays = isinstance(array, np.ndarray) or getattr(array, "stays_on_disk", False)
    matrix: Array = array if stays else np.asarray(array)
    if matrix.ndim != 2:
        raise ValueError(
            f"view {name!r} has shape {matrix.shape}; expected samples x features (2-D)"
        )
    if matrix.dtype.kind not in "fiub":
        raise ValueError(
            f"view {name!r} holds {matrix.dtype}, not real numbers; convert it first"
        )
    if matrix.shape[1] == 0:
        raise ValueError(f"view {name!r} has no columns (shape {matrix.shape})")
    if matrix.shape[0] == 0:
        raise ValueError(f"view {name!r} has no rows (shape {matrix.shape})")
    return matrix
