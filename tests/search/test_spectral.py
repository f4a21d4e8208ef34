"""Eigenvectors by every way they are computed, against a full decomposition."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import ArpackError

import sagl.search.spectral as spectral
from sagl.evaluation import clustering_accuracy
from sagl.search.spectral import cluster_directions, leading_eigenvectors

COUNT = 4


def blocks(n):
    """Four groups that are joined weakly, so that the leading values are apart."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) % COUNT
    strength = np.where(labels[:, None] == labels, 1.0, 0.05)
    strength[labels == 0] *= 0.9
    noise = rng.random((n, n))
    affinity = strength * (noise + noise.T)
    return (affinity + affinity.T) / 2, labels


def normalised(affinity):
    degrees = affinity.sum(axis=1)
    return affinity / np.sqrt(degrees[:, None] * degrees)


def subspace(vectors):
    return vectors @ vectors.T


@pytest.mark.parametrize("n", [40, 600])  # a full decomposition, and ARPACK
@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
def test_leading_eigenvectors_come_first(n, form):
    affinity, _ = blocks(n)
    matrix = normalised(affinity)
    values = np.linalg.eigvalsh(matrix)[::-1]
    vectors = leading_eigenvectors(form(affinity), COUNT)
    assert vectors.shape == (n, COUNT)
    for column, value in zip(vectors.T, values, strict=False):
        np.testing.assert_allclose(matrix @ column, value * column, atol=1e-7)


def test_when_arpack_fails_another_way_is_taken(monkeypatch):
    affinity, _ = blocks(600)
    expected = leading_eigenvectors(affinity, COUNT)

    def fails(*args, **kwargs):
        raise ArpackError(3)

    monkeypatch.setattr(spectral, "eigsh", fails)
    found = leading_eigenvectors(csr_matrix(affinity), COUNT)
    np.testing.assert_allclose(subspace(found), subspace(expected), atol=1e-3)


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
def test_many_eigenvectors_span_nearly_the_leading_subspace(form):
    """120 groups: an exact solver is slow, and k-means needs no more than this."""
    rng = np.random.default_rng(0)
    labels = np.arange(1200) % 120
    affinity = (labels[:, None] == labels) + 0.02 * rng.random((1200, 1200))
    affinity = (affinity + affinity.T) / 2
    found = leading_eigenvectors(form(affinity), 120)
    expected = np.linalg.eigh(normalised(affinity))[1][:, -120:]
    assert found.shape == (1200, 120)
    np.testing.assert_allclose(subspace(found), subspace(expected), atol=1e-3)
    again = leading_eigenvectors(form(affinity), 120)
    np.testing.assert_array_equal(found, again)


def test_directions_are_clustered_and_lengths_are_not():
    affinity, labels = blocks(80)
    rows = leading_eigenvectors(affinity, COUNT)
    lengths = np.random.default_rng(1).uniform(0.1, 9, size=(80, 1))
    found = cluster_directions(rows * lengths, COUNT, seed=0, starts=3)
    assert clustering_accuracy(labels, found) == 1.0
