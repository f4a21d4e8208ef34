"""Which reader a source goes to; lists and tables of texts or of paths of images."""

from __future__ import annotations

import csv
import json
import pickle
import shutil
import tarfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sagl.features.readers import absolute, open_samples, reopen
from sagl.features.samples import Unreadable
from tests.features.image_files import GREEN, RED, colour_of, save_picture
from tests.features.small_files import refusal, write


def test_a_source_that_is_not_there(tmp_path):
    message = refusal(open_samples, tmp_path / "nix")
    assert message.startswith("no such file or folder; give a folder of pictures")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.npz", "cannot be read as samples (features are views: --view)"),
        (
            "a.docx",
            "cannot be read as samples (features are views: --view); give a folder",
        ),
    ],
)
def test_files_that_hold_no_samples(tmp_path, name, message):
    assert refusal(open_samples, write(tmp_path / name, "x")).startswith(message)


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


checked = settings(max_examples=50, deadline=None, derandomize=True, database=None)

ROWS = [
    {"text": 'a "quoted", text', "label": "x", "key": "k1"},
    {"text": "zwei\nZeilen", "label": "y", "key": "k2"},
    {"text": "drei", "label": "x", "key": "k3"},
]


def write_table(path, rows):
    """The same rows in the format of the suffix."""
    names = list(rows[0])
    if path.suffix == ".parquet":
        columns = {name: [row[name] for row in rows] for name in names}
        pq.write_table(pa.table(columns), path)
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n")
    else:
        with path.open("w", newline="", encoding="utf-8-sig") as file:
            delimiter = "\t" if path.suffix == ".tsv" else ","
            writer = csv.DictWriter(file, names, delimiter=delimiter)
            writer.writeheader()
            writer.writerows(rows)
    return path


FORMATS = pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])


@FORMATS
def test_texts_with_ids_and_labels(tmp_path, suffix):
    path = write_table(tmp_path / f"a{suffix}", ROWS)
    samples = open_samples(path, id_column="key")
    samples = pickle.loads(pickle.dumps(samples))
    assert samples.kind == "text"
    assert samples.ids == ["k1", "k2", "k3"]
    assert samples.labels == ["x", "y", "x"]
    assert [samples[row] for row in range(3)] == [row["text"] for row in ROWS]
    assert samples.describe() == {
        "reader": "table",
        "source": str(path),
        "options": {"id_column": "key"},
        "kind": "text",
        "samples": 3,
        "labelled": True,
        "ignored": 0,
    }


@FORMATS
def test_rows_are_numbered_and_columns_chosen(tmp_path, suffix):
    path = write_table(tmp_path / f"a{suffix}", ROWS)
    samples = open_samples(path, column="key", label_column="text")
    assert samples.ids == ["0", "1", "2"]
    assert samples[2] == "k3"
    assert samples.labels == [row["text"] for row in ROWS]


@FORMATS
def test_the_column_must_be_clear(tmp_path, suffix):
    path = write_table(tmp_path / f"a{suffix}", ROWS)
    message = refusal(open_samples, path)
    assert message.startswith("has the columns text, label, key; say which holds")
    for option in ("column", "id_column", "label_column"):
        with pytest.raises(
            ValueError, match="has no column 'nix'; choose one of: text"
        ):
            open_samples(path, **{option: "nix"})


@FORMATS
def test_pictures(tmp_path, suffix):
    save_picture(tmp_path / "in/a b.png", RED)
    save_picture(tmp_path / "in/ü.png", GREEN)
    rows = [{"path": f"in/{name}.png", "n": i} for i, name in enumerate(["ü", "a b"])]
    path = write_table(tmp_path / f"a{suffix}", rows)
    samples = open_samples(path, column="path")
    assert samples.kind == "image"
    assert samples.ids == ["in/ü.png", "in/a b.png"]
    assert [colour_of(samples[row]) for row in range(2)] == [GREEN, RED]
    named = open_samples(path, column="path", id_column="n")
    assert named.ids == ["0", "1"]
    assert colour_of(named[1]) == RED


