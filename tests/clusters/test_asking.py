"""Whom to ask about: spread over what is doubtful, and never twice."""

import numpy as np
import pytest
import torch

from sagl import SAGL
from sagl.clusters.asking import covering
from tests.conftest import clustered_views


@pytest.fixture(scope="module")
def fitted():
    """Six classes in five clusters: one cluster has two."""
    views, labels = clustered_views(300, n_clusters=6, spread=1.0, seed=4)
    return SAGL(5, random_state=0).fit(views), views, labels


def test_it_is_the_sum_written_out():
    rng = np.random.default_rng(0)
    near = rng.random((12, 12))
    near = np.maximum(near, near.T)
    weight, cover = rng.random(12), 0.3 * rng.random(12)
    free = np.ones(12, dtype=bool)
    free[[2, 5]] = False
    tensors = (torch.from_numpy(each) for each in (near, weight, cover, free))
    found = covering(*tensors, 4)
    taken: list[int] = []
    for _ in range(4):
        best, most = -1, -np.inf
        for i in range(12):
            if not free[i] or i in taken:
                continue
            gain = 0.0
            for j in range(12):
                known = max([cover[j], *(near[k, j] for k in taken)])
                gain += weight[j] * max(0.0, near[i, j] - known)
            if gain > most:
                best, most = i, gain
        taken.append(best)
    assert found == taken


def test_a_few_questions_reach_every_class(fitted):
    model, views, labels = fitted
    asked = model.worth_asking(views, 12)
    assert len(set(asked)) == 12
    assert set(labels[asked]) == set(range(6))
    by_doubt = np.argsort(model.confidence_, kind="stable")[:12]
    assert len(set(labels[by_doubt])) < 6  # what it is better than


def test_more_questions_go_on_where_fewer_ended(fitted):
    model, views, _ = fitted
    asked = model.worth_asking(views, 9)
    assert model.worth_asking(views, 4) == asked[:4]
    told = model.refit(views, {"wrong": asked[:4]})
    assert not set(told.worth_asking(views, 9)) & set(asked[:4])
    assert len(model.worth_asking(views, 10_000)) == 300


def test_samples_are_called_as_in_the_run(fitted, tmp_path):
    model, views, _ = fitted
    model.save(tmp_path / "run", ids=[f"s{row}" for row in range(300)])
    again = SAGL.load(tmp_path / "run").worth_asking(views, 3)
    assert again == [f"s{row}" for row in model.worth_asking(views, 3)]


def test_samples_that_miss_a_view_can_be_asked_about(fitted):
    _, views, _ = fitted
    arrays = {name: np.array(h, dtype=np.float32) for name, h in views.items()}
    first, second = list(arrays)[:2]
    arrays[first][::3] = np.nan
    arrays[second][1::3] = np.nan
    model = SAGL(5, random_state=0).fit(arrays)
    assert len(set(model.worth_asking(arrays, 8))) == 8


def test_a_nonsensical_number_is_refused(fitted):
    model, views, _ = fitted
    with pytest.raises(ValueError, match="n must be a whole number of at least 1"):
        model.worth_asking(views, 0)
