"""Files that are either whole or absent: atomic writes, checksums, safe arrays."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import save as tensors_to_bytes
from torch import Tensor

_CHECKSUM = "sha256"


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
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


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
    """A safetensors file of the tensors, moved to the CPU, with their checksum."""
    on_cpu = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    signed = {**(metadata or {}), _CHECKSUM: tensors_sha256(on_cpu)}
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
    if metadata.pop(_CHECKSUM, None) != tensors_sha256(tensors):
        raise ValueError(
            f"{path}: damaged: its tensors are not those that were written"
        )
    return tensors, metadata


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
