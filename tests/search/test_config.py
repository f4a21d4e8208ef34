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


@pytest.mark.parametrize(
    ("samples", "clusters", "expected"),
    [
        (14_999, 50, 0),  # the search has looked at a third of them
        (15_000, 50, 15_000),
        (1_000_000, 50, 20_000),
        (1_000_000, 1000, 80_000),
        (59_999, 1000, 0),
    ],
)
def test_clusters_are_annealed_again_among_many_more(samples, clusters, expected):
    assert SearchConfig().wide_rows_of(samples, clusters) == expected


def test_moves_are_fewer_where_each_is_dear():
    config = SearchConfig(proposals=400)
    assert config.proposals_of(5_000, 200) == 400
    assert config.proposals_of(8_000, 400) == 125
    assert config.proposals_of(10**9, 10**6) == 1


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
