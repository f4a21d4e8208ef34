"""Numbers and labels in .csv, .tsv and .parquet files."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sagl.features.files import read_array, read_labels
from sagl.features.split import read_views
from tests.features.small_files import cut, numbers, refusal, write


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
        ("1,2\n3,x\n", "column #1: Row #2: {}: invalid value 'x'; columns are counted"),
        ("1,2\n3,\n", "column #1: Row #2: {}: invalid value ''"),
        ("a,b\n1,2\n\n3,n/a\n", "column #1: Row #3: {}: invalid value 'n/a'"),
        ("1,abc,3\n4,5,6\n", "column #1: Row #1: {}: invalid value 'abc'"),
        ("1,1_000\n", "column #1: Row #1: {}: invalid value '1_000'"),
        ("a;b\n1;2\n", "invalid value '1;2'; columns are counted from 0); fill every"),
        ("1,2\n3,4,5\n", "Row #2: Expected 2 columns, got 3: 3,4,5"),
        ("1,2\n3\n", "Row #2: Expected 2 columns, got 1: 3"),
        ("a,b\n1,2,3\n4,5,6\n", "Row #2: Expected 2 columns, got 3"),
        (",a,b\n0,1.5,2\n", "begins with the row index of pandas"),
        (",0,1\n0,1.5,2\n", "write it with index=False"),
        (",1.5,2\n1,2,3\n", "column #0: Row #1: {}: invalid value ''"),
        ("a,b\n", "holds no rows of numbers"),
        ("\n\n", "holds no rows of numbers"),
        ("caf\xe9".encode("latin-1"), "damaged or not a .csv file ('utf-8' codec"),
        (b"1,2\n" * 9000 + b"3,\xff\n", "column #1: Row #9001: {}: invalid value"),
        ("1,2\n".encode("utf-16"), "damaged or not a .csv file ('utf-8' codec"),
        (
            "1,2\n".encode("utf-16-le"),
            "damaged or not a .csv file (it has a zero byte)",
        ),
    ],
)
def test_text_refused(tmp_path: Path, content: str | bytes, message: str) -> None:
    message = message.format("CSV conversion error to double")
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
        ("1\n\n2\n", "row 1 (counting from 0), column 'label': the label is missing"),
        ("\n1\n2\n", "row 0 (counting from 0), column 'label': the label is missing"),
        ("id,label\na,\n", "row 0 (counting from 0), column 'label': the label is"),
        ("id,label\na\n", "line 2 has 1 cells, expected 2; quote cells with"),
        ("cat\nred, dog\n", "line 2 has 2 cells, expected 1; quote cells"),
        ("1,2\n3,4\n", "holds 2 columns (1, 2); choose one by its key, a.csv::KEY"),
        ("0.5\n1\n", "label 0 (counting from 0) is 0.5; labels must be whole"),
        ("1\nnan\n", "label 1 (counting from 0) is nan"),
        ("\n\n", "holds no line of column names"),
        ("label\n", "holds no rows"),
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


def write_parquet(path: Path, columns: dict[str, Any]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64"])
def test_parquet_columns_round_trip(tmp_path: Path, dtype: str) -> None:
    stored = numbers(dtype)
    columns = {f"dim.{i}": column for i, column in enumerate(stored.T)}
    read = read_array(write_parquet(tmp_path / "a.parquet", columns))
    assert read.dtype == stored.dtype
    np.testing.assert_array_equal(read, stored)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64"])
@pytest.mark.parametrize("kind", ["list", "large", "fixed"])
def test_parquet_lists_round_trip(tmp_path: Path, dtype: str, kind: str) -> None:
    stored = numbers(dtype)
    value = pa.from_numpy_dtype(stored.dtype)
    list_type = {
        "list": pa.list_(value),
        "large": pa.large_list(value),
        "fixed": pa.list_(value, 4),
    }[kind]
    half = [pa.array(list(part), list_type) for part in (stored[:3], stored[3:])]
    table = pa.table({"id": list("abcdefg"), "embedding": pa.chunked_array(half)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    read = read_array(tmp_path / "a.parquet", "embedding")
    assert read.dtype == stored.dtype
    np.testing.assert_array_equal(read, stored)
    pq.write_table(table.select(["embedding"]), tmp_path / "b.parquet")
    np.testing.assert_array_equal(read_array(tmp_path / "b.parquet"), stored)


def test_parquet_leaves_out_the_row_index_of_pandas(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(numbers(), columns=list("abcd"), index=[9, 8, 7, 6, 5, 4, 3])
    frame.to_parquet(tmp_path / "a.parquet")
    np.testing.assert_array_equal(read_array(tmp_path / "a.parquet"), numbers())


def test_parquet_takes_no_column_from_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "year=2020"
    folder.mkdir()
    path = write_parquet(folder / "a.parquet", {"a": [1, 2]})
    assert read_array(path).tolist() == [[1], [2]]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [1, 2], "b": ["x", "y"]}, "column 'b' holds string, expected numbers"),
        ({"a": [1, 2], "b": [[1], [2]]}, "column 'b' holds list<"),
        ({"a": [["x"], ["y"]]}, "column 'a' holds string, expected numbers"),
        ({"a": pa.array(["x"]).dictionary_encode()}, "column 'a' holds dictionary<"),
        ({"a": [dt.date(2020, 1, 1)]}, "column 'a' holds date32[day], expected"),
        ({"a": [[1], None]}, "column 'a' holds lists of 1 and of None values"),
        ({"a": [True, None]}, "holds values of type object, expected real numbers"),
        (
            {"a": [[1, 2], [3, 4], [5]]},
            "column 'a' holds lists of 2 and of 1 values; make all equally long",
        ),
        ({"a": []}, "holds no rows"),
    ],
)
def test_parquet_refused(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    path = write_parquet(tmp_path / "a.parquet", columns)
    assert message in refusal(read_array, path)


@pytest.mark.parametrize(
    "columns", [{"a": [1, 3], "b": [2, None]}, {"a": [[1, 2], [3, None]]}]
)
def test_what_is_null_in_parquet_is_refused_as_nan(
    tmp_path: Path, columns: dict[str, Any]
) -> None:
    path = write_parquet(tmp_path / "a.parquet", columns)
    np.testing.assert_array_equal(read_array(path), [[1, 2], [3, np.nan]])
    with pytest.raises(ValueError, match=r"a\.parquet: .*NaN at row 1, column 1"):
        read_views([f"v={path}"])


def test_parquet_refuses_a_column_that_is_not_there(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", {"a": [1], "b": [2]})
    message = refusal(read_array, path, "c")
    assert message == "has no column 'c'; choose one of: a, b"


def test_parquet_refuses_columns_of_one_name(tmp_path: Path) -> None:
    table = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(table, tmp_path / "a.parquet")
    assert "columns of the same name" in refusal(read_array, tmp_path / "a.parquet")


@pytest.mark.parametrize("n_bytes", [1, 10, 300])
def test_parquet_cut_short(tmp_path: Path, n_bytes: int) -> None:
    path = write_parquet(tmp_path / "a.parquet", {"a": list(range(100))})
    cut(path, n_bytes)
    assert "damaged or not a .parquet file" in refusal(read_array, path)


def test_parquet_damaged_inside(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", {"a": list(range(100))})
    content = bytearray(path.read_bytes())
    content[4:64] = b"\xff" * 60
    path.write_bytes(content)
    refusal(read_array, path)


def test_labels_of_parquet(tmp_path: Path) -> None:
    words = pa.array(["a", "b", "a"]).dictionary_encode()
    columns = {"id": [7, 8, 9], "label": words, "fine": [1.0, 2.0, 3.0]}
    path = write_parquet(tmp_path / "y.parquet", columns)
    assert read_labels(path).tolist() == ["a", "b", "a"]
    assert read_labels(path, "fine").tolist() == [1, 2, 3]
    only = write_parquet(tmp_path / "only.parquet", {"species": ["x", "y"]})
    assert read_labels(only).tolist() == ["x", "y"]


def test_labels_of_parquet_refused(tmp_path: Path) -> None:
    two = write_parquet(tmp_path / "a.parquet", {"a": [1], "b": [2]})
    assert "holds 2 columns (a, b); choose one" in refusal(read_labels, two)
    null = write_parquet(tmp_path / "b.parquet", {"label": ["x", None]})
    assert "row 1 (counting from 0), column 'label': the label is missing" in refusal(
        read_labels, null
    )
    lists = write_parquet(tmp_path / "c.parquet", {"label": [[1], [2]]})
    assert "column 'label' holds list<" in refusal(read_labels, lists)
