"""Comparisons: rows, costs, what is kept, what fails, what is taken up."""

import csv
import hashlib
import json
import math

import numpy as np
import pytest

from sagl.baselines import METHODS, KMeans, Method, find_method, register
from sagl.experiments import compare as module
from sagl.experiments.compare import Comparison
from sagl.experiments.compare_table import (
    COLUMNS,
    Row,
    as_csv,
    as_json,
    cells,
    markdown,
    rows_of,
)
from sagl.experiments.one_run import Task, run_task
from sagl.features.split import find_source
from sagl.selection import label_free_score
from sagl.storage import write_json
from tests.experiments.small_runs import write_views

RESULT = {
    "scores": {"acc": 1.0, "nmi": 1.0, "ari": 1.0, "ami": 1.0, "n_clusters": 3},
    "seconds": 1.5,
    "peak_mib": 100.0,
    "curve": [[1.5, 1.0]],
}
TOY = "tests.baselines.toy:Nearest"


def write_split(directory, n_train=60, n_test=30, C=3, labels=True):
    """Two clear views of three clusters as files."""
    rng = np.random.default_rng(0)
    centres = [5 * rng.normal(size=(C, width)) for width in (4, 6)]
    for part, n in (("train", n_train), ("test", n_test)):
        place = directory / part
        place.mkdir(parents=True)
        y = np.arange(n) % C
        for name, c in zip(("wide", "narrow"), centres, strict=True):
            h = c[y] + 0.1 * rng.normal(size=(n, c.shape[1]))
            np.save(place / f"{name}.npy", h.astype(np.float32))
        if labels or part == "test":
            np.save(place / "labels.npy", y)
    return directory


@pytest.fixture
def source(tmp_path):
    return find_source(write_split(tmp_path / "pets_like"))


def methods(*names):
    return [find_method(name) for name in names]


class TestOneRun:
    def test_a_method_that_is_perfect_here(self, source):
        task = Task(find_method("kmeans"), source, 3, seed=0, looks=4)
        result = run_task(task)
        assert result["scores"]["acc"] == 1
        assert result["scores"]["n_clusters"] == 3
        assert result["seconds"] > 0
        assert result["peak_mib"] > 50
        assert result["curve"] == [(result["seconds"], 1.0)]

    def test_the_curve_has_its_looks_and_ends_with_the_result(self, source):
        params = {"recipe": "network", "steps": 200, "batch_size": 60}
        method = Method("sagl", "sagl.estimator:SAGL", params=params)
        result = run_task(Task(method, source, 3, seed=0, looks=5))
        times = [at for at, _ in result["curve"]]
        assert len(times) == 5
        assert times == sorted(times)
        assert result["curve"][-1] == (result["seconds"], result["scores"]["acc"])

    def test_labels_of_the_training_part_reach_supervised_methods_alone(self, tmp_path):
        labelled = find_source(write_split(tmp_path / "a"))
        probe = run_task(Task(find_method("linear-probe"), labelled, 3, 0, looks=1))
        assert probe["scores"]["acc"] == 1
        bare = find_source(write_split(tmp_path / "b", labels=False))
        with pytest.raises(ValueError, match="needs the true labels"):
            run_task(Task(find_method("linear-probe"), bare, 3, 0, looks=1))
        assert run_task(Task(find_method("kmeans"), bare, 3, 0, 1))["scores"]

    @pytest.mark.parametrize("views", [None, ("wide",)])
    def test_a_task_survives_json(self, source, views):
        task = Task(find_method("linear-probe"), source, 3, 1, looks=2, views=views)
        assert Task.from_dict(json.loads(json.dumps(task.as_dict()))) == task

    def test_without_labels_there_is_the_label_free_score(self, tmp_path):
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

    def test_some_views_are_fitted_and_all_of_them_judge(self, tmp_path):
        directory = write_views(tmp_path / "a", ["clear", "noisy"])
        source = find_source(directory)
        views, _ = source.train.read()
        for name in views.names:
            task = Task(find_method("kmeans"), source, 3, 0, looks=1, views=(name,))
            alone = KMeans(3, random_state=0).fit({name: views[name]})
            expected = label_free_score(views, alone.labels_).total
            found = run_task(task)
            assert found["label_free"]["total"] == pytest.approx(expected)
            assert (found["scores"]["acc"] == 1) == (name == "clear")

    def test_the_device_is_passed_on(self, source):
        task = Task(find_method("kmeans"), source, 3, 0, looks=1, device="nowhere")
        with pytest.raises(ValueError, match="nowhere"):
            run_task(task)


