"""The choice among trained networks."""

import copy

import pytest
import torch

from sagl import SAGL
from sagl.choice import choose
from sagl.nn.inference import Predictor
from sagl.prediction import anchors_from, most_likely
from sagl.selection import label_free_score
from tests.conftest import clustered_views

CPU = torch.device("cpu")


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
