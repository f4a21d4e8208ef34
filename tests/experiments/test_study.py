"""Studies: rows, costs, what is kept, what fails, what is taken up."""

import hashlib
import json
import math
import os

import numpy as np
import pytest
from filelock import FileLock

from sagl.baselines import METHODS, Method
from sagl.experiments import study as module
from sagl.experiments.compare import Comparison
from sagl.experiments.fit import read_result, run_task, write_result
from sagl.experiments.study import Study
from sagl.experiments.table import cells
from sagl.features.split import find_source
from sagl.storage import write_json
from tests.experiments.small_runs import methods, run_in_this_process, write_split

RESULT = {
    "scores": {"acc": 1.0, "nmi": 1.0, "ari": 1.0, "ami": 1.0, "n_clusters": 3},
    "seconds": 1.5,
    "label_free": {"linear": 1.0, "graph": 1.0, "agreement": 0.5, "total": 2.5},
    "peak_mib": 100.0,
    "curve": [[1.5, 1.0]],
}
TOY = "tests.baselines.toy:Nearest"


class Scored(Study):
    """Whatever is run, judged without labels."""

    command = "scored"


@pytest.fixture
def source(tmp_path):
    return find_source(write_split(tmp_path / "pets_like"))


def test_fills_the_table_whatever_happens(source, tmp_path):
    """Processes of a good method, one that raises, one that is killed."""
    names = (TOY, "tests.baselines.toy:Broken", "tests.baselines.toy:Killed")
    comparison = Comparison(source, methods(*names), tmp_path / "out", seeds=1, looks=2)
    seen = []
    comparison.run(jobs=2, progress=lambda task, result: seen.append(task))
    assert len(seen) == len(comparison.tasks) == 3
    rows = {row.name: row for row in comparison.rows()}
    assert rows[TOY].runs == 1
    assert rows[TOY].clusters == 3
    assert rows[TOY].peak_mib > 50
    broken = rows["tests.baselines.toy:Broken"]
    assert "ArithmeticError: no answer to this" in broken.note
    assert "signal 9" in rows["tests.baselines.toy:Killed"].note


def test_the_ceiling_needs_labels_of_what_is_fitted(tmp_path):
    directory = write_split(tmp_path / "split", labels=False)
    source = find_source(directory)
    comparison = Comparison(source, methods("linear-probe", "kmeans"), tmp_path)
    assert {task.method.name for task in comparison.tasks} == {"kmeans"}
    notes = {row.name: row.note for row in comparison.rows()}
    missing = "the labels of the training samples"
    assert notes["linear-probe"] == f"not run: needs {missing}"


def test_rows_and_runs_that_are_there(source, tmp_path, monkeypatch):
    ran = run_in_this_process(monkeypatch)
    names = ("linear-probe", "kmeans", "zero-shot")
    comparison = Comparison(source, methods(*names), tmp_path / "out", seeds=2, looks=2)
    comparison.run()
    assert len(ran) == len(comparison.tasks) == 3  # the probe has no seeds
    rows = {row.name: row for row in comparison.rows()}
    assert rows["kmeans"].mean["acc"] == 1
    assert rows["kmeans"].runs == 2
    assert rows["kmeans"].sd["acc"] == 0
    assert rows["zero-shot"].note == "not run: needs class names and a text encoder"
    assert rows["linear-probe"].supervised
    assert rows["linear-probe"].runs == 1
    assert rows["srlf"].note == "published, not run"  # by the name pets…
    assert rows["srlf"].published_acc == pytest.approx(0.9545)
    titles = [row.name for row in comparison.rows()]
    assert titles[-1] == "linear-probe"  # supervised rows come last
    # Once more: what succeeded is not run again.
    again = Comparison(source, methods("kmeans"), tmp_path / "out", seeds=2, looks=2)
    again.run()
    assert len(ran) == 3


def test_the_time_is_up(source, tmp_path, monkeypatch):
    run_in_this_process(monkeypatch)
    comparison = Comparison(source, methods("kmeans"), tmp_path / "out", seeds=1)
    results = []
    comparison.run(minutes=0, progress=lambda task, result: results.append(result))
    assert results == [{"error": "not run: the time was up"}]
    assert comparison.rows()[0].note == "seed 0: not run yet"
    comparison.run()  # and nothing stands in the way of a second try
    assert comparison.rows()[0].runs == 1


def test_a_table_of_somebody_else_is_kept(source, tmp_path):
    (tmp_path / "table.csv").write_text("mine")
    comparison = Comparison(source, methods("kmeans"), tmp_path, seeds=1)
    with pytest.raises(ValueError, match=r"table.csv is of no study"):
        comparison.run(minutes=0)
    assert (tmp_path / "table.csv").read_text() == "mine"
    assert not (tmp_path / "runs").exists()


def test_a_run_that_outlasts_the_budget_is_stopped(source, tmp_path):
    # Without a tolerance it does not end early, however quick the machine is.
    params = {"steps": 10**7, "tolerance": 0.0}
    long = Method("long", "sagl.estimator:SAGL", params=params)
    comparison = Comparison(source, [long], tmp_path / "out", seeds=1, looks=1)
    results = []
    comparison.run(minutes=1 / 60, progress=lambda task, result: results.append(result))
    assert results == [{"error": "stopped: the time was up"}]
    assert comparison.result(comparison.tasks[0]) is None


