"""A fit into a run directory, with restarts, interrupted and taken up."""

import numpy as np
import pytest

from sagl import SAGL
from sagl.experiments.fit import fit_run
from sagl.training.callbacks import Callback
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
    return SAGL(4, steps=12, n_restarts=3, random_state=0, **params)


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
