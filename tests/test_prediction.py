"""Networks asked about views: anchors, blocks, clusters, which network is best."""

import copy
from functools import partial

import numpy as np
import pytest
import torch

from sagl import SAGL
from sagl.nn.cells import attention_by_cells
from sagl.nn.inference import Predictor
from sagl.nn.network import Linear
from sagl.prediction import anchors_from, answers, choose, most_likely
from sagl.selection import label_free_score
from sagl.training.distributed import spread
from tests.conftest import clustered_views
from tests.several import in_processes
from tests.training.test_distributed import working_as

CPU = torch.device("cpu")


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


def test_the_trained_network_is_chosen_and_left_as_it_is(views):
    models = [
        SAGL(4, steps=steps, learning_rate=0.01, refine=False, random_state=0)
        for steps in (1, 200, 2)
    ]
    networks = [model.fit(views).network_ for model in models]
    settings = models[0].settings_
    before = copy.deepcopy(networks[1].state_dict())
    choice = choose(networks, settings, views, CPU)
    assert choice.best == 1
    for name, value in networks[1].state_dict().items():
        assert torch.equal(value, before[name]), name
    anchors = anchors_from(views, networks[1], settings.n_anchors, settings.seed)
    labels, _ = most_likely(Predictor(networks[1], anchors), views)
    assert choice.score.total == pytest.approx(label_free_score(views, labels).total)
    assert len(choice.rows) == len(choice.stability) == len(views)


def test_restarts_are_chosen_by_the_score():
    views, _ = clustered_views(200, spread=2.0)
    models = [
        SAGL(4, steps=5, refine=False, n_restarts=k, random_state=0).fit(views)
        for k in (2, 3, 4)
    ]
    totals = [model.score_.total for model in models]
    assert totals == sorted(totals)


def check_shared_graph(ranks):
    """By cells, each process looking at some blocks of samples."""
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(1200, 6, generator=generator)
    alone = attention_by_cells(Linear(z[:, :1], 4 * z, z, None), 1.5, False)
    asked = []

    def counted(tasks):
        return spread([partial(noted, i, task) for i, task in enumerate(tasks)])

    def noted(i, task):
        asked.append(i)
        return task()

    with working_as(ranks):
        linear = Linear(z[:, :1], 4 * z, z, None)
        shared = attention_by_cells(linear, 1.5, False, spread=counted)
    for one, other in zip(alone.weights[:3], shared.weights[:3], strict=True):
        assert torch.equal(one, other)
    assert torch.equal(alone.certified, shared.certified)
    assert asked == list(range(ranks.index, 3, ranks.count))


def test_processes_share_the_graph_of_many_samples():
    in_processes(3, check_shared_graph)
