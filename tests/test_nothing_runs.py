"""Nothing that is read runs code, is written elsewhere, or leads out of its place.

A test for each promise of SECURITY.md, with a file that tries to break it.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from sagl import SAGL
from sagl.cli import main
from sagl.features.callables import FunctionBackbone
from sagl.features.extraction import extract
from sagl.features.files import read_array, read_labels
from sagl.features.readers import open_samples
from sagl.features.store import FeatureStore, write_view
from sagl.features.store_tools import export, merge, verify
from sagl.features.tables import read_columns
from sagl.report.graph_file import stored_graph
from sagl.report.inputs import open_inputs
from sagl.schema import checksum
from tests.features.toy_extraction import Words
from tests.runs import change_config, enter_parts

DATA = Path(__file__).parent / "data"


def lengths(texts):
    return [[len(text), text.count(" ")] for text in texts]


def backbone():
    return FunctionBackbone(lengths, kind="text")


class Trap:
    """Makes a directory when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (f"{self.mark}",)


@pytest.fixture
def mark(tmp_path):
    """A place that is still not there at the end of the test."""
    mark = tmp_path / "it ran"
    yield mark
    assert not mark.exists()


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "inner" / "store"
    write_view(path, "v", ["a", "b"], np.eye(2), labels=["x", "y"])
    write_view(path, "w", ["a", "b"], np.ones((2, 3)))
    return path


@pytest.fixture
def run(tmp_path):
    SAGL.load(DATA / "run-0.1", device="cpu").save(tmp_path / "run")
    return tmp_path / "run"


