"""``sagl views``: the table, the words, the picture, and what is refused."""

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from sagl.cli.features import views
from sagl.evaluation.cka import cka_matrix
from sagl.features.store import write_view
from sagl.views import Views


def run(*arguments):
    app = typer.Typer()
    app.command()(views)
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture(scope="module")
def arrays():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(80, 6)).astype(np.float32)
    return {
        "a": a,
        "[turned]": a[:, ::-1].copy(),
        "other": rng.normal(size=(80, 5)).astype(np.float32),
    }


@pytest.fixture(scope="module")
def options(arrays, tmp_path_factory):
    directory = tmp_path_factory.mktemp("views")
    arguments = []
    for i, (name, array) in enumerate(arrays.items()):
        np.save(directory / f"{i}.npy", array)
        arguments += ["--view", f"{name}={directory / f'{i}.npy'}"]
    return arguments


def test_table_words_and_picture(tmp_path, options):
    out = tmp_path / "cka.png"
    result = run(*options, "--out", out, "--quiet")
    assert result.exit_code == 0
    assert "CKA of 3 views, 80 samples" in result.stdout
    assert "a and [turned] repeat each other (CKA 1.000)" in result.stdout
    assert "a and other have little in common" in result.stdout
    assert "repeat from 0.9, overlap from 0.75, complement from 0.3" in result.stdout
    assert out.read_bytes().startswith(b"\x89PNG")


def test_says_which_views_to_use(options):
    printed = json.loads(run(*options, "--clusters", 3, "--json", "--quiet").stdout)
    choice = printed["choice"]
    assert set(choice["views"]) <= set(printed["views"])
    assert {len(subset["views"]) for subset in choice["tried"]} >= {1, 2}
    scores = [subset["score"] for subset in choice["tried"]]
    assert scores == sorted(scores, reverse=True)
    shown = run(*options, "--clusters", 3, "--quiet").stdout
    assert f"use: {', '.join(choice['views'])}" in shown
    assert "[turned]" in shown


def test_json(arrays, options):
    printed = json.loads(run(*options, "--json", "--quiet").stdout)
    expected = cka_matrix(Views(arrays))
    np.testing.assert_allclose(printed["cka"], expected)
    assert printed["n_samples"] == 80
    assert printed["batch_size"] is None
    assert printed["views"] == {"a": 6, "[turned]": 6, "other": 5}
    assert printed["pairs"][0]["verdict"] == "repeat"
    batched = json.loads(run(*options, "--json", "--batch-size", 20).stdout)
    np.testing.assert_allclose(batched["cka"], cka_matrix(Views(arrays), batch_size=20))


def test_a_feature_store(arrays, tmp_path):
    ids = [f"sample-{i:03}" for i in range(80)]
    write_view(tmp_path / "store", "a", ids, arrays["a"])
    write_view(tmp_path / "store", "other", ids[10:], arrays["other"][10:])
    refused = run(tmp_path / "store", "--quiet")
    assert isinstance(refused.exception, ValueError)
    with pytest.warns(UserWarning, match="samples"):
        result = run(tmp_path / "store", "--join", "inner", "--json", "--quiet")
    printed = json.loads(result.stdout)
    assert printed["n_samples"] == 70
    expected = cka_matrix(Views([arrays["a"][10:], arrays["other"][10:]]))
    np.testing.assert_allclose(printed["cka"], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give a feature store, or views with --view"),
        (["STORE", "--view", "a=b.npy"], "one of the two"),
        (["ONE"], "there is one view only, 'a'"),
        (["ALL", "--out", "cka.bmp"], "cka.bmp: a figure is written as .png"),
        (["ALL", "--batch-size", "3"], "at least 4"),
    ],
)
def test_bad_input(options, arguments, message):
    full = {"ONE": options[:2], "ALL": options, "STORE": ["store"]}
    given = [part for a in arguments for part in full.get(a, [a])]
    result = run(*given, "--quiet")
    assert isinstance(result.exception, ValueError)
    assert message in str(result.exception)
