"""A fit into a run directory, with restarts, interrupted and taken up."""

import shlex

import numpy as np
import pytest
from scipy.sparse import load_npz

from sagl import SAGL
from sagl.experiments.fit import fit_command, fit_run, python_call
from sagl.features.split import Part
from sagl.search.score import score
from sagl.training.callbacks import Callback
from sagl.training.checkpoint import FILE_NAME
from tests.cli.conftest import sagl_cli  # noqa: F401
from tests.conftest import clustered_views


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


@pytest.mark.parametrize("candidate", [0, 1, 5, 12])
def test_a_search_is_taken_up_and_ends_with_the_same_bits(
    views, tmp_path, monkeypatch, candidate
):
    params = {"refine": True, "n_restarts": 1, "checkpoint_seconds": 0}
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
    for name, params in (("search", {"refine": True}), ("network", {"n_restarts": 1})):
        fitted = fit_run(model(**params), views, tmp_path / name)
        graphs = fitted.attention_graph(views)
        delivered = [A.nnz / len(views) ** 2 for A in graphs]
        assert fitted.history_[-1]["sparsity"] == pytest.approx(delivered)
        kept = load_npz(tmp_path / name / "graph.npz")
        whole = fitted.attention_graph(views, together=True)
        assert abs(kept - whole).max() == 0


def test_the_command_of_a_sweep_runs(tmp_path, sagl_cli):  # noqa: F811
    views, _ = clustered_views(n_samples=60)
    for name, array in views.items():
        np.save(tmp_path / f"{name}.npy", array)
    part = Part(tuple(f"{name}={tmp_path / name}.npy" for name in views.names))
    params = {
        **{"recipe": "released", "steps": 5, "batch_size": 30, "learning_rate": 0.01},
        **{"gamma": 3.5, "beta": 0.25, "dropout": 0.2, "alpha": 2.0, "graph": "sparse"},
        **{"gate": "none", "refine": False, "n_restarts": 1, "n_anchors": 20},
        **{"cluster_sizes": "any", "self_loops": False, "patience": 4},
    }
    words = shlex.split(fit_command(part, 4, params))
    assert words[0] == "sagl"
    words[words.index("RUN")] = str(tmp_path / "run")
    code, _, err = sagl_cli(*words[1:], "--quiet")
    assert code == 0, err
    found = SAGL.load(tmp_path / "run").get_params()
    assert {name: found[name] for name in params} == params


def test_the_command_with_a_store():
    part = Part(("a", "b"), store="my store")
    assert fit_command(part, 3, {"n_anchors": "auto", "gamma": None}) == (
        "sagl fit 'my store' --views a,b --clusters 3 --anchors auto --out RUN"
    )


def test_python():
    model = eval(python_call(3, {"gamma": 2.0, "refine": False}), {"SAGL": SAGL})
    assert model.gamma == 2.0
    assert model.get_params()["refine"] is False
    with pytest.raises(TypeError):
        eval(python_call(3, {"nothing": 1}), {"SAGL": SAGL})
