"""Files that are either whole or absent: atomic writes, checksums, safe arrays."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import safetensors
import torch
from filelock import FileLock, Timeout
from safetensors.torch import save as tensors_to_bytes
from torch import Tensor

LOCK = ".lock"
_CHECKSUM = "sha256"
# Processes that a killed one has started may hold its lock for a moment longer.
_LOCK_SECONDS = 5.0
_LEFT_BY_KILLED = re.compile(r"\.(.+\.[0-9a-f]{8}\.tmp|probe-\d+)")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside ``path`` that takes its place when the block succeeds.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as directory:
    ...     target = Path(directory) / "numbers.txt"
    ...     with replacing(target) as temporary:
    ...         _ = temporary.write_text("1 2 3")
    ...     target.read_text()
    '1 2 3'
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and not error.filename:
            error.filename = str(path)  # a write that fails does not say where
        raise


@contextmanager
def held(directory: Path, what: str) -> Iterator[None]:
    """Keep other processes away from a directory, which is made if need be.

    Whoever dies lets go of it, and what killed processes left in it is removed. The
    process that holds it may hold it once more. ``what`` it is, for the error.
    """
    made = not directory.exists()
    make_writable(directory)
    lock = FileLock(directory / LOCK, timeout=_LOCK_SECONDS, is_singleton=True)
    try:
        lock.acquire()
    except Timeout:
        raise ValueError(
            f"{directory}: another process is at work on this {what}; wait until it "
            "has ended, or choose another directory"
        ) from None
    try:
        if lock.lock_counter == 1:
            clear_leftovers(directory)
        yield
    finally:
        if lock.lock_counter == 1:
            (directory / LOCK).unlink(missing_ok=True)
        lock.release()
        if made:
            with suppress(OSError):  # there is something in it now
                directory.rmdir()


def clear_leftovers(*directories: Path) -> None:
    """Remove what killed processes were about to write."""
    for directory in directories:
        for path in directory.glob(".*"):
            if _LEFT_BY_KILLED.fullmatch(path.name):
                path.unlink(missing_ok=True)


def check_writable(path: Path, rule: str, *suffixes: str) -> None:
    """Refuse an output that could not be written, before any work is done.

    The ``rule`` says what is written and ends before the list of suffixes.
    """
    if path.suffix.lower() not in suffixes:
        listed = " or ".join(filter(None, (", ".join(suffixes[:-1]), suffixes[-1])))
        raise ValueError(f"{path}: {rule} {listed}")
    if path.is_dir():
        raise ValueError(f"{path} is a directory; name a file in it")
    if not path.parent.is_dir():
        raise ValueError(f"{path}: there is no directory {path.parent}; make it first")


def write_bytes(path: Path, content: bytes) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> None:
    """A safetensors file of the tensors, moved to the CPU, with a checksum of all."""
    on_cpu = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    signed = {**(metadata or {}), _CHECKSUM: _sha256_of_all(on_cpu, metadata or {})}
    write_bytes(path, tensors_to_bytes(on_cpu, signed))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the metadata of a safetensors file."""
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            tensors: dict[str, Tensor] = {k: file.get_tensor(k) for k in file.keys()}  # noqa: SIM118
            metadata: dict[str, str] = file.metadata() or {}
    except (safetensors.SafetensorError, ValueError) as error:
        raise ValueError(
            f"{path}: damaged or not a safetensors file ({error})"
        ) from None
    if metadata.pop(_CHECKSUM, None) != _sha256_of_all(tensors, metadata):
        raise ValueError(f"{path}: damaged: its content is not what was written")
    return tensors, metadata


def _sha256_of_all(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """Checksum of tensors alone, or with what is noted beside them."""
    of_tensors = tensors_sha256(tensors)
    if not metadata:
        return of_tensors
    forms = {name: [str(x.dtype), list(x.shape)] for name, x in tensors.items()}
    text = json.dumps([of_tensors, forms, dict(metadata)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def tensors_sha256(tensors: Mapping[str, Tensor]) -> str:
    """Checksum of the names and the numbers of tensors."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(name.encode())
        flat = tensors[name].detach().cpu().contiguous().reshape(-1)
        digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def sha256(path: Path) -> str:
    """Checksum of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def make_writable(directory: Path) -> None:
    """Make the directory and see that files can be written to it."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        probe = directory / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink(missing_ok=True)  # of a process of another machine, perhaps
    except OSError as error:
        raise ValueError(f"{directory}: cannot be written: {error.strerror}") from None
