"""The choice of settings without labels."""

import json
import shlex
import sys
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sagl import SAGL
from sagl.experiments.sweep import (
    Range,
    Sweep,
    cautions,
    fit_command,
    rank_correlation,
    search_space,
    sweep,
)
from sagl.experiments.table import Row
from sagl.features.split import Part, find_source
from sagl.storage import write_json
from tests.cli.conftest import sagl_cli  # noqa: F401
from tests.conftest import clustered_views
from tests.experiments.small_runs import (
    QUICK,
    run_in_this_process,
    run_some,
    write_split,
)


@pytest.fixture(autouse=True)
def ran(monkeypatch):
    return run_in_this_process(monkeypatch)


@pytest.fixture
def source(tmp_path):
    return find_source(write_split(tmp_path / "split"))


GRID = {"gamma": [0.0, 10.0], "steps": [1, 20]}
REST = {"refine": False, "batch_size": 60}


def test_the_best_by_score(source, tmp_path, ran):
    made = sweep(
        source, tmp_path / "out", n_clusters=3, grid=GRID, params=REST, seeds=2
    )
    assert len(ran) == 8
    rows = made.rows()
    assert made.best == made.settings_of(rows[0])
    assert rows[0].note == "best by the score"
    means = {}
    for task in made.tasks:
        total = made.result(task)["label_free"]["total"]
        means.setdefault(task.method.name, []).append(total)
    assert rows[0].name == max(means, key=lambda name: np.mean(means[name]))
    columns, _ = made.table()
    assert columns[:4] == ["gamma", "steps", "score", ""]
    assert columns[4] == "ACC (for information: not used)"
    findings = json.loads((tmp_path / "out" / "table.json").read_text())["found"]
    assert findings["best"] == made.best
    assert "--no-refine" in findings["command"]
    model = eval(findings["python"], {"SAGL": SAGL})
    params = {**REST, **made.best, "n_clusters": 3}
    assert {name: model.get_params()[name] for name in params} == params
    known = findings["for_information_not_used"]
    assert known["best_acc_by_score"] == rows[0].mean["acc"]
    text = "\n".join(made.sentences())
    assert "for information, not used" in text
    assert "to use it: sagl fit --view " in text
    assert (tmp_path / "out" / "sweep.png").exists()
    again = sweep(
        source, tmp_path / "out", n_clusters=3, grid=GRID, params=REST, seeds=2
    )
    assert len(ran) == 8  # everything was there
    assert again.best == made.best


def test_labels_do_not_matter_for_the_choice(source, tmp_path):
    made = sweep(source, tmp_path / "a", n_clusters=3, grid=GRID, params=REST, seeds=1)
    directory = tmp_path / "split"
    rng = np.random.default_rng(0)
    for part in ("train", "test"):
        file = directory / part / "labels.npy"
        np.save(file, rng.permutation(np.load(file)))
    shuffled = sweep(
        source, tmp_path / "b", n_clusters=3, grid=GRID, params=REST, seeds=1
    )
    assert shuffled.best == made.best
    assert [r.name for r in shuffled.rows()] == [r.name for r in made.rows()]
    assert [r.mean["acc"] for r in shuffled.rows()] != [
        r.mean["acc"] for r in made.rows()
    ]
    for part in ("train", "test"):
        (directory / part / "labels.npy").unlink()
    bare = find_source(directory)
    without = sweep(bare, tmp_path / "c", n_clusters=3, grid=GRID, params=REST, seeds=1)
    assert without.best == made.best
    assert "for_information_not_used" not in without.findings()


def test_a_setting_that_is_not_complete_is_not_chosen(source, tmp_path):
    def made():
        grid = {"steps": [1, 20]}
        return Sweep(
            source, tmp_path / "out", n_clusters=3, grid=grid, params=REST, seeds=2
        )

    assert made().best is None
    assert made().sentences() == ["no setting has a score yet"]
    half = made()
    run_some(half, 3)
    scores = {row.name: row.label_free["total"] for row in half.rows()}
    assert scores["steps=20"] > 1.2 * scores["steps=1"]
    assert half.best == {"steps": 1}
    half.run()
    assert half.best == {"steps": 20}


