"""Predictions on disk: what was predicted, whole, or nothing."""

import csv

import numpy as np
import pytest

from sagl.features.predictions import (
    check_prediction_path,
    read_prediction_table,
    write_predictions,
)

FOUND = np.array([1, 0]), np.array([0.7, 0.5])


def test_csv_holds_cluster_and_confidence_exactly(tmp_path):
    write_predictions(tmp_path / "p.csv", *FOUND)
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert lines == ["sample,cluster,confidence", "0,1,0.7", "1,0,0.5"]


def test_npy_holds_the_clusters(tmp_path):
    write_predictions(tmp_path / "p.npy", *FOUND)
    np.testing.assert_array_equal(np.load(tmp_path / "p.npy"), [1, 0])
    assert [path.name for path in tmp_path.iterdir()] == ["p.npy"]


@pytest.mark.parametrize(
    ("name", "message"),
    [("p.txt", ".csv or .npy"), ("no/p.csv", "no directory"), ("d.csv", "directory")],
)
def test_places_that_cannot_be_written_are_refused(tmp_path, name, message):
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(ValueError, match=message):
        check_prediction_path(tmp_path / name)


def test_samples_may_have_names(tmp_path):
    ids = ['a "b", c#', "ünï\tcode"]
    write_predictions(tmp_path / "p.csv", *FOUND, ids)
    with (tmp_path / "p.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["sample"] for row in rows] == ids
    assert [row["cluster"] for row in rows] == ["1", "0"]
    clusters, confidence = read_prediction_table(tmp_path / "p.csv")
    assert clusters.tolist() == [1, 0]
    assert confidence.tolist() == [0.7, 0.5]
    with pytest.raises(ValueError, match="1 ids for 2 samples"):
        write_predictions(tmp_path / "q.csv", *FOUND, ids[:1])
    assert not (tmp_path / "q.csv").exists()
