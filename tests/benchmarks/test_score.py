"""Criteria for partitions against slow, obvious twins; what the tables say."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import silhouette_score

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import criteria
import score as benchmark
from criteria import COLUMNS, agreement, candidates_of, generalisation, silhouettes
from sagl import SAGL, Views
from sagl.evaluation.metrics import nmi
from sagl.search.config import SearchConfig
from sagl.search.score import score


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    centres = 1.5 * rng.normal(size=(4, 12))
    x = centres[np.arange(120) % 4] + rng.normal(size=(120, 12))
    return x.astype(np.float32)


@pytest.fixture(scope="module")
def partitions(rows):
    """The truth, more and more of it at random, the last without two clusters."""
    rng = np.random.default_rng(1)
    made = []
    for share in (0, 0.1, 0.3, 0.6, 1):
        labels = np.arange(120) % 4
        some = rng.random(120) < share
        labels[some] = rng.integers(0, 4, some.sum())
        made.append(torch.from_numpy(labels))
    return [*made, torch.from_numpy(np.arange(120) % 2)]


@pytest.fixture(scope="module")
def views(rows):
    return Views({"a": rows[:, :7], "b": rows[:, 5:]})


@pytest.fixture(scope="module")
def found(views):
    return candidates_of(views, 4, 0)


def test_agreement_is_the_mean_nmi_with_the_others(partitions):
    arrays = [p.numpy() for p in partitions]
    expected = [
        np.mean([nmi(a, b) for j, b in enumerate(arrays) if j != i])
        for i, a in enumerate(arrays)
    ]
    np.testing.assert_allclose(agreement(partitions, 4), expected, atol=1e-12)


def test_silhouettes_are_those_of_the_rows(rows, partitions):
    one = torch.zeros(120, dtype=torch.long)
    values = silhouettes(rows, [*partitions, one])
    expected = [silhouette_score(rows, p.numpy()) for p in partitions]
    np.testing.assert_allclose(values, [*expected, -1], atol=1e-5)


@pytest.mark.parametrize("width", [12, 200])
def test_generalisation_is_that_of_logistic_regression(rows, partitions, width):
    """More columns than rows or fewer: what scikit-learn's classifiers get right."""
    rng = np.random.default_rng(2)
    x = torch.from_numpy(np.hstack([rows, rng.normal(size=(120, width - 12))])).float()
    x = x * (10 / x.norm(dim=1).mean())
    halves = torch.randperm(120, generator=torch.Generator().manual_seed(3)).chunk(2)
    expected = []
    for labels in partitions:
        right = []
        for ours, rest in (halves, halves[::-1]):
            fitted = LogisticRegression(max_iter=2_000).fit(x[ours], labels[ours])
            right += (fitted.predict(x[rest]) == labels[rest].numpy()).tolist()
        expected.append(np.mean(right))
    values = generalisation(7 * x, partitions, 4, 3)
    np.testing.assert_allclose(values, expected, atol=0.04)


def test_candidates_are_the_fit_and_more(views, found):
    model = SAGL(4, random_state=0).fit(views)
    labels = [p.numpy() for p in found.partitions]
    assert len(labels) == len({criteria.renamed(p) for p in found.partitions})
    assert {"balanced", "k-means"} <= set(found.kinds) <= {"balanced", "any", "k-means"}
    # Heads and votes may change a few of the labels that the search has found.
    assert nmi(labels[found.delivered], model.labels_) > 0.9
    kind = found.kinds[found.delivered]
    assert kind == model.cluster_sizes_ or kind == "balanced"


def test_the_weighed_columns_are_the_score_of_the_search(views, found, monkeypatch):
    monkeypatch.setattr(criteria, "embedded", lambda x, seed: x)
    columns = criteria.criteria(views, 4, found, 0)
    assert set(columns) == set(COLUMNS)
    assert {len(column) for column in columns.values()} == {len(found.partitions)}
    expected = [score(found.space, p, 4).total for p in found.partitions]
    total = benchmark.values({"columns": columns}, "score")
    np.testing.assert_allclose(np.log(4) * total, expected, rtol=1e-6)


def test_names_of_clusters_do_not_make_another_partition():
    a, b = torch.tensor([2, 2, 0, 1]), torch.tensor([0, 0, 2, 1])
    assert criteria.renamed(a) == criteria.renamed(b)
    assert criteria.renamed(a) != criteria.renamed(torch.tensor([0, 0, 1, 1]))


def result_of(place, good, bad, delivered=0):
    """Three candidates; the column ``good`` knows their order, ``bad`` turns it."""
    columns = {name: [0.5, 0.5, 0.5] for name in COLUMNS}
    columns |= {good: [0.1, 0.2, 0.3], bad: [0.3, 0.2, 0.1]}
    columns |= {"acc": [0.6, 0.7, 0.8], "nmi": [0.6, 0.7, 0.8]}
    kinds = ["balanced"] * 3
    return {
        "set": place,
        "views": "a",
        "kinds": kinds,
        "delivered": delivered,
        "balanced": place != "two",
        "columns": columns,
    }


def test_table_shows_order_regret_and_near_misses():
    results = [result_of("one", "clarity", "umap"), result_of("two", "clarity", "umap")]
    lines = benchmark.table(results).splitlines()
    rows = {line.split(" | ")[0][2:]: line.split(" | ")[1:] for line in lines[2:]}
    assert rows["clarity"] == [
        *["1.00 ± 0.00"] * 2,
        *["0.0 ± 0.0"] * 2,
        *["100%"] * 2,
        *["0.0 ± 0.0"] * 2,
        "20.00 ± 0.00 |",
    ]
    assert rows["silhouette, UMAP"] == [
        *["-1.00 ± 0.00"] * 2,
        *["20.0 ± 0.0"] * 2,
        *["0%"] * 2,
        *["20.0 ± 0.0"] * 2,
        "0.00 ± 0.00 |",
    ]
    assert rows["silhouette"][:2] == ["0.00 ± 0.00"] * 2
    assert rows[benchmark.DELIVERED][:3] == ["–", "–", "20.0 ± 0.0"]


def test_the_rule_of_the_fit_takes_what_the_fit_took(views, found, monkeypatch):
    monkeypatch.setattr(criteria, "embedded", lambda x, seed: x)
    columns = criteria.criteria(views, 4, found, 0)
    result = {"columns": columns, "kinds": found.kinds}
    margin = SearchConfig().size_margin
    assert benchmark.by_rule(result, "score", margin) == found.delivered


def test_a_rule_leaves_balanced_ones_for_clearer_ones():
    result = result_of("one", "clarity", "umap")
    columns = result["columns"] | {"affinity": [0.1, 0.4, 0.3], "evidence": [0, 0, 1]}
    result |= {"columns": columns, "kinds": ["balanced", "balanced", "any"]}
    assert benchmark.by_rule(result, "affinity alone", 0.05) == 2
    assert benchmark.by_rule(result, "affinity alone", 0.2) == 1
    result["kinds"] = ["balanced", "balanced", "k-means"]
    assert benchmark.by_rule(result, "affinity alone", 0.05) == 1


def test_a_criterion_good_everywhere_is_good_where_it_was_not_chosen():
    results = [
        result_of(name, "clarity", "umap", delivered=1) for name in ("a", "b", "c", "d")
    ]
    lines = benchmark.on_halves(results).splitlines()
    assert lines[2].startswith("| 4 sets | +10.00 ± 0.00 | +10.00 ± 0.00 | 0.00 |")
    assert "clarity (100%)" in lines[2]
