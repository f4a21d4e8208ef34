"""Networks asked about views: anchors, blocks, the most likely cluster."""

import numpy as np
import torch

from sagl import SAGL
from sagl.nn.inference import Predictor
from sagl.prediction import anchors_from, answers, most_likely


def trained(views):
    return SAGL(4, steps=20, refine=False, random_state=0).fit(views).network_


def test_anchors_are_drawn_by_the_seed_alone(views):
    network = trained(views)
    first, again, other = (anchors_from(views, network, 50, seed) for seed in (3, 3, 4))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0], other[0])
    assert [len(z) for z in first] == [50, 50]


def test_no_more_anchors_than_samples(views):
    drawn = anchors_from(views, trained(views), 10**6, 0)
    assert [len(z) for z in drawn] == [len(views)] * 2


def test_the_most_likely_cluster_is_that_of_the_probabilities(views):
    network = trained(views)
    predictor = Predictor(network, anchors_from(views, network, 100, 0))
    predictor.block_rows = 7  # several blocks, the last one not full
    q = np.concatenate([answer.q.numpy() for answer in answers(predictor, views)])
    assert q.shape == (len(views), 4)
    np.testing.assert_allclose(q.sum(axis=1), 1, atol=1e-9)
    labels, confidence = most_likely(predictor, views)
    np.testing.assert_array_equal(labels, q.argmax(axis=1))
    np.testing.assert_array_equal(confidence, q.max(axis=1))
