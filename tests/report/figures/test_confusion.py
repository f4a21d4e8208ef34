"""Classes against matched clusters."""

import numpy as np
import pytest

from sagl.evaluation import balanced_accuracy, match_clusters
from sagl.report.figures import draw_confusion
from sagl.report.saving import words
from tests.report.figures.looked_at import check


def noisy(n_classes, n_clusters, n=4000, seed=0):
    rng = np.random.default_rng(seed)
    y_true = rng.integers(0, n_classes, n)
    renamed = rng.permutation(max(n_classes, n_clusters))
    y_pred = np.where(
        rng.random(n) < 0.7, renamed[y_true], rng.integers(0, n_clusters, n)
    )
    return y_true, y_pred % n_clusters


@pytest.mark.parametrize(
    ("n_classes", "n_clusters"), [(2, 2), (10, 10), (10, 14), (14, 10), (37, 37)]
)
def test_cells_are_shares_of_classes(n_classes, n_clusters):
    y_true, y_pred = noisy(n_classes, n_clusters)
    ax = draw_confusion(y_true, y_pred)
    shares = np.asarray(ax.images[0].get_array())
    classes = [int(text.get_text()) for text in ax.get_yticklabels()]
    clusters = [int(text.get_text()) for text in ax.get_xticklabels()]
    for i, j in np.ndindex(shares.shape):
        of_class = y_true == classes[i]
        assert shares[i, j] == pytest.approx(np.mean(y_pred[of_class] == clusters[j]))
    matching = match_clusters(y_true, y_pred)
    for klass, cluster in zip(classes, clusters, strict=False):
        assert matching[cluster] == klass  # on the diagonal
    mean_recall = shares.diagonal().sum() / n_classes
    assert mean_recall == pytest.approx(balanced_accuracy(y_true, y_pred))
    assert f"{mean_recall:.1%}" in words(ax).alt
    check(ax)


@pytest.mark.parametrize("n_classes", [102, 397])
def test_many_classes_stay_readable(n_classes):
    y_true, y_pred = noisy(n_classes, n_classes, n=20_000)
    ax = draw_confusion(y_true, y_pred)
    assert ax.images[0].get_array().shape == (n_classes, n_classes)
    assert 10 < len(ax.get_yticklabels()) <= 40
    check(ax)


def test_names_of_classes(tmp_path):
    names = np.array([f"a breed of dog {i}" for i in range(37)])
    y_true, y_pred = noisy(37, 37)
    ax = draw_confusion(names[y_true], y_pred)
    assert ax.get_yticklabels()[0].get_text() == "a breed of dog 0"
    check(ax, tmp_path)


def test_the_largest_confusion_is_named():
    y_true = ["cat"] * 10 + ["dog"] * 10
    y_pred = [0] * 10 + [1] * 6 + [0] * 4
    caption = words(draw_confusion(y_true, y_pred)).caption
    assert caption.endswith("40.0% of dog is in the cluster of cat.")


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="y_true has 2 labels and y_pred has 3"):
        draw_confusion([0, 1], [0, 1, 1])
    many = np.arange(5000)
    with pytest.raises(
        ValueError, match="5,000 classes by 5,000 clusters are too many"
    ):
        draw_confusion(many, many)
