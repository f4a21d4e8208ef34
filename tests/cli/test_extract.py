"""``sagl extract`` and ``sagl fit`` from a folder of pictures to clusters."""

import csv
import json

import numpy as np
import pytest

from sagl import SAGL
from sagl.features.store import FeatureStore, read_skipped
from tests.features.toy_extraction import tree

Image = pytest.importorskip("PIL.Image")

# Functions of a list of pictures: what a user would put into a file of their own.
BACKBONES = """
import numpy as np

def colours(pictures):
    return np.stack([np.asarray(p).reshape(-1, 3).mean(axis=0) / 64 for p in pictures])

def thumbnails(pictures):
    small = [p.convert("L").resize((4, 4)) for p in pictures]
    return np.stack([np.asarray(p).ravel() / 64 for p in small])

def lengths(texts):
    return np.array([[len(t), t.count("o")] for t in texts], dtype=float)
"""
MODELS = [
    *("--backbone", "toy_models:colours#image"),
    *("--backbone", "grey=toy_models:thumbnails#image"),
]


@pytest.fixture
def sagl(sagl_cli, monkeypatch, tmp_path):
    """Runs a command line where the models can be found: exit code, stdout, stderr."""
    (tmp_path / "toy_models.py").write_text(BACKBONES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return sagl_cli


@pytest.fixture
def photos(tmp_path):
    """Three kinds of pictures in a folder each, and one file that is none."""
    rng = np.random.default_rng(0)
    shades = {"dusk": (40, 30, 90), "grass": (40, 160, 50), "sand": (220, 190, 120)}
    for name, shade in shades.items():
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(14):
            noise = rng.integers(-25, 25, (12, 12, 3))
            pixels = np.clip(np.array(shade) + noise, 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{i:02d}.png")
    (tmp_path / "photos" / "sand" / "torn.png").write_bytes(b"\x89PNG\r\n")
    return tmp_path / "photos"


def extract_options(photos, out, *more):
    return ["extract", photos, *MODELS, "--out", out, "--quiet", *more]


def test_a_folder_becomes_a_store(sagl, photos, tmp_path):
    code, out, _ = sagl(*extract_options(photos, "store", "--json"))
    assert code == 0
    facts = json.loads(out)
    assert facts["complete"]
    assert facts["samples"] == 43
    assert facts["views"]["colours"] == {"rows": 42, "dim": 3, "dtype": "float16"}
    joined = FeatureStore.open("store").join()
    assert joined.views.names == ("colours", "grey")
    assert joined.ids[0] == "dusk/00.png"
    assert joined.labels.tolist() == ["dusk"] * 14 + ["grass"] * 14 + ["sand"] * 14
    [(sample, reason)] = read_skipped(tmp_path / "store")
    assert sample == "sand/torn.png"
    assert reason


def test_people_are_told(sagl, photos):
    code, out, err = sagl(*extract_options(photos, "store")[:-1])
    assert code == 0
    assert "colours: 42 rows of 3 float16" in out
    assert "1 could not be used: store/skipped.csv says why" in out
    assert "extracting" in err


def test_shards_of_several_processes(sagl, photos, monkeypatch, tmp_path):
    monkeypatch.setattr("sagl.features.store_write._PIECE_ROWS", 8)
    assert sagl(*extract_options(photos, "one"))[0] == 0
    code, out, _ = sagl(*extract_options(photos, "two", "--shard", "1/2"))
    assert code == 0
    assert "part 1 of 2 is done" in out
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert sagl(*extract_options(photos, "two"))[0] == 0
    assert tree(tmp_path / "two") == tree(tmp_path / "one")


def test_a_view_is_added_later(sagl, photos, tmp_path):
    out = ["--out", "store", "--quiet"]
    sagl("extract", photos, *MODELS[2:], *out)
    before = tree(tmp_path / "store" / "grey")
    code, _, _ = sagl("extract", photos, *MODELS[:2], *out, "--dtype", "float32")
    assert code == 0
    assert tree(tmp_path / "store" / "grey") == before
    views = FeatureStore.open("store").views()
    assert views["colours"].dtype == np.float32
    assert views["grey"].dtype == np.float16


def test_texts(sagl, tmp_path):
    (tmp_path / "texts.csv").write_text("n,say,of\na,hello,x\nb,good bye,y\n")
    columns = ["--column", "say", "--id-column", "n", "--label-column", "of"]
    code, _, err = sagl(
        *("extract", "texts.csv", "--backbone", "toy_models:lengths#text"),
        *("--out", "store", "--quiet", *columns),
    )
    assert code == 0, err
    joined = FeatureStore.open("store").join()
    assert joined.ids == ["a", "b"]
    assert joined.labels.tolist() == ["x", "y"]
    np.testing.assert_array_equal(joined.views["lengths"], [[5, 1], [8, 2]])


def refused(result, *words):
    code, out, err = result
    assert code == 2, (code, out, err)
    assert err.startswith("sagl: error: ")
    for word in words:
        assert str(word) in err, (word, err)


def test_bad_input_is_one_line(sagl, photos, tmp_path):
    out = ["--out", tmp_path / "store", "--quiet"]
    refused(sagl("extract", photos, *out), "--backbone")
    refused(sagl("extract", "nowhere", *MODELS, *out), "nowhere")
    refused(sagl("extract", photos, *MODELS, *MODELS, *out), "a view 'colours' already")
    refused(sagl("extract", photos, *MODELS, *out, "--shard", "2/2"), "0/2 and 1/2")
    refused(sagl("extract", photos, *MODELS, *out, "--dtype", "int8"), "int8")
    assert not (tmp_path / "store").exists()
    refused(sagl("extract", photos, *MODELS, "--out", photos), "is no feature store")


class TestFit:
    def fit(self, sagl, source, *more):
        options = ["--clusters", 3, "--steps", 40, "--seed", 0, "--quiet"]
        return sagl("fit", source, *options, *more)

    def test_from_a_plain_folder_to_labels_in_one_command(self, sagl, photos, tmp_path):
        code, _, err = self.fit(sagl, photos, *MODELS, "--out", "run")
        assert code == 0, err
        with (tmp_path / "run" / "labels.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        ids = FeatureStore.open("run/features").ids
        assert [row["sample"] for row in rows] == ids
        model = SAGL.load("run")
        assert model.view_names_ == ("colours", "grey")
        assert [int(row["cluster"]) for row in rows] == model.labels_.tolist()
        clusters = {row["sample"].split("/")[0]: row["cluster"] for row in rows}
        assert len(set(clusters.values())) == 3  # such pictures are easily told apart
        source = json.loads((tmp_path / "run" / "source.json").read_text())
        assert source["source"] == str(photos)
        assert source["store"] == "features"
        assert source["reader"] == "folder of pictures"

    def test_with_two_local_models(self, sagl, photos, tmp_path, monkeypatch):
        """Models of transformers in directories, without a network."""
        pytest.importorskip("transformers")
        from tests.features.models import save_dinov3, save_siglip2

        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        save_dinov3(tmp_path / "dino")
        save_siglip2(tmp_path / "siglip")
        models = ["--backbone", "hf:./dino", "--backbone", "text-image=hf:./siglip"]
        code, _, err = self.fit(
            sagl, photos, *models, "--workers", 1, "--out", "run", "--steps", 5
        )
        assert code == 0, err
        store = FeatureStore.open("run/features")
        assert SAGL.load("run").view_names_ == ("dino", "text-image")
        assert len(store.ids) == 42
        backbone = store.manifest.views["dino"].plan.backbone
        assert backbone["source"] == "hf"
        assert backbone["preprocessing"]
        assert len(backbone["revision"]) == 64  # a checksum of the weights

    def test_killed_between_extraction_and_fit(self, sagl, photos, tmp_path):
        assert self.fit(sagl, photos, *MODELS, "--out", "whole")[0] == 0
        sagl("extract", photos, *MODELS, "--out", "run/features", "--quiet")
        assert self.fit(sagl, photos, *MODELS, "--out", "run")[0] == 0
        whole, again = tree(tmp_path / "whole"), tree(tmp_path / "run")
        assert again.keys() == whole.keys()
        for name in ("labels.csv", "model.safetensors", "features/manifest.json"):
            assert again[name] == whole[name], name

    def test_from_a_store(self, sagl, photos, tmp_path):
        sagl(*extract_options(photos, "store"))
        assert self.fit(sagl, "store", "--out", "run")[0] == 0
        assert not (tmp_path / "run" / "features").exists()
        source = json.loads((tmp_path / "run" / "source.json").read_text())
        assert source["store"] == str(tmp_path / "store")
        assert self.fit(sagl, "store", "--views", "grey", "--out", "one")[0] == 0
        assert SAGL.load("one").view_names_ == ("grey",)

    def test_predict_and_evaluate_from_a_store(self, sagl, photos, tmp_path):
        sagl(*extract_options(photos, "store"))
        assert self.fit(sagl, "store", "--out", "run")[0] == 0
        assert sagl("predict", "run", "store", "--out", "p.csv")[0] == 0
        known = (tmp_path / "run" / "labels.csv").read_text().splitlines()
        expected = [line.split(",")[:3] for line in known]  # and what fit adds
        predicted = (tmp_path / "p.csv").read_text().splitlines()
        assert [line.split(",") for line in predicted] == expected
        code, out, _ = sagl("evaluate", "run", "store", "--json")
        assert code == 0
        assert json.loads(out)["acc"] > 0.9
        refused(sagl("predict", "run", "--out", "q.csv"), "store", "--view")
        refused(sagl("predict", "run", photos, "--out", "q.csv"), "sagl extract")

    def test_partly_overlapping_views(self, sagl, photos, tmp_path):
        sagl("extract", photos, *MODELS[:2], "--out", "store", "--quiet")
        for i in range(4):
            (photos / "dusk" / f"{i:02d}.png").unlink()
        sagl("extract", photos, *MODELS[2:], "--out", "store", "--quiet")
        refused(
            self.fit(sagl, "store", "--out", "run"), "colours 42, grey 38", "38 are in"
        )
        assert not (tmp_path / "run").exists()
        code, _, err = self.fit(sagl, "store", "--join", "inner", "--out", "run")
        assert code == 0
        assert "38 are in all of them and taken" in err
        assert len(SAGL.load("run").labels_) == 38

    def test_what_does_not_go_together(self, sagl, photos, tmp_path):
        sagl(*extract_options(photos, "store"))
        refused(
            self.fit(sagl, "store", *MODELS, "--out", "r"), "holds features already"
        )
        refused(self.fit(sagl, photos, "--out", "r"), "give --backbone")
        view = ["--view", "x=x.npy", "--out", "r"]
        refused(self.fit(sagl, photos, *MODELS, *view), "not both")
        refused(self.fit(sagl, "store", *view), "one of the two")
        refused(sagl("fit", "--clusters", 3, "--out", "r"), "--view")
        refused(
            self.fit(sagl, photos, *MODELS, "--out", "r", "--clusters", 50),
            "n_samples=43 is fewer than n_clusters=50",
        )
        refused(sagl("fit", *MODELS, "--clusters", 3, "--out", "r"), "SOURCE")
        assert not (tmp_path / "r").exists()


def test_compare_on_a_store(sagl, photos):
    sagl(*extract_options(photos, "store"))
    code, out, err = sagl(
        *("compare", "--data", "store", "--methods", "kmeans", "--seeds", 1),
        *("--out", "comparison", "--quiet", "--json"),
    )
    assert code == 0, err
    result = json.loads(out)
    assert result["data"] == "store"
    assert result["n_clusters"] == 3
    assert result["protocol"] == "fitted samples"
    assert result["rows"][0]["mean"]["acc"] == 1
