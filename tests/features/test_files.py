"""What holds for files of every kind, and the options that name them."""

from __future__ import annotations

import csv
import json
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from sagl.features.files import (
    FileFormatError,
    check_prediction_path,
    parse_view_option,
    predictions_in,
    read_array,
    read_labels,
    write_predictions,
)
from sagl.features.tables import read_columns
from tests.features.small_files import cut, numbers, refusal, write

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
        (np.array([b"\xff"]), "'utf-8' codec can't decode"),
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
        assert f"not a {suffix} file" in message

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
    assert "not a directory" in refusal(read_array, tmp_path / "file" / "a.npy")


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
        ("=a.npy", "'=a.npy': the name is missing; write NAME=FILE"),
        (" =a.npy", "the name is missing"),
        ("dino=", "'dino=': the file is missing; write NAME=FILE or NAME=FILE::KEY"),
        ("dino=::key", "the file is missing"),
        ("", "'': the file is missing"),
        ("a=b.npz::", "the key is missing"),
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


DTYPES = ["float16", "float32", "float64", "int8", "int64", "uint8", "bool", ">f4"]


def write_safetensors(path: Path, dtype: str, shape: list[int], data: bytes) -> Path:
    entry = {"dtype": dtype, "shape": shape, "data_offsets": [0, len(data)]}
    header = json.dumps({"x": entry}).encode()
    return write(path, struct.pack("<Q", len(header)) + header + data)


@pytest.mark.parametrize("dtype", DTYPES)
def test_npy_round_trip_stays_on_disk(tmp_path: Path, dtype: str) -> None:
    stored = numbers(dtype)
    np.save(tmp_path / "a.npy", stored)
    read = read_array(tmp_path / "a.npy")
    assert isinstance(read, np.memmap)
    assert not read.flags.writeable
    assert read.dtype == stored.dtype
    np.testing.assert_array_equal(read, stored)


@pytest.mark.parametrize("shape", [(5,), (0, 3), (3, 1)])
def test_npy_shapes_come_as_stored(tmp_path: Path, shape: tuple[int, ...]) -> None:
    np.save(tmp_path / "a.npy", np.ones(shape))
    assert read_array(str(tmp_path / "a.npy")).shape == shape


def test_npy_in_fortran_order_and_of_version_2(tmp_path: Path) -> None:
    stored = np.asfortranarray(numbers())
    with (tmp_path / "A.NPY").open("wb") as file:
        np.lib.format.write_array(file, stored, version=(2, 0))
    np.testing.assert_array_equal(read_array(tmp_path / "A.NPY"), stored)


@pytest.mark.parametrize("dtype", DTYPES)
def test_npz_round_trip(tmp_path: Path, dtype: str) -> None:
    stored = numbers(dtype)
    np.savez_compressed(tmp_path / "one.npz", stored)
    np.savez(tmp_path / "two.npz", train=stored, test=stored[:2])
    for read, expected in [
        (read_array(tmp_path / "one.npz"), stored),
        (read_array(tmp_path / "two.npz", "test"), stored[:2]),
    ]:
        assert read.dtype == stored.dtype
        np.testing.assert_array_equal(read, expected)


@pytest.mark.parametrize("dtype", DTYPES[:-1])
def test_safetensors_round_trip(tmp_path: Path, dtype: str) -> None:
    stored = numbers(dtype)
    save_file({"x": stored}, tmp_path / "one.safetensors")
    save_file({"x": stored, "y": stored[:2].copy()}, tmp_path / "two.safetensors")
    for read, expected in [
        (read_array(tmp_path / "one.safetensors"), stored),
        (read_array(tmp_path / "two.safetensors", "y"), stored[:2]),
    ]:
        assert read.dtype == stored.dtype
        np.testing.assert_array_equal(read, expected)


