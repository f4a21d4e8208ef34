"""What the user names and what lies in the run: joined by id, refused if foreign."""

import base64
import io
import json

import numpy as np
import pytest
from PIL import Image

from sagl import SAGL
from sagl.features.readers import open_samples
from sagl.features.store import write_view
from sagl.report.annotations import run_checksum
from sagl.report.inputs import (
    SIDE,
    Inputs,
    data_address,
    first_words,
    make_thumbnails,
    open_inputs,
    with_samples,
)
from tests.conftest import clustered_views
from tests.report.pages import Pictures


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
    found = open_inputs(run)
    assert found.ids == [str(row) for row in range(240)]
    assert found.views is None
    assert found.samples is None
    assert found.notes == ()


def test_views_and_labels_from_files(run, tmp_path):
    views, labels = clustered_views()
    for name, array in views.items():
        np.save(tmp_path / f"{name}.npy", array)
    np.save(tmp_path / "labels.npy", labels)
    options = [f"{name}={tmp_path}/{name}.npy" for name in views.names]
    found = open_inputs(run, views=options, labels=tmp_path / "labels.npy")
    np.testing.assert_array_equal(found.views["narrow"], views["narrow"])
    np.testing.assert_array_equal(found.labels, labels)
    np.save(tmp_path / "few.npy", labels[:7])
    with pytest.raises(ValueError, match=r"few.npy: 7 samples, but .* on 240"):
        open_inputs(run, labels=tmp_path / "few.npy")
    with pytest.raises(ValueError, match="either --store or --view"):
        open_inputs(run, views=options, store=tmp_path)


def test_the_store_in_the_run_is_found(run):
    write_store(run / "features")
    found = open_inputs(run)
    assert found.ids == ids()
    views, _ = clustered_views()
    np.testing.assert_array_equal(found.views["wide"][:], views["wide"])


def test_the_written_source_is_opened_again(run, tmp_path):
    # More pictures than samples: the store's ids choose.
    write_store(run / "features")
    write_pictures(tmp_path / "pictures", [*ids(), "zzz.png", "000a.png"])
    about = open_samples(tmp_path / "pictures").describe()
    (run / "source.json").write_text(json.dumps(about))
    found = open_inputs(run)
    assert found.samples.ids[found.sample_rows[5]] == "005.png"
    assert found.sample(5).size == (50, 50)


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
    found = open_inputs(run, store=tmp_path / "store")
    np.testing.assert_array_equal(found.views["wide"][:], views["wide"])
    (run / "source.json").write_text(json.dumps({"store": str(tmp_path / "store")}))
    np.testing.assert_array_equal(open_inputs(run).views["wide"][:], views["wide"])
    (run / "source.json").write_text(json.dumps({"store": "gone"}))
    assert "features were not found" in open_inputs(run).notes[0]
    with pytest.raises(ValueError, match="gone"):
        open_inputs(run, store=tmp_path / "gone")


def test_a_source_that_is_gone_is_a_note(run, tmp_path):
    about = {"reader": "folder", "path": "gone", "source": "gone", "options": {}}
    (run / "source.json").write_text(json.dumps(about))
    found = open_inputs(run)
    assert found.samples is None
    assert "not shown" in found.notes[0]
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


def test_large_pictures_shrink_and_keep_their_shape():
    samples = Pictures("abc", size=(800, 400))
    found = make_thumbnails([0, 2], samples.__getitem__)
    assert list(found.images) == [0, 2]
    assert not found.pixelated
    for content in found.images.values():
        assert Image.open(io.BytesIO(content)).size == (SIDE, SIDE // 2)
        assert len(content) < 5_000


def test_tiny_pictures_are_kept_to_the_pixel():
    samples = Pictures("abc", size=(8, 8))
    found = make_thumbnails([1], samples.__getitem__)
    assert found.pixelated
    kept = Image.open(io.BytesIO(found.images[1]))
    assert kept.tobytes() == samples[1].tobytes()


def test_without_webp_thumbnails_are_png(monkeypatch):
    monkeypatch.setattr("PIL.features.check", lambda name: False)
    found = make_thumbnails([0], Pictures("a").__getitem__)
    assert data_address(found.images[0]).startswith("data:image/png;base64,iVBOR")


def test_unreadable_pictures_are_counted():
    samples = Pictures("abc", broken=1)
    found = make_thumbnails(range(3), samples.__getitem__)
    assert list(found.images) == [0, 2]
    assert found.unreadable == 1


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P", "CMYK", "1", "I;16"])
def test_all_modes_can_be_shown(mode):
    for size in ((200, 100), (8, 8)):
        image = Image.new("RGB", size, "red")
        image = Image.new(mode, size) if mode == "I;16" else image.convert(mode)
        found = make_thumbnails([0], lambda row, image=image: image)
        address = data_address(found.images[0])
        kind, _, content = address.partition(";base64,")
        shown = Image.open(io.BytesIO(base64.b64decode(content)))
        assert kind == f"data:image/{shown.format.lower()}"


def test_first_words():
    assert first_words("short") == "short"
    assert first_words("x" * 500) == "x" * 400 + "…"
