"""Columns: what cells mean, and how lines find their samples."""

import numpy as np
import pytest

from sagl.report.columns import MISSING, category_column, make_column, read_columns


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1.5", "2", ""], "number"),
        ([str(i) for i in range(30)], "number"),
        (["1", "2", "1"], "category"),
        (["1", "2", "cat"], "category"),
        (["nan", "1.5"], "category"),
        (["", ""], "category"),
        ([f"text {i}" for i in range(501)], "text"),
    ],
)
def test_kinds(cells, kind):
    assert make_column("c", cells).kind == kind


def test_values_of_each_kind():
    number = make_column("c", ["1.5", "", "-2e3"])
    np.testing.assert_array_equal(number.values, [1.5, np.nan, -2000])
    words = make_column("c", ["dog", "", "cat", "dog"])
    assert [words.categories[code] for code in words.values] == [
        "dog",
        MISSING,
        "cat",
        "dog",
    ]
    # Numbers in their order, not in that of their digits.
    assert make_column("c", ["10", "9", "100", ""]).categories == (
        "9",
        "10",
        "100",
        MISSING,
    )
    assert category_column("c", [3, 1, 3]).categories == ("1", "3")


def test_lines_are_joined_by_id(tmp_path):
    path = tmp_path / "columns.csv"
    path.write_text('\ufeffid,kind,mass\nb,dog,2.5\nc,"cat, wild",1\na,dog,\n')
    kind, mass = read_columns(path, ["a", "b", "c"])
    assert [kind.categories[code] for code in kind.values] == [
        "dog",
        "dog",
        "cat, wild",
    ]
    np.testing.assert_array_equal(mass.values, [np.nan, 2.5, 1])


def test_lines_without_ids_are_in_order(tmp_path):
    path = tmp_path / "columns.csv"
    path.write_text("mass\n1.5\n2.5\n")
    [mass] = read_columns(path, ["x", "y"])
    np.testing.assert_array_equal(mass.values, [1.5, 2.5])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "needs a header"),
        ("mass\n1\n", "1 lines for 2 samples"),
        ("id,mass\na,1\n", "no line with the id 'b'"),
        ("id,mass\na,1\nb\n", "line 3 has 1 cells, the header 2"),
        ("id,mass,mass\na,1,2\nb,1,2\n", "a name of its own"),
        ("id,\na,1\nb,1\n", "a name of its own"),
        (b"mass\n\xff\n1\n", "not UTF-8"),
    ],
)
def test_bad_tables_are_refused(tmp_path, text, words):
    path = tmp_path / "columns.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=words) as caught:
        read_columns(path, ["a", "b"])
    assert str(caught.value).startswith(str(path))
