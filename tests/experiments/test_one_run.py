"""One method, one seed: what a run measures, and of what."""

import json

import numpy as np
import pytest

from sagl.baselines import KMeans, Method, find_method
from sagl.experiments.one_run import Task, run_task
from sagl.features.split import find_source
from sagl.selection import label_free_score
from tests.experiments.small_runs import write_split, write_views


@pytest.fixture
def source(tmp_path):
    return find_source(write_split(tmp_path / "pets_like"))


def test_a_method_that_is_perfect_here(source):
    task = Task(find_method("kmeans"), source, 3, seed=0, looks=4)
    result = run_task(task)
    assert result["scores"]["acc"] == 1
    assert result["scores"]["n_clusters"] == 3
    assert result["seconds"] > 0
    assert result["peak_mib"] > 50
    assert result["curve"] == [(result["seconds"], 1.0)]


def test_the_curve_has_its_looks_and_ends_with_the_result(source):
    params = {"recipe": "network", "steps": 200, "batch_size": 60}
    method = Method("sagl", "sagl.estimator:SAGL", params=params)
    result = run_task(Task(method, source, 3, seed=0, looks=5))
    times = [at for at, _ in result["curve"]]
    assert len(times) == 5
    assert times == sorted(times)
    assert result["curve"][-1] == (result["seconds"], result["scores"]["acc"])


def test_labels_of_the_training_part_reach_supervised_methods_alone(tmp_path):
    labelled = find_source(write_split(tmp_path / "a"))
    probe = run_task(Task(find_method("linear-probe"), labelled, 3, 0, looks=1))
    assert probe["scores"]["acc"] == 1
    bare = find_source(write_split(tmp_path / "b", labels=False))
    with pytest.raises(ValueError, match="needs the true labels"):
        run_task(Task(find_method("linear-probe"), bare, 3, 0, looks=1))
    assert run_task(Task(find_method("kmeans"), bare, 3, 0, 1))["scores"]


@pytest.mark.parametrize("views", [None, ("wide",)])
def test_a_task_survives_json(source, views):
    task = Task(find_method("linear-probe"), source, 3, 1, looks=2, views=views)
    assert Task.from_dict(json.loads(json.dumps(task.as_dict()))) == task


def test_without_labels_there_is_the_label_free_score(tmp_path):
    directory = write_split(tmp_path / "a", labels=False)
    (directory / "test" / "labels.npy").unlink()
    source = find_source(directory)
    result = run_task(Task(find_method("kmeans"), source, 3, seed=0, looks=4))
    assert result["scores"] == {"n_clusters": 3}
    assert result["curve"] == []
    views, _ = source.train.read()
    expected = label_free_score(views, np.arange(60) % 3)  # the clear clusters
    assert result["label_free"] == {
        "linear": pytest.approx(expected.linear),
        "graph": pytest.approx(expected.graph),
        "agreement": pytest.approx(expected.agreement),
        "total": pytest.approx(expected.total),
    }


def test_some_views_are_fitted_and_all_of_them_judge(tmp_path):
    directory = write_views(tmp_path / "a", ["clear", "noisy"])
    source = find_source(directory)
    views, _ = source.train.read()
    for name in views.names:
        task = Task(find_method("kmeans"), source, 3, 0, looks=1, views=(name,))
        alone = KMeans(3, random_state=0).fit({name: views[name]})
        expected = label_free_score(views, alone.labels_).total
        found = run_task(task)
        assert found["label_free"]["total"] == pytest.approx(expected)
        assert (found["scores"]["acc"] == 1) == (name == "clear")


def test_the_device_is_passed_on(source):
    task = Task(find_method("kmeans"), source, 3, 0, looks=1, device="nowhere")
    with pytest.raises(ValueError, match="nowhere"):
        run_task(task)
