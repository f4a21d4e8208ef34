"""A run's models are loaded once more, and nothing is run that a file names."""

import json
import shutil

import numpy as np
import pytest

from sagl.features.manifest import Plan
from sagl.run import FEATURES
from sagl.schema import checksum
from sagl.serve import backbones
from sagl.serve.backbones import Backbones, load_backbones, recorded
from sagl.storage import sha256
from tests.runs import change_config
from tests.serve.conftest import backbones_of

WIDTHS = {"colours": 12, "shapes": 36}
COMMIT = "a" * 40


def plan(dtype="float16", **about):
    return Plan(about, dtype, 12, 100, 64, 60, "sum")


def test_the_models_of_the_fit(photos):
    loaded = load_backbones(photos, WIDTHS, backbones_of("image"))
    assert loaded.kind == "image"
    assert loaded.names["shapes"] == "tests.serve.looks:shapes#image"
    assert loaded.dtypes == dict.fromkeys(WIDTHS, "float16")


def test_no_file_has_a_function_run(photos, monkeypatch):
    def never(*_, **__):
        raise AssertionError("it was loaded")

    monkeypatch.setattr(backbones, "load_backbone", never)
    with pytest.raises(ValueError, match=r"looks:colours, and a file cannot") as error:
        load_backbones(photos, WIDTHS)
    assert "--backbone colours=MODEL" in str(error.value)
    with pytest.raises(ValueError, match="looks:shapes, and a file cannot have code"):
        load_backbones(photos, WIDTHS, backbones_of("image")[:1])


@pytest.mark.parametrize(
    ("about", "name"),
    [
        (
            {
                "source": "hf",
                "model": "openai/clip",
                "revision": COMMIT,
                "kind": "text",
            },
            f"hf:openai/clip@{COMMIT}#text",
        ),
        ({"source": "timm", "model": "vit"}, "timm:vit"),
    ],
)
def test_models_of_the_hub_are_known_by_their_names(about, name):
    assert backbones._name_of("v", {"v": plan(**about)}) == name


@pytest.mark.parametrize(
    "about",
    [
        {"source": "hf", "model": "clip-vit", "revision": "b" * 64},
        {"source": "hf", "model": "../../etc", "revision": COMMIT},
        {"source": "hf", "model": "/etc/x", "revision": COMMIT},
        {"source": "hf", "model": ["a"], "revision": None},
        {"source": "python", "model": "os:system"},
        {"source": "npy", "model": "x/y.npy"},
        {"source": ["hf"], "model": "a/b"},
        {},
    ],
)
def test_what_a_file_cannot_name_must_be_given(about):
    with pytest.raises(ValueError, match=r"--backbone v=MODEL, or .*--vectors"):
        backbones._name_of("v", {"v": plan(**about)})


def test_another_model_is_refused(photos):
    first, second = backbones_of("image")
    swapped = [first.replace("looks:colours", "looks:shapes"), second]
    with pytest.raises(ValueError, match=r"has 12 columns, and .* gives 36"):
        load_backbones(photos, WIDTHS, swapped)
    with pytest.raises(ValueError, match="no such view; the run has colours, shapes"):
        load_backbones(photos, WIDTHS, [f"dino={first}"])


def test_a_model_that_has_changed_is_refused(photos, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(photos, run)
    manifest = run / FEATURES / "manifest.json"
    content = json.loads(manifest.read_text())
    content["views"]["shapes"]["backbone"]["revision"] = "0" * 64
    del content["checksum"]
    manifest.write_text(json.dumps({**content, "checksum": checksum(content)}))
    with pytest.raises(ValueError, match=r"manifest\.json is damaged"):
        recorded(run, list(WIDTHS))
    enter_manifest(run)
    with pytest.raises(ValueError, match=r"'shapes'.* is not the model of the fit"):
        load_backbones(run, WIDTHS, backbones_of("image"))


def enter_manifest(run):
    name = f"{FEATURES}/manifest.json"
    known = {name: sha256(run / name)}
    change_config(run, lambda config: config["sha256"].update(known))


def test_runs_of_vectors_know_no_model(tmp_path, model):
    model.save(tmp_path / "run")
    assert load_backbones(tmp_path / "run", {"wide": 12, "narrow": 6}) is None


def test_models_of_different_kinds(tmp_path, model):
    model.save(tmp_path / "run")
    given = [
        "wide=tests.serve.looks:colours#image",
        "narrow=tests.serve.looks:letters#text",
    ]
    with pytest.raises(ValueError, match="different kinds of samples"):
        load_backbones(tmp_path / "run", {"wide": 12, "narrow": 8}, given)


class Unstable:
    """A model whose last bits need its batch, as those of real ones do."""

    name, kind, dim = "unstable", "text", 1

    def prepare(self, text):
        return len(text)

    def embed(self, prepared):
        return np.array(prepared, dtype=np.float64)[:, None] + 1e-5 * len(prepared)

    def describe(self):
        return {}


def test_samples_are_embedded_one_by_one():
    made = Backbones("text", {"v": Unstable()}, {"v": "float64"})
    assert made.embed("abc")["v"].tolist() == [[3 + 1e-5]]