class TestComparison:
    def test_fills_the_table_whatever_happens(self, source, tmp_path):
        """Good methods, one that raises, one that is killed, one that lacks names."""
        names = (
            *("kmeans", TOY, "tests.baselines.toy:Broken"),
            *("tests.baselines.toy:Killed", "linear-probe", "zero-shot"),
        )
        comparison = Comparison(
            source, methods(*names), tmp_path / "out", seeds=2, looks=2
        )
        seen = []
        comparison.run(jobs=2, progress=lambda task, result: seen.append(task))
        assert len(seen) == len(comparison.tasks) == 9  # the probe has no seeds
        rows = {row.name: row for row in rows_of(comparison)}
        assert rows["kmeans"].mean["acc"] == 1
        assert rows["kmeans"].runs == rows[TOY].runs == 2
        assert rows["kmeans"].sd["acc"] == 0
        assert rows["kmeans"].clusters == 3
        assert rows["kmeans"].peak_mib > 50
        broken = rows["tests.baselines.toy:Broken"]
        assert "ArithmeticError: no answer to this" in broken.note
        assert "signal 9" in rows["tests.baselines.toy:Killed"].note
        assert rows["zero-shot"].note == "not run: needs class names and a text encoder"
        assert rows["linear-probe"].supervised
        assert rows["linear-probe"].runs == 1
        assert rows["srlf"].note == "published, not run"  # by the name pets…
        assert rows["srlf"].published_acc == pytest.approx(0.9545)
        titles = [row.name for row in rows_of(comparison)]
        assert titles[-1] == "linear-probe"  # supervised rows come last

        # Once more: what succeeded is not run again.
        before = {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("k*.json")}
        again = Comparison(
            source, methods("kmeans"), tmp_path / "out", seeds=2, looks=2
        )
        again.run()
        after = {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("k*.json")}
        assert before == after
        assert len(before) == 2

    def test_the_time_is_up(self, source, tmp_path):
        comparison = Comparison(source, methods("kmeans"), tmp_path / "out", seeds=1)
        found = []
        comparison.run(minutes=0, progress=lambda task, result: found.append(result))
        assert found == [{"error": "not run: the time was up"}]
        assert rows_of(comparison)[0].note == "seed 0: not run yet"
        comparison.run()  # and nothing stands in the way of a second try
        assert rows_of(comparison)[0].runs == 1

    def test_a_run_that_outlasts_the_budget_is_stopped(
        self, source, tmp_path, monkeypatch
    ):
        # Without a tolerance it does not end early, however quick the machine is.
        params = {"steps": 10**7, "tolerance": 0.0}
        long = Method("long", "sagl.estimator:SAGL", params=params)
        comparison = Comparison(source, [long], tmp_path / "out", seeds=1, looks=1)
        found = []
        comparison.run(
            minutes=5 / 60, progress=lambda task, result: found.append(result)
        )
        assert found == [{"error": "stopped: the time was up"}]
        assert comparison.result(comparison.tasks[0]) is None

    def test_what_decides_a_result_decides_its_file(self, source, tmp_path):
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

    def test_files_of_earlier_versions_are_found(self, source, tmp_path):
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
        some = Comparison(
            source, methods("kmeans"), tmp_path, seeds=1, views={"kmeans": ["wide"]}
        )
        assert some._file(some.tasks[0]) != file

    def test_a_new_revision_of_sagl_makes_its_own_runs_old(
        self, source, tmp_path, monkeypatch
    ):
        comparison = Comparison(source, methods("kmeans", "sagl"), tmp_path, seeds=1)
        kmeans, sagl = [comparison._file(task) for task in comparison.tasks]
        monkeypatch.setattr(module, "REVISION", "another")
        assert comparison._file(comparison.tasks[0]) == kmeans
        assert comparison._file(comparison.tasks[1]) != sagl

    def test_an_earlier_result_without_its_label_free_score(self, source, tmp_path):
        def comparison(**options):
            return Comparison(
                source, methods("kmeans"), tmp_path, seeds=1, looks=1, **options
            )

        old = comparison()
        [task] = old.tasks
        file = old._file(task)
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(RESULT))
        assert old.result(task) == RESULT
        [row] = [row for row in rows_of(old) if row.name == "kmeans"]
        assert row.mean["acc"] == 1
        assert row.label_free == {}
        assert cells([row])[0][COLUMNS.index("score")] == ""
        new = comparison(needs="score")
        assert new.result(task) is None
        new.run(minutes=0)
        assert old.result(task) == RESULT  # it stays until there is a better one
        new.run()
        assert new.result(task)["label_free"]["total"] > 0

    def test_labels_are_optional_where_the_score_is_wanted(self, tmp_path):
        directory = write_split(tmp_path / "bare", labels=False)
        (directory / "test" / "labels.npy").unlink()
        source = find_source(directory)
        with pytest.raises(ValueError, match=r"number of clusters is unknown; give"):
            Comparison(source, methods("kmeans"), tmp_path, needs="score")
        comparison = Comparison(
            source, methods("kmeans"), tmp_path, n_clusters=3, seeds=2, needs="score"
        )
        assert not comparison.labelled
        for task in comparison.tasks:
            comparison._file(task).parent.mkdir(parents=True, exist_ok=True)
            write_json(comparison._file(task), run_task(task))
        [row] = rows_of(comparison)
        assert row.mean == {}
        assert row.worst_acc is None
        assert row.clusters == 3
        assert row.label_free["total"] > 1
        line = dict(zip(COLUMNS, cells([row])[0], strict=True))
        assert line["ACC"] == line["to TURTLE"] == ""
        assert line["score"] == f"**{row.label_free['total']:.3f} ± 0.000**"
        assert as_json(comparison, [row])["labelled"] is False

    def test_refuses_what_cannot_be_scored(self, tmp_path):
        directory = write_split(tmp_path / "bare")
        (directory / "test" / "labels.npy").unlink()
        with pytest.raises(ValueError, match="no labels to score with"):
            Comparison(find_source(directory), methods("kmeans"), tmp_path)


