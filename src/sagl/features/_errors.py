"""What is wrong with a file, in one line that begins with its path."""

from __future__ import annotations

from pathlib import Path


class FileFormatError(ValueError):
    """A file that is missing or not what it should be; the message is one line."""


def file_error(path: Path, text: str) -> FileFormatError:
    """The error to raise; line breaks in ``text`` become spaces."""
    return FileFormatError(f"{path}: {' '.join(text.split())}")
