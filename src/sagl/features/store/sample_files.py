"""Files about the samples of a store: ids, labels, and those that were skipped."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from sagl.features._errors import file_error
from sagl.features.store.manifest import Manifest, SampleSet
from sagl.storage import replacing

SKIPPED = "skipped.csv"
Skipped = list[tuple[str, str]]  # ids and reasons


def ids_file(key: str) -> str:
    return f"ids-{key}.txt"


def labels_file(key: str) -> str:
    return f"labels-{key}.txt"


def as_lines(texts: Sequence[str]) -> bytes:
    """One per line; see ``line_fault`` for what cannot be a line."""
    return "".join(f"{text}\n" for text in texts).encode()


def read_lines(path: Path, expected: int) -> list[str]:
    """What ``as_lines`` made: split at line feeds alone."""
    try:
        lines = path.read_bytes().decode().split("\n")[:-1]
    except FileNotFoundError:
        raise file_error(path, "is missing; copy it back") from None
    except UnicodeDecodeError as error:
        raise file_error(path, f"is damaged: {error}; copy it back") from None
    if len(lines) != expected:
        raise file_error(
            path, f"holds {len(lines)} lines, expected {expected}; copy it back"
        )
    return lines


def line_fault(text: str) -> str | None:
    """Why a text cannot be a line of a file, or None."""
    if "\n" in text or "\r" in text:
        return "it holds a line break"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "it is not UTF-8"
    return None


def samples_checksum(sorted_ids: Sequence[str]) -> str:
    """Checksum by which sets of samples are told apart."""
    digest = hashlib.sha256()
    for sample in sorted_ids:
        digest.update(sample.encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()


def sorted_order(ids: Sequence[str]) -> list[int]:
    """Positions of the ids in sorted order; refuses none at all and repeated ones."""
    if not len(ids):
        raise ValueError("there are no samples")
    order = sorted(range(len(ids)), key=ids.__getitem__)
    for a, b in pairwise(order):
        if ids[a] == ids[b]:
            raise ValueError(f"samples {a} and {b} have the same id, {ids[a]!r}")
    return order


def write_samples(
    store: Path,
    manifest: Manifest,
    ids: Sequence[str],
    labels: Sequence[str] | None,
    source: Mapping[str, Any],
) -> str:
    """Write the files of a set of samples, enter it into ``manifest``; its key."""
    content = as_lines(ids)
    checksum = hashlib.sha256(content).hexdigest()
    key = checksum[:16]
    before = manifest.samples.get(key)
    labels_checksum = before.labels_sha256 if before else None
    if labels is not None:
        lines = as_lines(labels)
        found = hashlib.sha256(lines).hexdigest()
        if labels_checksum not in (None, found):
            raise ValueError(
                f"{store / labels_file(key)}: the same samples have other labels now; "
                "extract into another store"
            )
        labels_checksum = found
        write_bytes(store / labels_file(key), lines)
    write_bytes(store / ids_file(key), content)
    manifest.samples[key] = SampleSet(
        rows=len(ids),
        ids_sha256=checksum,
        labels_sha256=labels_checksum,
        source=before.source if before else dict(source),
    )
    return key


def read_skipped(store: Path) -> Skipped:
    """The rows of ``skipped.csv``; none if there is no such file."""
    path = store / SKIPPED
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [(row[0], row[1]) for row in list(csv.reader(file))[1:]]


def write_skipped(store: Path, skipped: Skipped) -> None:
    """Add to ``skipped.csv`` what is not there yet."""
    new = {(_printable(sample), _printable(reason)) for sample, reason in skipped}
    every = sorted({*read_skipped(store), *new})
    if not every:
        return
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([("id", "reason"), *every])
    write_bytes(store / SKIPPED, text.getvalue().encode())


def _printable(text: str) -> str:
    """Names that are not UTF-8 are skipped, but must still be named."""
    return text.encode("utf-8", "backslashreplace").decode()


def write_bytes(path: Path, content: bytes) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(content)
