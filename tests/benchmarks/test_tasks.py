"""Generated tasks: the same for everybody, and what their number says."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from on_tasks import _ranks, table
from tasks import Task, tasks

NUMBERS = 40


def all_of(views):
    return views.take(np.arange(len(views)))


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """Two sets of 12 and 5 classes, whose samples carry their class and their row."""
    root = tmp_path_factory.mktemp("data")
    for name, classes, views in (("many", 12, ["a", "b", "c"]), ("few", 5, ["x"])):
        for part, n in (("train", 60 * classes), ("test", 20 * classes)):
            place = root / name / part
            place.mkdir(parents=True)
            labels = np.random.default_rng(0).permutation(np.arange(n) % classes)
            np.save(place / "labels.npy", labels)
            for view in views:
                rows = np.stack([labels, np.arange(n)], axis=1)
                np.save(place / f"{view}.npy", rows.astype(np.float32))
        meta = {"views": views, "classes": classes, "train": 60 * classes}
        (root / name / "meta.json").write_text(json.dumps(meta))
    return root


@pytest.fixture(scope="module")
def made(directory) -> list[Task]:
    return list(tasks(directory, NUMBERS))


def test_a_number_is_always_the_same_task(directory, made):
    for one, again in zip(made, tasks(directory, NUMBERS), strict=True):
        assert one.name == again.name
        np.testing.assert_array_equal(one.labels, again.labels)
        for a, b in zip(all_of(one.train), all_of(again.train), strict=True):
            np.testing.assert_array_equal(a, b)


def test_labels_stay_with_their_samples(made):
    for each in made:
        classes = all_of(each.train)[0][:, 0]
        pairs = set(zip(classes.tolist(), each.labels.tolist(), strict=True))
        assert len(pairs) == len(set(classes.tolist()))
        assert sorted(set(each.labels.tolist())) == list(range(each.n_clusters))
        assert set(each.test_labels.tolist()) == set(range(each.n_clusters))


def test_tasks_differ_in_all_that_they_may(made):
    assert {each.set for each in made} == {"few", "many"}
    assert len({len(each.train) for each in made}) > 3
    assert len({each.train.names for each in made}) > 3
    assert {each.merged for each in made} == {False, True}
    assert len({each.n_clusters for each in made}) > 3


def test_a_tail_falls_to_a_twentieth(made):
    tails = [each for each in made if each.tail > 1 and not each.merged]
    assert tails
    for each in tails:
        sizes = np.sort(np.bincount(each.labels))
        assert not each.is_balanced
        assert sizes[-1] / sizes[0] > 5  # of 60 samples at most, two at least


def test_equal_values_share_their_rank():
    ranks = _ranks(np.array([[0.5, 0.9, 0.5, 0.1]]))
    assert ranks.tolist() == [[2.5, 1.0, 2.5, 4.0]]


def test_only_tasks_that_all_methods_were_run_on_count():
    runs = [
        {"task": 0, "method": "a", "acc": 0.9},
        {"task": 0, "method": "b", "acc": 0.8},
        {"task": 1, "method": "a", "acc": 0.1},
    ]
    text = table(runs, "acc")
    assert "ACC, 1 tasks" in text
    assert "| a | 1.00 | 100% | 0% | 0.900 |" in text
    assert "| b | 2.00 | 0% | 100% | 0.800 |" in text