def test_safetensors_bfloat16_becomes_float32(tmp_path: Path) -> None:
    exact = np.array([[1.0, -2.5, 0.0], [3e38, np.inf, 2.0**-130]], dtype=np.float32)
    upper = (exact.view(np.uint32) >> 16).astype("<u2")
    expected = (upper.astype(np.uint32) << 16).view(np.float32)
    path = write_safetensors(
        tmp_path / "b.safetensors", "BF16", [2, 3], upper.tobytes()
    )
    read = read_array(path)
    assert read.dtype == np.float32
    np.testing.assert_array_equal(read, expected)
    assert read[0].tolist() == [1.0, -2.5, 0.0]


def test_safetensors_bfloat16_among_other_tensors(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    save = pytest.importorskip("safetensors.torch").save_file
    x = torch.arange(12.0).reshape(4, 3)
    path = tmp_path / "t.safetensors"
    save({"a": x.half(), "b": x.bfloat16(), "c": x.bfloat16() + 1}, path)
    np.testing.assert_array_equal(read_array(path, "b"), x.numpy())
    np.testing.assert_array_equal(read_array(path, "c"), x.numpy() + 1)


def test_npy_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, numbers())
    cut(path, 5)
    assert refusal(read_array, path) == (
        "is cut short, damaged or not a .npy file (240 bytes expected, 235 found); "
        "copy or write it again"
    )


@pytest.mark.parametrize("kept", [3, 9, 30])
def test_npy_cut_in_its_header(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "a.npy"
    np.save(path, numbers())
    path.write_bytes(path.read_bytes()[:kept])
    assert "not a .npy file (EOF" in refusal(read_array, path)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("(-7, 4)", "its header claims the shape (-7, 4)"),
        ("(True, 4)", "its header claims the shape (True, 4)"),
        ("(7.0, 4)", "shape is not valid: (7.0, 4)"),
        (f"({10**15}, 4)", "16,000,000,000,000,"),
        ("(" * 3000 + ")" * 3000, "Cannot parse header"),
        ("-" * 9000 + "1", "its header is nested too deeply"),
        ("(), 'more': " + "[" * 150 + "]" * 150, "Header does not contain"),
    ],
)
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_headers_are_not_believed(
    tmp_path: Path, shape: str, message: str, suffix: str
) -> None:
    """What they claim is refused before memory is taken for it."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    content = b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + bytes(112)
    path = write(tmp_path / f"a{suffix}", content)
    if suffix == ".npz":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.npy", content)
    refused = refusal(read_array, path)
    assert f"is cut short, damaged or not a {suffix} file (" in refused
    assert message in refused
    assert len(refused) < 500


def test_npy_takes_no_key(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", numbers())
    message = refusal(read_array, tmp_path / "a.npy", "x")
    assert message == ".npy holds one array without a key; leave out 'x'"


def test_npz_cut_short(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, numbers())
    cut(path, 40)
    assert "is cut short" in refusal(read_array, path)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_damaged_inside(tmp_path: Path, save: Callable[..., None]) -> None:
    path = tmp_path / "a.npz"
    save(path, numbers())
    content = bytearray(path.read_bytes())
    content[120:160] = b"\xff" * 40
    path.write_bytes(content)
    assert "is cut short, damaged or not" in refusal(read_array, path)


def test_npz_of_something_else(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("notes.txt", "hello")
    assert "not a .npz file (EOF: " in refusal(read_array, tmp_path / "a.npz")
    with zipfile.ZipFile(tmp_path / "b.npz", "w"):
        pass
    assert "holds no array" in refusal(read_array, tmp_path / "b.npz")


@pytest.mark.parametrize("n_bytes", [5, 150, 180])
def test_safetensors_cut_short(tmp_path: Path, n_bytes: int) -> None:
    path = tmp_path / "a.safetensors"
    save_file({"x": numbers()}, path)
    cut(path, n_bytes)
    assert "damaged or not a .safetensors file" in refusal(read_array, path)


def test_safetensors_of_a_type_that_numpy_lacks(tmp_path: Path) -> None:
    content = bytes([0x38, 0xB8, 0x40, 0])
    path = write_safetensors(tmp_path / "a.safetensors", "F8_E4M3", [2, 2], content)
    assert read_array(path).tolist() == [[1, -1], [2, 0]]


@pytest.mark.parametrize("dtype", ["F32", "BF16"])
def test_safetensors_of_too_many_dimensions(tmp_path: Path, dtype: str) -> None:
    data = bytes(8 * (4 if dtype == "F32" else 2))
    path = write_safetensors(tmp_path / "a.safetensors", dtype, [2, 2, 2], data)
    assert "shape (2, 2, 2), expected rows x columns" in refusal(read_array, path)
    path = write_safetensors(
        tmp_path / "b.safetensors", dtype, [], data[: len(data) // 8]
    )
    assert "shape (), expected rows x columns" in refusal(read_array, path)


def test_labels_of_safetensors(tmp_path: Path) -> None:
    save_file({"y": np.array([2, 0, 1])}, tmp_path / "y.safetensors")
    assert read_labels(tmp_path / "y.safetensors").tolist() == [2, 0, 1]


def test_several_arrays_need_a_key(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", train=numbers(), test=numbers())
    save_file({"train": numbers(), "test": numbers()}, tmp_path / "a.safetensors")
    assert refusal(read_array, tmp_path / "a.npz") == (
        "holds 2 arrays (train, test); choose one by its key, a.npz::KEY on the "
        "command line"
    )
    assert "holds 2 tensors (test, train); choose one" in refusal(
        read_array, tmp_path / "a.safetensors"
    )
    assert "has no array 'x'; choose one of: train, test" in refusal(
        read_array, tmp_path / "a.npz", "x"
    )
    assert "has no tensor 'x'; choose one of: test, train" in refusal(
        read_array, tmp_path / "a.safetensors", "x"
    )


class Boobytrap:
    """Pickles into something that leaves a mark when loaded."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


