"""Surface over γ × β and curve over batch sizes."""

import numpy as np
import pytest

from sagl.experiments.sensitivity import Sensitivity
from sagl.features.split import find_source
from tests.experiments.small_runs import QUICK, run_in_this_process
from tests.experiments.test_compare import write_split


@pytest.fixture(autouse=True)
def ran(monkeypatch):
    return run_in_this_process(monkeypatch)


@pytest.fixture
def source(tmp_path):
    return find_source(write_split(tmp_path / "split"))


def test_surface_and_curve_are_the_runs(source, tmp_path, ran):
    study = Sensitivity(
        source,
        tmp_path / "out",
        gammas=[10, 1],
        betas=[0.5, 1],
        batch_sizes=[30, 60],
        params=QUICK,
        seeds=1,
    )
    # γ = 10, β = 1 at a batch of 60 is a point of both: five runs, not six.
    assert study.total == 5
    study.run()
    assert len(ran) == 5
    rows = {tuple(study.told(row).values()): row for row in study.rows()}
    assert study.gammas == [1, 10]
    surface = study.surface("acc")
    for i, gamma in enumerate(study.gammas):
        for j, beta in enumerate(study.betas):
            assert surface[i, j] == rows[gamma, beta, 60].mean["acc"]
    score = study.curve("score")
    expected = [rows[10, 1, n].label_free["total"] for n in (30, 60)]
    assert score.tolist() == expected
    written = study.write()
    for name in ("surface-acc.png", "surface-score.svg", "batch-sizes.png"):
        assert name in written
    found = study.findings()
    assert found["measure"] == "acc"
    assert found["surface"] == surface.tolist()
    first, second = study.sentences()
    assert first.startswith("ACC over γ × β at a batch size of 60: ")
    assert second.startswith("ACC over batch sizes at γ = 10, β = 1: ")


def test_the_network_alone_by_default(source, tmp_path):
    study = Sensitivity(source, tmp_path / "out")
    assert {task.method.params["refine"] for task in study.comparison.tasks} == {False}
    # The automatic size is 100, but there are 60 samples.
    assert study.batch_sizes == [30, 60]
    assert study.total == 3 * (25 + 1)


def test_gaps_and_no_labels(tmp_path):
    directory = write_split(tmp_path / "split")
    (directory / "test" / "labels.npy").unlink()
    source = find_source(directory)
    study = Sensitivity(
        source,
        tmp_path / "out",
        n_clusters=3,
        gammas=[1, 10],
        betas=[1],
        batch_sizes=[60],
        params=QUICK,
        seeds=1,
    )
    assert study.figures() == {}
    first = study.comparison.tasks[:1]
    study.comparison.run(tasks=first)
    assert np.isnan(study.surface("score")).tolist() == [[False], [True]]
    assert study.findings()["surface"][1] == [None]
    assert study.findings()["measure"] == "score"
    assert list(study.figures()) == ["surface-score"]
    study.write()
    study.run()
    assert list(study.figures()) == ["surface-score", "batch-sizes"]


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"gammas": [1, 1]}, "gamma: 1 is given twice"),
        ({"betas": [-1]}, "beta must be at least 0"),
        ({"batch_sizes": [30, 70]}, "batch_size: 70 is more than the 60 samples"),
        ({"batch_sizes": [1]}, "batch_size must be a whole number of at least 2"),
        ({"params": {"recipe": "none"}}, "recipe must be one of"),
    ],
)
def test_bad_values_are_refused(source, tmp_path, options, line):
    with pytest.raises(ValueError, match=line):
        Sensitivity(source, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()
