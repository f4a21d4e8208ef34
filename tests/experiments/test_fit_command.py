"""The command line that a sweep ends with is one that works."""

import shlex

import numpy as np
import pytest

from sagl import SAGL
from sagl.experiments.fit_command import fit_command, python_call
from sagl.features.split import Part
from tests.cli.conftest import sagl_cli  # noqa: F401
from tests.conftest import clustered_views


def test_it_runs(tmp_path, sagl_cli):  # noqa: F811
    views, _ = clustered_views(n_samples=60)
    for name, array in views.items():
        np.save(tmp_path / f"{name}.npy", array)
    part = Part(tuple(f"{name}={tmp_path / name}.npy" for name in views.names))
    params = {
        **{"recipe": "released", "steps": 5, "batch_size": 30, "learning_rate": 0.01},
        **{"gamma": 3.5, "beta": 0.25, "dropout": 0.2, "alpha": 2.0, "graph": "sparse"},
        **{"gate": "none", "refine": False, "n_restarts": 1, "n_anchors": 20},
        "cluster_sizes": "any",
    }
    words = shlex.split(fit_command(part, 4, params))
    assert words[0] == "sagl"
    words[words.index("RUN")] = str(tmp_path / "run")
    code, _, err = sagl_cli(*words[1:], "--quiet")
    assert code == 0, err
    found = SAGL.load(tmp_path / "run").get_params()
    assert {name: found[name] for name in params} == params


def test_stores_and_what_has_no_option():
    part = Part(("a", "b"), store="my store")
    assert fit_command(part, 3, {"n_anchors": "auto", "gamma": None}) == (
        "sagl fit 'my store' --views a,b --clusters 3 --out RUN"
    )
    assert fit_command(part, 3, {"patience": 3}) is None


def test_python():
    model = eval(python_call(3, {"gamma": 2.0, "refine": False}), {"SAGL": SAGL})
    assert model.gamma == 2.0
    assert model.get_params()["refine"] is False
    with pytest.raises(TypeError):
        eval(python_call(3, {"nothing": 1}), {"SAGL": SAGL})
