"""Combinations of views and the choice among them."""

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sagl.evaluation.cka import cka_matrix
from sagl.experiments.combine import LIMIT, Combination, combinations_of
from sagl.experiments.compare import Comparison
from sagl.features.split import find_source
from tests.experiments.small_runs import QUICK, run_in_this_process, write_views
from tests.experiments.test_compare import methods


@pytest.fixture(autouse=True)
def ran(monkeypatch):
    return run_in_this_process(monkeypatch)


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_every_subset_once(n, least, most):
    names = tuple("abcdefghi"[:n])
    count = sum(comb(n, size) for size in range(least, most + 1))
    if not least <= most <= n or count > LIMIT:
        with pytest.raises(ValueError, match="combinations of"):
            combinations_of(names, least, most)
        return
    found = combinations_of(names, least, most)
    assert len(set(found)) == len(found) == count
    assert {len(subset) for subset in found} == set(range(least, most + 1))


def test_the_score_chooses_and_the_labels_tell(tmp_path, ran):
    source = find_source(write_views(tmp_path / "set", ["a", "b", "c"]))
    study = Combination(source, tmp_path / "out", params=QUICK, seeds=1)
    assert study.findings()["chosen"] is None
    study.run()
    assert len(ran) == 7
    rows = study.rows()
    totals = [row.label_free["total"] for row in rows]
    assert totals == sorted(totals, reverse=True)
    found = study.findings()
    assert found["chosen"] == list(study.subsets[rows[0].name])
    assert rows[0].note == "chosen by the score"
    assert found["chosen_acc"] == rows[0].mean["acc"]
    assert found["best_acc"] == max(row.mean["acc"] for row in rows)
    whole = next(row for row in rows if row.name == "a + b + c")
    assert found["all_views_acc"] == whole.mean["acc"]
    written = study.write()
    assert {"cka.png", "combinations.png", "combinations.svg"} <= set(written)
    [sentence] = study.sentences()
    assert f"{found['best_acc']:.3f} at best" in sentence
    assert "the fitted samples" in study.heading()


def test_cka_within_a_combination(tmp_path):
    source = find_source(write_views(tmp_path / "set", ["a", "b", "c"]))
    study = Combination(source, tmp_path / "out", seeds=1)
    matrix = cka_matrix(source.train.read()[0])
    told = {row.name: study.told(row) for row in study.rows()}
    assert told["a"]["CKA"] is None
    assert told["a + c"]["CKA"] == pytest.approx(matrix[0, 2], abs=1e-3)
    pairs = matrix[np.triu_indices(3, 1)]
    assert told["a + b + c"]["CKA"] == pytest.approx(pairs.mean(), abs=1e-3)


def test_all_views_are_the_run_of_a_comparison(tmp_path):
    source = find_source(write_views(tmp_path / "set", ["a", "b"]))
    study = Combination(source, tmp_path / "out", seeds=1)
    there = Comparison(source, methods("sagl"), tmp_path / "out", seeds=1, looks=1)
    digest = there._file(there.tasks[0]).stem.split("-")[-1]
    files = [study.comparison._file(task).stem for task in study.comparison.tasks]
    assert [name.endswith(digest) for name in files] == [False, False, True]


def test_published_figures_of_the_paper_s_views(tmp_path):
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


def test_too_many(tmp_path):
    names = [f"v{i}" for i in range(7)]
    source = find_source(write_views(tmp_path / "set", names, n=12))
    with pytest.raises(ValueError, match=r"7 views make 127 combinations of 1 to 7"):
        Combination(source, tmp_path / "out")
    assert len(Combination(source, tmp_path / "out", at_most=2).subsets) == 28
