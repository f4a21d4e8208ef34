"""The choice among trained networks, and the search that goes on from them."""

import copy

import pytest
import torch

from sagl import SAGL
from sagl.choice import choose
from sagl.evaluation import clustering_accuracy
from sagl.nn.inference import Predictor
from sagl.partition.space import Space, neighbours_among
from sagl.partition.vote import elect
from sagl.prediction import anchors_from, most_likely
from sagl.selection import label_free_score
from tests.partition.conftest import UNEVEN, blobs

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def trained(views):
    """Settings, and networks after no training to speak of and after enough."""
    models = [
        SAGL(4, steps=steps, learning_rate=0.01, refine=False, random_state=0)
        for steps in (1, 200, 2)
    ]
    networks = [model.fit(views).network_ for model in models]
    return models[0].settings_, networks


def labels_of(network, settings, views):
    anchors = anchors_from(views, network, settings.n_anchors, settings.seed)
    return most_likely(Predictor(network, anchors), views)[0]


def test_the_trained_network_is_chosen_and_left_as_it_is(views, trained):
    settings, networks = trained
    before = copy.deepcopy(networks[1].state_dict())
    choice = choose(networks, settings, views, CPU, progress=False)
    assert choice.best == 1
    assert choice.refined is None
    for name, value in networks[1].state_dict().items():
        assert torch.equal(value, before[name]), name
    found = label_free_score(views, labels_of(networks[1], settings, views))
    assert choice.score.total == pytest.approx(found.total)


def test_a_search_makes_the_network_predict_what_it_finds(views, labels, trained):
    settings = SAGL(4, random_state=0).resolved(len(views))
    networks = [copy.deepcopy(trained[1][0])]
    before = clustering_accuracy(labels, labels_of(networks[0], settings, views))
    choice = choose(networks, settings, views, CPU, progress=False)
    after = clustering_accuracy(labels, labels_of(networks[0], settings, views))
    assert before < 0.9 < 0.97 < after
    assert choice.refined is not None
    assert sum(choice.refined.view_weights) == pytest.approx(1)
    assert choice.refined.cluster_sizes == "even"
    assert len(choice.rows) == len(choice.stability) == len(views)


@pytest.fixture(scope="module")
def voted():
    """Twelve clusters that overlap, and a model in whose predictions samples vote."""
    views, _ = blobs((20,) * 12, spread=3.0)
    return views, SAGL(12, steps=1, random_state=0).fit(views)


def test_the_samples_of_the_search_vote_and_confidence_stays_calibrated(voted):
    views, model = voted
    assert len(model.voters_.labels) == len(views)
    assert sum(model.voters_.shares) == pytest.approx(1)
    # A training sample is its own nearest neighbour, so it is a little surer than the
    # samples left out, by which confidence was set.
    stability = model.doubt_.agreement[0]  # of all samples
    assert 0.5 < stability < 0.95
    assert model.confidence_.mean() == pytest.approx(stability, abs=0.03)


def test_votes_keep_their_weight_beside_a_sharpened_network(voted):
    views, model = voted
    features = [x.float() for x in model.voters_.features]
    space = Space(features, neighbours_among(240, 12)).weighted(model.view_weights_)
    relative = elect(space, model.voters_.labels, 12).voters.weight
    p = model.transform(views).reshape(240, 2, 12).mean(axis=1)
    assert p.std() > 2  # sharpened
    # Features were rounded: a few samples may be judged otherwise.
    assert model.voters_.weight == pytest.approx(relative * p.std(), rel=0.2)


@pytest.mark.parametrize(
    ("wanted", "found"), [("auto", "free"), ("even", "even"), ("free", "free")]
)
def test_sizes_are_let_go_where_that_is_clear_or_wanted(wanted, found):
    views, truth = blobs(UNEVEN)
    quick = {"steps": 1, "random_state": 0}
    model = SAGL(5, refine=False, **quick).fit(views)
    settings = SAGL(5, cluster_sizes=wanted, **quick).resolved(len(views))
    choice = choose([model.network_], settings, views, CPU, progress=False)
    assert choice.refined.cluster_sizes == found
    accuracy = clustering_accuracy(truth, labels_of(model.network_, settings, views))
    assert accuracy > 0.95 if found == "free" else accuracy < 0.8