def test_optuna_is_taken_up_where_it_was(source, tmp_path, ran):
    pytest.importorskip("optuna")

    def made(out, trials, **options):
        return sweep(
            source,
            tmp_path / out,
            n_clusters=3,
            ranges={"gamma": Range(1, 50), "dropout": Range(0, 0.5, log=False)},
            grid={"gate": ["none", "shrink"]},
            search="optuna",
            trials=trials,
            params=QUICK,
            seeds=1,
            **options,
        )

    nothing = made("a", 12, minutes=0)
    assert nothing.best is None
    assert ran == []
    made("a", 6)
    first = list(ran)
    assert len(set(first)) == len(first) == 6
    resumed = made("a", 12, jobs=2)
    # The first round is done; the second was cut short and grows, the third is new.
    assert len(ran) <= 12
    whole = made("b", 12)
    assert [r.name for r in whole.rows()] == [r.name for r in resumed.rows()]
    assert whole.best == resumed.best
    assert whole.total == 12
    assert (tmp_path / "b" / "sweep.svg").exists()


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({}, "nothing to try; give --grid"),
        ({"grid": {"gama": [1]}}, "'gama' cannot be set here"),
        ({"grid": {"n_clusters": [3, 4]}}, "'n_clusters' cannot be set here"),
        ({"grid": {"gamma": [-1]}}, "gamma must be at least 0"),
        ({"grid": {"gamma": [1, 1]}}, "gamma: 1 is given twice"),
        ({"grid": {"gamma": [1]}, "params": {"gamma": 2}}, "gamma: given twice"),
        ({"ranges": {"gamma": Range(1, 5)}}, "a range is for --search optuna"),
        (
            {"grid": {"gamma": [1]}, "search": "random"},
            "must be one of 'grid', 'optuna'",
        ),
        (
            {"ranges": {"dropout": Range(0.1, 2)}, "search": "optuna"},
            "dropout must be at least 0 and below 1",
        ),
        ({"grid": {"gamma": [1]}, "trials": 0}, "trials must be a whole number"),
    ],
)
def test_bad_input_is_refused_at_once(source, tmp_path, options, line):
    with pytest.raises(ValueError, match=line):
        Sweep(source, tmp_path / "out", n_clusters=3, **options)
    assert not (tmp_path / "out").exists()


@given(st.lists(st.integers(0, 50), min_size=3, max_size=12, unique=True))
def test_rank_correlation_is_of_ranks(values):
    def rows(accs):
        return [
            Row("r", "R", False, 1, mean={"acc": acc, "score": float(value)})
            for value, acc in zip(values, accs, strict=True)
        ]

    assert rank_correlation(rows([v**3 for v in values])) == pytest.approx(1)
    assert rank_correlation(rows([-v for v in values])) == pytest.approx(-1)
    assert rank_correlation(rows([0.5] * len(values))) is None
    assert rank_correlation(rows(values)[:2]) is None


def test_proposals_lie_within_their_ranges(source, tmp_path):
    pytest.importorskip("optuna")
    made = Sweep(
        source,
        tmp_path / "out",
        n_clusters=3,
        grid={"gate": ["none", "shrink"]},
        ranges={"gamma": Range(1, 50), "batch_size": Range(10, 60)},
        search="optuna",
        trials=9,
        params={"refine": False},
        seeds=2,
    )
    assert made.total == 18
    assert made.tasks == []  # nothing is proposed before it is run
    first = next(made.rounds())
    points = [made.settings_of(row) for row in made.rows()]
    assert len(first) == 2 * len(points) == 8
    for point in points:
        assert 1 <= point["gamma"] <= 50
        assert isinstance(point["batch_size"], int)
        assert 10 <= point["batch_size"] <= 60
        assert point["gate"] in ("none", "shrink")


