"""The settings of the search."""

from __future__ import annotations

from dataclasses import asdict, fields

import pytest

from sagl.search.config import SearchConfig


@pytest.mark.parametrize(
    ("samples", "clusters", "expected"),
    [(20, 10, 5), (300, 10, 10), (3000, 20, 50), (60_000, 10, 50)],
)
def test_neighbours_are_a_third_of_a_cluster(samples, clusters, expected):
    assert SearchConfig().neighbours(samples, clusters) == expected


def test_neighbours_are_the_share_of_a_cluster_that_is_asked_for():
    for share in (0.1, 0.25, 0.5):
        found = SearchConfig(neighbour_share=share).neighbours(800, 10)
        assert found == pytest.approx(share * 80)


def test_many_clusters_are_looked_for_among_more_samples():
    config = SearchConfig(rows=100, rows_per_cluster=20)
    assert (config.rows_of(3), config.rows_of(50)) == (100, 1000)


def test_what_was_saved_comes_back():
    config = SearchConfig(starts=3, vote=1.0)
    assert SearchConfig.of(asdict(config)) == config
    assert SearchConfig.of(None) == SearchConfig()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"start": 3}, "search has no 'start'; it has rows, "),
        ({"starts": 0}, "starts must be a whole number of at least 1; got 0"),
        ({"hot": -1.0}, "hot must be at least 0 and finite; got -1.0"),
    ],
)
def test_what_cannot_be_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        SearchConfig.of(given)


def test_every_number_is_documented():
    text = SearchConfig.__doc__
    assert [f.name for f in fields(SearchConfig) if f.name not in text] == []
