"""Directories to compare on: what is found in them and what is refused."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from sagl.features.split import Part, Source, find_source, read_views
from sagl.features.store import write_view
from sagl.schema import check


@pytest.fixture
def directory(tmp_path):
    for part, n in (("train", 5), ("test", 3)):
        (tmp_path / "set" / part).mkdir(parents=True)
        for name, width in (("clip", 4), ("dino", 2)):
            np.save(tmp_path / "set" / part / f"{name}.npy", np.ones((n, width)))
        np.save(tmp_path / "set" / part / "labels.npy", np.arange(n) % 2)
    (tmp_path / "set" / "train" / "notes.txt").write_text("not a view")
    return tmp_path / "set"


def test_finds_views_and_labels(directory):
    source = find_source(directory)
    assert source.name == "set"
    views, labels = source.train.read()
    assert views.names == ("clip", "dino")
    assert len(views) == 5
    assert labels.tolist() == [0, 1, 0, 1, 0]
    assert source.scored is source.test
    assert len(source.scored.read()[0]) == 3


def test_views_can_be_chosen_and_ordered(directory):
    source = find_source(directory, ["dino", "clip"])
    assert source.train.read()[0].names == ("dino", "clip")
    assert source.test.read()[0].names == ("dino", "clip")
    with pytest.raises(ValueError, match=r"train: there is no view 'x', only clip"):
        find_source(directory, ["x"])


def test_without_a_test_part_the_fitted_samples_are_scored(directory):
    for file in (directory / "test").iterdir():
        file.unlink()
    (directory / "test").rmdir()
    source = find_source(directory)
    assert source.test is None
    assert source.scored is source.train


def test_survives_json(directory):
    source = find_source(directory)
    assert check(Source, json.loads(json.dumps(asdict(source)))) == source


def test_refuses_a_directory_of_another_shape(tmp_path, directory):
    with pytest.raises(ValueError, match="no directory train"):
        find_source(tmp_path)
    (directory / "test" / "dino.npy").unlink()
    with pytest.raises(ValueError, match="test: there is no view 'dino'"):
        find_source(directory)


def test_refuses_two_files_of_one_name(directory):
    (directory / "train" / "clip.csv").write_text("1,2\n")
    with pytest.raises(ValueError, match=r"clip\.npy: clip\.csv has the same name"):
        find_source(directory)


def test_refuses_no_views_at_all(directory):
    for name in ("clip.npy", "dino.npy"):
        (directory / "train" / name).unlink()
    with pytest.raises(ValueError, match="no view in it"):
        find_source(directory)


def test_refuses_labels_of_another_number(directory):
    np.save(directory / "train" / "labels.npy", np.arange(4))
    with pytest.raises(ValueError, match=r"labels\.npy: 4 labels for 5 samples"):
        find_source(directory).train.read()


def test_a_bad_value_names_its_file(tmp_path):
    bad = np.ones((3, 2))
    bad[1, 0] = np.nan
    np.save(tmp_path / "a.npy", bad)
    with pytest.raises(ValueError, match=r"a\.npy: view 'a' holds NaN at row 1"):
        read_views([f"a={tmp_path / 'a.npy'}"])


def test_a_name_may_be_given_once(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    with pytest.raises(ValueError, match="there is a view 'a' already"):
        Part((f"a={tmp_path / 'a.npy'}",) * 2).read()


class TestStores:
    @pytest.fixture
    def stores(self, tmp_path):
        ids = [f"{i}" for i in range(6)]
        for part in ("train", "test"):
            for name, width in (("clip", 4), ("dino", 2)):
                write_view(
                    tmp_path / "stores" / part,
                    name,
                    ids,
                    np.arange(6.0 * width).reshape(6, width),
                    labels=list("abcabc"),
                )
        return tmp_path / "stores"

    def test_a_store_alone(self, stores):
        source = find_source(stores / "train")
        assert source.name == "train"
        assert source.scored is source.train
        views, labels = source.train.read()
        assert views.names == ("clip", "dino")
        assert labels.tolist() == list("abcabc")
        np.testing.assert_array_equal(views["dino"][1], [2, 3])
        assert check(Source, json.loads(json.dumps(asdict(source)))) == source

    def test_train_and_test(self, stores):
        source = find_source(stores, ["dino"])
        assert source.train.names == source.test.names == ("dino",)
        assert source.test.read()[0].names == ("dino",)
        with pytest.raises(ValueError, match="there is no view 'x', only clip, dino"):
            find_source(stores, ["x"])

    def test_beside_files(self, stores, directory):
        (directory / "test").rename(directory / "other")
        (stores / "test").rename(directory / "test")
        source = find_source(directory)
        assert source.train.names == source.test.names
        assert source.test.read()[1].tolist() == list("abcabc")
