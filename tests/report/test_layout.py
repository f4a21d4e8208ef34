"""Places of samples: from representations, from the graph, or discs."""

import numpy as np
from scipy.sparse import block_diag

from sagl.report.layout import discs, graph_features, lay_out
from tests.report.pages import random_graph


def separation(points, labels):
    """Distances between centres over those inside clusters."""
    centres = np.stack([points[labels == k].mean(axis=0) for k in np.unique(labels)])
    inside = np.linalg.norm(points - centres[labels], axis=1).mean()
    apart = np.linalg.norm(centres[:, None] - centres[None], axis=2)
    return apart[~np.eye(len(centres), dtype=bool)].min() / inside


def test_discs_are_apart_and_sure_samples_in_the_middle():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2, 3, 4], [400, 100, 100, 10, 1])
    confidence = rng.random(len(labels))
    points = discs(labels, confidence)
    for k in range(5):
        own = points[labels == k]
        centre = own[confidence[labels == k].argmax()]
        radius = np.linalg.norm(own - centre, axis=1)
        # The area is in proportion to the size: so is the square of the radius.
        assert radius.max() <= 1.25 * np.sqrt((labels == k).sum() / 400)
        others = np.linalg.norm(points[labels != k] - centre, axis=1)
        assert radius.max() < others.min()
    assert len(np.unique(points.round(9), axis=0)) == len(points)


def test_the_graph_shows_its_components():
    graph = block_diag([random_graph(60, 8, seed) for seed in range(3)], format="csr")
    labels = np.repeat([0, 1, 2], 60)
    features = graph_features(graph)
    alike = np.abs(features @ features.T)
    apart = labels[:, None] != labels[None]
    # Who shares no neighbour has next to nothing in common.
    assert alike[apart].max() < 0.1 * alike[~apart].max()
    layout = lay_out(labels, np.ones(180), None, graph)
    assert "graph" in layout.words
    assert separation(layout.points, labels) > 1.5


def test_without_anything_there_are_discs():
    labels = np.repeat([0, 1], 50)
    layout = lay_out(labels, np.ones(100), None, None)
    assert layout.points.shape == (100, 2)
    assert "disc" in layout.words


def test_representations_come_first(small_data):
    layout = small_data.layout
    assert "representations" in layout.words
    assert separation(layout.points, small_data.labels) > 2
