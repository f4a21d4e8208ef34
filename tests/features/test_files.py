"""What holds for files of every kind, and the options that name them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sagl.features.files import (
    FileFormatError,
    parse_view_option,
    read_array,
    read_labels,
)
from tests.features.samples import refusal, write

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256))


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (np.array([3, 1, 2], dtype=np.uint8), [3, 1, 2]),
        (np.array([[3], [1]]), [3, 1]),
        (np.array([3.0, 1.0], dtype=np.float16), [3, 1]),
        (np.array(["a", "b"]), ["a", "b"]),
        (np.array([b"a", "é".encode()]), ["a", "é"]),
        (np.array([True, False]), [True, False]),
    ],
)
def test_labels_of_arrays(tmp_path: Path, stored: Any, expected: list[Any]) -> None:
    np.save(tmp_path / "y.npy", stored)
    np.savez(tmp_path / "y.npz", x=np.ones((2, 3, 4)), y=stored)
    for labels in (
        read_labels(tmp_path / "y.npy"),
        read_labels(tmp_path / "y.npz", "y"),
    ):
        assert labels.tolist() == expected
        assert labels.dtype.kind in "biuU"


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (np.ones((3, 2)), "shape (3, 2), expected one label per sample"),
        (np.array(3), "shape (), expected one label per sample"),
        (np.array([1, np.nan]), "label 1 (counting from 0) is nan"),
        (np.array([1j]), "type complex128, expected whole numbers or strings"),
        (np.array([b"\xff"]), "holds labels that are not UTF-8"),
    ],
)
def test_labels_of_arrays_refused(tmp_path: Path, stored: Any, message: str) -> None:
    np.save(tmp_path / "y.npy", stored)
    assert message in refusal(read_labels, tmp_path / "y.npy")


SUFFIXES = [".npy", ".npz", ".safetensors", ".csv", ".tsv", ".parquet"]


@pytest.mark.parametrize("read", [read_array, read_labels])
@pytest.mark.parametrize("suffix", SUFFIXES)
class TestEveryFormat:
    def test_missing(self, tmp_path: Path, read: Any, suffix: str) -> None:
        assert refusal(read, tmp_path / f"a{suffix}") == "no such file"

    def test_directory(self, tmp_path: Path, read: Any, suffix: str) -> None:
        path = tmp_path / f"a{suffix}"
        path.mkdir()
        assert refusal(read, path) == "is a directory; give the path of a file"

    def test_empty(self, tmp_path: Path, read: Any, suffix: str) -> None:
        path = write(tmp_path / f"a{suffix}", b"")
        assert "the file is empty (0 bytes)" in refusal(read, path)

    def test_picture(self, tmp_path: Path, read: Any, suffix: str) -> None:
        message = refusal(read, write(tmp_path / f"a{suffix}", PNG))
        kind = "text" if suffix in (".csv", ".tsv") else suffix
        assert f"not a {kind} file" in message

    def test_denied(
        self, tmp_path: Path, read: Any, suffix: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def deny(*args: Any, **kwargs: Any) -> None:
            raise PermissionError(13, "Permission denied")

        path = write(tmp_path / f"a{suffix}", b"1")
        monkeypatch.setattr(Path, "open", deny)  # chmod does not stop root
        assert "permission denied" in refusal(read, path)


def test_a_file_in_the_place_of_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "file", "x")
    assert "Not a directory" in refusal(read_array, tmp_path / "file" / "a.npy")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.npy")
    assert "is not a regular file" in refusal(read_array, tmp_path / "a.npy")


@pytest.mark.parametrize("name", ["a.pkl", "a", "a.csv.gz"])
def test_unsupported_suffix(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, "1")
    expected = f"unsupported suffix {path.suffix!r}; use one of {', '.join(SUFFIXES)}"
    assert refusal(read_array, path) == expected


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors", ".parquet"])
def test_text_under_a_binary_name(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"a{suffix}", "1,2,3\n4,5,6\n")
    assert f"not a {suffix} file" in refusal(read_array, path)


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (np.ones((2, 2), complex), "type complex128, expected real numbers"),
        (np.array([["a"]]), "type <U1, expected real numbers"),
        (np.array([["2020-01-01"]], "M8[D]"), "type datetime64[D], expected real"),
        (np.zeros(2, [("a", int)]), "expected real numbers"),
        (np.array(3.0), "shape (), expected rows x columns"),
        (np.ones((2, 3, 4)), "shape (2, 3, 4), expected rows x columns"),
    ],
)
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_arrays_that_are_no_features(
    tmp_path: Path, stored: Any, message: str, suffix: str
) -> None:
    path = tmp_path / f"a{suffix}"
    (np.save if suffix == ".npy" else np.savez)(path, stored)
    assert message in refusal(read_array, path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dino=f/a.npy", ("dino", Path("f/a.npy"), None)),
        ("dino=a.npz::train", ("dino", Path("a.npz"), "train")),
        ("f/clip_b16.npy", ("clip_b16", Path("f/clip_b16.npy"), None)),
        ("a.npz::x=y", ("a", Path("a.npz"), "x=y")),
        ("dino=C:/f/a=b.npy", ("dino", Path("C:/f/a=b.npy"), None)),
        ("a=~/b.npy", ("a", Path.home() / "b.npy", None)),
    ],
)
def test_view_options(text: str, expected: tuple[str, Path, str | None]) -> None:
    assert parse_view_option(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("=a.npy", "'=a.npy': the name before '=' is empty; write NAME=FILE"),
        (" =a.npy", "the name before '=' is empty"),
        ("dino=", "'dino=': the file is missing; write NAME=FILE or NAME=FILE::KEY"),
        ("dino=::key", "the file is missing"),
        ("", "'': the file is missing"),
        ("a=b.npz::", "the key after '::' is empty"),
    ],
)
def test_view_options_refused(text: str, message: str) -> None:
    with pytest.raises(FileFormatError) as caught:
        parse_view_option(text)
    assert message in str(caught.value)


def test_float_labels_beyond_64_bits_are_refused(tmp_path):
    np.save(tmp_path / "labels.npy", np.array([1.0, 1e300]))
    with pytest.raises(FileFormatError, match=r"label 1 .* is 1e\+300"):
        read_labels(tmp_path / "labels.npy")
