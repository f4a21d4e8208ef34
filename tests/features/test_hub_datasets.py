"""Data sets of Hugging Face, as the ``datasets`` package writes them."""

from __future__ import annotations

import importlib.util
import pickle

import pytest

from sagl.features.readers import open_samples
from sagl.features.samples import Unreadable
from tests.features.image_files import (
    GREEN,
    RED,
    colour_of,
    encoded,
    noise,
    save_picture,
)
from tests.features.small_files import refusal


@pytest.mark.skipif(
    importlib.util.find_spec("datasets") is not None, reason="datasets is installed"
)
def test_without_the_package(tmp_path):
    (tmp_path / "dataset_dict.json").write_text("{}")
    for source in ("hf-dataset:beans", tmp_path):
        with pytest.raises(ValueError, match='pip install "sagl\\[datasets\\]"'):
            open_samples(source)


@pytest.fixture
def datasets(monkeypatch, tmp_path):
    package = pytest.importorskip("datasets")
    package.disable_progress_bars()
    monkeypatch.setattr(package.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return package


@pytest.fixture
def save(datasets, tmp_path):
    """A function that saves columns; what is not named is of a type of its own."""

    def save(columns, name="data", **features):
        made = datasets.Dataset.from_dict(columns)
        for column, feature in features.items():
            made = made.cast_column(column, feature)
        made.save_to_disk(tmp_path / name)
        return tmp_path / name

    return save


def image(colour):
    from PIL import Image

    return encoded(Image.new("RGB", (8, 6), colour), "PNG")


@pytest.fixture
def images(save, datasets, tmp_path):
    outside = save_picture(tmp_path / "outside.png", GREEN)
    values = [
        {"bytes": image(RED), "path": "a.png"},
        {"bytes": image(GREEN), "path": None},
        {"bytes": None, "path": str(outside)},
        None,
        {"bytes": encoded(noise(), "PNG")[:999], "path": None},
    ]
    columns = {"image": values, "label": [0, 1, 1, 0, 0], "name": list("vwxyz")}
    classes = datasets.ClassLabel(names=["cat", "dog"])
    return save(columns, image=datasets.Image(), label=classes)


def test_images(images):
    samples = open_samples(images)
    assert samples[0].size == (8, 6)  # opens the file before it is copied
    samples = pickle.loads(pickle.dumps(samples))
    assert samples.kind == "image"
    assert samples.ids == ["0", "1", "2", "3", "4"]
    assert samples.labels == ["cat", "dog", "dog", "cat", "cat"]
    assert [colour_of(samples[row]) for row in range(3)] == [RED, GREEN, GREEN]
    with pytest.raises(Unreadable, match="the picture is missing"):
        samples[3]
    with pytest.raises(Unreadable, match="broken or cut short"):
        samples[-1]
    with pytest.raises(IndexError):
        samples[5]


def test_columns(images):
    samples = open_samples(images, column="name", id_column="name", label_column="name")
    assert samples.kind == "text"
    assert list(samples.ids) == list(samples.labels) == list("vwxyz")
    assert samples[4] == "z"
    assert open_samples(images, kind="text")[4] == "z"
    with pytest.raises(ValueError, match="has no column 'nix'; choose one of: image"):
        open_samples(images, column="nix")
    with pytest.raises(ValueError, match=r"'label' holds ClassLabel.*pictures or"):
        open_samples(images, column="label")
    with pytest.raises(
        ValueError, match=r"column 'image' holds Image.*, expected texts"
    ):
        open_samples(images, column="image", kind="text")


def test_texts_of_which_some_are_missing(save, datasets):
    columns = {"text": ["a", None, " "], "label": [1, -1, 0]}
    folder = save(columns, label=datasets.ClassLabel(names=["cat", "dog"]))
    samples = open_samples(folder)
    assert samples[0] == "a"
    assert samples.labels is None
    for row in (1, 2):
        with pytest.raises(Unreadable, match="missing or blank"):
            samples[row]
    with pytest.raises(ValueError, match=r"row 1 .*'label': the label is missing"):
        open_samples(folder, label_column="label")


def test_the_column_must_be_clear(save):
    message = refusal(open_samples, save({"question": ["a"], "answer": ["b"]}))
    assert message.startswith("has the columns question, answer; say which holds")


def test_splits(datasets, tmp_path):
    parts = {
        split: datasets.Dataset.from_dict({"text": [text]})
        for split, text in (("train", "a"), ("test", "b"))
    }
    datasets.DatasetDict(parts).save_to_disk(tmp_path / "data")
    assert open_samples(tmp_path / "data", split="test")[0] == "b"
    message = refusal(open_samples, tmp_path / "data")
    assert message == "choose a split (--split): train, test"
    with pytest.raises(ValueError, match="has no splits; leave out 'test'"):
        open_samples(tmp_path / "data/test", split="test")


def test_a_selection_of_rows(datasets, tmp_path):
    made = datasets.Dataset.from_dict({"text": list("abcd")}).select([3, 1])
    made.save_to_disk(tmp_path / "data")
    samples = open_samples(tmp_path / "data")
    assert [samples[row] for row in range(2)] == ["d", "b"]


def test_damaged_files(save):
    folder = save({"text": ["a"] * 99})
    [file] = folder.glob("*.arrow")
    file.write_bytes(file.read_bytes()[:300])
    with pytest.raises(ValueError, match="cannot be loaded") as caught:
        open_samples(folder)
    assert str(caught.value).startswith(f"{folder}: ")


def test_ids_that_are_not_unique(save):
    folder = save({"text": ["a", "b"], "id": [1, 1]})
    with pytest.raises(ValueError, match=r"samples 0 and 1 .* the same id '1'"):
        open_samples(folder, id_column="id")


def test_a_folder_of_parquet_files_by_name(datasets, tmp_path):
    (tmp_path / "data").mkdir()
    made = datasets.Dataset.from_dict({"text": ["a", "b"], "label": ["x", "y"]})
    made.to_parquet(tmp_path / "data/train-00000-of-00001.parquet")
    samples = open_samples(f"hf-dataset:{tmp_path / 'data'}")
    samples = pickle.loads(pickle.dumps(samples))
    assert samples[1] == "b"
    assert samples.labels == ["x", "y"]
    with pytest.raises(ValueError, match="choose a split"):
        open_samples(f"hf-dataset:{tmp_path / 'data'}", split="nix")
