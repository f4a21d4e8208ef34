"""Folders of pictures."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sagl.features.images import find_images
from sagl.features.readers import open_samples
from sagl.features.samples import Unreadable
from tests.features.pictures import BLUE, GREEN, RED, colour_of, save_picture
from tests.features.samples import refusal

checked = settings(max_examples=25, deadline=None, derandomize=True, database=None)


def test_class_folders(tmp_path):
    save_picture(tmp_path / "dog/b.png", GREEN)
    save_picture(tmp_path / "cat/a.png", RED)
    save_picture(tmp_path / "dog/young/c.JPG", BLUE)
    samples = open_samples(tmp_path)
    assert samples.kind == "image"
    assert samples.ids == ["cat/a.png", "dog/b.png", "dog/young/c.JPG"]
    assert samples.labels == ["cat", "dog", "dog"]
    assert [colour_of(samples[row]) for row in range(3)] == [RED, GREEN, BLUE]
    assert samples.describe() == {
        "reader": "folder",
        "path": str(tmp_path),
        "split": None,
        "source": str(tmp_path),
        "options": {},
        "kind": "image",
        "samples": 3,
        "labelled": True,
        "ignored": 0,
    }


def test_a_flat_or_mixed_folder_has_no_labels(tmp_path):
    save_picture(tmp_path / "a.png")
    assert open_samples(tmp_path).labels is None
    save_picture(tmp_path / "more/b.png")
    assert open_samples(tmp_path).labels is None


def test_a_single_sub_folder_tells_nothing_apart(tmp_path):
    save_picture(tmp_path / "images/a.png")
    save_picture(tmp_path / "images/b.png")
    assert open_samples(tmp_path).labels is None


def test_broken_pictures_are_samples_and_other_files_are_not(tmp_path):
    save_picture(tmp_path / "good.png")
    (tmp_path / "broken.jpg").write_bytes(b"not a picture")
    (tmp_path / "empty.gif").touch()
    for name in ("README.txt", ".DS_Store", "Thumbs.db", "._good.png"):
        (tmp_path / name).write_bytes(b"x")
    save_picture(tmp_path / ".trash/old.png")
    samples = open_samples(tmp_path)
    assert samples.ids == ["broken.jpg", "empty.gif", "good.png"]
    assert samples.ignored == 4
    assert samples.describe()["ignored"] == 4
    with pytest.raises(Unreadable, match="not a picture"):
        samples[0]
    with pytest.raises(Unreadable, match="empty file"):
        samples[1]
    assert colour_of(samples[2]) == RED


def test_names_with_spaces_quotes_and_other_letters(tmp_path):
    names = [
        "a b.png",
        "quo\"te'.png",
        "zoë/日本.png",
        "new\nline.png",
        "[x]{1..2}.png",
    ]
    for name in names:
        save_picture(tmp_path / name)
    samples = open_samples(tmp_path)
    assert samples.ids == sorted(names)
    assert all(colour_of(samples[row]) == RED for row in range(len(names)))


def test_names_that_are_not_utf8_are_written_out(tmp_path):
    try:
        save_picture(tmp_path / "x.png").rename(tmp_path / os.fsdecode(b"caf\xe9.png"))
    except OSError:
        pytest.skip("this file system takes UTF-8 alone")
    save_picture(tmp_path / "a.png", GREEN)
    samples = pickle.loads(pickle.dumps(open_samples(tmp_path)))
    assert samples.ids == ["a.png", "caf\\xe9.png"]
    assert colour_of(samples[1]) == RED


@checked
@given(
    st.sets(
        st.text(
            st.characters(exclude_characters="/\0.", exclude_categories=["Cs"]),
            min_size=1,
            max_size=20,
        ),
        min_size=1,
        max_size=8,
    )
)
def test_any_names_are_found_sorted_by_code_point(tmp_path_factory, names):
    root = tmp_path_factory.mktemp("any")
    made = set()
    for name in names:
        try:
            (root / f"{name}.png").touch()
        except OSError:  # longer than the file system allows
            continue
        made.add(f"{name}.png")
    assert find_images(root).paths == sorted(made)


def test_links_are_followed_but_not_in_circles(tmp_path):
    save_picture(tmp_path / "elsewhere/far.png", GREEN)
    root = tmp_path / "root"
    save_picture(root / "deep/a.png")
    (root / "deep/up").symlink_to(root)
    (root / "deep/here").symlink_to(root / "deep")
    (root / "other").symlink_to(tmp_path / "elsewhere")
    (root / "link.png").symlink_to(tmp_path / "elsewhere/far.png")
    samples = open_samples(root)
    assert samples.ids == ["deep/a.png", "link.png", "other/far.png"]
    assert colour_of(samples[1]) == colour_of(samples[2]) == GREEN


def test_broken_links_are_recorded_as_unreadable(tmp_path):
    save_picture(tmp_path / "a.png")
    (tmp_path / "gone.png").symlink_to(tmp_path / "nowhere.png")
    (tmp_path / "loop.png").symlink_to(tmp_path / "loop.png")
    samples = open_samples(tmp_path)
    assert samples.ids == ["a.png", "gone.png", "loop.png"]
    with pytest.raises(Unreadable, match="no such file"):
        samples[1]
    with pytest.raises(Unreadable, match="cannot be opened"):
        samples[2]


def test_pipes_are_not_waited_for(tmp_path):
    save_picture(tmp_path / "a.png")
    os.mkfifo(tmp_path / "pipe.png")
    samples = open_samples(tmp_path)
    with pytest.raises(Unreadable, match="not a regular file"):
        samples[1]


def test_a_folder_that_may_not_be_read(tmp_path):
    save_picture(tmp_path / "a.png")
    secret = tmp_path / "secret"
    secret.mkdir(mode=0)
    if os.access(secret, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(ValueError, match="permission denied") as caught:
        open_samples(tmp_path)
    assert str(caught.value).startswith(f"{secret}")


def test_empty_folder(tmp_path):
    (tmp_path / "notes.md").touch()
    assert refusal(open_samples, tmp_path).startswith(
        "holds no picture (1 other files)"
    )


def test_a_split_is_a_sub_folder(tmp_path):
    for part, colour in (("train", RED), ("test", GREEN)):
        for label in ("cat", "dog"):
            save_picture(tmp_path / part / label / "x.png", colour)
    message = refusal(open_samples, tmp_path)
    assert message.startswith("is divided into test, train; choose one")
    samples = open_samples(tmp_path, split="test")
    assert samples.ids == ["cat/x.png", "dog/x.png"]
    assert samples.labels == ["cat", "dog"]
    assert colour_of(samples[0]) == GREEN
    with pytest.raises(ValueError, match="has no sub-folder 'dev'"):
        open_samples(tmp_path, split="dev")


@pytest.mark.parametrize(
    "option",
    [{"column": "x"}, {"id_column": "x"}, {"label_column": "x"}, {"kind": "text"}],
)
def test_options_without_effect_are_refused(tmp_path: Path, option: dict[str, str]):
    save_picture(tmp_path / "a.png")
    with pytest.raises(ValueError, match="a folder of pictures takes no --"):
        open_samples(tmp_path, **option)


def test_one_picture_is_no_folder(tmp_path):
    path = save_picture(tmp_path / "a.png")
    assert refusal(open_samples, path).startswith(
        "is a single picture; give the folder"
    )


def test_a_million_files_cost_little_to_copy(tmp_path):
    """Only names travel to workers: no path objects, no open files."""
    for number in range(300):
        (tmp_path / f"{number:06d}.png").touch()
    copied = pickle.dumps(open_samples(tmp_path))
    assert len(copied) < 300 * (10 + 9) + 1_000
