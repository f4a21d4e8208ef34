"""Names are unique, saved, read back from the explorer's file and kept by refits."""

import json

import numpy as np
import pytest

from sagl import SAGL
from sagl.clusters.names import checked_names, kept_names, unique
from sagl.report.inputs import read_names as report_names
from sagl.report.inputs import run_checksum
from tests.conftest import clustered_views


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
    content = report_names(tmp_path / "named" / "names.json")
    assert content.clusters == {0: "cats", 2: "big dogs"}
    assert content.run == run_checksum(tmp_path / "named")
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


@pytest.mark.parametrize("fault", ["run", "format", "clusters"])
def test_names_of_something_else_are_refused(named, tmp_path, fault):
    run = tmp_path / "run"
    content = {"format": "sagl-names", "version": 1, "run": run_checksum(run)}
    content |= {"clusters": {}, "wrong": []}
    content[fault] = "else"
    (run / "names.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"names\.json"):
        SAGL.load(run)


def test_a_refit_keeps_names_of_clusters_that_are_found_again(named):
    views = clustered_views()[0]
    again = SAGL(4, random_state=7).fit(views).keep_names(named)
    for k, name in named.names_.items():
        same = again.labels_[named.labels_ == k]
        assert again.cluster_name(np.bincount(same).argmax()) == name


def test_ids_match_samples_of_a_refit_to_others(named, tmp_path):
    views = clustered_views()[0]
    named.save(tmp_path / "a", ids=[f"s{i}" for i in range(240)])
    rows = np.arange(60, 240)[::-1]
    SAGL(4, random_state=1).fit(views[rows]).save(
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
