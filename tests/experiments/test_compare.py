"""SAGL taken apart, with other settings, and what is refused of them."""

import json
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sagl.evaluation.cka import cka_matrix
from sagl.experiments.compare import (
    ABLATIONS,
    MOST_COMBINATIONS,
    Ablation,
    Combination,
    Comparison,
    Sensitivity,
    combinations_of,
)
from sagl.experiments.study import Study
from sagl.experiments.sweep import distinct
from sagl.features.split import find_source
from tests.experiments.small_runs import (
    QUICK,
    methods,
    run_in_this_process,
    run_some,
    write_split,
    write_views,
)


@pytest.fixture
def source(tmp_path):
    return find_source(write_split(tmp_path / "split"))


def test_settings_name_the_variant_and_come_before_the_parameters(source, tmp_path):
    study = Study(source, [], tmp_path, params={"gamma": 1.0, "steps": 20})
    assert study.add_sagl({"gamma": 5.0, "gate": "none"}) == "gamma=5,gate=none"
    assert study.add_sagl({"gamma": 5.0, "gate": "none"}) == "gamma=5,gate=none"
    [method] = study.methods  # taken in once
    assert method.params == {"gamma": 5.0, "gate": "none", "steps": 20}


def test_what_sagl_would_refuse_is_refused(source, tmp_path):
    study = Study(source, [], tmp_path)
    assert study.resolved({"gamma": 3}).gamma == 3
    with pytest.raises(ValueError, match="gamma must be at least 0"):
        study.add_sagl({"gamma": -1})
    with pytest.raises(
        ValueError, match=r"'gama' cannot be set here; there are alignment, "
    ):
        study.add_sagl({"gama": 1})
    for name in ("n_clusters", "random_state", "checkpoint_dir"):
        with pytest.raises(ValueError, match=f"'{name}' cannot be set here"):
            study.resolved({name: 1})
    assert study.methods == []


def test_values():
    assert distinct("gate", ["none", None, 1]) == ["none", None, 1]
    with pytest.raises(ValueError, match="gamma: 5 is given twice"):
        distinct("gamma", [5, 5.0])
    with pytest.raises(ValueError, match="gate: no value"):
        distinct("gate", [])


class TestAblation:
    @pytest.fixture(autouse=True)
    def ran(self, monkeypatch):
        return run_in_this_process(monkeypatch)

    def test_variants_figures_and_published_figures(self, tmp_path, ran):
        source = find_source(write_split(tmp_path / "pets_like"))
        study = Ablation(source, tmp_path / "out", seeds=1, params={"steps": 20})
        study.run()
        assert [name for name, _ in ran] == list(ABLATIONS)
        written = study.write()
        assert "accuracy.png" in written
        for name in written:
            assert (tmp_path / "out" / name).stat().st_size > 100
        rows = {row.name: row for row in study.rows()}
        assert list(rows) == list(ABLATIONS)  # no rows that cannot be run
        assert rows["sagl-b"].published_acc == pytest.approx(0.6361)
        assert rows["sagl-w"].published_acc == pytest.approx(0.9722)
        assert rows["sagl-paper"].published_acc == pytest.approx(0.9757)
        assert all(row.label_free["total"] > 0 for row in rows.values())
        columns, lines = study.table()
        assert columns == [
            *("method", "ACC", "NMI", "ARI", "score", "AMI", "clusters", "seconds"),
            *("peak MiB", "published"),
        ]
        assert len(lines) == len(ABLATIONS)
        assert "inductive: test samples, each predicted alone" in study.heading()
        kept = json.loads((tmp_path / "out" / "table.json").read_text())
        assert kept["command"] == "ablate"
        assert kept["protocol"] == "inductive"
        assert [row["name"] for row in kept["rows"]] == list(ABLATIONS)

    def test_runs_of_a_comparison_count(self, tmp_path):
        source = find_source(write_split(tmp_path / "split"))
        there = Comparison(source, methods("sagl-i"), tmp_path, seeds=1)
        study = Ablation(source, tmp_path, seeds=1)
        files = {study._file(task) for task in study.tasks}
        assert there._file(there.tasks[0]) in files

    def test_without_labels(self, tmp_path):
        directory = write_split(tmp_path / "split")
        (directory / "train" / "labels.npy").unlink()
        (directory / "test" / "labels.npy").unlink()
        source = find_source(directory)
        study = Ablation(
            source, tmp_path / "out", n_clusters=3, seeds=1, params={"steps": 20}
        )
        assert "no labels" in study.heading()
        assert study.figures() == {}  # nothing has been run
        study.run()
        assert "scores.svg" in study.write()
        assert "ACC" not in study.table()[0]

    def test_bad_parameters_are_refused_at_once(self, tmp_path):
        source = find_source(write_split(tmp_path / "split"))
        with pytest.raises(ValueError, match="steps must be a whole number"):
            Ablation(source, tmp_path / "out", params={"steps": 0})
        assert not (tmp_path / "out").exists()


