"""Views: several feature matrices of the same samples, the input of everything."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from sagl.matrices import named_arrays, refuse_samples
from sagl.unchanged import Unchanged

Array = NDArray[Any]
Float = NDArray[np.float32]

# Rows looked at together when a whole view is scanned: bounded memory on big files.
_SCAN_VALUES = 1 << 22


class Views:
    """Named, row-aligned feature matrices of the same samples.

    Arrays are kept as they are: a memory-mapped file stays on disk until rows of it
    are asked for. ``views["name"]`` is one matrix; indexing with a slice, a mask or
    positions gives the same views of fewer samples; ``len(views)`` counts samples. A
    row of NaN in one view says that the sample misses that view.

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
        refuse_samples(views)
        given = dict(views.items()) if isinstance(views, Views) else views
        self._arrays = named_arrays(given, view_sizes)
        self._named = isinstance(views, Mapping) or getattr(views, "_named", False)
        # Whoever looks at the values first has done it for all views of these arrays.
        self._seen: _Seen = views._seen if isinstance(views, Views) else _Seen()
        self._files: Unchanged = _files_of(views, self._arrays)
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

    @property
    def present(self) -> NDArray[np.bool_] | None:
        """Which samples have which view, (n, L); None where all have all."""
        if isinstance(self._seen.present, str):
            columns = [_there(array) for array in self._arrays.values()]
            self._seen.note(np.stack(columns, axis=1))
        return self._seen.present  # type: ignore[return-value]

    @property
    def counts(self) -> tuple[int, ...]:
        """How many samples have each view."""
        if self.present is None:
            return (len(self),) * len(self.names)
        return tuple(self.present.sum(axis=0).tolist())

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

    def _repr_html_(self) -> str:
        """A row per view, for notebooks."""
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{array.shape[1]:,}</td>"
            f"<td>{escape(str(array.dtype))}</td></tr>"
            for name, array in self.items()
        )
        head = "<tr><th>view</th><th>columns</th><th>numbers</th></tr>"
        counted = f"{len(self):,} samples in {len(self.names)} views"
        return f"<div><p>{counted}</p><table>{head}{rows}</table></div>"

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
        if self._seen.present is None:
            chosen._seen.present = None
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
        # A view stands where it stood, or what is known of samples is out of order.
        if list(map(id, arrays.values())) == list(map(id, self._arrays.values())):
            views._seen = self._seen
        elif self.values_checked:
            views.mark_checked(complete=self._seen.present is None)
        return views

    def take(self, rows: NDArray[np.int64]) -> list[Float]:
        """The given rows of every view as float32, read in file order."""
        self._files.check()
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
            self._files.check()
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
        if self.present is not None:
            digest.update(self.present.tobytes())
        return digest.hexdigest()

    def check_values(self, *, missing: bool = False) -> None:
        """Refuse NaN, infinity and values beyond float32; name the first of them.

        With ``missing``, samples may miss views, but not all of them. What cannot be
        written to, such as files, is looked at once.
        """
        self.check_numbers()
        if self.present is None:
            return
        lost = ~self.present.any(axis=1)
        if lost.any():
            of = f"view {self.names[0]!r} holds" if len(self.names) == 1 else "all hold"
            raise ValueError(
                f"{of} NaN at row {int(lost.argmax())}, in every column: nothing is "
                "known of this sample; leave it out"
            )
        if not missing:
            row, view = (int(i) for i in np.argwhere(~self.present)[0])
            raise ValueError(
                f"view {self.names[view]!r} holds NaN at row {row}, in every column: "
                "the sample misses this view, and only a fit with a search has an "
                'answer for such samples; use one (recipe="default", refine=True), '
                "leave them out, or fill in what is missing"
            )

    def check_numbers(self) -> None:
        """The same, whichever views a sample misses."""
        self._files.check()
        if self._seen.checked:
            return
        present = np.ones((len(self), len(self._arrays)), dtype=bool)
        for view, (name, array) in enumerate(self.items()):
            for start, block in _scan(array):
                bad = ~np.isfinite(block)
                if not bad.any():
                    continue
                gone = np.isnan(block).all(axis=1)
                present[start : start + len(block), view] = ~gone
                bad[gone] = False
                if bad.any():
                    row, column = (int(i) for i in np.argwhere(bad)[0])
                    value = np.asarray(array[start + row, column])
                    shown = "NaN" if np.isnan(value) else f"{value}"
                    cure = "remove or replace them"
                    if np.isnan(value):
                        cure += "; a sample that misses a view is a whole row of NaN"
                    raise ValueError(
                        f"view {name!r} holds {shown} at row {start + row}, column "
                        f"{column}; NaN, inf and values beyond float32 cannot be used: "
                        f"{cure}"
                    )
        self._seen.note(present)
        self._seen.checked = all(map(_is_read_only, self._arrays.values()))

    @property
    def values_checked(self) -> bool:
        """Whether they have passed ``check_numbers`` and cannot have changed since."""
        return self._seen.checked

    def mark_checked(self, *, complete: bool) -> None:
        """Take the values as checked; ``complete`` says that no view is missing."""
        self._seen = _Seen(True, None if complete else "unknown")

    def check_spread(self) -> None:
        """Refuse a view in which all samples are the same, or that none has."""
        self._files.check()
        present = self.present
        for view, (name, array) in enumerate(self.items()):
            row = 0 if present is None else int(present[:, view].argmax())
            if present is not None and not present[row, view]:
                raise ValueError(
                    f"view {name!r} holds NaN at row 0 and in all others: no sample "
                    "has it; leave it out"
                )
            first = np.asarray(array[row : row + 1], np.float32)  # as training sees it
            if all(_alike(block, first) for _, block in _scan(array)):
                raise ValueError(
                    f"view {name!r} is constant: all {self.counts[view]} rows are "
                    "equal, so it cannot tell samples apart; leave it out"
                )

    def check_joined(self) -> None:
        """Refuse views that no samples, each with several of them, bring together."""
        if self.present is None:
            return
        together = self.present.T.astype(np.int64) @ self.present > 0
        joined = together[0]
        for _ in self.names:
            joined = together[joined].any(axis=0)
        if not joined.all():
            one, other = self.names[0], self.names[int(np.argmin(joined))]
            raise ValueError(
                f"no sample has both view {one!r} and view {other!r}, nor others that "
                "join them: nothing says which clusters of the one are which of the "
                "other; fit them apart"
            )


