"""Names are unique, saved, read back from the explorer's file and kept by refits."""

import json

import numpy as np
import pytest

from sagl import SAGL
from sagl.clusters.names import Names, checked_names, kept_names, read_names, unique
from sagl.run import given_names, run_checksum, save_names
from tests.conftest import QUICK, clustered_views


@pytest.fixture
def named(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    return SAGL.load(tmp_path / "run").rename({0: "cats", 2: "  big   dogs "})


def test_names_are_there_at_once(named):
    assert named.names_ == {0: "cats", 2: "big dogs"}
    assert [row.name for row in named.clusters()] == [
        *("cats", "Cluster 1", "big dogs", "Cluster 3"),
    ]
    assert named.cluster_name(2) == "big dogs"


@pytest.mark.parametrize(
    ("names", "error"),
    [
        ({0: "x", 1: "x"}, "clusters 0 and 1 are both called 'x'"),
        ({0: "Cluster 3"}, "clusters 0 and 3"),
        ({4: "x"}, "no cluster 4"),
        ({True: "x"}, "not the number of a cluster"),
        ({1: " "}, "not a text"),
    ],
)
def test_bad_names_are_refused_and_nothing_changes(fitted, names, error):
    with pytest.raises(ValueError, match=error):
        fitted.rename(names)
    assert fitted.names_ == {}


def test_two_may_swap_their_names(named):
    assert named.rename({0: "big dogs", 2: "cats"}).names_[0] == "big dogs"


def test_saved_names_are_those_of_a_report(named, tmp_path):
    named.save(tmp_path / "named")
    path, run = tmp_path / "named" / "names.json", run_checksum(tmp_path / "named")
    assert read_names(path, run, 4) == Names({0: "cats", 2: "big dogs"})
    assert SAGL.load(tmp_path / "named").names_ == named.names_
    header, first = (tmp_path / "named" / "labels.csv").read_text().splitlines()[:2]
    place = header.split(",").index("name")
    assert first.split(",")[place] == named.cluster_name(named.labels_[0])


def test_what_the_explorer_exports_is_read_back(named, tmp_path):
    run = tmp_path / "run"
    content = {"format": "sagl-names", "version": 1, "run": run_checksum(run)}
    content |= {"clusters": {"1": "one", "3": "one"}, "wrong": []}
    (run / "names.json").write_text(json.dumps(content))
    assert SAGL.load(run).names_ == {1: "one 1", 3: "one 2"}


def test_names_of_other_layers_stay_in_the_file(named, tmp_path):
    run = tmp_path / "run"
    content = {"format": "sagl-names", "version": 1, "run": run_checksum(run)}
    content |= {"clusters": {"1": "one"}, "wrong": [{"row": 2, "sample": "2"}]}
    given = given_names(run, written(run, content | {"layers": {"2": {"0": "x"}}}), 4)
    assert given.layers == {2: {0: "x"}}
    save_names(run, {0: "nought"})  # others are named
    kept = json.loads((run / "names.json").read_text())
    assert kept == content | {"clusters": {"0": "nought"}, "layers": {"2": {"0": "x"}}}
    more = Names({}, {}, {3: {1: "y"}})
    save_names(run, {}, more)
    kept = json.loads((run / "names.json").read_text())
    assert kept["layers"] == {"2": {"0": "x"}, "3": {"1": "y"}}


def test_a_run_with_names_of_another_is_refused(named, tmp_path):
    written(tmp_path / "run", exported())
    with pytest.raises(ValueError, match=r"names\.json: .* another run"):
        SAGL.load(tmp_path / "run")


def test_a_refit_keeps_names_of_clusters_that_are_found_again(named):
    views = clustered_views()[0]
    again = SAGL(4, search=QUICK, random_state=7).fit(views).keep_names(named)
    for k, name in named.names_.items():
        same = again.labels_[named.labels_ == k]
        assert again.cluster_name(np.bincount(same).argmax()) == name


def test_ids_match_samples_of_a_refit_to_others(named, tmp_path):
    views = clustered_views()[0]
    named.save(tmp_path / "a", ids=[f"s{i}" for i in range(240)])
    rows = np.arange(60, 240)[::-1]
    SAGL(4, search=QUICK, random_state=1).fit(views[rows]).save(
        tmp_path / "b", ids=[f"s{i}" for i in rows]
    )
    before, after = SAGL.load(tmp_path / "a"), SAGL.load(tmp_path / "b")
    after.keep_names(before)
    assert sorted(after.names_.values()) == ["big dogs", "cats"]
    for k, name in after.names_.items():
        assert name == before.cluster_name(before.labels_[rows[after.labels_ == k][0]])


def test_a_name_is_not_kept_where_half_is_gone():
    before = np.repeat([0, 1], [10, 10])
    after = before.copy()
    after[:6] = 2
    assert kept_names({0: "a", 1: "b"}, before, after) == {1: "b", 2: "a"}
    after[3:6] = 3  # ten in all: three, three and four
    assert kept_names({0: "a", 1: "b"}, before, after) == {1: "b"}


def test_unique_names_do_not_meet_those_that_are_there():
    assert unique({0: "a", 1: "a 1", 2: "a"}) == {0: "a 2", 1: "a 1", 2: "a 3"}


def test_names_have_one_line():
    assert checked_names({0: "two\nlines"}, 2) == {0: "two lines"}


def exported(**changes):
    return {
        "format": "sagl-names",
        "version": 1,
        "run": "ab",
        "clusters": {"2": "cats \U0001f408"},
        "wrong": [{"row": 1, "sample": "b.jpg"}],
    } | changes


def written(tmp_path, content):
    path = tmp_path / "names.json"
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


def test_names_are_read(tmp_path):
    names = read_names(written(tmp_path, exported()), "ab", 4, ["a.jpg", "b.jpg"])
    assert names == Names({2: "cats \U0001f408"}, {1: "b.jpg"})
    assert names.name_of(2) == "cats \U0001f408"
    assert names.name_of(0) == "Cluster 0"
    assert names.content("ab") == exported()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "the file is empty"),
        ("{", "not the names of a run .*JSON.*export the names again"),
        ("[" * 100_000, "not the names of a run"),
        ("[]", "not the names of a run"),
        ('{"format": "other"}', "not the names of a run .*its format is 'other'"),
        (exported(version=2), "upgrade sagl"),
        (exported(clusters={"x": "y"}), "not the names of a run .*'x'"),
        (exported(clusters={"1": 5}), "clusters.1 is 5; expected a text"),
        (exported(wrong=[1]), "not the names of a run"),
        (exported(wrong=[{"row": 1}]), "not the names of a run .*sample"),
        (exported(run="of another"), "another run"),
        (exported(clusters={"4": "x"}), "no cluster 4"),
        (exported(wrong=[{"row": 0, "sample": "b.jpg"}]), "it is 'a.jpg'"),
        (exported(wrong=[{"row": 9, "sample": "b.jpg"}]), "not there"),
    ],
)
def test_damaged_or_foreign_names_are_refused(tmp_path, content, words):
    path = written(tmp_path, content)
    with pytest.raises(ValueError, match=words) as caught:
        read_names(path, "ab", 4, ["a.jpg", "b.jpg", "c.jpg"])
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match="no such file"):
        read_names(tmp_path / "none.json", "ab")
