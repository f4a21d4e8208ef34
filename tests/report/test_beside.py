"""Two runs beside each other: matched one to one, joined by ids, moved samples told."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sagl import SAGL
from sagl.report.beside import ABSENT, beside, open_beside


@given(st.integers(0, 1000), st.integers(1, 40), st.integers(1, 5), st.integers(1, 5))
def test_every_sample_stays_moves_or_is_not_there(seed, n, C, D):
    rng = np.random.default_rng(seed)
    labels, others = rng.integers(0, C, n), rng.integers(ABSENT, D, n)
    both = beside("b", labels, others, C, [f"c{k}" for k in range(D)], 3)
    assert both.shared + both.only_here == n
    moved = both.moved(labels)
    for row in range(n):
        known = others[row] != ABSENT
        assert moved[row] == (known and both.match.get(labels[row]) != others[row])
    assert both.n_moved == moved.sum()
    assert sum(move.samples for move in both.moves()) <= both.n_moved
    assert all(both.match.get(move.here) != move.there for move in both.moves())
    assert len(set(both.match.values())) == len(both.match)
    # Counterparts have one colour, and no two clusters there the same.
    places = both.places()
    assert len(set(places)) == D
    assert all(places[there] == here for here, there in both.match.items())
    column = both.column()
    said = [column.categories[code] for code in column.values]
    assert said == ["(not there)" if k == ABSENT else f"c{k}" for k in others]


def test_numbers_of_clusters_mean_nothing():
    labels = np.repeat([0, 1, 2], 10)
    both = beside("b", labels, (labels + 1) % 3, 3, ["x", "y", "z"])
    assert both.match == {0: 1, 1: 2, 2: 0}
    assert both.n_moved == 0
    assert both.moves() == []


def test_runs_are_joined_by_id(small_run, tmp_path):
    model = SAGL.load(small_run)
    ids = [f"s{row}" for row in range(240)]
    model.save(tmp_path / "a", ids=ids)
    order = np.random.default_rng(0).permutation(240)[:200]
    # As if another fit had found the same of some samples in another order.
    model.rename({0: "cats"})._model.labels = model.labels_[order]
    model._model.confidence = model.confidence_[order]
    model._model.facts = model._model.leaves = model._model.layers = None
    model._model.ids = None
    model.save(tmp_path / "b", ids=[*(ids[row] for row in order[:-1]), "new"])
    labels = SAGL.load(small_run).labels_
    both = open_beside(tmp_path / "b", tmp_path / "a", ids, labels, 4)
    assert (both.name, both.names[0]) == ("b", "cats")
    assert (both.shared, both.only_here, both.only_there) == (199, 41, 1)
    assert both.n_moved == 0
    np.testing.assert_array_equal(both.labels[order[:-1]], labels[order[:-1]])
    # Two that number their samples are joined only if they have as many.
    numbered = open_beside(small_run, small_run, ids, labels, 4)
    assert (numbered.shared, numbered.n_moved) == (240, 0)
    model.save(tmp_path / "c")
    with pytest.raises(ValueError, match=r"which samples are the same is unknown"):
        open_beside(tmp_path / "c", small_run, [str(i) for i in range(240)], labels, 4)
    model.save(tmp_path / "d", ids=[f"t{i}" for i in range(200)])
    with pytest.raises(ValueError, match=r"no sample of .*like 's"):
        open_beside(tmp_path / "a", tmp_path / "d", ids, labels, 4)
