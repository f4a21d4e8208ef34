"""Which reader a source goes to, and what is refused before any is asked."""

from __future__ import annotations

import json
import shutil
import tarfile

import numpy as np
import pytest

from sagl.features.readers import absolute, open_samples, reopen
from tests.features.image_files import GREEN, RED, save_picture
from tests.features.small_files import refusal, write


def test_a_source_that_is_not_there(tmp_path):
    message = refusal(open_samples, tmp_path / "nix")
    assert message.startswith("no such file or folder; give a folder of pictures")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.npz", "holds features, not samples; use it as a view (--view)"),
        ("a.docx", "cannot be read as samples; give a folder of pictures"),
        ("a.tgz", "is compressed and allows no random access"),
    ],
)
def test_files_that_hold_no_samples(tmp_path, name, message):
    assert refusal(open_samples, write(tmp_path / name, "x")).startswith(message)


def test_features_are_sent_to_views(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 2)))
    assert "use it as a view" in refusal(open_samples, tmp_path / "a.npy")


def test_a_folder_named_like_a_data_set_is_a_folder(tmp_path, monkeypatch):
    save_picture(tmp_path / "pets/a.png")
    monkeypatch.chdir(tmp_path)
    assert open_samples("pets").ids == ["a.png"]


def test_the_home_folder(tmp_path, monkeypatch):
    save_picture(tmp_path / "photos/a.png")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert open_samples("~/photos").ids == ["a.png"]


def test_unknown_kinds_are_refused(tmp_path):
    with pytest.raises(ValueError, match="kind must be image or text, not 'audio'"):
        open_samples(tmp_path, kind="audio")


def make_sources(folder):
    """Something of every reader, and the options that it needs."""
    save_picture(folder / "images/cats/a.png", RED)
    save_picture(folder / "images/dogs/b.png", GREEN)
    write(folder / "list.txt", "images/cats/a.png\nimages/dogs/b.png\n")
    write(folder / "lines.txt", "one.png\ntwo\n")
    write(folder / "table.csv", "name,body,topic\n1,one,x\n2,b.png,y\n")
    write(folder / "rows.jsonl", '{"text": "one", "n": 1}\n{"text": "two", "n": 2}\n')
    for number in range(2):
        with tarfile.open(folder / f"data-{number}.tar", "w") as tar:
            for name in ("x.mask.png", "x.png"):
                tar.add(folder / "images/cats/a.png", name)
            (folder / "x.json").write_text('{"topic": "t"}')
            tar.add(folder / "x.json", "x.json")
    (folder / "x.json").unlink()
    (folder / "tars").mkdir()
    shutil.copy(folder / "data-0.tar", folder / "tars/only.tar")
    (folder / "pets/annotations").mkdir(parents=True)
    save_picture(folder / "pets/images/pug_1.jpg", RED)
    write(folder / "pets/annotations/trainval.txt", "pug_1 1 1 1\n")
    write(folder / "pets/annotations/test.txt", "pug_1 1 1 1\n")


TABLE = {"column": "body", "id_column": "name", "label_column": "topic"}
MEMBERS = {"column": "mask.png", "label_column": "topic"}


@pytest.mark.parametrize(
    ("source", "options"),
    [
        ("images", {}),
        ("images", {"split": "cats"}),
        ("list.txt", {}),
        ("lines.txt", {"kind": "text"}),
        ("table.csv", {"kind": "text", **TABLE}),
        ("rows.jsonl", {"column": "text", "id_column": "n"}),
        ("data-0.tar", MEMBERS),
        ("data-{0..1}.tar", MEMBERS),
        ("tars", MEMBERS),
        ("pets:pets", {"split": "test"}),
    ],
)
def test_what_is_stored_opens_the_same_samples(tmp_path, monkeypatch, source, options):
    make_sources(tmp_path)
    monkeypatch.chdir(tmp_path)
    samples = open_samples(source, **options)
    record = json.loads(json.dumps(samples.describe()))
    resolved = absolute(record)
    first = samples[0]
    assert reopen(record)[0] == first
    monkeypatch.chdir("/")
    again = reopen(resolved)
    assert again[0] == first
    assert again.ids == samples.ids
    assert again.labels == samples.labels
    assert again.kind == samples.kind
    assert again.describe()["options"] == options


def test_a_name_on_the_hub_is_no_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert absolute({"source": "hf-dataset:beans"}) == {"source": "hf-dataset:beans"}
    (tmp_path / "beans").mkdir()
    source = absolute({"source": "hf-dataset:beans"})["source"]
    assert source == f"hf-dataset:{tmp_path / 'beans'}"


def test_a_record_that_says_too_little():
    with pytest.raises(ValueError, match="not written down how"):
        reopen({"reader": "made up"})