def test_a_failure_is_no_end(source, tmp_path, monkeypatch):
    pytest.importorskip("optuna")

    def failing(self, task, threads, deadline):
        write_json(self._file(task), {"error": "ValueError: no"})
        return {"error": "ValueError: no"}

    monkeypatch.setattr(Sweep, "_run", failing)
    options = {"ranges": {"gamma": Range(1, 50)}, "search": "optuna", "trials": 6}
    options |= {"params": QUICK, "seeds": 1}
    made = sweep(source, tmp_path / "out", n_clusters=3, **options)
    assert len(made.tasks) == 6
    assert made.best is None
    assert all("ValueError: no" in row.note for row in made.rows())


def test_without_optuna(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ValueError, match=r'pip install "sagl\[sweep\]"'):
        search_space({}, {"gamma": Range(1, 50)})


@pytest.mark.parametrize(
    ("ends", "line"),
    [
        ((5, 1), "--range gamma: 5..1 is no range"),
        ((1, 1), "1..1 is no range"),
        ((0, 1), "0..1 cannot be logarithmic; start above 0"),
        ((1, float("inf")), "1..inf is no range"),
    ],
)
def test_ranges_that_are_none(ends, line):
    pytest.importorskip("optuna")
    with pytest.raises(ValueError, match=line):
        search_space({}, {"gamma": Range(*ends)})


def test_whole_numbers():
    pytest.importorskip("optuna")
    with pytest.raises(ValueError, match="is for a whole number"):
        search_space({}, {"batch_size": Range(10.5, 20)})


def test_what_a_setting_does_not_decide_is_said(source, tmp_path):
    """The default recipe searches: the paper's loss does not find the clusters."""

    def made(grid, **params):
        return Sweep(source, tmp_path / "out", n_clusters=3, grid=grid, params=params)

    with pytest.warns(UserWarning, match="gamma, beta: of the paper's loss"):
        study = made({"gamma": [5], "steps": [1], "beta": [1]})
    assert "--param recipe=paper" in study.sentences()[-1]
    with pytest.warns(UserWarning, match="patience: without effect: a search finds"):
        made({"patience": [5]})
    with pytest.warns(UserWarning, match="cluster_sizes: without effect: there is no"):
        made({"cluster_sizes": ["any"]}, recipe="paper")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made({"gamma": [5]}, recipe="paper")
        made({"width": [8, 16], "cluster_sizes": ["any"], "n_restarts": [2]})
        made({"gamma": [5], "refine": [True, False]})


def test_settings_without_effect_have_none():
    """What is said of them is true of what is fitted."""
    views, _ = clustered_views(n_samples=80, spread=2.0)
    for refine in (True, False):
        for name, value in (("patience", 1), ("cluster_sizes", "any"), ("gamma", 3.0)):
            params = {"refine": refine, "steps": 60, "tolerance": 0.5, "batch_size": 20}
            plain = SAGL(4, random_state=0, **params).fit(views)
            other = SAGL(4, random_state=0, **params, **{name: value}).fit(views)
            networks = plain.network_.state_dict(), other.network_.state_dict()
            same = all(map(torch.equal, *(n.values() for n in networks)))
            said = cautions([name], [SAGL(4, **params).resolved(80)])
            assert same == bool(said and "without effect" in said[0]), (name, refine)


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
    loaded = SAGL.load(tmp_path / "run").get_params()
    assert loaded["cluster_sizes"] != params.pop("cluster_sizes")  # idle: no search
    assert {name: loaded[name] for name in params} == params


def test_the_command_with_a_store():
    part = Part(("a", "b"), store="my store")
    assert fit_command(part, 3, {"n_anchors": "auto", "gamma": None}) == (
        "sagl fit 'my store' --views a,b --clusters 3 --anchors auto --out RUN"
    )
