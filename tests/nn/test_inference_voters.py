"""Votes of the nearest samples, by an obvious count."""

import pytest
import torch

from sagl.nn import Network
from sagl.nn.inference import Predictor, Voters, anchor_features

WIDTHS, C = (7, 30), 5


def features(n, seed):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(n, width, generator=generator) for width in WIDTHS]


def unit(h):
    return h / h.norm(dim=1, keepdim=True)


@pytest.fixture(scope="module")
def network():
    generator = torch.Generator().manual_seed(0)
    return Network(WIDTHS, C, vote="product", generator=generator).eval()


@pytest.fixture(scope="module")
def anchors(network):
    return anchor_features(network, features(40, seed=1))


@pytest.fixture(scope="module")
def voters():
    rows = [unit(h).half() for h in features(60, seed=3)]
    return Voters(rows, torch.arange(60) % C, [0.75, 0.25], nearest=4, weight=1.5)


def test_votes_are_added_to_what_the_views_say(network, anchors, voters):
    new = features(9, seed=2)
    alone = Predictor(network, anchors).answer(new)
    answer = Predictor(network, anchors, voters=voters).answer(new)
    for one, other in zip(answer.p, alone.p, strict=True):
        assert torch.equal(one, other)
    expected = torch.stack(alone.p).mean(dim=0)
    for i in range(9):
        for share, h, known in zip(voters.shares, new, voters.features, strict=True):
            cosines = known.double() @ unit(h.double())[i]
            for position in cosines.argsort(descending=True)[: voters.nearest]:
                said = voters.labels[position]
                expected[i, said] += voters.weight * share / voters.nearest
    torch.testing.assert_close(answer.q, expected.softmax(dim=1), rtol=0, atol=1e-6)
    assert not torch.allclose(answer.q, alone.q, atol=1e-3)


def test_company_does_not_matter(network, anchors, voters):
    predictor = Predictor(network, anchors, voters=voters)
    new = features(50, seed=2)
    together = predictor.answer(new)
    for rows in ([0], [49, 3], list(range(10, 40)), list(range(49, -1, -1))):
        answer = predictor.answer([h[rows] for h in new])
        assert torch.equal(answer.q, together.q[rows])


def test_equally_near_voters_are_chosen_alike_in_any_company(network, anchors, voters):
    twice = voters._replace(
        features=[x[:3].repeat(20, 1) for x in voters.features], nearest=5
    )
    predictor = Predictor(network, anchors, voters=twice)
    new = features(50, seed=2)
    together = predictor.answer(new)
    for rows in ([7], [49, 3], list(range(49, -1, -1))):
        assert torch.equal(predictor.answer([h[rows] for h in new]).q, together.q[rows])


def test_a_sample_without_direction_gets_an_answer(network, anchors, voters):
    nothing = [torch.zeros(1, width) for width in WIDTHS]
    q = Predictor(network, anchors, voters=voters).answer(nothing).q
    assert torch.isfinite(q).all()


def test_many_voters_are_asked_in_smaller_blocks(network, anchors, voters):
    many = voters._replace(
        features=[x.repeat(500, 1) for x in voters.features],
        labels=voters.labels.repeat(500),
    )
    assert 2 <= Predictor(network, anchors, voters=many).block_rows < 256
