"""Classes and clusters as codes, whatever names they came with."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Label = int | str


class Coded(NamedTuple):
    """Labels as numbers: sample i has the label ``names[codes[i]]``."""

    names: list[Label]
    codes: NDArray[np.intp]


def coded_pair(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[Coded, Coded]:
    """Code both sides, which must be equally long."""
    true, pred = coded(y_true, "y_true"), coded(y_pred, "y_pred")
    n_true, n_pred = len(true.codes), len(pred.codes)
    if n_true != n_pred:
        raise ValueError(
            f"y_true has {n_true} labels and y_pred has {n_pred}; give one of each "
            "per sample, in the same order"
        )
    return true, pred


def coded(labels: ArrayLike, name: str) -> Coded:
    """Code labels; errors call them ``name``."""
    array = _as_plain_labels(labels, name)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must be one-dimensional, got shape {array.shape}; give one label "
            "per sample, not probabilities or one-hot rows"
        )
    if array.size == 0:
        raise ValueError(f"{name} is empty; give at least one label")
    names, codes = np.unique(array, return_inverse=True)
    if array.dtype.kind == "f":
        _check_whole(array, name)
        return Coded([int(value) for value in names], codes)
    return Coded(names.tolist(), codes)


def _as_plain_labels(labels: ArrayLike, name: str) -> NDArray[Any]:
    """Labels as an array of numbers or strings, never of objects."""
    array = np.asarray(labels)
    if array.dtype.kind == "U" and not isinstance(labels, np.ndarray):
        # NumPy turns ["a", nan] into the strings "a" and "nan": look before it does.
        array = np.asarray(labels, dtype=object)
    if array.dtype == object:
        flat = array.ravel().tolist()
        of_strings = bool(flat) and isinstance(flat[0], str)
        for i, value in enumerate(flat):
            if isinstance(value, str) != of_strings or value is None:
                raise ValueError(
                    f"{name}[{i}] is {value!r}; labels must be all whole numbers or "
                    "all strings"
                )
        array = np.asarray(array.tolist())
    if array.dtype.kind not in "biufU":
        raise ValueError(
            f"{name} holds values of type {array.dtype}; labels must be whole numbers "
            "or strings"
        )
    return array


def _check_whole(array: NDArray[Any], name: str) -> None:
    bad = ~np.isfinite(array) | (array != np.floor(array))
    if bad.any():
        i = int(np.argmax(bad))
        raise ValueError(
            f"{name}[{i}] is {array[i]}; labels must be whole numbers or strings, "
            "without missing values"
        )