class TestTable:
    ROWS = (
        Row("a", "A", False, 2, {"acc": 0.5, "nmi": 0.6, "ari": 0.4, "ami": 0.5},
            {"acc": 0.01, "nmi": 0.0, "ari": 0.0, "ami": 0.0}, 0.49, 3.0, 12.0, 300.0,
            None, 5.0, 0.9),
        Row("b", "B", False, 0, note="ValueError: no"),
        Row("c", "C", True, 1, {"acc": 0.9, "nmi": 0.9, "ari": 0.9, "ami": 0.9},
            {"acc": 0.0, "nmi": 0.0, "ari": 0.0, "ami": 0.0}, 0.9, 3.0, 1.0, 10.0),
    )  # fmt: skip

    def test_bold_is_for_the_best_without_labels(self):
        first, second, third = cells(self.ROWS)
        assert first[1] == "**0.500 ± 0.010**"
        assert third[0] == "C (with labels)"
        assert third[1] == "0.900"
        assert second[1] == ""
        assert second[-1] == "ValueError: no"
        assert first[8] == "—"  # never reached
        assert first[9] == "5"
        assert second[8] == ""

    def test_markdown(self):
        lines = markdown(self.ROWS).splitlines()
        assert len(lines) == 5
        assert {line.count("|") for line in lines} == {len(COLUMNS) + 1}

    def test_csv_reads_back(self):
        rows = list(csv.DictReader(as_csv(self.ROWS).splitlines()))
        assert [row["name"] for row in rows] == ["a", "b", "c"]
        assert float(rows[0]["acc_mean"]) == 0.5
        assert rows[1]["acc_mean"] == ""

    def test_time_to_a_mark(self):
        from sagl.experiments.compare_table import _time_to

        def run(*curve):
            return {"curve": list(curve)}

        slow, fast = run((1, 0.2), (9, 0.8)), run((1, 0.6), (2, 0.9))
        never = run((1, 0.1), (9, 0.2))
        assert _time_to([slow, fast, fast], 0.6) == 1
        assert _time_to([slow, slow, fast], 0.7) == 9
        assert _time_to([never, never, fast], 0.7) is None
        assert _time_to([fast], None) is None


class TestRegistry:
    def test_a_new_method_is_a_file_and_a_line(self, source, tmp_path, monkeypatch):
        monkeypatch.setattr("sagl.baselines.registry.METHODS", dict(METHODS))
        register(Method("nearest", TOY, "Nearest"))
        comparison = Comparison(
            source, [find_method("nearest")], tmp_path, seeds=1, looks=2
        )
        comparison.run()
        (row, *_) = rows_of(comparison)
        assert row.title == "Nearest"
        assert row.mean["acc"] == 1

    def test_unknown_names_are_refused_with_those_that_exist(self):
        with pytest.raises(ValueError, match="no method 'kmean'; there are sagl, "):
            find_method("kmean")
        with pytest.raises(ValueError, match="no class 'nowhere:Toy'"):
            find_method("nowhere:Toy").load()

    def test_all_registered_classes_exist(self):
        for method in METHODS.values():
            assert hasattr(method.load(), "fit"), method.name


def test_json_holds_rows_and_runs(source, tmp_path, monkeypatch):
    comparison = Comparison(source, methods("kmeans"), tmp_path, seeds=1, looks=1)
    monkeypatch.setattr(Comparison, "result", lambda self, t: RESULT)
    found = as_json(comparison, rows_of(comparison))
    assert found["n_train"] == 60
    assert found["n_scored"] == 30
    assert found["protocol"] == "inductive"
    assert found["runs"][0]["seconds"] == 1.5
    assert not math.isnan(found["rows"][0]["mean"]["acc"])
    assert module.RUNS == "runs"


def test_only_cores_that_may_be_used_count(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {3, 5}, raising=False)
    assert module._cores() == 2
    monkeypatch.delattr("os.sched_getaffinity")  # as on macOS
    assert module._cores() == 64