def test_kind_decides_where_names_do_not(tmp_path):
    path = write_table(tmp_path / "a.csv", [{"v": "a.png"}, {"v": "word"}])
    assert "'a.png' ends like the path of a picture and 'word' does not" in refusal(
        open_samples, path
    )
    assert open_samples(path, kind="text")[1] == "word"
    save_picture(tmp_path / "a.png").rename(tmp_path / "word")
    samples = open_samples(path, kind="image")
    assert colour_of(samples[1]) == RED


@FORMATS
def test_missing_texts_are_recorded(tmp_path, suffix):
    rows = [{"text": "one", "key": "a"}, {"text": "", "key": "b"}]
    path = write_table(tmp_path / f"a{suffix}", rows)
    samples = open_samples(path, column="text")
    assert samples[0] == "one"
    with pytest.raises(Unreadable, match="the text is missing or blank"):
        samples[1]
    with pytest.raises(Unreadable, match="the text is missing or blank"):
        samples[-1]


def test_null_and_half_characters(tmp_path):
    path = write(
        tmp_path / "a.jsonl", '{"t": "one"}\n{"t": null}\n{"t": "\\ud800"}\n{}\n'
    )
    samples = open_samples(path)
    for row, reason in ((1, "missing"), (2, "not proper Unicode"), (3, "missing")):
        with pytest.raises(Unreadable, match=reason):
            samples[row]


def test_missing_paths_are_recorded_where_there_is_an_id(tmp_path):
    save_picture(tmp_path / "a.png")
    path = write(tmp_path / "a.csv", "key,path\n1,a.png\n2,\n")
    samples = open_samples(path, column="path", id_column="key")
    with pytest.raises(Unreadable, match="the path is missing"):
        samples[1]
    message = refusal(open_samples, write(tmp_path / "b.csv", "path,n\na.png,1\n,2\n"))
    assert "say which holds" in message
    with pytest.raises(ValueError, match=r"row 1 .*column 'path': the path is missing"):
        open_samples(tmp_path / "b.csv", column="path")


def test_labels_that_are_missing(tmp_path):
    path = write(tmp_path / "a.csv", "text,label\none,x\ntwo,\n")
    assert open_samples(path).labels is None
    with pytest.raises(ValueError, match=r"row 1 .*'label': the label is missing"):
        open_samples(path, label_column="label")


def test_the_label_may_be_what_is_read(tmp_path):
    path = write(tmp_path / "a.csv", "label\none\ntwo\n")
    samples = open_samples(path, column="label")
    assert samples[0] == "one"
    assert samples.labels is None


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "text\n", "holds no rows"),
        ("a.csv", "text,n\na,1\nb\n", "line 3 has 1 cells, expected 2; quote cells"),
        ("a.csv", "text,text\na,b\n", "has columns of the same name"),
        ("a.csv", b"text\ncaf\xe9\n", "is cut short, damaged or not a .csv file"),
        ("a.csv", 'text\n"open\n', "is cut short, damaged or not a .csv file"),
        ("a.jsonl", '{"text": "a"}\nnope\n', "line 2 is not JSON"),
        ("a.jsonl", "[1]\n", "line 1 holds no JSON object"),
        (
            "a.parquet",
            b"PAR1 and nothing more",
            "is cut short, damaged or not a .parquet file",
        ),
    ],
)
def test_refused(tmp_path, name, content, message):
    assert refusal(open_samples, write(tmp_path / name, content)).startswith(message)


def test_ids_that_are_not_unique(tmp_path):
    path = write(tmp_path / "a.csv", "text,id\na,1\nb,2\nc,1\n")
    path_of_half = write(tmp_path / "half.jsonl", '{"text": "a", "id": "\\ud800"}')
    with pytest.raises(ValueError, match="the id is missing or not proper Unicode"):
        open_samples(path_of_half, id_column="id")
    with pytest.raises(ValueError, match=r"samples 0 and 2 .*the same id '1'; drop"):
        open_samples(path, id_column="id")


