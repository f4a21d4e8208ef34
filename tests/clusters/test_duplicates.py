"""Planted copies are found, grouped, and nothing else is."""

import numpy as np
import pytest
import torch

import sagl.clusters.duplicates as duplicates
from sagl import SAGL, Views
from sagl.clusters.duplicates import duplicate_groups
from sagl.training.feed import Feed
from tests.conftest import QUICK, clustered_views


def with_copies(views, rows, noise, seed=0):
    rng = np.random.default_rng(seed)
    copied = {}
    for name, h in views.items():
        more = h[rows] + noise * h.std(axis=0) * rng.normal(size=h[rows].shape)
        copied[name] = np.concatenate([h, more]).astype(np.float32)
    return Views(copied)


@pytest.mark.parametrize("noise", [0, 0.02])
def test_copies_are_grouped_in_order(fitted, views, noise):
    copied = with_copies(views, [7, 3, 7, 100], noise)
    groups = fitted.duplicates(copied)
    assert groups == [[3, 241], [7, 240, 242], [100, 243]]


def test_many_copies_of_one_sample(fitted, views):
    """More than there are neighbours to compare with."""
    copied = with_copies(views, [5] * 30, 0.005)
    assert fitted.duplicates(copied) == [[5, *range(240, 270)]]


def test_no_copies_no_groups(fitted, views):
    assert fitted.duplicates() == []
    assert (fitted.facts_.duplicate == -1).all()
    assert fitted.duplicates(views[:3]) == []


def test_copies_in_the_fit_have_their_ids(views, tmp_path):
    copied = with_copies(views, [11], 0)
    SAGL(4, search=QUICK, random_state=0).fit(copied).save(
        tmp_path / "run", ids=[f"s{i}" for i in range(241)]
    )
    loaded = SAGL.load(tmp_path / "run")
    assert loaded.duplicates() == [["s11", "s240"]]


def test_of_many_samples_those_of_one_cluster_are_compared(fitted, views, monkeypatch):
    copied = with_copies(views, [7, 3], 0)
    labels = fitted.predict(copied)
    whole = duplicate_groups(fitted.network_, copied, labels)
    monkeypatch.setattr(duplicates, "_MOST_TOGETHER", 100)
    assert np.array_equal(duplicate_groups(fitted.network_, copied, labels), whole)
    labels[241] = (labels[241] + 1) % 4  # a copy in another cluster is not seen
    groups = duplicate_groups(fitted.network_, copied, labels)
    assert groups[[3, 241]].tolist() == [-1, -1]


def test_the_definition_slowly(fitted):
    """Every pair by hand."""
    views = clustered_views(60, seed=4, spread=1.0)[0]
    views = with_copies(views, range(0, 60, 5), 0.15)
    rows = []
    for view, (_, h) in zip(fitted.network_.view_networks, views.items(), strict=True):
        x = view.encoder.standardize(torch.from_numpy(h))
        rows.append((x / x.norm(dim=1, keepdim=True)).detach().numpy())
    x = np.concatenate(rows, axis=1).astype(np.float64)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    apart = np.linalg.norm(x[:, None] - x[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    last = np.sort(apart, axis=1)[:, 9]
    last = np.maximum(last, np.median(last) / 3)
    near = apart <= 0.3 * np.minimum(last[:, None], last[None])
    together = duplicate_groups(fitted.network_, views, np.zeros(72, np.int64))
    assert near.any()
    for i, j in np.argwhere(near):
        assert together[i] == together[j] >= 0
    assert ((together >= 0) == near.any(axis=1)).all()


def test_of_a_large_cluster_those_of_one_cell_are_compared(monkeypatch):
    """Nearly all copies are found by a fraction of the comparisons."""
    views, _ = clustered_views(900, 3, seed=5)
    copied = with_copies(views, list(range(0, 900, 9)), 0.002)
    labels = np.zeros(len(copied), np.int64)
    network = SAGL(3, search=QUICK, random_state=0).fit(copied).network_
    whole = duplicate_groups(network, copied, labels)
    assert whole.max() == 99
    monkeypatch.setattr(duplicates, "_MOST_TOGETHER", 100)
    monkeypatch.setattr(duplicates, "_MOST_OF_ONE", 300)
    monkeypatch.setattr(duplicates, "_PER_CELL", 100)
    parts = duplicates._cells(
        Feed(copied, network, torch.device("cpu")), np.arange(len(copied))
    )
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(copied)))
    assert max(map(len, parts)) < 500
    groups = duplicate_groups(network, copied, labels)
    found = [
        groups[row] >= 0 and groups[row] == groups[900 + row // 9]
        for row in range(0, 900, 9)
    ]
    assert np.mean(found) >= 0.95
