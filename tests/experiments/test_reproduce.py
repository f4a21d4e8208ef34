"""Reproductions: features of both splits, methods by preset, the table, its words."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from sagl import SAGL
from sagl.baselines import METHODS
from sagl.experiments.reproduce import (
    BACKBONES,
    DEFAULT_METHODS,
    PRESETS,
    Reproduction,
    extract_features,
    find_preset,
    given_features,
    preset_methods,
)
from sagl.experiments.table import published_figures
from sagl.features.backbones import KNOWN
from sagl.features.readers import DATASETS
from sagl.features.store import FeatureStore
from tests.experiments.small_runs import write_split
from tests.features.toy_extraction import tree

Image = pytest.importorskip("PIL.Image")

PETS = PRESETS["pets"]
SHADES = {
    "Abyssinian": (40, 30, 90),
    "pug": (40, 160, 50),
    "english_setter": (220, 190, 9),
}
# What a user would put into a file of their own. The second stops at the twelve
# pictures of the test split unless a file allows it, as Ctrl-C would.
MODELS = """
from pathlib import Path
import numpy as np

def colours(pictures):
    return np.stack([np.asarray(p).reshape(-1, 3).mean(axis=0) / 64 for p in pictures])

def thumbnails(pictures):
    if len(pictures) == 12 and not Path("go").exists():
        raise KeyboardInterrupt
    small = [p.convert("L").resize((4, 4)) for p in pictures]
    return np.stack([np.asarray(p).ravel() / 64 for p in small])
"""


def make_pets(root: Path, n_train: int = 8, n_test: int = 4) -> Path:
    """Small pictures of three breeds in the layout of the official download."""
    rng = np.random.default_rng(0)
    (root / "images").mkdir(parents=True)
    (root / "annotations").mkdir()
    lists = {"trainval": [], "test": []}
    for breed, shade in SHADES.items():
        for i in range(n_train + n_test):
            name = f"{breed}_{i + 1}"
            noise = rng.integers(-25, 25, (12, 12, 3))
            pixels = np.clip(np.array(shade) + noise, 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(root / "images" / f"{name}.jpg", quality=95)
            lists["trainval" if i < n_train else "test"].append(f"{name} 1 1 1")
    for part, lines in lists.items():
        (root / "annotations" / f"{part}.txt").write_text("\n".join(lines) + "\n")
    return root


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A directory in which the models can be found."""
    (tmp_path / "toy_pets.py").write_text(MODELS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "toy_pets", raising=False)
    return tmp_path


# train, test, C, learning rate, batch size, γ, β, dropout
SETTINGS = {
    "Pets": (3_680, 3_669, 37, 1e-3, 100, 5, 0.5, 0.1),
    "KITTI": (5_985, 1_496, 4, 5e-4, 100, 10, 0.5, 0.1),
    "Flowers": (2_040, 6_149, 102, 5e-4, 500, 5, 1.0, 0.0),
    "Caltech101": (3_060, 6_084, 102, 1e-3, 200, 5, 1.0, 0.2),
    "EuroSAT": (10_000, 5_000, 10, 1e-3, 500, 10, 0.1, 0.0),
    "SUN397": (19_850, 19_850, 397, 1e-3, 5_000, 10, 0.2, 0.1),
    "Food101": (75_750, 25_250, 101, 5e-4, 5_000, 20, 0.1, 0.1),
    "ImageNet-1K": (1_281_167, 50_000, 1_000, 5e-4, 10_000, 5, 0.2, 0.3),
}


COLOURS = "toy_pets:colours#image"
GREY = "grey=toy_pets:thumbnails#image"


