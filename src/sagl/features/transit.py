"""Prepared samples on their way from a worker process.

Each tensor that a worker sends costs an open file, and a process may have a thousand
of those: samples of one form therefore travel as one tensor per input, and others as
plain arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Stacked:
    """Samples of one form: one tensor, or one per input, with a row per sample."""

    rows: Tensor | dict[str, Tensor]


def packed(prepared: Sequence[Any]) -> Any:
    """The samples in a form that travels well; ``unpacked`` undoes it."""
    if not prepared:
        return []
    if isinstance(prepared[0], Tensor) and _alike(prepared):
        return Stacked(torch.stack(list(prepared)))
    if all(_is_inputs(one) for one in prepared):
        columns = {key: [one.get(key) for one in prepared] for key in prepared[0]}
        if all(_alike(column) for column in columns.values()):
            return Stacked({key: torch.stack(c) for key, c in columns.items()})
    return [_without_tensors(one) for one in prepared]


def unpacked(travelled: Any) -> list[Any]:
    """The samples as they were prepared."""
    if not isinstance(travelled, Stacked):
        return [_with_tensors(one) for one in travelled]
    if isinstance(travelled.rows, Tensor):
        return list(travelled.rows)
    columns = travelled.rows
    n = len(next(iter(columns.values())))
    return [{key: column[i] for key, column in columns.items()} for i in range(n)]


@dataclass(frozen=True)
class _WasTensor:
    array: Any


def _alike(values: Sequence[Any]) -> bool:
    first = values[0]
    return all(
        isinstance(value, Tensor)
        and value.shape == first.shape
        and value.dtype == first.dtype
        for value in values
    )


def _is_inputs(value: Any) -> bool:
    return (
        type(value) is dict
        and bool(value)
        and all(isinstance(item, Tensor) for item in value.values())
    )


def _without_tensors(value: Any) -> Any:
    if isinstance(value, Tensor) and value.dtype != torch.bfloat16:
        return _WasTensor(value.numpy())
    if type(value) is dict:
        return {key: _without_tensors(item) for key, item in value.items()}
    return value


def _with_tensors(value: Any) -> Any:
    if isinstance(value, _WasTensor):
        return torch.from_numpy(value.array)
    if type(value) is dict:
        return {key: _with_tensors(item) for key, item in value.items()}
    return value
