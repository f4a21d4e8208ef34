"""Runs to serve, and clients of them."""

import io
import json

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

from sagl import SAGL, Views
from sagl.experiments.fit import fit_run, run_input
from sagl.serve.app import create_app
from tests.conftest import clustered_views

KINDS = {"image": ("colours", "shapes"), "text": ("letters", "lengths")}


@pytest.fixture(scope="session")
def new():
    """Samples that the model has not seen."""
    return clustered_views(300, seed=0, spread=1.5)[0]


@pytest.fixture(scope="session")
def model():
    views, _ = clustered_views()
    fitted = SAGL(4, steps=60, random_state=0).fit(views)
    return fitted.rename({0: "cats", 2: "dogs ∞"})


@pytest.fixture
def client(model):
    with TestClient(create_app(model)) as client:
        yield client


def sent(views):
    """The JSON body for views."""
    return {"views": {name: array.tolist() for name, array in views.items()}}


def picture(i, seed=0):
    """The bytes of a small picture of one of four colours."""
    pixels = np.random.default_rng([seed, i]).integers(0, 60, (8, 8, 3)) + 45 * (i % 4)
    file = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, "PNG")
    return file.getvalue()


def words(i):
    """A text of one of four kinds."""
    return "abcdefgh"[i % 4] * (3 + i % 3) + " x" * (i % 7)


@pytest.fixture(scope="session")
def photos(tmp_path_factory):
    """A run on pictures whose store says how they became vectors."""
    folder = tmp_path_factory.mktemp("photos")
    (folder / "photos").mkdir()
    for i in range(60):
        (folder / "photos" / f"{i:02}.png").write_bytes(picture(i))
    return _fitted(folder, folder / "photos", "image")


@pytest.fixture(scope="session")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    path = folder / "texts.txt"
    path.write_text("".join(f"{words(i)}\n" for i in range(80)))
    return _fitted(folder, path, "text")


def backbones_of(kind):
    return [f"{name}=tests.serve.looks:{name}#{kind}" for name in KINDS[kind]]


def _fitted(folder, source, kind):
    run = folder / "run"
    options = {"device": "cpu", "workers": 0, "reader": {"id_column": None}}
    given = run_input(run, str(source), None, backbones_of(kind), **options)
    model = SAGL(4, refine=False, steps=40, random_state=0)
    fit_run(model, given.views, run, ids=given.ids, source=given.source)
    return run


def change_json(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def some(views, rows):
    return Views({name: array[rows] for name, array in views.items()})
