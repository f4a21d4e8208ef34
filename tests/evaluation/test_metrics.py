"""The metrics against slow versions and against examples worked out by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sagl.evaluation import metrics
from sagl.evaluation.metrics import (
    ami,
    ari,
    balanced_accuracy,
    clustering_accuracy,
    clustering_scores,
    match_clusters,
    n_clusters_found,
    nmi,
    purity,
)

OF_PAIRS = [
    clustering_accuracy,
    match_clusters,
    balanced_accuracy,
    purity,
    nmi,
    ami,
    ari,
    clustering_scores,
]

labelings = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 5)), min_size=1, max_size=40
).map(lambda pairs: tuple(np.array(side) for side in zip(*pairs, strict=True)))


def slow_best(y_true: np.ndarray, y_pred: np.ndarray) -> tuple[float, float]:
    """Accuracy and mean recall of the best matching, by trying every one."""
    classes, clusters = sorted(set(y_true)), sorted(set(y_pred))
    padded = clusters + [-1] * len(classes)  # -1 holds no sample
    best = (0.0, 0.0)
    for partners in set(permutations(padded, len(classes))):
        pairs = list(zip(classes, partners, strict=True))
        hits = [int(np.sum((y_true == c) & (y_pred == k))) for c, k in pairs]
        recalls = [h / np.sum(y_true == c) for h, c in zip(hits, classes, strict=True)]
        best = max(best, (sum(hits) / len(y_true), float(np.mean(recalls))))
    return best


small = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=25
).map(lambda pairs: tuple(np.array(side) for side in zip(*pairs, strict=True)))


@given(small)
@settings(deadline=None)
def test_accuracy_and_recall_equal_the_best_of_all_matchings(
    labels: tuple[np.ndarray, np.ndarray],
) -> None:
    accuracy, recall = slow_best(*labels)
    assert clustering_accuracy(*labels) == pytest.approx(accuracy)
    assert balanced_accuracy(*labels) == pytest.approx(recall)
    accuracy, recall = slow_best(*labels[::-1])
    assert clustering_accuracy(*labels[::-1]) == pytest.approx(accuracy)
    assert balanced_accuracy(*labels[::-1]) == pytest.approx(recall)


@given(labelings, st.permutations(range(6)), st.permutations(range(5)))
@settings(deadline=None)
def test_renaming_classes_and_clusters_changes_no_score(
    labels: tuple[np.ndarray, np.ndarray], new_pred: list[int], new_true: list[int]
) -> None:
    y_true, y_pred = labels
    before = clustering_scores(y_true, y_pred)
    after = clustering_scores(np.array(new_true)[y_true], np.array(new_pred)[y_pred])
    assert after == pytest.approx(before, abs=1e-9)


@given(labelings, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_order_of_samples_changes_no_score(
    labels: tuple[np.ndarray, np.ndarray], random: Any
) -> None:
    y_true, y_pred = labels
    order = list(range(len(y_true)))
    random.shuffle(order)
    before = clustering_scores(y_true, y_pred)
    assert clustering_scores(y_true[order], y_pred[order]) == pytest.approx(before)


@given(labelings)
@settings(deadline=None)
def test_the_matching_gives_the_accuracy(labels: tuple[np.ndarray, np.ndarray]) -> None:
    y_true, y_pred = labels
    matching = match_clusters(y_true, y_pred)
    assert len(set(matching.values())) == len(matching)
    assert len(matching) == min(len(set(y_true)), len(set(y_pred)))
    renamed = np.array([matching.get(int(cluster), -1) for cluster in y_pred])
    assert np.mean(renamed == y_true) == clustering_accuracy(y_true, y_pred)


@given(labelings)
@settings(deadline=None)
def test_the_sparse_matching_equals_the_dense_one(
    labels: tuple[np.ndarray, np.ndarray],
) -> None:
    dense = [f(*labels) for f in (clustering_accuracy, balanced_accuracy)]
    n_pairs = len(match_clusters(*labels))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "_MAX_DENSE_CELLS", 0)
        sparse = [f(*labels) for f in (clustering_accuracy, balanced_accuracy)]
        assert len(match_clusters(*labels)) == n_pairs
    assert sparse == pytest.approx(dense)


def test_more_clusters_than_classes() -> None:
    y_true, y_pred = [0, 0, 0, 1, 1], [0, 0, 1, 2, 2]
    assert clustering_accuracy(y_true, y_pred) == 4 / 5  # cluster 1 stays alone
    assert match_clusters(y_true, y_pred) == {0: 0, 2: 1}
    assert balanced_accuracy(y_true, y_pred) == pytest.approx((2 / 3 + 1) / 2)


def test_more_classes_than_clusters() -> None:
    y_true, y_pred = [0, 0, 0, 1, 1, 2], [7, 7, 7, 9, 9, 9]
    assert clustering_accuracy(y_true, y_pred) == 5 / 6
    assert match_clusters(y_true, y_pred) == {7: 0, 9: 1}
    assert balanced_accuracy(y_true, y_pred) == pytest.approx((1 + 1 + 0) / 3)


def test_the_matching_is_not_the_greedy_one() -> None:
    # Taking the largest cell (3) first would leave 0 for the other pair.
    y_true = [0] * 5 + [1] * 2
    y_pred = [0] * 3 + [1] * 2 + [0] * 2
    assert clustering_accuracy(y_true, y_pred) == 4 / 7
    assert match_clusters(y_true, y_pred) == {0: 1, 1: 0}


def test_equal_accuracies_go_to_the_larger_recall() -> None:
    y_true = [0, 1, 1, 1]
    y_pred = [0, 0, 1, 2]
    assert clustering_accuracy(y_true, y_pred) == 1 / 2
    assert balanced_accuracy(y_true, y_pred) == pytest.approx((1 + 1 / 3) / 2)


def test_balanced_accuracy_weighs_classes_alike() -> None:
    y_true, y_pred = [0] * 8 + [1] * 2, [0] * 9 + [1]
    assert clustering_accuracy(y_true, y_pred) == 0.9
    assert balanced_accuracy(y_true, y_pred) == 0.75


def test_purity_is_not_inverse_purity() -> None:
    y_true, y_pred = [0, 0, 0, 0], [0, 1, 2, 3]
    assert purity(y_true, y_pred) == 1.0
    assert purity(y_pred, y_true) == 0.25  # the inverse purity of the line above


def test_purity_counts_the_majority_of_each_cluster() -> None:
    # cluster 0: two of three; cluster 1: two of three, the same class again
    assert purity([0, 0, 1, 0, 0, 2], [0, 0, 0, 1, 1, 1]) == 4 / 6


def test_information_scores_by_hand() -> None:
    y_true, independent = [0, 0, 1, 1], [0, 1, 0, 1]
    assert nmi(y_true, [1, 1, 0, 0]) == pytest.approx(1)
    assert ami(y_true, [1, 1, 0, 0]) == pytest.approx(1)
    assert ari(y_true, [1, 1, 0, 0]) == 1
    assert nmi(y_true, independent) == pytest.approx(0)
    assert ami(y_true, independent) == pytest.approx(-0.5)
    assert ari(y_true, independent) == pytest.approx(-0.5)
    # I = ln 2, H(true) = ln 2, H(pred) = 1.5 ln 2: arithmetic mean 1.25 ln 2
    assert nmi(y_true, [0, 1, 2, 2]) == pytest.approx(1 / 1.25)


def test_scores_are_the_single_functions_in_a_fixed_order() -> None:
    rng = np.random.default_rng(1)
    y_true, y_pred = rng.integers(0, 4, 200), rng.integers(0, 6, 200)
    scores = clustering_scores(y_true, y_pred)
    functions = {
        "acc": clustering_accuracy,
        "nmi": nmi,
        "ari": ari,
        "ami": ami,
        "purity": purity,
        "balanced_acc": balanced_accuracy,
    }
    assert list(scores) == [*functions, "n_clusters"]
    for name, function in functions.items():
        assert type(scores[name]) is float
        assert scores[name] == pytest.approx(function(y_true, y_pred))
    assert type(scores["n_clusters"]) is int
    assert scores["n_clusters"] == n_clusters_found(y_pred) == 6


@pytest.mark.parametrize(
    "y_true",
    [
        ["a", "a", "b", "b"],
        np.array(["a", "a", "b", "b"]),
        np.array(["a", "a", "b", "b"], dtype=object),
        [0.0, 0.0, 1.0, 1.0],
        np.array([2**60, 2**60, 2**60 + 1, 2**60 + 1]),
        np.array([-1, -1, 1, 1], dtype=np.int8),
        np.array([False, False, True, True]),
        np.array([0, 0, 1, 1], dtype=object),
    ],
    ids=lambda y: f"{type(y).__name__}-{getattr(y, 'dtype', type(y[0]).__name__)}",
)
def test_kinds_of_labels(y_true: Any) -> None:
    assert clustering_accuracy(y_true, ["x", "x", "y", "x"]) == 0.75
    assert clustering_accuracy(["x", "x", "y", "x"], y_true) == 0.75
    assert n_clusters_found(y_true) == 2


def test_the_matching_speaks_in_plain_labels() -> None:
    matching = match_clusters([0.0, 0.0, 4.0], np.array(["x", "x", "y"]))
    assert matching == {"x": 0, "y": 4}
    assert {type(v) for v in matching.values()} == {int}
    assert {type(k) for k in matching} == {str}


def test_a_million_samples_in_a_thousand_clusters() -> None:
    rng = np.random.default_rng(0)
    y_true = np.arange(1_000_000) % 1000
    noisy = y_true.copy()
    noisy[:250_000] = rng.integers(0, 1000, 250_000)
    y_pred = rng.permutation(1000)[noisy]
    expected = np.mean(noisy == y_true)  # no other matching comes near
    assert clustering_accuracy(y_true, y_pred) == expected
    assert balanced_accuracy(y_true, y_pred) == pytest.approx(expected)
    assert purity(y_true, y_pred) == expected


def test_a_table_too_large_to_be_dense() -> None:
    rng = np.random.default_rng(0)
    y_true = np.arange(60_000) % 20_000
    y_pred = rng.permutation(20_000)[y_true]
    y_pred[:20_000] = 0  # one sample of three of every class
    assert clustering_accuracy(y_true, y_pred) == pytest.approx(40_001 / 60_000)


@pytest.mark.parametrize("function", OF_PAIRS)
@pytest.mark.parametrize(
    ("y_true", "y_pred", "message"),
    [
        ([0, 1, 2], [0, 1], "y_true has 3 labels and y_pred has 2"),
        ([], [], "y_true is empty"),
        ([[0, 1]], [0, 1], r"y_true must be one-dimensional, got shape \(1, 2\)"),
        ([0, 1], [[0, 1]], r"y_pred must be one-dimensional, got shape \(1, 2\)"),
        ([0, 1], 3, r"y_pred must be one-dimensional, got shape \(\)"),
        ([0, np.nan], [0, 1], r"y_true\[1\] is nan"),
        ([0, 1], [0.5, 1], r"y_pred\[0\] is 0.5; labels must be all whole numbers"),
        ([0, 1], [0, np.inf], r"y_pred\[1\] is inf"),
        (["a", np.nan], [0, 1], r"y_true\[1\] is nan"),
        (["a", 3], [0, 1], r"y_true\[1\] is 3; labels must be all whole numbers or"),
        (np.array([1, None]), [0, 1], r"y_true\[1\] is None"),
        (np.array([1, np.nan], dtype=object), [0, 1], r"y_true\[1\] is nan"),
        ([1j, 2], [0, 1], "y_true holds values of type complex128"),
        (np.array([b"a", b"b"]), [0, 1], r"y_true holds values of type \|S1"),
    ],
)
def test_refusals(
    function: Callable[..., Any],
    y_true: Sequence[Any],
    y_pred: Sequence[Any],
    message: str,
) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        function(y_true, y_pred)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("y_pred", [[], [[1, 2]], [np.nan], [1.5]])
def test_counting_clusters_refuses_too(y_pred: Any) -> None:
    with pytest.raises(ValueError, match="y_pred"):
        n_clusters_found(y_pred)


@pytest.mark.parametrize(
    ("y_true", "y_pred", "expected"),
    [
        ([0], [0], 1.0),
        ([0, 0, 0], [1, 1, 1], 1.0),
        ([0, 1, 2], [2, 0, 1], 1.0),
        (range(1000), range(1000), 1.0),
        ([0, 0, 1, 1, 1], [5, 5, 3, 3, 3], 1.0),
        ([0, 0, 0, 0], [0, 0, 1, 1], 0.0),
        ([0, 1, 1, 0], [0, 0, 0, 0], 0.0),
        ([0, 0, 0], [0, 1, 2], 0.0),
    ],
)
def test_edge_cases_are_exact(y_true: Any, y_pred: Any, expected: float) -> None:
    assert ami(y_true, y_pred) == expected


@pytest.mark.parametrize("n_samples", [2, 3, 10, 1001])
def test_single_samples_say_nothing(n_samples: int) -> None:
    # Any split into single samples has the same information, so all is by chance.
    y_true = np.arange(n_samples) // 2
    assert ami(y_true, np.arange(n_samples)) == pytest.approx(0, abs=1e-9)