class TestSensitivity:
    @pytest.fixture(autouse=True)
    def ran(self, monkeypatch):
        return run_in_this_process(monkeypatch)

    def test_surface_and_curve_are_the_runs(self, source, tmp_path, ran):
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
        rows = {tuple(study.settings_of(row).values()): row for row in study.rows()}
        assert study.gammas == [1, 10]
        surface = study.values("surface", "acc")
        for i, gamma in enumerate(study.gammas):
            for j, beta in enumerate(study.betas):
                assert surface[i, j] == rows[gamma, beta, 60].mean["acc"]
        score = study.values("curve", "score")
        expected = [rows[10, 1, n].label_free["total"] for n in (30, 60)]
        assert score.tolist() == expected
        written = study.write()
        for name in ("surface-acc.png", "surface-score.svg", "batch-sizes.png"):
            assert name in written
        findings = study.findings()
        assert findings["measure"] == "acc"
        assert findings["surface"] == surface.tolist()
        first, second = study.sentences()
        assert first.startswith("ACC over γ × β at a batch size of 60: ")
        assert second.startswith("ACC over batch sizes at γ = 10, β = 1: ")

    def test_the_network_alone_by_default(self, source, tmp_path):
        study = Sensitivity(source, tmp_path / "out")
        assert {task.method.params["refine"] for task in study.tasks} == {False}
        # The automatic size is 100, but there are 60 samples.
        assert study.batch_sizes == [30, 60]
        assert study.total == 3 * (25 + 1)
        assert study.sentences() == []  # nothing has been run
        searched = Sensitivity(source, tmp_path / "out", params={"refine": True})
        [caution] = searched.sentences()
        assert caution.startswith("gamma, beta: of the paper's loss. Here a search")

    def test_gaps_and_no_labels(self, tmp_path):
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
        run_some(study, 1)
        assert np.isnan(study.values("surface", "score")).tolist() == [[False], [True]]
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
            ({"betas": ["x", 1]}, "beta must be a number; got 'x'"),
            ({"batch_sizes": [30, 70]}, "batch_size: 70 is more than the 60 samples"),
            ({"batch_sizes": [1]}, "batch_size must be a whole number of at least 2"),
            ({"params": {"recipe": "none"}}, "recipe must be one of"),
        ],
    )
    def test_bad_values_are_refused(self, source, tmp_path, options, line):
        with pytest.raises(ValueError, match=line):
            Sensitivity(source, tmp_path / "out", **options)
        assert not (tmp_path / "out").exists()


