"""Small files to read, and the message of one that is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sagl.features.files import FileFormatError


def numbers(dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(0).integers(-3, 90, (7, 4)).astype(dtype)


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def cut(path: Path, n_bytes: int) -> None:
    """Take bytes off the end."""
    path.write_bytes(path.read_bytes()[:-n_bytes])


def refusal(read: Callable[..., Any], path: Path, *args: Any) -> str:
    """The message after the path, once it is known to be one line that starts so."""
    with pytest.raises(FileFormatError) as caught:
        read(path, *args)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")
