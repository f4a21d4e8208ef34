"""Tables, columns of lists and labels in .parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sagl.features.files import read_array, read_labels
from tests.features.samples import cut, numbers, refusal


def write_parquet(path: Path, columns: dict[str, Any]) -> Path:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
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
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
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
    pytest.importorskip("pyarrow")
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
        ({"a": [1, 2], "b": [1, None]}, "row 1 (counting from 0), column 'b' is null"),
        ({"a": [[1], None]}, "row 1 (counting from 0), column 'a' is null"),
        ({"a": [[1, 2], [3, None]]}, "row 1 (counting from 0), column 'a', value 1 is"),
        (
            {"a": [[1, 2], [3, 4], [5]]},
            "row 2 (counting from 0), column 'a' has 1 values, expected 2 as in row 0",
        ),
        ({"a": []}, "holds no rows"),
    ],
)
def test_parquet_refused(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    path = write_parquet(tmp_path / "a.parquet", columns)
    assert message in refusal(read_array, path)


def test_parquet_refuses_a_column_that_is_not_there(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", {"a": [1], "b": [2]})
    message = refusal(read_array, path, "c")
    assert message == "has no column 'c'; choose one of: a, b"


def test_parquet_refuses_columns_of_one_name(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    table = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(table, tmp_path / "a.parquet")
    assert "columns of the same name" in refusal(read_array, tmp_path / "a.parquet")


@pytest.mark.parametrize("n_bytes", [1, 10, 300])
def test_parquet_cut_short(tmp_path: Path, n_bytes: int) -> None:
    path = write_parquet(tmp_path / "a.parquet", {"a": list(range(100))})
    cut(path, n_bytes)
    assert "is cut short or not a .parquet file" in refusal(read_array, path)


def test_parquet_damaged_inside(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "a.parquet", {"a": list(range(100))})
    content = bytearray(path.read_bytes())
    content[4:64] = b"\xff" * 60
    path.write_bytes(content)
    refusal(read_array, path)


def test_labels_of_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
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
    assert "row 1 (counting from 0), column 'label' is null" in refusal(
        read_labels, null
    )
    lists = write_parquet(tmp_path / "c.parquet", {"label": [[1], [2]]})
    assert "column 'label' holds lists" in refusal(read_labels, lists)
