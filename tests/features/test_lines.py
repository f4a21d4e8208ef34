"""Files of lines: texts, or paths of pictures."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sagl.features.readers import open_samples
from sagl.features.samples import Unreadable
from tests.features.pictures import GREEN, RED, colour_of, save_picture
from tests.features.samples import refusal, write

checked = settings(max_examples=50, deadline=None, derandomize=True, database=None)


def test_texts(tmp_path):
    path = write(
        tmp_path / "a.txt", "\ufeffFirst text\r\n\r\nsecond, “quoted”\n third\n\n"
    )
    samples = pickle.loads(pickle.dumps(open_samples(path)))
    assert samples.kind == "text"
    assert samples.ids == ["1", "3", "4"]
    assert [samples[row] for row in range(3)] == [
        "First text",
        "second, “quoted”",
        " third",
    ]
    assert samples.labels is None
    assert samples.ignored == 2


@checked
@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\0")),
        min_size=1,
    ).filter(lambda lines: any(line.strip("\ufeff").strip() for line in lines))
)
def test_texts_come_back_as_written(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("lines") / "a.txt"
    path.write_bytes("\n".join(["start", *lines]).encode())
    samples = open_samples(path, kind="text")
    read = {name: samples[row] for row, name in enumerate(samples.ids)}
    written = enumerate(["start", *lines], start=1)
    assert read == {str(n): line for n, line in written if line.strip()}


def test_a_list_of_pictures(tmp_path):
    save_picture(tmp_path / "in here/a b.png", RED)
    far = save_picture(tmp_path / "far/c.png", GREEN)
    (tmp_path / "lists").mkdir()
    path = write(
        tmp_path / "lists/all.txt",
        f"./../in here/a b.png\n\n{far}\n../missing.jpg\n",
    )
    samples = open_samples(path)
    assert samples.kind == "image"
    assert samples.ids == ["../in here/a b.png", str(far), "../missing.jpg"]
    assert [colour_of(samples[row]) for row in range(2)] == [RED, GREEN]
    with pytest.raises(Unreadable, match="no such file"):
        samples[2]


def test_a_list_beside_its_files(tmp_path):
    save_picture(tmp_path / "x/a.png")
    save_picture(tmp_path / "b.png")
    samples = open_samples(write(tmp_path / "all.lst", "x/a.png\n./x/../b.png\n"))
    assert samples.ids == ["x/a.png", "b.png"]
    assert samples.describe()["reader"] == "file list"


def test_lst_is_a_list_even_of_odd_names(tmp_path):
    save_picture(tmp_path / "a.png").rename(tmp_path / "picture")
    samples = open_samples(write(tmp_path / "all.lst", "picture\n"))
    assert samples.kind == "image"
    assert colour_of(samples[0]) == RED


def test_pictures_and_texts_in_one_file_are_refused(tmp_path):
    path = write(tmp_path / "a.txt", "a.jpg\nWhat is this?\n")
    message = refusal(open_samples, path)
    assert message.startswith(
        "line 1 ends like the path of a picture ('a.jpg') and line 2 does not "
        "('What is this?'); say which they are"
    )
    assert open_samples(path, kind="text")[0] == "a.jpg"


def test_paths_with_labels_are_refused(tmp_path):
    path = write(tmp_path / "a.txt", "x/a.jpg 3\nx/b.jpg 4\n")
    message = refusal(open_samples, path)
    assert "line 1 looks like a path with something after it: 'x/a.jpg 3'" in message
    assert open_samples(path, kind="text").ids == ["1", "2"]


def test_a_list_for_another_folder(tmp_path):
    path = write(tmp_path / "a.txt", "x/a.jpg\nx/b.jpg\n")
    message = refusal(open_samples, path)
    assert message.startswith("none of the 2 files that it names exists; the first")
    assert str(tmp_path / "x/a.jpg") in message


def test_a_file_named_twice(tmp_path):
    save_picture(tmp_path / "a.png")
    path = write(tmp_path / "a.txt", "a.png\n\n./a.png\n")
    assert refusal(open_samples, path).startswith(
        "lines 1 and 3 name the same file 'a.png'"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\n \n", "holds no lines"),
        (b"", "the file is empty (0 bytes)"),
        ("caf\xe9".encode("latin-1"), "is not UTF-8 text after line 0"),
        ("word\n".encode("utf-16"), "is not a text file (it has a zero byte)"),
    ],
)
def test_refused(tmp_path, content, message):
    assert refusal(open_samples, write(tmp_path / "a.txt", content)).startswith(message)


def test_lines_have_no_columns(tmp_path):
    path = write(tmp_path / "a.txt", "text\n")
    with pytest.raises(ValueError, match="a file of lines takes no --column"):
        open_samples(path, column="x")
    with pytest.raises(ValueError, match="a file of lines takes no --split"):
        open_samples(path, split="train")
