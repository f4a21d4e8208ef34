"""The demo: real digits, genuinely different views, honest numbers."""

import json

import numpy as np
import pytest

from sagl import SAGL
from sagl.evaluation import clustering_accuracy
from sagl.experiments.digits import (
    digit_views,
    free_directory,
    load,
    run_demo,
)
from tests.conftest import quick_searches


def test_views_are_row_aligned_and_differ():
    digits = load()
    assert digits.train.names == ("pixels", "strokes", "spectrum")
    assert len(digits.train) + len(digits.test) == 1797
    assert len(digits.train_labels) == len(digits.train)
    # No view is a linear image of another: the best linear fit leaves a residual.
    arrays = [array - array.mean(axis=0) for _, array in digits.train.items()]
    for a in arrays:
        for b in arrays:
            if a is not b:
                fit, *_ = np.linalg.lstsq(a, b, rcond=None)
                assert np.linalg.norm(b - a @ fit) > 0.1 * np.linalg.norm(b)


def test_spectrum_ignores_where_the_digit_is():
    image = np.zeros((1, 8, 8))
    image[0, 1:5, 1:4] = np.random.default_rng(0).random((4, 3))
    moved = np.roll(image, (2, 3), axis=(1, 2))
    here, there = digit_views(image), digit_views(moved)
    np.testing.assert_allclose(here["spectrum"], there["spectrum"], atol=1e-5)
    assert not np.allclose(here["pixels"], there["pixels"])


def test_demo_writes_a_run_and_prints_what_was_measured(tmp_path, monkeypatch):
    digits = load(test_share=0.8)  # a quarter of what the demo fits
    monkeypatch.setattr("sagl.experiments.digits.load", lambda: digits)
    with quick_searches():
        result = run_demo(tmp_path / "run", seed=0)
    model = SAGL.load(tmp_path / "run")
    measured = clustering_accuracy(digits.test_labels, model.predict(digits.test))
    assert result["sagl"][0]["acc"] == measured
    assert len(result["sagl"]) == len(result["kmeans"]) == len(result["seeds"])
    for scores in result["sagl"] + result["kmeans"]:
        assert scores["acc"] > 0.6
    assert all(0 < s < 0.5 for s in result["sparsity"].values())
    assert (tmp_path / "run" / "graph.npz").exists()
    json.dumps(result, default=float)


@pytest.mark.parametrize("taken", [0, 1, 2])
def test_free_directory_never_reuses_one(tmp_path, taken):
    expected = tmp_path / ("demo" if taken == 0 else f"demo-{taken + 1}")
    for _ in range(taken):
        free_directory(tmp_path / "demo").mkdir()
    assert free_directory(tmp_path / "demo") == expected
