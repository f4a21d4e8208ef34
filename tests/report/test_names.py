"""Names and marks come back as they were exported, and only to their own run."""

import json

import pytest

from sagl.report.names import Names, check_names, read_names, run_checksum


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