@pytest.mark.parametrize("read", [read_array, read_labels])
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_pickle_is_never_loaded(
    tmp_path: Path, read: Callable[..., Any], suffix: str
) -> None:
    mark = tmp_path / "mark"
    trap = np.array([Boobytrap(mark)], dtype=object)
    path = tmp_path / f"a{suffix}"
    (np.save if suffix == ".npy" else np.savez)(path, trap)
    message = refusal(read, path)
    assert "holds Python objects, which are stored as pickle and never" in message
    assert "save again with a plain type" in message
    assert not mark.exists()


FOUND = np.array([1, 0]), np.array([0.7, 0.5])


def test_csv_holds_cluster_and_confidence_exactly(tmp_path):
    write_predictions(tmp_path / "p.csv", *FOUND)
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert lines == ["row,cluster,confidence", "0,1,0.7", "1,0,0.5"]
    write_predictions(tmp_path / "p.csv", *FOUND, ids=["a.jpg", "b.jpg"])
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert lines == ["sample,cluster,confidence", "a.jpg,1,0.7", "b.jpg,0,0.5"]


def test_npy_holds_the_clusters(tmp_path):
    write_predictions(tmp_path / "p.npy", *FOUND)
    np.testing.assert_array_equal(np.load(tmp_path / "p.npy"), [1, 0])
    assert [path.name for path in tmp_path.iterdir()] == ["p.npy"]


@pytest.mark.parametrize(
    ("name", "message"),
    [("p.txt", ".csv or .npy"), ("no/p.csv", "no directory"), ("d.csv", "directory")],
)
def test_places_that_cannot_be_written_are_refused(tmp_path, name, message):
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(ValueError, match=message):
        check_prediction_path(tmp_path / name)


def test_samples_may_have_names(tmp_path):
    ids = ['a "b", c#', "ünï\tcode"]
    write_predictions(tmp_path / "p.csv", *FOUND, ids)
    with (tmp_path / "p.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["sample"] for row in rows] == ids
    assert [row["cluster"] for row in rows] == ["1", "0"]
    clusters, confidence = predictions_in(
        tmp_path / "p.csv", read_columns(tmp_path / "p.csv", [None])
    )
    assert clusters.tolist() == [1, 0]
    assert confidence.tolist() == [0.7, 0.5]
    with pytest.raises(ValueError, match="1 ids for 2 samples"):
        write_predictions(tmp_path / "q.csv", *FOUND, ids[:1])
    assert not (tmp_path / "q.csv").exists()
