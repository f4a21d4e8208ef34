"""Columns: what cells mean, and how lines find their samples."""

import json

import numpy as np
import pytest

from sagl.report.annotations import (
    MISSING,
    Names,
    category_column,
    check_names,
    make_column,
    read_columns,
    read_names,
    run_checksum,
)


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


def exported(run="ab", **changes):
    return {
        "format": "sagl-names",
        "version": 1,
        "run": run,
        "clusters": {"2": "cats \U0001f408"},
        "wrong": [{"row": 1, "sample": "b.jpg"}],
    } | changes


def written(tmp_path, content):
    path = tmp_path / "names.json"
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


def test_names_are_read(tmp_path):
    names = read_names(written(tmp_path, exported()))
    assert names == Names({2: "cats \U0001f408"}, {1: "b.jpg"}, "ab")
    assert names.name_of(2) == "cats \U0001f408"
    assert names.name_of(0) == "Cluster 0"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not the names of a run"),
        ('{"format": "other"}', "not the names of a run"),
        (exported(version=2), "upgrade sagl"),
        (exported(clusters={"x": "y"}), "damaged"),
        (exported(clusters={"1": 5}), "5 is not text"),
        (exported(wrong=[1]), "damaged"),
        (exported(wrong=[{"row": 1}]), "damaged"),
    ],
)
def test_damaged_names_are_refused(tmp_path, content, words):
    path = written(tmp_path, content)
    with pytest.raises(ValueError, match=words) as caught:
        read_names(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match="no such file"):
        read_names(tmp_path / "none.json")


def test_names_belong_to_one_run(small_run, tmp_path):
    ids = ["a.jpg", "b.jpg", "c.jpg"]
    own = run_checksum(small_run)
    path = written(tmp_path, exported(run=own))
    check_names(read_names(path), path, small_run, 4, ids)
    for content, words in [
        (exported(), "another run"),
        (exported(run=own, clusters={"4": "x"}), "no cluster 4"),
        (exported(run=own, wrong=[{"row": 0, "sample": "b.jpg"}]), "it is 'a.jpg'"),
        (exported(run=own, wrong=[{"row": 9, "sample": "b.jpg"}]), "not there"),
    ]:
        path = written(tmp_path, content)
        with pytest.raises(ValueError, match=words):
            check_names(read_names(path), path, small_run, 4, ids)
