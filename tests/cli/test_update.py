"""``sagl update``: new samples, with and without the earlier ones."""

import json

import numpy as np
import pytest

from sagl import SAGL
from sagl.cli.refit import _all_ids
from tests.conftest import clustered_views


@pytest.fixture
def files(fitted):
    return [f"{name}={fitted / name}.npy" for name in ("wide", "narrow")]


@pytest.fixture
def later(fitted, tmp_path):
    """More samples of the run's clusters and of one more, as files; their clusters."""
    views, _labels = clustered_views()
    rows = np.arange(0, 240, 3)
    other = clustered_views(30, n_clusters=1, seed=9)[0]
    rng = np.random.default_rng(5)
    for name, h in views.items():
        more = h[rows] + 0.1 * rng.normal(size=h[rows].shape)
        np.save(tmp_path / f"{name}.npy", np.concatenate([more, other[name]]))
    clusters = SAGL.load(fitted / "run").labels_[rows]
    place = [f"--view={name}={tmp_path / name}.npy" for name in views.names]
    return place, clusters


@pytest.mark.parametrize("with_old", [False, True])
def test_old_clusters_stay_and_a_new_one_is_told(
    sagl_cli, fitted, files, later, tmp_path, with_old
):
    place, clusters = later
    out = tmp_path / "run2"
    old = [f"--with-old={file}" for file in files] if with_old else []
    line = ("update", fitted / "run", *place, *old, "--out", out)
    code, text, err = sagl_cli(*line, "--json")
    assert code == 0, err
    told = json.loads(text)["update"]
    assert told["n_new"] == 110
    assert [new["number"] for new in told["new_clusters"]] == [4]
    assert told["new_clusters"][0]["size"] == 30
    assert told["moved"] == 0
    model = SAGL.load(out)
    assert np.array_equal(model.labels_[-110:], [*clusters, *[4] * 30])
    assert len(model.labels_) == (350 if with_old else 110)
    assert "1 times; 350 samples" in sagl_cli("info", out)[1]
    assert sagl_cli("predict", out, *place, "--out", tmp_path / "p.csv")[0] == 0


def test_for_people(sagl_cli, fitted, later, tmp_path):
    code, text, _ = sagl_cli(
        "update", fitted / "run", *later[0], "--out", tmp_path / "run2"
    )
    assert code == 0
    assert "110 new samples beside 240 earlier ones" in text
    assert "new clusters" in text


def test_bad_input_is_one_line(sagl_cli, fitted, later, tmp_path):
    line = ("update", fitted / "run", *later[0], "--out", tmp_path / "run2")
    code, _, err = sagl_cli(*line, "--with-old", "run")
    assert code == 2
    assert "does not say where its views are" in err
    code, _, err = sagl_cli(*line, "--with-old", later[0][0].partition("=")[2])
    assert code == 2
    assert not (tmp_path / "run2").exists()


def test_ids_of_earlier_and_new_samples_are_of_one_sample_each():
    assert _all_ids(["0", "1"], ["0"]) == ["0", "1", "2"]  # both are only counted
    assert _all_ids(["a", "1"], ["b", "0"]) == ["a", "1", "b", "0"]
    with pytest.raises(ValueError, match="sample 'b' is among the earlier and among"):
        _all_ids(["a", "b"], ["c", "b"])
