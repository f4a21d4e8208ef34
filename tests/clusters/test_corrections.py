"""What people say: its form, who is meant, and what contradicts itself."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sagl.clusters.corrections import plan_of
from sagl.clusters.corrections_file import read_corrections
from sagl.clusters.links import Links

checked = settings(max_examples=60, deadline=None, derandomize=True, database=None)


@pytest.fixture(scope="module")
def model(fitted):
    return fitted._model


@pytest.fixture
def known(fitted, tmp_path):
    """The same with ids and names."""
    fitted.save(tmp_path / "run", ids=[f"s{i}" for i in range(240)])
    return type(fitted).load(tmp_path / "run").rename({1: "cats"})._model


def test_samples_and_clusters_by_number_id_and_name(model, known):
    plan = plan_of(model, {"labels": {7: 2, "8": "Cluster 3"}, "wrong": [np.int64(9)]})
    assert plan.labels == {7: (2,), 8: (3,)}
    assert plan.wrong == {9: (int(model.labels[9]),)}
    assert plan.given["labels"] == 2
    plan = plan_of(known, {"labels": {"s7": "cats", "s8": "1", "s9": "Cluster 0"}})
    assert plan.labels == {7: (1,), 8: (1,), 9: (0,)}
    plan = plan_of(known, {"wrong": [{"row": 4, "sample": "s4"}, "s5"]})
    assert sorted(plan.wrong) == [4, 5]


def test_new_names_are_new_clusters_after_all_others(model):
    plan = plan_of(model, {"labels": {1: "dogs", 2: "owls", 3: "dogs"}, "split": [0]})
    assert plan.n_clusters == 7
    assert plan.labels == {1: (5,), 2: (6,), 3: (5,)}
    assert plan.names == {5: "dogs", 6: "owls"}
    assert plan.place == [(0, 4), (1,), (2,), (3,)]


def test_merged_clusters_are_the_first_of_them(known):
    plan = plan_of(known, {"merge": [[3, "cats"]], "labels": {"s0": 1, "s1": 2}})
    assert plan.place == [(0,), (2,), (1,), (2,)]
    assert plan.n_clusters == 3
    assert plan.labels == {0: (2,), 1: (1,)}
    assert plan.names == {}  # cluster 3 has none
    assert plan_of(known, {"merge": [["cats", 3]]}).names == {1: "cats"}


def test_chains_are_one_group(model):
    links = [[0, 1], [2, 3], [1, 2], [5, 6, 7]]
    plan = plan_of(model, {"must_link": links})
    assert [sorted(group) for group in plan.linked] == [[0, 1, 2, 3], [5, 6, 7]]


def test_a_group_that_cannot_be_linked_is_all_pairs(model):
    assert plan_of(model, {"cannot_link": [[0, 1, 2]]}).apart == [
        (0, 1),
        (0, 2),
        (1, 2),
    ]


@pytest.mark.parametrize(
    ("corrections", "error"),
    [
        ({"labels": {999: 0}}, "no sample '999'; samples are 0 to 239"),
        ({"labels": {0: 9}}, "no cluster 9; they are 0 to 3, and a new one needs"),
        ({"labels": {0: "4"}}, "no cluster 4"),
        ({"labels": {0: 1.5}}, "labels.0 is 1.5; expected"),
        ({"labels": {"00": 1, "0": 2}}, "this sample has two labels"),
        ({"merge": [[1]]}, "it takes two clusters"),
        ({"merge": [[1, 1]]}, "it takes two clusters"),
        ({"merge": [["dogs", 1]]}, "no cluster called 'dogs'"),
        ({"merge": [[0, 1], [1, 2, 3]]}, "at least two clusters must remain"),
        ({"merge": [[0, 1]], "split": [1]}, "both to be merged and to be split"),
        ({"split": [1, "Cluster 1"]}, "named twice"),
        ({"must_link": [[4]]}, "it takes two samples"),
        ({"cannot_link": [[4, 4]]}, "each named once"),
        ({"must-link": [[4, 5]]}, "'must-link' is not known"),
        ({"must_link": [[0, 1], [1, 2]], "cannot_link": [[2, 0]]},
         "'2' and '0' are to be apart, but linked: '2' – '1' – '0'"),
        ({"must_link": [[0, 1], [1, 2]], "labels": {0: 1, 2: 3}},
         r"'0' and '2' are linked \('0' – '1' – '2'\)"),
        ({"cannot_link": [[0, 1]], "labels": {0: 1, 1: 1}}, "both said to be in one"),
        ({"cannot_link": [[0, 2]], "labels": {0: 1, 1: 1}, "must_link": [[1, 2]]},
         "both said to be in one"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_one_line(model, corrections, error):
    with pytest.raises(ValueError, match=error) as caught:
        plan_of(model, corrections)
    assert "\n" not in str(caught.value)


def test_a_label_that_is_marked_as_wrong_is_refused(model):
    own = int(model.labels[5])
    with pytest.raises(ValueError, match="labelled with the cluster in which it is"):
        plan_of(model, {"labels": {5: own}, "wrong": [5]})
    with pytest.raises(ValueError, match="linked"):
        plan_of(model, {"labels": {6: own}, "wrong": [5], "must_link": [[5, 6]]})


def test_linked_samples_of_which_all_clusters_are_ruled_out_are_refused(model):
    rows = [int(np.flatnonzero(model.labels == k)[0]) for k in range(4)]
    with pytest.raises(ValueError, match="no cluster left"):
        plan_of(model, {"wrong": rows, "must_link": [rows]})


@checked
@given(st.lists(st.lists(st.integers(0, 9), min_size=2, max_size=4), max_size=6))
def test_links_are_connected_components(groups):
    links = Links(groups)
    slow = {k: k for k in range(10)}
    for _ in range(10):
        for group in groups:
            least = min(slow[k] for k in group)
            slow |= dict.fromkeys(group, least)
    for one in range(10):
        for other in range(10):
            assert (links.home(one) == links.home(other)) == (slow[one] == slow[other])
    near = {pair for g in groups for pair in itertools.pairwise(g)}
    for group in links.groups:
        path = links.path(group[0], group[-1])
        assert (path[0], path[-1]) == (group[0], group[-1])
        steps = itertools.pairwise(path)
        assert all((a, b) in near or (b, a) in near for a, b in steps)


class TestFiles:
    def written(self, tmp_path, content, name="c.json"):
        path = tmp_path / name
        text = content if isinstance(content, str) else json.dumps(content)
        path.write_text(text)
        return path

    def test_its_own_form(self, model, tmp_path):
        content = {"format": "sagl-corrections", "version": 1, "run": "abc"}
        path = self.written(tmp_path, content | {"labels": {"3": 1}})
        plan = plan_of(model, read_corrections(path, model, "abc"))
        assert plan.labels == {3: (1,)}

    def test_labels_may_be_a_list_of_samples(self, known, tmp_path):
        content = {"format": "sagl-corrections", "version": 1}
        labels = [
            {"row": 3, "sample": "s3", "cluster": 1},
            {"row": 8, "sample": "s8", "cluster": "new ones"},
        ]
        path = self.written(tmp_path, content | {"labels": labels})
        plan = plan_of(known, read_corrections(path, known, "abc"))
        assert plan.labels == {3: (1,), 8: (4,)}
        assert plan.given["labels"] == 2
        labels[0]["sample"] = "s4"
        with pytest.raises(ValueError, match="row 3 is not the sample 's4'"):
            plan_of(known, {"labels": labels})

    def test_names_and_marks_that_the_explorer_exports(self, known, tmp_path):
        content = {"format": "sagl-names", "version": 1, "run": "abc"}
        content |= {"clusters": {"2": "owls"}, "wrong": [{"row": 7, "sample": "s7"}]}
        path = self.written(tmp_path, content)
        plan = plan_of(known, read_corrections(path, known, "abc"))
        assert plan.names == {1: "cats", 2: "owls"}
        assert plan.wrong == {7: (int(known.labels[7]),)}

    def test_a_table_that_the_explorer_exports(self, known, tmp_path):
        other = (int(known.labels[7]) + 1) % 4
        lines = ["row,sample,cluster,name,confidence,wrong"]
        lines += [f"6,s6,{known.labels[6]},cats,1,0", f"7,s7,{other},,1,0"]
        lines += [f"8,s8,{known.labels[8]},,1,1", "9,s9,owls,,1,0"]
        path = self.written(tmp_path, "\n".join(lines) + "\n", "labels.csv")
        given = read_corrections(path, known, "abc")
        assert given == {"labels": {"s7": str(other), "s9": "owls"}, "wrong": ["s8"]}

    def test_a_selection_that_the_explorer_exports(self, model, tmp_path):
        own = {row: int(model.labels[row]) for row in range(5)}
        samples = [
            {"row": row, "sample": str(row), "cluster": k, "name": None}
            | {"confidence": 1, "wrong": row == 3}
            for row, k in own.items()
        ]
        path = self.written(tmp_path, {"run": "abc", "samples": samples})
        assert read_corrections(path, model, "abc") == {"labels": {}, "wrong": ["3"]}

    @pytest.mark.parametrize(
        ("content", "error"),
        [
            ("no json", "not JSON"),
            ("[1]", "must hold an object"),
            ({"format": "sagl-corrections", "version": 2}, "version 2; expected"),
            ({"labels": {}}, "its format is None"),
            ({"format": "sagl-corrections", "version": 1, "run": "x"}, "another run"),
            ({"samples": [3]}, "samples must be a list"),
        ],
    )
    def test_anything_else_is_refused_by_name(self, model, tmp_path, content, error):
        path = self.written(tmp_path, content)
        with pytest.raises(ValueError, match=error) as caught:
            read_corrections(path, model, "abc")
        assert str(caught.value).startswith(str(path))

    def test_a_table_of_something_else_is_refused(self, model, tmp_path):
        path = self.written(tmp_path, "a,b\n1,2\n", "t.csv")
        with pytest.raises(ValueError, match="columns sample and cluster"):
            read_corrections(path, model, "abc")