@dataclass
class _Seen:
    """What looking at the values has told."""

    checked: bool = False  # whether all are numbers, and stay so
    # Which samples have which view; None if all have all.
    present: Literal["unknown"] | NDArray[np.bool_] | None = "unknown"

    def note(self, present: NDArray[np.bool_]) -> None:
        self.present = None if present.all() else present


def _not_fitted(names: Sequence[str], widths: Sequence[int], fault: str) -> str:
    pairs = zip(names, widths, strict=True)
    listed = ", ".join(f"{name} ({width} columns)" for name, width in pairs)
    return f"the model was fitted on the views {listed}; {fault}"


def _there(array: Array) -> NDArray[np.bool_]:
    """Which rows are there; the others are NaN, as their first column tells."""
    if array.dtype.kind != "f":
        return np.ones(len(array), dtype=bool)
    step = max(1, _SCAN_VALUES // array.shape[1])
    starts = range(0, len(array), step)
    parts = [np.isnan(np.asarray(array[i : i + step, 0])) for i in starts]
    return ~np.concatenate(parts)


def _alike(block: Float, row: Float) -> bool:
    """Whether all rows that are there equal this one."""
    return bool(((block == row).all(axis=1) | np.isnan(block[:, 0])).all())


def _scan(array: Array) -> Iterator[tuple[int, Float]]:
    """Some rows after others as float32, each with the number of its first row."""
    step = max(1, _SCAN_VALUES // array.shape[1])
    for start in range(0, len(array), step):
        with np.errstate(over="ignore"):
            block = np.asarray(array[start : start + step]).astype(np.float32)
        yield start, block


def _files_of(views: object, arrays: Mapping[str, Any]) -> Unchanged:
    """Of memory maps; what may be written to by way of its map is not watched."""
    if isinstance(views, Views):
        return views._files
    maps = [array for array in arrays.values() if isinstance(array, np.memmap)]
    return Unchanged(m.filename for m in maps if m.filename and m.mode == "r")


def _is_read_only(array: Any) -> bool:
    on_disk = getattr(array, "stays_on_disk", False)
    return bool(on_disk or not array.flags.writeable)
