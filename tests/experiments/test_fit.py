"""One fit: into a run directory, interrupted and taken up; and as a run of a study."""

import json

import numpy as np
import pytest
from scipy.sparse import load_npz

from sagl import SAGL
from sagl.baselines import KMeans, Method, find_method
from sagl.experiments.fit import Task, fit_run, run_task
from sagl.features.split import find_source
from sagl.schema import check
from sagl.search.score import score
from sagl.selection import label_free_score
from sagl.training.callbacks import Callback
from sagl.training.checkpoint import FILE_NAME
from tests.conftest import QUICK, clustered_views
from tests.experiments.small_runs import write_split, write_views


class KilledError(Exception):
    pass


class KillAt(Callback):
    """Stops everything at some step of the second network."""

    def __init__(self, step):
        self.step = step
        self.networks = 0

    def on_train_begin(self, trainer):
        self.networks += 1

    def on_step(self, trainer):
        if self.networks == 2 and trainer.step == self.step:
            raise KilledError


@pytest.fixture(scope="module")
def views():
    return clustered_views(200, spread=2.0)[0]


def model(**params):
    params = {"steps": 12, "n_restarts": 3, "refine": False} | params
    return SAGL(4, random_state=0, **params)


def files(directory):
    return {p.name: p.read_bytes() for p in directory.rglob("*") if p.is_file()}


def test_a_run_with_restarts_is_taken_up_and_ends_with_the_same_bits(views, tmp_path):
    fit_run(model(checkpoint_seconds=0), views, tmp_path / "whole")
    with pytest.raises(KilledError):
        fit_run(
            model(checkpoint_seconds=0, callbacks=[KillAt(7)]),
            views,
            tmp_path / "killed",
        )
    assert (tmp_path / "killed" / "restart-1").is_dir()
    assert not (tmp_path / "killed" / "config.json").exists()
    fit_run(model(checkpoint_seconds=0), views, tmp_path / "killed")
    whole, killed = files(tmp_path / "whole"), files(tmp_path / "killed")
    assert whole.keys() == killed.keys()
    for name in ("model.safetensors", "anchors.safetensors", "labels.csv"):
        assert whole[name] == killed[name], name
    assert not list(tmp_path.rglob("restart-*"))
    assert not list(tmp_path.rglob("*checkpoint*"))


def test_ids_and_source_are_kept(views, tmp_path):
    ids = [f"picture {i}" for i in range(len(views))]
    fitted = fit_run(
        model(), views, tmp_path / "run", ids=ids, source={"reader": "none"}
    )
    lines = (tmp_path / "run" / "labels.csv").read_text().splitlines()
    assert lines[1].startswith("picture 0,")
    assert (tmp_path / "run" / "source.json").exists()
    again = SAGL.load(tmp_path / "run")
    np.testing.assert_array_equal(again.labels_, fitted.labels_)


@pytest.mark.parametrize("candidate", [0, 1, 5])
def test_a_search_is_taken_up_and_ends_with_the_same_bits(
    views, tmp_path, monkeypatch, candidate
):
    params = {"refine": True, "n_restarts": 1, "search": QUICK}
    params["checkpoint_seconds"] = 0
    fit_run(model(**params), views, tmp_path / "whole")
    left = [candidate]

    def killed(*args, **kwargs):
        if left[0] == 0:
            raise KilledError
        left[0] -= 1
        return score(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr("sagl.search.candidates.score", killed)
        with pytest.raises(KilledError):
            fit_run(model(**params), views, tmp_path / "killed")
    assert [path.name for path in (tmp_path / "killed").iterdir()] == [FILE_NAME]
    with pytest.raises(ValueError, match="belongs to another run: steps was 12"):
        fit_run(model(**params, steps=13), views, tmp_path / "killed")
    fit_run(model(**params), views, tmp_path / "killed")
    assert files(tmp_path / "whole") == files(tmp_path / "killed")


def test_the_sparsity_of_the_history_is_that_of_the_graph(views, tmp_path):
    """Also what `sagl info` and the report show: they read it there."""
    for name, params in (
        ("search", {"refine": True, "n_restarts": 1, "search": QUICK}),
        ("network", {"n_restarts": 1}),
    ):
        fitted = fit_run(model(**params), views, tmp_path / name)
        graphs = fitted.attention_graph(views)
        delivered = [A.nnz / len(views) ** 2 for A in graphs]
        assert fitted.history_[-1]["sparsity"] == pytest.approx(delivered)
        kept = load_npz(tmp_path / name / "graph.npz")
        whole = fitted.attention_graph(views, together=True)
        assert abs(kept - whole).max() == 0


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
    assert check(Task, json.loads(json.dumps(task.as_dict()))) == task


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
        result = run_task(task)
        assert result["label_free"]["total"] == pytest.approx(expected)
        assert (result["scores"]["acc"] == 1) == (name == "clear")


def test_the_device_is_passed_on(source):
    task = Task(find_method("kmeans"), source, 3, 0, looks=1, device="nowhere")
    with pytest.raises(ValueError, match="nowhere"):
        run_task(task)