def everything(folder: Path) -> dict[str, bytes | None]:
    """Every path below a folder, and what is in it."""
    return {
        str(path): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def change(path: Path, edit) -> None:
    content = json.loads(path.read_text())
    content.pop("checksum", None)
    edit(content)
    content["checksum"] = checksum(content)
    path.write_text(json.dumps(content))


class TestPickle:
    """tests/features/test_files.py has .npy and .npz of objects."""

    def test_records_with_objects_in_them(self, tmp_path, mark):
        trap = np.array([(1, Trap(mark))], dtype=[("a", "f4"), ("b", object)])
        np.save(tmp_path / "x.npy", trap, allow_pickle=True)
        with pytest.raises(ValueError, match="never loaded here"):
            read_array(tmp_path / "x.npy")

    @pytest.mark.parametrize("suffix", ["npy", "npz", "safetensors", "parquet"])
    def test_a_bare_pickle_of_another_name(self, tmp_path, mark, suffix):
        path = tmp_path / f"x.{suffix}"
        path.write_bytes(pickle.dumps(Trap(mark)))
        for read in (read_array, read_labels):
            with pytest.raises(ValueError, match="damaged or not a"):
                read(path)

    def test_in_the_graph_of_a_run(self, tmp_path, mark):
        trap = np.array([Trap(mark)], dtype=object)
        np.savez(
            tmp_path / "graph.npz", indices=trap, indptr=trap, data=trap, shape=trap
        )
        with pytest.raises(ValueError, match="never loaded here"):
            stored_graph(tmp_path, 1)

    def test_in_a_shard_of_a_store(self, store, mark):
        trap = np.array([[Trap(mark)] * 2] * 2, dtype=object)
        np.save(store / "v/00000.npy", trap, allow_pickle=True)
        with pytest.raises(ValueError, match="never loaded here"):
            FeatureStore.open(store).views()["v"][:]
        changed, pickled = verify(store)
        assert "its content is not what was written" in changed
        assert "never loaded here" in pickled

    def test_in_the_parts_of_a_run(self, run, mark):
        for name in ("model.safetensors", "anchors.safetensors"):
            torch.save({"x": Trap(mark)}, run / name)
        enter_parts(run)
        with pytest.raises(ValueError, match="not a safetensors file"):
            SAGL.load(run)

    def test_in_an_extension_type_of_parquet(self, tmp_path, mark):
        """As pyarrow loaded them once (CVE-2023-47248)."""
        plain = pa.schema([pa.field("x", pa.float32())])
        about = {
            b"ARROW:extension:name": b"arrow.py_extension_type",
            b"ARROW:extension:metadata": pickle.dumps(Trap(mark)),
        }
        table = pa.table({"x": pa.array([1.0], pa.float32())})
        table = table.cast(pa.schema([plain.field("x").with_metadata(about)]))
        pq.write_table(table, tmp_path / "x.parquet")
        assert read_array(tmp_path / "x.parquet").tolist() == [[1.0]]


class TestNames:
    """A module that a file names is a word."""

    def test_backbones_in_a_manifest(self, store, monkeypatch):
        called = []
        monkeypatch.setattr(os, "system", called.append)

        def edit(content):
            for view in content["views"].values():
                view["backbone"] = {"source": "python", "model": "os:system"}
            for samples in content["samples"].values():
                samples["source"] = {"reader": "os:system", "backbone": "os:system"}

        change(store / "manifest.json", edit)
        opened = FeatureStore.open(store)
        assert opened.describe()["views"]["v"]["backbone"]["model"] == "os:system"
        assert opened.join().source["reader"] == "os:system"
        assert called == []

    def test_the_same_work_is_not_taken_up_with_it(self, tmp_path, monkeypatch):
        """What a view was begun with is compared with what the caller gives."""
        monkeypatch.setattr(os, "system", pytest.fail)
        store = tmp_path / "store"
        extract(Words(20), {"v": backbone()}, store)
        change(
            store / "manifest.json",
            lambda c: c["views"]["v"]["backbone"].update(model="os:system"),
        )
        with pytest.raises(ValueError, match="os:system"):
            extract(Words(20), {"v": backbone()}, store)

    def test_classes_of_callbacks_and_baselines(self, run, monkeypatch):
        monkeypatch.setattr(os, "system", pytest.fail)
        change_config(run, lambda c: c["params"].update(callbacks=["os:system"]))
        with pytest.raises(ValueError, match="damaged"):
            SAGL.load(run)


class TestPaths:
    """Files of a store are in it."""

    @pytest.mark.parametrize(
        "file",
        [
            *("../outside/00000.npy", "v/../../outside/00000.npy", "/etc/passwd"),
            *("v/passwd", "w/00000.npy", "v\\..\\x.npy", "v/00000.npy\0", "", "v/"),
        ],
    )
    def test_shards_elsewhere(self, store, file):
        def edit(content):
            content["views"]["v"]["shards"][0]["file"] = file

        change(store / "manifest.json", edit)
        with pytest.raises(
            ValueError, match=r"manifest\.json.* cannot be a file of it"
        ):
            FeatureStore.open(store)

    @pytest.mark.parametrize("name", ["../w", "/tmp", "..", "v/../../x", ".hidden"])
    def test_views_elsewhere(self, store, tmp_path, name):
        def edit(content):
            view = content["views"].pop("v")
            view["shards"][0]["file"] = f"{name}/00000.npy"
            content["views"][name] = view

        change(store / "manifest.json", edit)
        before = everything(tmp_path)
        with pytest.raises(ValueError, match="cannot be a view's name"):
            merge([store], tmp_path / "inner" / "merged")
        with pytest.raises(ValueError, match="cannot be a view's name"):
            export(FeatureStore.open(store), tmp_path / "inner" / "out")
        assert everything(tmp_path) == before

    @pytest.mark.parametrize("key", ["/../../../x", "../x", "x", ""])
    def test_ids_elsewhere(self, store, key):
        def edit(content):
            for view in content["views"].values():
                old, view["samples"] = view["samples"], key
            content["samples"][key] = content["samples"].pop(old)

        change(store / "manifest.json", edit)
        with pytest.raises(ValueError, match="cannot be the key of samples"):
            FeatureStore.open(store).join()

    @pytest.mark.parametrize(
        "what", ["v/00000.npy", "v", "ids", "labels", "skipped.csv"]
    )
    def test_links_that_lead_out(self, store, tmp_path, what):
        name = (
            next(store.glob(f"{what}-*"), store / what).name if "/" not in what else ""
        )
        path = store / (name or what)
        outside = tmp_path / "outside"
        if path.exists():
            path.rename(outside)
        else:
            outside.write_text("id,reason\na,b\n")
        path.symlink_to(outside)
        with pytest.raises(ValueError, match="is a link that leaves the store"):
            merge([store], tmp_path / "merged")
        assert not (tmp_path / "merged").exists()

    def test_links_inside_and_a_store_that_is_a_link(self, store, tmp_path):
        (store / "v").rename(store / "elsewhere")
        (store / "v").symlink_to("elsewhere")
        (tmp_path / "link").symlink_to(store)
        assert FeatureStore.open(tmp_path / "link").views()["v"][:].tolist() == [
            [1.0, 0.0],
            [0.0, 1.0],
        ]
        assert verify(tmp_path / "link") == []

    def test_nothing_is_written_through_a_link(self, tmp_path):
        store, victim = tmp_path / "store", tmp_path / "victim"
        victim.write_text("mine")
        with pytest.raises(RuntimeError, match="killed"):
            extract(Words(20), {"v": backbone(), "w": Killer()}, store)
        begun = store / ".extracting"
        for place in begun.iterdir():
            for file in place.glob("*.npy"):
                file.unlink()
            (place / "00000.npy").symlink_to(victim)
            (place / "00000.jsonl").unlink(missing_ok=True)
        with pytest.raises(ValueError, match="is a link; remove it"):
            extract(Words(20), {"v": backbone()}, store)
        assert victim.read_text() == "mine"


class Killer:
    """A backbone that fails."""

    kind, dim = "text", 2

    def prepare(self, sample):
        return sample

    def embed(self, prepared):
        raise RuntimeError("killed")

    def describe(self):
        return {"model": "killer"}


class TestArchives:
    """Nothing is ever unpacked."""

    def test_tar_members_anywhere(self, tmp_path):
        path = tmp_path / "inner" / "x.tar"
        path.parent.mkdir()
        with tarfile.open(path, "w") as tar:
            for name in ("../../evil.txt", "/tmp/sagl-evil.txt", "sub/../../evil.txt"):
                member = tarfile.TarInfo(name)
                member.size = 4
                tar.addfile(member, io.BytesIO(b"text"))
            for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
                member = tarfile.TarInfo("link.txt")
                member.type, member.linkname = kind, "/etc/passwd"
                tar.addfile(member)
        before = everything(tmp_path)
        samples = open_samples(path)
        assert samples.ids == ["../../evil", "/tmp/sagl-evil", "sub/../../evil"]
        assert [samples[row] for row in range(3)] == ["text"] * 3
        assert samples.ignored == 2  # a link is no sample, whatever it is called
        assert everything(tmp_path) == before
        assert not Path("/tmp/sagl-evil.txt").exists()

    def test_ids_that_look_like_paths_are_words(self, tmp_path):
        ids = ["../../evil", "/tmp/sagl-evil", "C:\\x"]
        write_view(tmp_path / "store", "v", ids, np.eye(3))
        before = everything(tmp_path)
        out = tmp_path / "out"
        written = export(FeatureStore.open(tmp_path / "store"), out)
        assert {path.parent for path in written} == {out}
        assert (out / "ids.txt").read_text().splitlines() == sorted(ids)
        after = {path for path in everything(tmp_path) if f"{out}" not in path}
        assert after == set(before)

    def test_npz_members_anywhere(self, tmp_path):
        path = tmp_path / "x.npz"
        file = io.BytesIO()
        np.save(file, np.eye(2))
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("../../evil.npy", file.getvalue())
        before = everything(tmp_path)
        assert read_array(path).tolist() == [[1.0, 0.0], [0.0, 1.0]]
        assert everything(tmp_path) == before


FORMULAS = ["=1+1", "=cmd|' /C calc'!A0", "@SUM(A1)", '=HYPERLINK("http://x")', "+1"]


class TestFormulas:
    """Cells are what they say, letter by letter."""

    @pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
    def test_they_are_plain_text(self, tmp_path, suffix):
        path = tmp_path / f"x.{suffix}"
        if suffix == "parquet":
            pq.write_table(pa.table({"label": FORMULAS}), path)
        elif suffix == "jsonl":
            path.write_text("\n".join(json.dumps({"label": f}) for f in FORMULAS))
        else:
            cells = ['"{}"'.format(f.replace('"', '""')) for f in FORMULAS]
            path.write_text("\n".join(["label", *cells]))
        assert read_columns(path, [None])["label"] == FORMULAS
        if suffix != "jsonl":
            assert read_labels(path).tolist() == FORMULAS

    def test_they_are_no_numbers(self, tmp_path):
        (tmp_path / "x.csv").write_text("a,b\n=1+1,2\n")
        with pytest.raises(ValueError, match="cannot be read as numbers"):
            read_array(tmp_path / "x.csv")


class TestTerminal:
    """Names out of files are shown, and command no terminal."""

    HOSTILE = "\x1b[2J\x1b]0;owned\x07[/red] [bold]\u202ecat"

    def test_names_of_clusters(self, run, capsys, monkeypatch):
        model = SAGL.load(run, device="cpu")
        model.rename({0: self.HOSTILE})
        shutil.rmtree(run)
        model.save(run)
        for command in (["info", run], ["names", run], ["clusters", run]):
            monkeypatch.setattr(sys, "argv", ["sagl", *map(str, command)])
            with pytest.raises(SystemExit) as exit_:
                main.run()
            out, error = capsys.readouterr()
            assert exit_.value.code in (None, 0), error
            assert "\x1b]" not in out + error
            assert "\u202e" not in out + error
            assert "\\x1b[2J" in out

    def test_errors(self, tmp_path, capsys, monkeypatch):
        np.savez(tmp_path / "x.npz", **{self.HOSTILE: np.eye(2), "b": np.eye(2)})
        words = ["fit", "--view", f"{tmp_path / 'x.npz'}", "--out", f"{tmp_path / 'r'}"]
        monkeypatch.setattr(sys, "argv", ["sagl", *words, "--clusters", "2"])
        with pytest.raises(SystemExit):
            main.run()
        error = capsys.readouterr().err
        assert "holds 2 arrays" in error
        assert "\\x1b[2J" in error
        assert "\x1b" not in error


class TestSource:
    """What a run says of its samples' place is opened by a report, and no more."""

    @pytest.mark.parametrize(
        "source",
        [
            *(
                "x-{0..999999999999999}.tar",
                "{a,b}" * 60 + ".tar",
                "\0.txt",
                "{" * 9000,
            ),
            *("a" * 5000 + ".txt", "/dev/zero", "/proc/self/mem", "/proc/self/environ"),
        ],
    )
    def test_places_that_are_no_samples(self, run, source):
        record = {"source": source, "reader": "shards", "options": {}}
        (run / "source.json").write_text(json.dumps(record))
        enter_parts(run)
        inputs = open_inputs(run)
        assert "Pictures and texts are not shown" in inputs.notes[0]
        assert len(inputs.notes[0]) < 20_000