def test_a_cell_may_hold_a_document(tmp_path):
    limit = csv.field_size_limit()
    document = "word " * 100_000
    path = write(tmp_path / "a.csv", f"text\n{document}\n")
    assert open_samples(path)[0] == document
    assert csv.field_size_limit() == limit


def test_pictures_inside_of_parquet_are_sent_elsewhere(tmp_path):
    table = pa.table({"image": [{"bytes": b"x", "path": None}], "text": ["a"]})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"column 'image' holds struct.*hf-dataset:"):
        open_samples(tmp_path / "a.parquet", column="image")
    assert open_samples(tmp_path / "a.parquet")[0] == "a"


def test_the_row_index_of_pandas_is_no_column(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": ["a", "b"]}, index=["p", "q"])
    frame.to_parquet(tmp_path / "a.parquet")
    assert open_samples(tmp_path / "a.parquet")[1] == "b"
    index = "__index_level_0__"
    assert open_samples(tmp_path / "a.parquet", id_column=index).ids == ["p", "q"]


@checked
@given(
    st.lists(
        st.tuples(
            st.text(
                st.characters(exclude_categories=["Cs"], exclude_characters="\0\r")
            ),
            st.text(
                st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"),
                min_size=1,
            ),
        ),
        min_size=1,
        unique_by=lambda row: row[1],
    ).filter(lambda rows: all(row[1].strip() for row in rows))
)
def test_csv_round_trip(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("round") / "a.csv"
    write_table(path, [{"text": text, "id": name} for text, name in rows])
    samples = open_samples(path, kind="text", id_column="id")
    assert list(samples.ids) == [name for _, name in rows]
    for row, (text, _) in enumerate(rows):
        if text.strip():
            assert samples[row] == text
        else:
            with pytest.raises(Unreadable):
                samples[row]


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
    assert samples.kind == "image"


def test_lst_is_a_list_even_of_odd_names(tmp_path):
    save_picture(tmp_path / "a.png").rename(tmp_path / "picture")
    samples = open_samples(write(tmp_path / "all.lst", "picture\n"))
    assert samples.kind == "image"
    assert colour_of(samples[0]) == RED


def test_pictures_and_texts_in_one_file_are_refused(tmp_path):
    path = write(tmp_path / "a.txt", "a.jpg\nWhat is this?\n")
    message = refusal(open_samples, path)
    assert message.startswith(
        "'a.jpg' ends like the path of a picture and 'What is this?' does not; say "
        "which they are: --kind image or --kind text"
    )
    assert open_samples(path, kind="text")[0] == "a.jpg"


def test_a_list_for_another_folder(tmp_path):
    path = write(tmp_path / "a.txt", "x/a.jpg\nx/b.jpg\n")
    message = refusal(open_samples, path)
    assert message.startswith("none of the 2 files that it names exists; the first")
    assert str(tmp_path / "x/a.jpg") in message


def test_a_file_named_twice(tmp_path):
    save_picture(tmp_path / "a.png")
    path = write(tmp_path / "a.txt", "a.png\n\n./a.png\n")
    assert refusal(open_samples, path).startswith(
        "samples 0 and 1 (counting from 0) have the same id 'a.png'"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\n \n", "holds no lines"),
        (b"", "the file is empty (0 bytes)"),
        (
            "caf\xe9".encode("latin-1"),
            "is cut short, damaged or not a .txt file ('utf-8' codec",
        ),
        (
            "word\n".encode("utf-16-le"),
            "is cut short, damaged or not a .txt file (it has a zero",
        ),
    ],
)
def test_lines_refused(tmp_path, content, message):
    assert refusal(open_samples, write(tmp_path / "a.txt", content)).startswith(message)


def test_lines_have_no_columns(tmp_path):
    path = write(tmp_path / "a.txt", "text\n")
    with pytest.raises(ValueError, match="a file of lines takes no --column"):
        open_samples(path, column="x")
    with pytest.raises(ValueError, match="a file of lines takes no --split"):
        open_samples(path, split="train")