def test_what_decides_a_result_decides_its_file(source, tmp_path):
    def files(method="kmeans", seeds=1, **options):
        made = methods(method) if isinstance(method, str) else [method]
        comparison = Comparison(source, made, tmp_path, seeds=seeds, **options)
        return {comparison._file(task) for task in comparison.tasks}

    one = files()
    assert files() == one
    assert files(seeds=2) > one
    assert files(n_clusters=4) != one
    other = Method("kmeans", METHODS["kmeans"].path, params={"n_init": 1})
    assert files(other) != one


def test_files_of_earlier_versions_are_found(source, tmp_path):
    """Many results exist: what named their files then must name them now."""
    comparison = Comparison(source, methods("kmeans"), tmp_path, seeds=1)
    train, scored = source.train.read()[0], source.scored.read()[0]
    decides = {
        "sagl": module.PEERS_REVISION,
        "path": "sagl.baselines.kmeans:KMeans",
        "params": {},
        "seed": 0,
        "n_clusters": 3,
        "looks": 8,
        "data": [train.fingerprint(), scored.fingerprint()],
    }
    text = json.dumps(decides, sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    file = comparison._file(comparison.tasks[0])
    assert file == tmp_path / "runs" / f"kmeans-0-{digest}.json"
    fewer = Comparison(source, [], tmp_path, seeds=1)
    fewer.add(*methods("kmeans"), views=("wide",))
    assert fewer._file(fewer.tasks[0]) != file


def test_a_new_revision_of_sagl_makes_its_own_runs_old(source, tmp_path, monkeypatch):
    comparison = Comparison(source, methods("kmeans", "sagl"), tmp_path, seeds=1)
    kmeans, sagl = [comparison._file(task) for task in comparison.tasks]
    monkeypatch.setattr(module, "REVISION", "another")
    assert comparison._file(comparison.tasks[0]) == kmeans
    assert comparison._file(comparison.tasks[1]) != sagl


def test_an_earlier_result_without_its_label_free_score_is_none(
    source, tmp_path, monkeypatch
):
    run_in_this_process(monkeypatch)
    study = Comparison(source, methods("kmeans"), tmp_path, seeds=1, looks=1)
    [task] = study.tasks
    file = study._file(task)
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({k: v for k, v in RESULT.items() if k != "label_free"}))
    assert study.result(task) is None
    study.run(minutes=0)
    assert file.exists()  # it stays until there is a better one
    study.run()
    assert study.result(task)["label_free"]["total"] > 0


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace('"acc": 1.0', '"acc": 0.9'),
        lambda text: text[: len(text) // 2],
        lambda text: f"[{text}]",
        lambda text: "",
    ],
    ids=["a digit", "half", "a list", "empty"],
)
def test_a_result_that_was_damaged_is_none(tmp_path, damage):
    file = tmp_path / "kmeans-0.json"
    write_result(file, RESULT)
    assert read_result(file) == RESULT
    changed = damage(file.read_text())
    assert changed != file.read_text()
    file.write_text(changed)
    assert read_result(file) is None


def test_two_commands_at_once_on_one_study(source, tmp_path, monkeypatch):
    monkeypatch.setattr("sagl.storage._LOCK_SECONDS", 0.1)
    study = Comparison(source, methods("kmeans"), tmp_path / "out", seeds=1)
    with FileLock(tmp_path / "out" / "runs" / ".lock"):
        with pytest.raises(ValueError, match="another process is at work on this stu"):
            study.run()
        assert study.result(study.tasks[0]) is None
    study.run(minutes=0)


def test_features_that_change_between_two_runs_are_refused(source, tmp_path):
    study = Comparison(source, methods("kmeans"), tmp_path / "out", seeds=1)
    file = tmp_path / "pets_like" / "train" / "wide.npy"
    np.save(file, np.load(file) + 1)
    os.utime(file, ns=(0, 0))
    with pytest.raises(ValueError, match=r"train/wide\.npy has changed while it was"):
        study.run()
    assert study.result(study.tasks[0]) is None


def test_labels_are_optional_where_the_score_is_wanted(tmp_path):
    directory = write_split(tmp_path / "bare", labels=False)
    (directory / "test" / "labels.npy").unlink()
    source = find_source(directory)
    with pytest.raises(ValueError, match=r"number of clusters is unknown; give"):
        Scored(source, methods("kmeans"), tmp_path)
    comparison = Scored(source, methods("kmeans"), tmp_path, n_clusters=3, seeds=2)
    assert not comparison.labelled
    for task in comparison.tasks:
        comparison._file(task).parent.mkdir(parents=True, exist_ok=True)
        write_json(comparison._file(task), run_task(task))
    [row] = comparison.rows()
    assert list(row.mean) == ["score"]
    assert row.worst_acc is None
    assert row.clusters == 3
    assert row.label_free["total"] > 1
    [line] = cells([row])
    assert line["ACC"] == line["to TURTLE"] == ""
    assert line["score"] == f"**{row.label_free['total']:.3f} ± 0.000**"
    assert comparison.as_json()["labelled"] is False


def test_refuses_what_cannot_be_scored(tmp_path):
    directory = write_split(tmp_path / "bare")
    (directory / "test" / "labels.npy").unlink()
    with pytest.raises(ValueError, match="no labels to score with"):
        Comparison(find_source(directory), methods("kmeans"), tmp_path)


def test_json_holds_rows_and_runs(source, tmp_path, monkeypatch):
    comparison = Comparison(source, methods("kmeans"), tmp_path, seeds=1, looks=1)
    monkeypatch.setattr(Comparison, "result", lambda self, t: RESULT)
    record = comparison.as_json()
    assert record["n_train"] == 60
    assert record["n_scored"] == 30
    assert record["protocol"] == "inductive"
    assert record["runs"][0]["seconds"] == 1.5
    assert not math.isnan(record["rows"][0]["mean"]["acc"])
