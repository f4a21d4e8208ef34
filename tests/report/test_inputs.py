"""What the user names and what lies in the run: joined by id, refused if foreign."""

import io
import json
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from sagl import SAGL
from sagl.features.readers import open_samples
from sagl.features.store import write_view
from sagl.report.inputs import (
    MISSING,
    Inputs,
    category_column,
    make_column,
    open_inputs,
    read_columns,
    with_samples,
)
from sagl.run import run_checksum
from tests.conftest import clustered_views
from tests.report.pages import Pictures, Texts
from tests.runs import enter_parts


@pytest.fixture
def run(small_run, tmp_path):
    """A copy of the run to put things beside."""
    import shutil

    return shutil.copytree(small_run, tmp_path / "run")


def ids():
    return [f"{row:03}.png" for row in range(240)]


def write_pictures(folder, names):
    folder.mkdir()
    for name in names:
        Image.new("RGB", (50, 50), "red").save(folder / name)


def write_store(folder, names=None):
    views, _ = clustered_views()
    for name, array in views.items():
        write_view(folder, name, names or ids(), array)


def test_a_run_alone(run):
    inputs = open_inputs(run)
    assert inputs.ids == [str(row) for row in range(240)]
    assert inputs.views is None
    assert inputs.samples is None
    assert inputs.notes == ()


def test_views_and_labels_from_files(run, tmp_path):
    views, labels = clustered_views()
    for name, array in views.items():
        np.save(tmp_path / f"{name}.npy", array)
    np.save(tmp_path / "labels.npy", labels)
    options = [f"{name}={tmp_path}/{name}.npy" for name in views.names]
    inputs = open_inputs(run, views=options, labels=tmp_path / "labels.npy")
    np.testing.assert_array_equal(inputs.views["narrow"], views["narrow"])
    np.testing.assert_array_equal(inputs.labels, labels)
    np.save(tmp_path / "few.npy", labels[:7])
    with pytest.raises(ValueError, match=r"few.npy: 7 samples, but .* on 240"):
        open_inputs(run, labels=tmp_path / "few.npy")
    with pytest.raises(ValueError, match="either --store or --view"):
        open_inputs(run, views=options, store=tmp_path)


def test_the_store_in_the_run_is_found(run):
    write_store(run / "features")
    enter_parts(run)
    inputs = open_inputs(run)
    assert inputs.ids == ids()
    views, _ = clustered_views()
    np.testing.assert_array_equal(inputs.views["wide"][:], views["wide"])


def test_the_written_source_is_opened_again(run, tmp_path):
    # More pictures than samples: the store's ids choose.
    write_store(run / "features")
    enter_parts(run)
    write_pictures(tmp_path / "pictures", [*ids(), "zzz.png", "000a.png"])
    about = open_samples(tmp_path / "pictures").describe()
    (run / "source.json").write_text(json.dumps(about))
    enter_parts(run)
    inputs = open_inputs(run)
    assert inputs.samples.ids[inputs.sample_rows[5]] == "005.png"
    assert inputs.sample(5).size == (50, 50)


def test_tar_shards_are_opened_with_their_column(run, tmp_path):
    with tarfile.open(tmp_path / "shard.tar", "w") as tar:
        for row in range(240):
            for name, colour in (("jpg", "red"), ("mask.png", "blue")):
                file = io.BytesIO()
                Image.new("RGB", (9, 9), colour).save(file, "PNG")
                member = tarfile.TarInfo(f"{row:03}.{name}")
                member.size = file.tell()
                file.seek(0)
                tar.addfile(member, file)
    samples = open_samples(tmp_path / "shard.tar", column="mask.png")
    (run / "source.json").write_text(json.dumps(samples.describe()))
    enter_parts(run)
    inputs = open_inputs(run)
    assert inputs.notes == ()
    assert inputs.ids[7] == samples.ids[7]
    assert inputs.sample(7).getpixel((0, 0)) == (0, 0, 255)


def test_rows_of_a_store_are_joined_by_the_ids_of_the_run(small_run, tmp_path):
    views, _ = clustered_views()
    run = tmp_path / "run"
    SAGL.load(small_run).save(run, ids=ids())
    assert open_inputs(run).ids == ids()
    # The store has them in another order, and some more.
    order = np.random.default_rng(0).permutation(240)
    names = [ids()[row] for row in order]
    for name, array in views.items():
        more = np.concatenate([array[order], array[:1]])
        write_view(tmp_path / "store", name, [*names, "more.png"], more)
    inputs = open_inputs(run, store=tmp_path / "store")
    np.testing.assert_array_equal(inputs.views["wide"][:], views["wide"])
    (run / "source.json").write_text(json.dumps({"store": str(tmp_path / "store")}))
    enter_parts(run)
    np.testing.assert_array_equal(open_inputs(run).views["wide"][:], views["wide"])
    (run / "source.json").write_text(json.dumps({"store": "gone"}))
    enter_parts(run)
    assert "features were not found" in open_inputs(run).notes[0]
    with pytest.raises(ValueError, match="gone"):
        open_inputs(run, store=tmp_path / "gone")


