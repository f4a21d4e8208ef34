"""Which reader a source goes to, and what is refused before any is asked."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sagl.features.readers import open_samples
from tests.features.pictures import save_picture
from tests.features.samples import refusal, write


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


def test_what_a_store_keeps_opens_the_same_samples(tmp_path):
    write(tmp_path / "a.csv", "name,body,topic\n1,one,x\n2,b.png,y\n")
    options = {"column": "body", "id_column": "name", "label_column": "topic"}
    samples = open_samples(tmp_path / "a.csv", kind="text", **options)
    kept = json.loads(json.dumps(samples.describe()))
    again = open_samples(kept["source"], **kept["options"])
    assert again.ids == samples.ids == ["1", "2"]
    assert again.labels == samples.labels == ["x", "y"]
    assert again[1] == samples[1] == "b.png"
    assert again.describe() == samples.describe()