class TestCombination:
    @pytest.fixture(autouse=True)
    def ran(self, monkeypatch):
        return run_in_this_process(monkeypatch)

    def test_the_score_chooses_and_the_labels_tell(self, tmp_path, ran):
        source = find_source(write_views(tmp_path / "set", ["a", "b", "c"]))
        study = Combination(source, tmp_path / "out", params=QUICK, seeds=1)
        assert study.findings()["chosen"] is None
        assert study.sentences() == ["no combination has a label-free score yet"]
        study.run()
        assert len(ran) == 7
        rows = study.rows()
        totals = [row.label_free["total"] for row in rows]
        assert totals == sorted(totals, reverse=True)
        findings = study.findings()
        assert findings["chosen"] == study.settings_of(rows[0])["views"].split(" + ")
        assert rows[0].note == "chosen by the score"
        assert findings["chosen_acc"] == rows[0].mean["acc"]
        assert findings["best_acc"] == max(row.mean["acc"] for row in rows)
        whole = next(row for row in rows if row.name == "a + b + c")
        assert findings["all_views_acc"] == whole.mean["acc"]
        written = study.write()
        assert {"cka.png", "combinations.png", "combinations.svg"} <= set(written)
        columns, _ = study.table()
        assert columns == [
            *("views", "CKA", "score", "ACC", "NMI", "ARI", "AMI", "clusters"),
            *("seconds", "peak MiB", ""),
        ]
        [sentence] = study.sentences()
        assert f"{findings['best_acc']:.3f} at best" in sentence
        assert "the fitted samples" in study.heading()

    def test_without_labels_the_choice_is_all_that_is_said(self, tmp_path):
        directory = write_views(tmp_path / "set", ["a", "b"], labels=False)
        source, options = find_source(directory), {"n_clusters": 3, "seeds": 1}
        study = Combination(source, tmp_path / "out", params=QUICK, **options)
        study.run()
        chosen = study.rows()[0].name
        expected = f"the label-free score, on all views, chooses {chosen}"
        assert study.sentences() == [expected]
        assert "ACC" not in study.table()[0]
        assert "combinations" in study.figures()

    def test_cka_within_a_combination(self, tmp_path):
        source = find_source(write_views(tmp_path / "set", ["a", "b", "c"]))
        study = Combination(source, tmp_path / "out", seeds=1)
        matrix = cka_matrix(source.train.read()[0])
        settings = {row.name: study.settings_of(row) for row in study.rows()}
        assert settings["a"]["CKA"] is None
        assert settings["a + c"]["CKA"] == pytest.approx(matrix[0, 2], abs=1e-3)
        pairs = matrix[np.triu_indices(3, 1)]
        assert settings["a + b + c"]["CKA"] == pytest.approx(pairs.mean(), abs=1e-3)

    def test_all_views_are_the_run_of_a_comparison(self, tmp_path):
        source = find_source(write_views(tmp_path / "set", ["a", "b"]))
        study = Combination(source, tmp_path / "out", seeds=1)
        there = Comparison(source, methods("sagl"), tmp_path / "out", seeds=1, looks=1)
        digest = there._file(there.tasks[0]).stem.split("-")[-1]
        files = [study._file(task).stem for task in study.tasks]
        assert [name.endswith(digest) for name in files] == [False, False, True]

    def test_published_figures_of_the_paper_s_views(self, tmp_path):
        names = ["convnextv2-l", "dinov3-l", "siglip2-l"]
        source = find_source(write_views(tmp_path / "pets", names))
        study = Combination(source, tmp_path / "out", seeds=1, at_least=2)
        published = {row.name: row.published_acc for row in study.rows()}
        assert published == {
            "convnextv2-l + dinov3-l": 0.9463,
            "convnextv2-l + siglip2-l": 0.9319,
            "dinov3-l + siglip2-l": 0.9757,
            "convnextv2-l + dinov3-l + siglip2-l": 0.9079,
        }

    def test_too_many(self, tmp_path):
        names = [f"v{i}" for i in range(7)]
        source = find_source(write_views(tmp_path / "set", names, n=12))
        with pytest.raises(ValueError, match="7 views make 127 combinations of 1"):
            Combination(source, tmp_path / "out")
        assert len(Combination(source, tmp_path / "out", at_most=2).subsets) == 28


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_every_subset_once(n, least, most):
    names = tuple("abcdefghi"[:n])
    count = sum(comb(n, size) for size in range(least, most + 1))
    if not least <= most <= n or count > MOST_COMBINATIONS:
        with pytest.raises(ValueError, match="combinations of"):
            combinations_of(names, least, most)
        return
    subsets = combinations_of(names, least, most)
    assert len(set(subsets)) == len(subsets) == count
    assert {len(subset) for subset in subsets} == set(range(least, most + 1))
