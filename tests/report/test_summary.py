"""Warnings: none about a good run, and each about its own fault."""

from dataclasses import replace

import numpy as np
import pytest

from sagl import SAGL
from sagl.report.inputs import Inputs
from sagl.report.run_data import collect
from sagl.report.summary import (
    check_batches,
    check_clusters,
    check_sorted,
    check_views,
    concerns,
    found,
    headline,
)
from sagl.views import Views
from tests.conftest import clustered_views


@pytest.fixture
def settled(small_data):
    """The run as if its training had ended with no sample moving."""
    model = SAGL.load(small_data.directory)
    model.history_ = [model.history_[-1] | {"changed": 0.0}]
    return replace(small_data, model=model)


def test_a_good_run_has_none(settled):
    assert concerns(settled) == []


def test_what_was_found_is_one_sentence(small_data, altered):
    sentence = "240 samples in 4 clusters, seen through 2 views: wide and narrow."
    assert found(small_data) == sentence
    alone = altered(labels=np.zeros(240, dtype=int))
    assert found(alone).startswith("240 samples in 1 cluster, seen")


def test_every_number_is_explained(small_data):
    numbers = headline(small_data)
    assert len({number.label for number in numbers}) == len(numbers) >= 8
    assert all(len(number.meaning.split()) >= 4 for number in numbers)


def test_empty_clusters(altered, settled):
    assert not list(check_clusters(settled))
    data = altered(model=settled.model, labels=np.array([0, 1, 3] * 80))
    [concern] = check_clusters(data)
    assert concern.title == "1 of 4 clusters are empty"
    assert "cluster 2." in concern.text
    assert "gamma" in concern.text


def test_collapse(altered, settled):
    labels = np.zeros(240, dtype=int)
    labels[:30] = np.arange(30) % 3 + 1
    [concern] = check_clusters(altered(model=settled.model, labels=labels))
    assert "Cluster 0 holds 87.5%" in concern.text
    even = altered(model=settled.model, labels=np.arange(240) % 4)
    assert not list(check_clusters(even))


def test_unfinished_training(altered, small_data):
    model = SAGL.load(small_data.directory)
    for changed, refine, expected in (
        (0.3, False, True),
        (0.001, False, False),
        (0.3, True, False),  # clusters of a search do not move while a graph learns
    ):
        model.settings_ = replace(model.settings_, refine=refine)
        model.history_ = [{"changed": changed}]
        concerns = list(check_clusters(replace(small_data, model=model)))
        assert bool(concerns) == expected


def test_a_run_without_history_has_nothing_to_say_about_it(small_data):
    model = SAGL.load(small_data.directory)
    model.history_ = []
    assert not list(check_clusters(replace(small_data, model=model)))


def test_doubt(altered, settled):
    doubtful = altered(model=settled.model, confidence=np.full(240, 0.3))
    [concern] = check_clusters(doubtful)
    assert "mean confidence is 0.30" in concern.text
    sure = altered(model=settled.model, confidence=np.full(240, 0.9))
    assert not list(check_clusters(sure))


def test_views_that_disagree(altered):
    [concern] = check_views(altered(view_agreement=0.25))
    assert "25.0%" in concern.text
    assert not list(check_views(altered(view_agreement=None)))


def test_views_that_repeat_each_other(altered, small_data):
    views, _ = clustered_views()
    twice = Views({"wide": views["wide"], "narrow": views["wide"][:, ::-1] * 2})
    [concern] = check_views(altered(inputs=replace(small_data.inputs, views=twice)))
    assert "wide and narrow repeat each other" in concern.text
    rng = np.random.default_rng(0)
    apart = Views({"a": rng.normal(size=(240, 5)), "b": rng.normal(size=(240, 5))})
    [concern] = check_views(altered(inputs=replace(small_data.inputs, views=apart)))
    assert "little in common" in concern.title


def test_sorted_samples(altered):
    in_order = np.repeat([0, 1, 2, 3], 60)
    [concern] = check_sorted(altered(labels=in_order))
    assert "98.7%" in concern.text
    mixed = np.random.default_rng(0).permutation(in_order)
    assert not list(check_sorted(altered(labels=mixed)))


def test_order_dependence_of_batches(tmp_path):
    # Noisy samples, sorted by class: batch mates of the own class pull them along.
    views, labels = clustered_views(800, spread=2.0)
    ids = [str(row) for row in range(800)]
    by_class = np.argsort(labels, kind="stable")
    mixed = np.random.default_rng(1).permutation(800)
    concerns = []
    for name, order in (("sorted", by_class), ("mixed", mixed)):
        model = SAGL(4, recipe="paper", steps=150, random_state=0).fit(views[order])
        model.save(tmp_path / name)
        data = collect(tmp_path / name, Inputs(ids, views[order]))
        concerns.append(list(check_batches(data)))
    assert "change cluster when their order is shuffled" in concerns[0][0].text
    assert concerns[1] == []