class TestFeatures:
    def extract(self, root, out, *backbones):
        return extract_features(PETS, root, backbones, out, workers=0)

    def test_both_splits_become_stores(self, here):
        source = self.extract(make_pets(here / "data"), here / "out", COLOURS)
        assert source.name == "Pets"
        train, labels = source.train.read()
        test, truth = source.scored.read()
        assert (len(train), len(test)) == (24, 12)
        assert sorted(set(labels)) == sorted(set(truth)) == sorted(SHADES)
        store = FeatureStore.open(here / "out/features/train")
        assert store.ids[0] == "images/Abyssinian_1.jpg"

    def test_interrupted_and_taken_up(self, here):
        root = make_pets(here / "data")
        with pytest.raises(KeyboardInterrupt):
            self.extract(root, here / "out", COLOURS, GREY)
        before = tree(here / "out/features/train")
        assert "manifest.json" in before
        (here / "go").touch()
        self.extract(root, here / "out", COLOURS, GREY)
        assert tree(here / "out/features/train") == before
        self.extract(root, here / "whole", COLOURS, GREY)
        assert tree(here / "out") == tree(here / "whole")

    def test_what_is_complete_needs_no_models(self, here, monkeypatch):
        root = make_pets(here / "data")
        self.extract(root, here / "out", COLOURS)
        before = tree(here / "out")
        (here / "toy_pets.py").unlink()
        monkeypatch.delitem(__import__("sys").modules, "toy_pets")
        assert self.extract(root, here / "out", COLOURS).train.names == ("colours",)
        assert tree(here / "out") == before
        with pytest.raises(ValueError, match="toy_pets"):  # others are still loaded
            self.extract(root, here / "out", COLOURS, GREY)

    def test_no_other_model_passes_for_one_that_is_there(self, here):
        (here / "go").touch()
        root = make_pets(here / "data")
        self.extract(root, here / "out", COLOURS)
        with pytest.raises(ValueError, match="has a view 'colours' already"):
            self.extract(root, here / "out", "colours=toy_pets:thumbnails#image")

    def test_nor_do_other_samples(self, here):
        root = make_pets(here / "data")
        self.extract(root, here / "out", COLOURS)
        names = root / "annotations/trainval.txt"
        names.write_text(names.read_text().split("\n", 1)[1])
        with pytest.raises(ValueError, match="with n_samples 24"):
            self.extract(root, here / "out", COLOURS)

    def test_both_splits_are_looked_at_first(self, here):
        root = make_pets(here / "data")
        (root / "annotations/test.txt").write_text("\n")
        with pytest.raises(ValueError, match="the test part of pets is empty"):
            self.extract(root, here / "out", COLOURS)
        assert not (here / "out").exists()
        with pytest.raises(ValueError, match="there is no such folder to read pets"):
            self.extract(here / "nowhere", here / "out", COLOURS)

    def test_given_features_take_the_papers_name(self, tmp_path):
        split = write_split(tmp_path / "my features")
        source = given_features(PETS, split, ["wide"])
        assert source.name == "Pets"
        assert source.train.names == source.scored.names == ("wide",)
        (split / "test").rename(split / "later")
        with pytest.raises(ValueError, match="there is no test part; Pets is fitted"):
            given_features(PETS, split)


class TestMethods:
    def test_the_preset_reaches_the_papers_sagl_alone(self):
        kitti = PRESETS["kitti"]
        made = {m.name: m for m in preset_methods(kitti, [*DEFAULT_METHODS, "turtle"])}
        for name in ("sagl-paper", "sagl-i", "sagl-b", "sagl-w"):
            params = made[name].params
            assert params["recipe"] == "paper", name
            assert params["learning_rate"] == 5e-4, name
            assert params["epochs"] == 600, name
            assert made[name].title == METHODS[name].title
        assert made["sagl-i"].params["graph"] == "identity"
        assert made["sagl-b"].params["graph"] == "dense"
        assert made["sagl-w"].params["gate"] == "none"
        for name in ("sagl", "kmeans", "linear-probe", "turtle"):
            assert made[name] == METHODS[name]

    def test_a_shorter_training_is_said(self):
        paper, own = preset_methods(PETS, ["sagl-paper", "sagl"], 20)
        assert paper.params["epochs"] == 20
        assert paper.title == "SAGL (paper), 20 epochs"
        assert own == METHODS["sagl"]
        with pytest.raises(ValueError, match="epochs"):
            preset_methods(PETS, ["sagl"], 0)


def result(acc, seconds=2.0):
    scores = {"acc": acc, "nmi": acc, "ari": acc, "ami": acc, "n_clusters": 3}
    return {
        "scores": scores,
        "label_free": {"total": 1.0},
        "seconds": seconds,
        "peak_mib": 100.0,
        "curve": [[seconds, acc]],
    }


@pytest.fixture
def reproduction(tmp_path, monkeypatch):
    """Two methods with made-up results, one that is still to be run."""
    source = given_features(PETS, write_split(tmp_path / "split"))
    methods = preset_methods(PETS, ["sagl-paper", "kmeans", "linear-probe"], 7)
    out = tmp_path / "out"
    out.mkdir()
    accuracies = {"sagl-paper": 0.6, "linear-probe": 0.9}
    monkeypatch.setattr(
        Reproduction,
        "result",
        lambda self, task: (
            result(accuracies[task.method.name] + task.seed / 10)
            if task.method.name in accuracies
            else None
        ),
    )
    return Reproduction(PETS, source, methods, out, epochs=7, seeds=2)


