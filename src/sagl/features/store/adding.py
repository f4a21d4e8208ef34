"""Adding features that are there already to a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sagl.features.store.manifest import Plan, as_json, check_dtype
from sagl.features.store.sample_files import (
    line_fault,
    samples_checksum,
    sorted_order,
)
from sagl.features.store.writing import begin, finish, piece_rows


def write_view(
    store: str | Path,
    name: str,
    ids: Sequence[str],
    features: Any,
    *,
    labels: Sequence[str] | None = None,
    dtype: Any = None,
    backbone: Mapping[str, Any] | None = None,
    source: Mapping[str, Any] | None = None,
) -> None:
    """Add features that are there already to a store, which is made if need be.

    Parameters
    ----------
    store : str or Path
    name : str
        The view's name.
    ids : sequence of str
        One per row. The store keeps rows sorted by id.
    features : array of shape (n, dim)
        Read in pieces: it may be a memory map.
    labels : sequence of str, optional
        One per row, for evaluation alone.
    dtype : optional
        Of the stored features; by default that of the array.
    backbone, source : mapping, optional
        What to remember about the model and about the samples, as JSON.
    """
    if len(features.shape) != 2 or len(features) != len(ids):
        raise ValueError(
            f"view {name!r}: {len(ids)} ids for features of shape {features.shape}; "
            "one id per row is needed"
        )
    for i, sample in enumerate(ids):
        if fault := line_fault(sample):
            raise ValueError(f"view {name!r}: the id of row {i}, {sample!r}: {fault}")
    order = sorted_order(ids)
    ordered = [ids[i] for i in order]
    plan = Plan(
        backbone=as_json(dict(backbone or {})),
        dtype=check_dtype(features.dtype if dtype is None else dtype),
        dim=features.shape[1],
        piece_rows=piece_rows(len(ids)),
        batch_size=None,
        n_samples=len(ids),
        samples_sha256=samples_checksum(ordered),
    )
    sorted_labels = None if labels is None else [labels[i] for i in order]
    view = begin(Path(store), name, plan, ordered, sorted_labels, source or {})
    if view is None:
        return
    for piece in view.pending:
        rows = np.array([order[i] for i in view.samples_of(piece)], dtype=np.int64)
        view.write(piece, np.asarray(features[rows]), [])
    finish(view.store, name)
