"""What a fitted model says of its clusters and samples."""

import sys

import numpy as np
import pytest

from sagl import SAGL
from tests.conftest import clustered_views


def test_a_row_per_cluster(fitted):
    table = fitted.clusters(3)
    assert [row.number for row in table] == [0, 1, 2, 3]
    assert [row.size for row in table] == np.bincount(fitted.labels_).tolist()
    for row in table:
        members = set(np.flatnonzero(fitted.labels_ == row.number).tolist())
        assert row.name == f"Cluster {row.number}"
        assert len(row.typical) == 3
        assert set(row.typical) | set(row.doubtful) <= members
        assert not set(row.typical) & set(row.doubtful)
        confidence = fitted.confidence_
        assert confidence[row.typical].min() >= confidence[row.doubtful].max()
        assert row.number not in row.nearest
        assert row.confidence == pytest.approx(confidence[sorted(members)].mean())


def test_nearest_clusters_are_those_that_a_sample_might_be_in():
    views, labels = clustered_views(300, 3, seed=1)
    moved = views["wide"].copy(), views["narrow"].copy()
    for array in moved:  # clusters 1 and 2 overlap, 0 is far
        array[labels == 2] += 0.9 * (
            array[labels == 1].mean(axis=0) - array[labels == 2].mean(axis=0)
        )
    model = SAGL(3, random_state=0).fit(list(moved))
    of = {k: np.bincount(model.labels_[labels == k]).argmax() for k in range(3)}
    table = {row.number: row for row in model.clusters()}
    assert table[of[1]].nearest[0] == of[2]
    assert table[of[2]].nearest[0] == of[1]


def test_typical_samples_have_ids_where_the_run_has_them(fitted, tmp_path):
    ids = [f"s{i}.jpg" for i in range(240)]
    fitted.save(tmp_path / "run", ids=ids)
    loaded = SAGL.load(tmp_path / "run")
    assert loaded.ids_ == ids
    assert loaded.typical(2, 4) == [ids[row] for row in fitted.typical(2, 4)]
    loaded.save(tmp_path / "again")
    table = (tmp_path / "again" / "labels.csv").read_bytes()
    assert table == (tmp_path / "run" / "labels.csv").read_bytes()


def test_everything_comes_back_from_disk(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    loaded = SAGL.load(tmp_path / "run")
    for mine, theirs in zip(fitted.facts_, loaded.facts_, strict=True):
        assert np.array_equal(mine, theirs)
    assert loaded.clusters() == fitted.clusters()


def test_a_table_of_samples(fitted, monkeypatch):
    ids = [f"s{i}" for i in range(240)]
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setattr("sagl.clusters.table.find_spec", lambda name: None)
    columns = fitted.to_frame(ids)
    assert columns["sample"] == ids
    assert np.array_equal(columns["cluster"], fitted.labels_)
    assert np.array_equal(columns["outlier"], fitted.outliers())
    with pytest.raises(ValueError, match="3 ids for 240 samples"):
        fitted.to_frame(["a", "b", "c"])


def test_the_same_as_a_data_frame(fitted):
    pandas = pytest.importorskip("pandas")
    frame = fitted.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame["confidence"].tolist() == fitted.confidence_.tolist()


def test_old_runs_say_that_they_do_not_know(fitted):
    from dataclasses import replace

    old = fitted._other(replace(fitted._model, facts=None))
    assert [row.nearest for row in old.clusters()] == [[]] * 4
    with pytest.raises(ValueError, match="give the views"):
        old.outliers()


def test_there_is_no_such_cluster(fitted):
    with pytest.raises(ValueError, match="they are 0 to 3"):
        fitted.typical(4)