class TestTable:
    def test_published_stands_beside_measured(self, reproduction):
        columns, table = reproduction.table()
        lines = {
            row.name: line for row, line in zip(reproduction.rows(), table, strict=True)
        }
        assert columns[1:7] == ["ACC", "paper", "NMI", "paper", "ARI", "paper"]
        assert columns[7] == "worst ACC"
        shown = dict(zip(columns, lines["sagl-paper"], strict=True))
        assert shown["method"] == "SAGL (paper), 7 epochs"
        assert shown["ACC"] == "**0.650 ± 0.071**"
        assert lines["sagl-paper"][2:7:2] == ["0.976", "0.973", "0.954"]  # the paper's
        assert lines["sagl-paper"][7] == "0.600"  # the worst seed
        assert lines["linear-probe"][2] == "0.971"
        assert lines["linear-probe"][4] == ""  # the paper has no NMI of it

    def test_what_the_paper_has_and_was_not_run_is_shown(self, reproduction):
        rows = {row.name: row for row in reproduction.rows()}
        assert rows["turtle"].title == "TURTLE"
        assert rows["turtle"].note == rows["srlf"].note == "published, not run"
        assert "not run yet" in rows["kmeans"].note
        assert next(iter(rows)) == "sagl-paper"
        assert list(rows)[-1] == "linear-probe"

    def test_words(self, reproduction):
        said = reproduction.protocols()
        assert "predicted alone" in said["measured"]
        assert "seeds 0 to 1" in said["measured"]
        assert "480 settings × 31 checkpoints on the test labels" in said["paper"]
        assert "not shuffled" in said["paper"]
        assert "with labels" in said["linear probe"]

    def test_departures(self, reproduction):
        assert reproduction.departures() == [
            "60 / 30 samples instead of 3,680 / 3,669",
            "3 clusters instead of 37",
            "7 epochs instead of 600",
            "features from files (narrow, wide) instead of the paper's, of dinov3-l "
            "and siglip2-l-384",
        ]
        reproduction.backbones = ("dinov3-l", "clip-l14")
        assert reproduction.departures()[-1].startswith(
            "features of dinov3-l and clip-l14"
        )

    def test_nothing_changed_is_said_too(self, reproduction):
        same = reproduction
        same.n_train, same.n_scored, same.n_clusters = 3_680, 3_669, 37
        same.backbones, same.epochs = ("siglip2-l-384", "dinov3-l"), 600
        assert same.departures() == []
        assert "data, features and epochs: the paper's" in same.sentences()

    def test_files(self, reproduction):
        names = reproduction.write()
        out = reproduction.out
        assert sorted(names) == sorted(path.name for path in out.iterdir())
        assert (out / "accuracy.png").read_bytes().startswith(b"\x89PNG")
        assert "7 of 600 epochs" in (out / "accuracy.svg").read_text()
        text = (out / "table.md").read_text()
        assert text == reproduction.markdown()
        assert "- measured: inductive." in text
        table = [line for line in text.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in table}) == 1
        lines = {
            line["name"]: line
            for line in csv.DictReader((out / "table.csv").read_text().splitlines())
        }
        assert float(lines["turtle"]["published_nmi"]) == 0.9614
        assert lines["kmeans"]["published_nmi"] == ""
        written = json.loads((out / "table.json").read_text())
        assert written == json.loads(json.dumps(reproduction.as_json()))
        assert written["preset"]["batch_size"] == 100
        assert written["epochs"] == 7
        assert written["published"]["sagl-paper"]["ari"] == 0.9535

    def test_without_any_result_there_is_a_table_and_no_figure(
        self, reproduction, monkeypatch
    ):
        monkeypatch.setattr(Reproduction, "result", lambda self, task: None)
        names = reproduction.write()
        assert names == ["table.md", "table.csv", "table.json"]


def test_all_eight_are_there_and_have_a_reader():
    assert list(PRESETS) == list(DATASETS)
    assert [preset.title for preset in PRESETS.values()] == list(SETTINGS)


@pytest.mark.parametrize("title", SETTINGS)
def test_settings(title):
    preset = find_preset(title)
    assert SETTINGS[title] == (
        *(preset.n_train, preset.n_test, preset.n_classes),
        *(preset.learning_rate, preset.batch_size),
        *(preset.gamma, preset.beta, preset.dropout),
    )
    assert preset.epochs == 600
    assert "sagl-paper" in published_figures(preset.title)


@pytest.mark.parametrize("preset", PRESETS.values(), ids=list(PRESETS))
def test_sagl_takes_the_settings(preset):
    model = SAGL(preset.n_classes, random_state=0, **preset.settings())
    settings = model.resolved(preset.n_train)
    assert settings.gamma == preset.gamma
    assert settings.batch_size == preset.batch_size
    assert settings.pseudo_label == "log"  # the paper's equations
    assert not settings.refine
    per_epoch = settings.steps / 600
    assert per_epoch == pytest.approx(preset.n_train / preset.batch_size, abs=1)
    short = SAGL(preset.n_classes, random_state=0, **preset.settings(3))
    assert short.resolved(preset.n_train).steps == 3 * per_epoch


def test_where_the_released_code_differs_is_noted():
    assert "1e-3" in PRESETS["kitti"].note
    noted = {name for name, preset in PRESETS.items() if preset.note}
    assert noted == {"kitti", "caltech101", "eurosat", "food101"}


@pytest.mark.parametrize("name", ["imagenet", "ImageNet-1K", "IMAGENET1K"])
def test_names_may_be_written_as_the_paper_does(name):
    assert find_preset(name) is PRESETS["imagenet"]


def test_an_unknown_name_is_answered_with_the_eight():
    with pytest.raises(ValueError, match="no data set 'cifar10'") as error:
        find_preset("cifar10")
    assert all(name in str(error.value) for name in PRESETS)


def test_the_default_backbones_are_known_as_the_papers():
    assert all(KNOWN[name].paper for name in BACKBONES)
