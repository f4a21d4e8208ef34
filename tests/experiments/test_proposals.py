"""Grids, ranges and the sampler."""

import sys

import pytest

from sagl.experiments.proposals import Range, Sampler, grid_points

WHOLE = frozenset({"batch_size"})


def space():
    ranges = {"gamma": Range(1, 50), "dropout": Range(0, 0.5, log=False)}
    ranges["batch_size"] = Range(10, 100)
    return {"gate": ["none", "shrink"]}, ranges


def asked(sampler, rounds):
    found = []
    for _ in range(rounds):
        points = sampler.ask(4)
        found += points
        sampler.tell([-abs(point["gamma"] - 7) for point in points])
    return found


def test_grid():
    points = grid_points({"gamma": [1, 2, 3], "gate": ["none", None]})
    assert len(points) == 6
    assert points[1] == {"gamma": 1, "gate": None}
    with pytest.raises(ValueError, match="gamma: 1 is given twice"):
        grid_points({"gamma": [1, 1]})


def test_the_same_results_lead_to_the_same_proposals():
    pytest.importorskip("optuna")
    first = asked(Sampler(*space(), whole=WHOLE), 5)
    assert asked(Sampler(*space(), whole=WHOLE), 5) == first
    assert asked(Sampler(*space(), whole=WHOLE, seed=1), 5) != first
    for point in first:
        assert 1 <= point["gamma"] <= 50
        assert 0 <= point["dropout"] <= 0.5
        assert isinstance(point["batch_size"], int)
        assert point["gate"] in ("none", "shrink")


def test_it_learns():
    pytest.importorskip("optuna")
    found = asked(Sampler(*space(), whole=WHOLE), 12)
    early = [abs(point["gamma"] - 7) for point in found[:12]]
    late = [abs(point["gamma"] - 7) for point in found[-12:]]
    assert sum(late) < sum(early) / 2


def test_a_failure_is_no_end():
    pytest.importorskip("optuna")
    sampler = Sampler({}, {"gamma": Range(1, 50)}, whole=WHOLE)
    sampler.ask(2)
    sampler.tell([None, 1.0])
    assert len(sampler.ask(3)) == 3


def test_without_optuna(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ValueError, match=r'pip install "sagl\[sweep\]"'):
        Sampler({}, {"gamma": Range(1, 50)}, whole=WHOLE)


@pytest.mark.parametrize(
    ("ends", "line"),
    [
        ((5, 1), "5..1 is no range"),
        ((1, 1), "1..1 is no range"),
        ((0, 1), "0..1 cannot be logarithmic; start above 0"),
        ((1, float("inf")), "1..inf is no range"),
    ],
)
def test_ranges_that_are_none(ends, line):
    with pytest.raises(ValueError, match=line):
        Range(*ends)


def test_whole_numbers():
    pytest.importorskip("optuna")
    with pytest.raises(ValueError, match="batch_size is a whole number"):
        Sampler({}, {"batch_size": Range(10.5, 20)}, whole=WHOLE)
