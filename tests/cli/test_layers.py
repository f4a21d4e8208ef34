"""``sagl layers`` and ``sagl predict --layer``."""

import csv
import json

import numpy as np

from sagl import SAGL


def test_layers_for_people_and_machines(sagl_cli, fitted):
    code, out, _ = sagl_cli("layers", fitted / "run", "--json")
    facts = json.loads(out)
    model = SAGL.load(fitted / "run")
    assert code == 0
    assert facts["n_clusters"] == 4
    for told, layer in zip(facts["layers"], model.layers_, strict=True):
        assert told["n_clusters"] == layer.n_clusters
        assert told["parents"] == list(layer.parents)
    code, out, _ = sagl_cli("layers", fitted / "run")
    assert code == 0
    assert out.count("asked for") == 1


def test_predictions_of_a_layer(sagl_cli, fitted, tmp_path):
    views = [f"--view={name}={fitted / name}.npy" for name in ("wide", "narrow")]
    out = tmp_path / "p.csv"
    assert (
        sagl_cli("predict", fitted / "run", *views, "--out", out, "--layer", 8)[0] == 0
    )
    with out.open(newline="") as file:
        found = [int(row["cluster"]) for row in csv.DictReader(file)]
    assert np.array_equal(found, SAGL.load(fitted / "run").labels_at(8))


def test_a_layer_that_is_not_there_is_refused(sagl_cli, fitted, tmp_path):
    views = [f"--view={name}={fitted / name}.npy" for name in ("wide", "narrow")]
    out = tmp_path / "p.csv"
    code, _, err = sagl_cli(
        "predict", fitted / "run", *views, "--out", out, "--layer", 7
    )
    assert code == 2
    assert "no layer has 7 clusters" in err
    assert not out.exists()