def test_a_source_that_is_gone_is_a_note(run, tmp_path):
    about = {"reader": "folder", "path": "gone", "source": "gone", "options": {}}
    (run / "source.json").write_text(json.dumps(about))
    enter_parts(run)
    inputs = open_inputs(run)
    assert inputs.samples is None
    assert "not shown" in inputs.notes[0]
    with pytest.raises(ValueError, match="gone"):
        open_inputs(run, source=str(tmp_path / "gone"))


def test_samples_without_known_ids_are_in_order():
    inputs = with_samples(Inputs(["0", "1"]), Pictures(["x", "y"]), "here")
    assert inputs.ids == ["x", "y"]
    with pytest.raises(ValueError, match="none with the id '0'"):
        with_samples(Inputs(["0", "1", "2"]), Pictures(["x", "y"]), "here")


def test_names_in_the_run_are_read(run):
    content = {
        "format": "sagl-names",
        "version": 1,
        "run": run_checksum(run),
        "clusters": {"1": "one"},
        "wrong": [{"row": 3, "sample": "3"}],
    }
    (run / "names.json").write_text(json.dumps(content))
    assert open_inputs(run).names.clusters == {1: "one"}
    (run / "names.json").write_text(json.dumps(content | {"run": "other"}))
    with pytest.raises(ValueError, match="another run"):
        open_inputs(run)


def test_long_texts_are_cut():
    texts = Texts("ab", ["short", "x" * 500])
    inputs = with_samples(Inputs(["a", "b"]), texts, "here")
    assert inputs.text(0) == "short"
    assert inputs.text(1) == "x" * 400 + "…"


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1.5", "2", ""], "number"),
        ([str(i) for i in range(30)], "number"),
        (["1", "2", "1"], "category"),
        (["1", "2", "cat"], "category"),
        (["nan", "1.5"], "category"),
        (["", ""], "category"),
        ([f"text {i}" for i in range(501)], "text"),
    ],
)
def test_kinds(cells, kind):
    assert make_column("c", cells).kind == kind


def test_values_of_each_kind():
    number = make_column("c", ["1.5", "", "-2e3"])
    np.testing.assert_array_equal(number.values, [1.5, np.nan, -2000])
    words = make_column("c", ["dog", "", "cat", "dog"])
    assert [words.categories[code] for code in words.values] == [
        "dog",
        MISSING,
        "cat",
        "dog",
    ]
    # Numbers in their order, not in that of their digits.
    assert make_column("c", ["10", "9", "100", ""]).categories == (
        "9",
        "10",
        "100",
        MISSING,
    )
    assert category_column("c", [3, 1, 3]).categories == ("1", "3")


def test_lines_are_joined_by_id(tmp_path):
    path = tmp_path / "columns.csv"
    path.write_text('\ufeffid,kind,mass\nb,dog,2.5\nc,"cat, wild",1\na,dog,\n')
    kind, mass = read_columns(path, ["a", "b", "c"])
    assert [kind.categories[code] for code in kind.values] == [
        "dog",
        "dog",
        "cat, wild",
    ]
    np.testing.assert_array_equal(mass.values, [np.nan, 2.5, 1])


@pytest.mark.parametrize("suffix", [".tsv", ".jsonl", ".parquet"])
def test_other_tables(tmp_path, suffix):
    path = tmp_path / f"columns{suffix}"
    rows = [{"id": "b", "mass": 2.5}, {"id": "a", "mass": None}]
    if suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        path.write_text("id\tmass\nb\t2.5\na\t\n")
    [mass] = read_columns(path, ["a", "b"])
    np.testing.assert_array_equal(mass.values, [np.nan, 2.5])


def test_lines_without_ids_are_in_order(tmp_path):
    path = tmp_path / "columns.csv"
    path.write_text("mass\n1.5\n2.5\n")
    [mass] = read_columns(path, ["x", "y"])
    np.testing.assert_array_equal(mass.values, [1.5, 2.5])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file is empty"),
        ("mass\n1\n", "1 lines for 2 samples"),
        ("id,mass\na,1\n", "none with the id 'b'"),
        ("id,mass\na,1\nb\n", "line 3 has 1 cells, expected 2"),
        ("id,mass,mass\na,1,2\nb,1,2\n", "columns of the same name"),
        ("id,\na,1\nb,1\n", "a name of its own"),
        (b"mass\n\xff\n1\n", "save it as UTF-8"),
    ],
)
def test_bad_tables_are_refused(tmp_path, text, words):
    path = tmp_path / "columns.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=words) as caught:
        read_columns(path, ["a", "b"])
    assert str(caught.value).startswith(str(path))
