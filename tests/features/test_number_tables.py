"""Tables of features with ids: views are joined by them, never by position."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sagl.features.split import read_files, read_views
from sagl.features.store import OverlapWarning

IDS = ["c.jpg", "a.jpg", "b.jpg"]
LEFT = np.array([[3.0, 30], [1, 10], [2, 20]])
RIGHT = LEFT[:, :1] * 100


def write_csv(path, ids, rows, name="id", sep=","):
    names = [name, *(f"x{i}" for i in range(rows.shape[1]))]
    lines = [
        names,
        *([one, *map(str, row)] for one, row in zip(ids, rows, strict=True)),
    ]
    path.write_text("\n".join(sep.join(line) for line in lines) + "\n")
    return path


def write_parquet(path, ids, rows, name="id"):
    columns = {f"x{i}": rows[:, i] for i in range(rows.shape[1])}
    pq.write_table(pa.table({name: ids, **columns}), path)
    return path


@pytest.fixture
def tables(tmp_path):
    """Two views of the same samples, in two orders."""
    left = write_csv(tmp_path / "left.csv", IDS, LEFT)
    right = write_parquet(tmp_path / "right.parquet", IDS[::-1], RIGHT[::-1])
    return left, right


def options(*paths):
    return [f"{path.stem}={path}" for path in paths]


def refused(*paths, id_column="id", **more):
    with pytest.raises(ValueError, match=str(paths[-1].parent)) as caught:
        read_files(options(*paths), id_column, **more)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_views_are_joined_by_id_in_the_order_of_the_first(tables):
    joined = read_files(options(*tables), "id")
    assert joined.ids == IDS
    np.testing.assert_array_equal(joined.views["left"], LEFT)
    np.testing.assert_array_equal(joined.views["right"], RIGHT)
    turned = read_files(options(*tables[::-1]), "id")
    assert turned.ids == IDS[::-1]
    np.testing.assert_array_equal(turned.views["left"], LEFT[::-1])


@pytest.mark.parametrize(
    "text", ["\ufeffid,x\n1,2\n", "\n\nid,x\n1,2\n", "id,x\n\n1,2\n"]
)
def test_marks_and_blank_lines_are_nothing(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    joined = read_files(options(path), "id")
    assert joined.ids == ["1"]
    assert joined.views["t"].tolist() == [[2.0]]


@pytest.mark.parametrize("numbers", ["0.5,2", "1,2"])
def test_columns_that_pandas_numbered(tmp_path, numbers):
    path = tmp_path / "t.csv"
    path.write_text(f"id,0,1\na,{numbers}\n")
    joined = read_files(options(path), "id")
    assert joined.ids == ["a"]
    assert joined.views["t"].tolist() == [[float(x) for x in numbers.split(",")]]


def test_ids_are_kept_as_they_are_written(tmp_path):
    path = write_csv(tmp_path / "t.tsv", ["007", "7", "1e3"], LEFT, sep="\t")
    assert read_files(options(path), "id").ids == ["007", "7", "1e3"]


def test_a_column_of_lists_beside_the_ids(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"key": IDS, "embedding": LEFT.tolist()}), path)
    for key in ("", "::embedding"):
        joined = read_files([f"t={path}{key}"], "key")
        assert joined.ids == IDS
        np.testing.assert_array_equal(joined.views["t"], LEFT)


def test_samples_that_are_not_everywhere(tmp_path, tables):
    few = write_csv(tmp_path / "few.csv", IDS[1:], LEFT[1:])
    for pair in ((tables[0], few), (few, tables[0])):
        message = refused(*pair)
        assert "'c.jpg'" in message
        assert message.startswith(str(few))
        assert "join 'inner' takes those" in message
        with pytest.warns(OverlapWarning, match="2 are in all of them and taken"):
            joined = read_files(options(*pair), "id", "inner")
        assert joined.ids == IDS[1:]
        np.testing.assert_array_equal(joined.views["left"], LEFT[1:])
    other = write_csv(tmp_path / "other.csv", ["x", "y"], LEFT[1:])
    assert "nothing can be joined so" in refused(tables[0], other, join="inner")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,x\na,1\na,2\n", "samples 0 and 1 (counting from 0) have the same id 'a'"),
        ("id,x\na,1\n,2\n", "the id is missing"),
        ("id,x\n", "no rows"),
        ("name,x\na,1\n", "'id'"),
        ("id,x\na,b\n", "invalid value 'b'"),
        ("id,x,x\na,1,2\n", "same name"),
        ("id\na\nb\n", "no column but the ids"),
        ("id,x\na,1,2\n", "Expected 2 columns, got 3"),
        ("1,2\n3,4\n", "column"),
    ],
)
def test_bad_tables_are_refused_in_one_line(tmp_path, text, message):
    path = tmp_path / "t.csv"
    path.write_text(text)
    assert message in refused(path)


def test_a_file_that_is_no_table(tmp_path, tables):
    np.save(tmp_path / "x.npy", LEFT)
    assert "is no table" in refused(tables[0], tmp_path / "x.npy")


@pytest.mark.parametrize("write", [write_csv, write_parquet])
@pytest.mark.parametrize("name", ["id", "Filename", "photo"])
def test_a_column_of_ids_that_nobody_named_gets_the_right_advice(tmp_path, write, name):
    suffix = write.__name__.removeprefix("write_")
    path = write(tmp_path / f"t.{suffix}", IDS, LEFT, name)
    message = refused(path, id_column=None)
    assert f"--id-column {name}" in message
    assert read_files(options(path), name).ids == IDS
    with pytest.raises(ValueError, match="take it out") as caught:
        read_views(options(path))  # where there is no such option
    assert "--id-column" not in str(caught.value)


def test_ids_that_are_numbers_are_no_features(tmp_path):
    path = write_csv(tmp_path / "t.csv", ["7", "8", "9"], LEFT)
    assert "--id-column id" in refused(path, id_column=None)


def test_a_row_index_of_pandas_in_text(tmp_path):
    path = write_csv(tmp_path / "t.csv", IDS, LEFT, "")
    assert "index_label='id'" in refused(path, id_column=None)


def test_row_indexes_of_pandas_in_parquet_must_agree(tmp_path):
    pd = pytest.importorskip("pandas")
    paths = [tmp_path / "left.parquet", tmp_path / "right.parquet"]
    left = pd.DataFrame({"x": LEFT[:, 0], "y": LEFT[:, 1]}, index=pd.Index(IDS))
    left.to_parquet(paths[0])
    left.to_parquet(paths[1])
    views = read_files(options(*paths)).views
    np.testing.assert_array_equal(views["left"], views["right"])
    left.iloc[::-1].to_parquet(paths[1])
    assert "other row labels" in refused(*paths, id_column=None)
    index = "__index_level_0__"
    joined = read_files(options(*paths), index)
    assert joined.ids == IDS
    np.testing.assert_array_equal(joined.views["left"], LEFT)
    np.testing.assert_array_equal(joined.views["right"], LEFT)
