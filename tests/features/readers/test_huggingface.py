"""Data sets of Hugging Face, in the files that ``save_to_disk`` writes."""

from __future__ import annotations

import importlib.util
import json
import pickle

import pytest

from sagl.features.readers import open_samples
from sagl.features.samples import Unreadable
from tests.features.pictures import GREEN, RED, colour_of, encoded, noise, save_picture
from tests.features.samples import refusal

pa = pytest.importorskip("pyarrow")
from PIL import Image  # noqa: E402

IMAGE = {"_type": "Image"}
TEXT = {"dtype": "string", "_type": "Value"}
CLASSES = {"names": ["cat", "dog"], "_type": "ClassLabel"}


def save(folder, columns, features, n_files=2):
    """The layout of ``Dataset.save_to_disk``: Arrow streams and two JSON files."""
    folder.mkdir(parents=True)
    table = pa.table(columns)
    size = -(-table.num_rows // n_files)
    names = []
    for i in range(n_files):
        names.append(f"data-{i:05d}-of-{n_files:05d}.arrow")
        part = table.slice(i * size, size)
        with (
            pa.OSFile(str(folder / names[-1]), "wb") as file,
            pa.ipc.new_stream(file, table.schema) as stream,
        ):
            stream.write_table(part, max_chunksize=2)
    state = {"_data_files": [{"filename": name} for name in names], "_split": None}
    (folder / "state.json").write_text(json.dumps(state))
    (folder / "dataset_info.json").write_text(json.dumps({"features": features}))
    return folder


def picture(colour):
    return encoded(Image.new("RGB", (8, 6), colour), "PNG")


def save_pictures(folder):
    outside = save_picture(folder.parent / "outside.png", GREEN)
    images = [
        {"bytes": picture(RED), "path": "a.png"},
        {"bytes": picture(GREEN), "path": None},
        {"bytes": None, "path": str(outside)},
        {"bytes": None, "path": None},
        {"bytes": encoded(noise(), "PNG")[:999], "path": None},
    ]
    columns = {"image": images, "label": [0, 1, 1, 0, 0], "name": list("vwxyz")}
    features = {"image": IMAGE, "label": CLASSES, "name": TEXT}
    return save(folder, columns, features)


def test_pictures(tmp_path):
    samples = open_samples(save_pictures(tmp_path / "data"))
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


def test_columns(tmp_path):
    folder = save_pictures(tmp_path / "data")
    samples = open_samples(folder, column="name", id_column="name", label_column="name")
    assert samples.kind == "text"
    assert list(samples.ids) == list(samples.labels) == list("vwxyz")
    assert samples[4] == "z"
    assert open_samples(folder, kind="text").describe()["column"] == "name"
    with pytest.raises(ValueError, match="has no column 'nix'; choose one of: image"):
        open_samples(folder, column="nix")
    with pytest.raises(ValueError, match="column 'label' holds int64, neither"):
        open_samples(folder, column="label")
    with pytest.raises(ValueError, match="column 'image' holds images, not texts"):
        open_samples(folder, column="image", kind="text")


def test_texts_of_which_some_are_missing(tmp_path):
    columns = {"text": ["a", None, " "], "label": [1, -1, 0]}
    folder = save(tmp_path / "data", columns, {"text": TEXT, "label": CLASSES}, 1)
    samples = open_samples(folder)
    assert samples[0] == "a"
    assert samples.labels is None
    for row in (1, 2):
        with pytest.raises(Unreadable, match="missing or blank"):
            samples[row]
    with pytest.raises(ValueError, match="row 1 has no 'label'"):
        open_samples(folder, label_column="label")


def test_the_column_must_be_clear(tmp_path):
    columns = {"question": ["a"], "answer": ["b"]}
    folder = save(tmp_path / "data", columns, {"question": TEXT, "answer": TEXT}, 1)
    message = refusal(open_samples, folder)
    assert message.startswith("has the columns question, answer; say which one holds")


def test_splits(tmp_path):
    for split, text in (("train", "a"), ("test", "b")):
        save(tmp_path / "data" / split, {"text": [text]}, {"text": TEXT}, 1)
    (tmp_path / "data/dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    assert open_samples(tmp_path / "data", split="test")[0] == "b"
    message = refusal(open_samples, tmp_path / "data")
    assert message == "choose a split (--split): train, test"
    with pytest.raises(ValueError, match="has no splits; leave out 'test'"):
        open_samples(tmp_path / "data/test", split="test")


def test_selections_are_refused(tmp_path):
    folder = save(tmp_path / "data", {"text": ["a"]}, {"text": TEXT}, 1)
    state = json.loads((folder / "state.json").read_text())
    state["_indices_data_files"] = [{"filename": "indices.arrow"}]
    (folder / "state.json").write_text(json.dumps(state))
    assert "flatten_indices()" in refusal(open_samples, folder)


def test_damaged_files(tmp_path):
    folder = save(tmp_path / "data", {"text": ["a"] * 99}, {"text": TEXT}, 1)
    [file] = folder.glob("*.arrow")
    file.write_bytes(file.read_bytes()[:300])
    with pytest.raises(ValueError, match=r"is cut short or not an .arrow file"):
        open_samples(folder)
    (folder / "state.json").write_text("{")
    with pytest.raises(ValueError, match=r"state\.json: cannot be read"):
        open_samples(folder)


def test_ids_that_are_not_unique(tmp_path):
    columns = {"text": ["a", "b"], "id": [1, 1]}
    folder = save(tmp_path / "data", columns, {"text": TEXT})
    with pytest.raises(ValueError, match=r"rows 0 and 1 have the same 'id': '1'"):
        open_samples(folder, id_column="id")


@pytest.mark.skipif(
    importlib.util.find_spec("datasets") is not None, reason="datasets is installed"
)
def test_a_name_without_the_package():
    with pytest.raises(ValueError, match='pip install "sagl\\[datasets\\]"') as caught:
        open_samples("hf-dataset:beans")
    assert str(caught.value).startswith("hf-dataset:beans: ")


def test_what_the_package_itself_writes(tmp_path):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])}
    )
    made = datasets.Dataset.from_dict(
        {
            "image": [{"bytes": picture(c), "path": None} for c in (RED, GREEN)],
            "label": [1, 0],
        },
        features=features,
    )
    made.save_to_disk(tmp_path / "data")
    samples = open_samples(tmp_path / "data")
    assert samples.labels == ["dog", "cat"]
    assert [colour_of(samples[row]) for row in range(2)] == [RED, GREEN]


def test_a_folder_through_the_package(tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / "data").mkdir()
    made = datasets.Dataset.from_dict({"text": ["a", "b"], "label": ["x", "y"]})
    made.to_parquet(tmp_path / "data/train-00000-of-00001.parquet")
    samples = open_samples(f"hf-dataset:{tmp_path / 'data'}")
    samples = pickle.loads(pickle.dumps(samples))
    assert samples[1] == "b"
    assert samples.labels == ["x", "y"]
    with pytest.raises(ValueError, match="choose a split"):
        open_samples(f"hf-dataset:{tmp_path / 'data'}", split="nix")
