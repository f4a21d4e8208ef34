"""From what people have, arrays, lists, data frames, tensors, to named matrices."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from itertools import pairwise
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def named_arrays(
    views: Mapping[str, Any] | Sequence[Any] | Array,
    view_sizes: Sequence[int] | None,
) -> dict[str, Array]:
    """By name, as they are or as an array; refused with what is wrong."""
    if hasattr(views, "tocsr"):  # some sparse matrices are mappings, too
        return {"view0": _as_matrix("view0", views)}
    if isinstance(views, Mapping):
        named: dict[str, Any] = dict(views)
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
        for rows, fault in ((repeated, "is repeated"), (apart, "is not in both")):
            labels = rows.tolist()  # plain values, not NumPy's
            if labels:
                raise ValueError(
                    f"the rows of views {first!r} and {name!r} cannot be matched: the "
                    f"row label {labels[0]!r} {fault}; give both the same index, or "
                    "reset_index(drop=True) where their rows are in the same order"
                )
        named = {**named, name: frames[name].reindex(index)}
    return named


def is_list_of_views(views: Any) -> bool:
    """Whether this is a list of matrices rather than one matrix written as a list."""
    if not isinstance(views, list | tuple):
        return False
    return not views or any(hasattr(v, "shape") and len(v.shape) > 1 for v in views)


def refuse_samples(given: Any) -> None:
    """Refuse texts, pictures and paths: they become features by backbones."""
    first = given
    flat = isinstance(given, np.ndarray) and given.ndim == 1
    if flat or isinstance(given, list | tuple) or hasattr(given, "iloc"):
        columns = getattr(given, "ndim", 1)  # a data frame has names in the first place
        first = next(iter(given), None) if columns == 1 else None
    picture = type(first).__module__.startswith("PIL.")
    if picture or isinstance(first, str | PathLike):
        what = "pictures" if picture else "texts or paths"
        raise ValueError(
            f"these are {what}, and a fit takes features: let two or more backbones "
            "make views of them, by sagl fit SOURCE --backbone A --backbone B, or "
            "sagl.features.extraction.extract"
        )


def refuse_second_view(y: Any) -> None:
    """Refuse a view in the place of labels, which are ignored without a word."""
    if len(getattr(y, "shape", ())) == 2 and y.shape[1] > 1:
        raise ValueError(
            "a fit takes all views in one argument, fit([a, b]) or fit({'a': a, "
            f"'b': b}}); the second is for labels, and this one is of shape {y.shape}"
        )


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
