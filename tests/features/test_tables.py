"""Tables and labels in .csv and .tsv files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sagl.features.files import read_array, read_labels
from tests.features.samples import numbers, refusal, write


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64"])
@pytest.mark.parametrize(("suffix", "delimiter"), [(".csv", ","), (".tsv", "\t")])
@pytest.mark.parametrize("header", ["", "a{0}b{0}c{0}d\n", "# a{0}b{0}c{0}d\n"])
def test_text_round_trip(
    tmp_path: Path, dtype: str, suffix: str, delimiter: str, header: str
) -> None:
    stored = numbers(dtype) / np.array(7, dtype) if dtype[0] == "f" else numbers(dtype)
    rows = [delimiter.join(map(repr, row)) for row in stored.tolist()]
    path = write(
        tmp_path / f"a{suffix}", header.format(delimiter) + "\n".join(rows) + "\n"
    )
    read = read_array(path)
    assert read.dtype == np.float64
    np.testing.assert_array_equal(read.astype(dtype), stored)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("1,2\r\n3,4\r\n", [[1, 2], [3, 4]]),
        ("\ufeffx,y\n1,2\n", [[1, 2]]),  # Excel's byte order mark
        ("\ufeff1,2\n", [[1, 2]]),
        ("\n\nx,y\n1,2\n\n3,4\n\n", [[1, 2], [3, 4]]),
        ('"x, y","z"\n"1", 2\n', [[1, 2]]),
        ("5\n6", [[5], [6]]),
        ("x\n5\n6", [[5], [6]]),
        ("0,1,2\n0.5,1,2\n", [[0.5, 1, 2]]),  # pandas' names for columns
        ("0,1,2\n3,-4,5\n", [[0, 1, 2], [3, -4, 5]]),
    ],
)
def test_text_variants(tmp_path: Path, content: str, expected: list[Any]) -> None:
    assert read_array(write(tmp_path / "a.csv", content)).tolist() == expected


def test_text_keeps_nan_and_infinity(tmp_path: Path) -> None:
    read = read_array(write(tmp_path / "a.csv", "nan,inf\n1,-inf\n"))
    np.testing.assert_array_equal(read, [[np.nan, np.inf], [1, -np.inf]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1,2\n3,x\n", "line 2, column 2: 'x' is not a number"),
        ("1,2\n3,\n", "line 2, column 2: '' is not a number"),
        ("a,b\n1,2\n\n3,n/a\n", "line 4, column 2: 'n/a' is not a number"),
        ("1,abc,3\n4,5,6\n", "line 1, column 2: 'abc' is not a number"),
        ("1,1_000\n", "line 1, column 2: '1_000' is not a number"),
        ("a;b\n1;2\n", "line 2, column 1: '1;2' is not a number; fill every cell with"),
        (f"1\n{'x' * 50}\n", f"line 2, column 1: '{'x' * 37}...' is not a number"),
        ("1,2\n3,4,5\n", "line 2 ends at column 3 (cell '5'), expected 2 columns"),
        ("1,2\n3\n", "line 2 ends at column 1 (cell '3'), expected 2 columns"),
        ("a,b\n1,2,3\n4,5,6\n", "line 2 ends at column 3 (cell '3'), expected 2"),
        (",a,b\n0,1.5,2\n", "line 1, column 1: '' where a name should be"),
        (",0,1\n0,1.5,2\n", "write the file with index=False"),
        (",1.5,2\n1,2,3\n", "line 1, column 1: '' is not a number"),
        ("a,b\n", "holds no rows of numbers"),
        ("\n\n", "holds no rows of numbers"),
        ("caf\xe9".encode("latin-1"), "is not a text file ('utf-8' codec"),
        (b"1,2\n" * 9000 + b"3,\xff\n", "is not a text file ('utf-8' codec"),
        ("1,2\n".encode("utf-16"), "is not a text file (it has a zero byte)"),
    ],
)
def test_text_refused(tmp_path: Path, content: str | bytes, message: str) -> None:
    assert message in refusal(read_array, write(tmp_path / "a.csv", content))


def test_text_of_features_takes_no_key(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "a,b\n1,2\n")
    assert "leave out the key 'a'" in refusal(read_array, path, "a")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("3\n1\n3\n", [3, 1, 3]),
        ("kind\n3\n1\n", [3, 1]),
        ("label\n3\n1\n\n", [3, 1]),
        ("cat\ndog\n", ["cat", "dog"]),
        ("label\ncat\ndog\n", ["cat", "dog"]),
        ("Label\ncat\n7\n", ["cat", "7"]),
        ("id,label\na,3\nb,1\n", [3, 1]),
        ('id,label\na,"x, y"\nb,z\n', ["x, y", "z"]),
        (",label\n0,x\n1,y\n", ["x", "y"]),
        ("3.000e+00\n1.000e+00\n", [3, 1]),  # what np.savetxt makes of integers
        (f"{2**60}\n{2**60 + 1}\n", [2**60, 2**60 + 1]),
        (f"{2**70}\nx\n", [str(2**70), "x"]),
        ("\ufeff1\r\n2\r\n", [1, 2]),
    ],
)
def test_labels_of_text(tmp_path: Path, content: str, expected: list[Any]) -> None:
    labels = read_labels(write(tmp_path / "a.csv", content))
    assert labels.ndim == 1
    assert labels.dtype.kind in "iU"
    assert labels.tolist() == expected


def test_labels_of_a_chosen_column(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "label\tspecies\n1\toak\n2\tash\n")
    assert read_labels(path, "species").tolist() == ["oak", "ash"]
    assert read_labels(path).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\n\n2\n", "line 2, column 1: the label is empty"),
        ("\n1\n2\n", "line 1, column 1: the label is empty"),
        ("id,label\na,\n", "line 2, column 2: the label is empty"),
        ("id,label\na\n", "line 2 ends at column 1 (cell 'a'), expected 2 columns"),
        ("cat\nred, dog\n", "line 2 ends at column 2 (cell 'dog'), expected 1 columns"),
        ("1,2\n3,4\n", "has 2 columns, none named 'label'"),
        ("0.5\n1\n", "label 0 (counting from 0) is 0.5; labels must be whole"),
        ("1\nnan\n", "label 1 (counting from 0) is nan"),
        ("\n\n", "holds no labels"),
        ("label\n", "holds a header but no labels"),
    ],
)
def test_labels_of_text_refused(tmp_path: Path, content: str, message: str) -> None:
    assert message in refusal(read_labels, write(tmp_path / "a.csv", content))


def test_labels_refuse_a_column_that_is_not_there(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "id,label\na,1\n")
    message = refusal(read_labels, path, "kind")
    assert message == "has no column 'kind'; choose one of: id, label"


def test_labels_too_long_for_an_integer_stay_text(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("12345678901234567890123\n12345678901234567890124\n")
    assert len(set(read_labels(path))) == 2
