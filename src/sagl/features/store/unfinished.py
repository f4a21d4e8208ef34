"""A view that is being written: its pieces, in a directory of the store.

``.extracting/VIEW`` holds the plan, the ids and labels of all samples, and for each
piece of the work its features and a receipt. The receipt comes last and by a rename, so
a piece is either done or not, whatever happened to the process that did it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sagl.features._errors import file_error
from sagl.features.store.manifest import WORK, Plan
from sagl.features.store.sample_files import Skipped, as_lines, read_lines, write_bytes
from sagl.storage import replacing, write_json

_PLAN = "plan.json"
_IDS = "ids.txt"
_LABELS = "labels.txt"


@dataclass(frozen=True)
class Receipt:
    """What became of the samples of a piece: so many rows, and who is left out."""

    rows: int
    skipped: Skipped


class UnfinishedView:
    """A view of a store that is being written.

    Attributes
    ----------
    pending : list of int
        Numbers of the pieces that were not done when this object was made.
    """

    def __init__(self, store: Path, name: str) -> None:
        self.store = store
        self.name = name
        self.work = store / WORK / name
        about = _read_json(self.work / _PLAN)
        self.plan = Plan(**about["plan"])
        self.source: dict[str, Any] = about["source"]
        self.pending = [
            i for i in range(self.plan.n_pieces) if not self._receipt(i).exists()
        ]

    @classmethod
    def start(
        cls,
        store: Path,
        name: str,
        plan: Plan,
        ids: Sequence[str],
        labels: Sequence[str] | None,
        source: Mapping[str, Any],
    ) -> UnfinishedView:
        """Write down what is to be done; the plan comes last."""
        work = store / WORK / name
        work.mkdir(parents=True, exist_ok=True)
        # Ids that cannot be lines are among them until they are skipped.
        write_bytes(work / _IDS, as_lines([json.dumps(sample) for sample in ids]))
        if labels is not None:
            write_bytes(work / _LABELS, as_lines(labels))
        write_json(work / _PLAN, {"plan": asdict(plan), "source": dict(source)})
        return cls(store, name)

    def samples_of(self, piece: int) -> range:
        """Positions, among the sorted ids, of the samples of a piece."""
        start = piece * self.plan.piece_rows
        return range(start, min(start + self.plan.piece_rows, self.plan.n_samples))

    def write(self, piece: int, features: NDArray[Any], skipped: Skipped) -> None:
        """Features of a piece, (rows, dim), and those samples that are left out."""
        with (
            replacing(self._features(piece)) as temporary,
            temporary.open("wb") as file,
        ):
            np.save(file, features.astype(self.plan.dtype, copy=False))
        write_json(self._receipt(piece), asdict(Receipt(len(features), skipped)))

    def adopt(self, other: UnfinishedView) -> None:
        """Take over the pieces of the same view in another store."""
        for piece in self.pending:
            if other._receipt(piece).exists():
                for path in (self._features(piece), self._receipt(piece)):
                    with replacing(path) as temporary:
                        shutil.copyfile(other.work / path.name, temporary)

    def receipts(self) -> list[Receipt]:
        """One per piece, when all are done."""
        found = []
        for piece in range(self.plan.n_pieces):
            value = _read_json(self._receipt(piece))
            skipped = [(sample, reason) for sample, reason in value["skipped"]]
            found.append(Receipt(value["rows"], skipped))
        return found

    def features(self, receipts: Sequence[Receipt]) -> Iterator[NDArray[Any]]:
        """The features of each piece in turn."""
        for piece, receipt in enumerate(receipts):
            path = self._features(piece)
            try:
                features = np.load(path, allow_pickle=False)
            except (OSError, ValueError, EOFError) as error:
                raise self._damaged(path, str(error)) from None
            if features.shape != (receipt.rows, self.plan.dim):
                raise self._damaged(path, f"shape {features.shape}")
            yield features

    def samples(self) -> tuple[list[str], list[str] | None]:
        """Ids and labels of all samples."""
        n = self.plan.n_samples
        ids = [json.loads(line) for line in read_lines(self.work / _IDS, n)]
        labels = self.work / _LABELS
        return ids, read_lines(labels, n) if labels.exists() else None

    def _features(self, piece: int) -> Path:
        return self.work / f"{piece:05d}.npy"

    def _receipt(self, piece: int) -> Path:
        return self.work / f"{piece:05d}.json"

    def _damaged(self, path: Path, what: str) -> ValueError:
        return file_error(
            path, f"is damaged ({what}); remove {self.work} and extract again"
        )


def is_begun(store: Path, name: str) -> bool:
    """Whether there is something to take up."""
    return (store / WORK / name / _PLAN).exists()


def unfinished(store: Path) -> list[UnfinishedView]:
    """The views of a store that are being written."""
    plans = sorted((store / WORK).glob(f"*/{_PLAN}"))
    return [UnfinishedView(store, plan.parent.name) for plan in plans]


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise file_error(
            path, f"is damaged ({error}); remove {path.parent} to begin anew"
        ) from None
