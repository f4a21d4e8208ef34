"""``sagl fit`` with clusters of free sizes, and what ``sagl info`` says of them."""

import json
import re

import numpy as np
import pytest
from safetensors.numpy import save_file

from sagl import SAGL
from sagl.parameters import option_of, sagl_parameters
from tests.conftest import clustered_views


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    """Of a fit that takes a moment."""
    directory = tmp_path_factory.mktemp("files")
    views, _ = clustered_views(120)
    arguments = ["--clusters", 4, "--steps", 5, "--seed", 0, "--quiet"]
    for name, array in views.items():
        np.save(directory / f"{name}.npy", array)
        arguments += ["--view", f"{name}={directory}/{name}.npy"]
    return arguments


@pytest.mark.parametrize(
    ("more", "given", "sizes"),
    [
        ((), "auto", "balanced"),
        (("--cluster-sizes", "balanced"), "balanced", "balanced"),
        (("--cluster-sizes", "any"), "any", "any"),
    ],
)
def test_sizes_of_clusters(sagl_cli, options, tmp_path, more, given, sizes):
    run = tmp_path / "run"
    code, _, error = sagl_cli("fit", *options, *more, "--out", run)
    assert code == 0, error
    model = SAGL.load(run)
    assert model.cluster_sizes == given
    assert model.cluster_sizes_ == sizes
    facts = json.loads(sagl_cli("info", run, "--json")[1])
    assert facts["size_choice"] == sizes
    assert facts["anchors"] == len(model.anchor_labels_)
    shown = sagl_cli("info", run)[1]
    assert f"({sizes})" in shown
    assert "that new ones attend to" in shown


def test_without_a_search_there_is_no_choice_of_sizes(sagl_cli, options, tmp_path):
    run = tmp_path / "run"
    assert sagl_cli("fit", *options, "--no-refine", "--out", run)[0] == 0
    facts = json.loads(sagl_cli("info", run, "--json")[1])
    assert facts["size_choice"] is None
    shown = sagl_cli("info", run)[1]
    assert "(balanced)" not in shown
    assert "(any)" not in shown


def test_other_sizes_are_refused_by_name(sagl_cli, options, tmp_path):
    run = tmp_path / "run"
    code, _, error = sagl_cli("fit", *options, "--cluster-sizes", "big", "--out", run)
    assert code == 2
    assert "cluster_sizes must be one of 'auto', 'balanced', 'any'; got 'big'" in error
    assert not (run / "config.json").exists()


def test_every_parameter_of_sagl_is_an_option(sagl_cli, options, tmp_path):
    code, shown, _ = sagl_cli("fit", "--help")
    assert code == 0
    for name in sagl_parameters():
        assert option_of(name) in shown, name
    given = {
        **{"recipe": "released", "gamma": 2.5, "beta": 0.5, "learning_rate": 0.01},
        **{"batch_size": 30, "dropout": 0.1, "alpha": 2.0, "graph": "sparse"},
        **{"gate": "shrink", "gate_input": "z", "pseudo_label": "log"},
        **{"alignment": "one-way", "normalize": "none", "refine": False},
        **{"n_restarts": 2, "self_loops": False},
        **{"n_anchors": 20, "tolerance": 0.01, "patience": 3},
    }
    words = []
    for name, value in given.items():
        option = option_of(name)
        if isinstance(value, bool):
            words.append(option if value else option.replace("--", "--no-", 1))
        else:
            words += [option, value]
    code, _, err = sagl_cli("fit", *options, *words, "--out", tmp_path / "run")
    assert code == 0, err
    params = SAGL.load(tmp_path / "run").get_params()
    assert {name: params[name] for name in given} == given
    others = {"epochs", "steps", "width", "cluster_sizes"}  # cannot be beside these
    assert set(sagl_parameters()) - set(given) == others


def test_a_number_or_a_word(sagl_cli, options, tmp_path):
    code, _, error = sagl_cli(
        "fit", *options, "--batch-size", "some", "--out", tmp_path / "run"
    )
    assert code == 2
    assert "batch_size" in error
    assert error.count("\n") == 1


def test_help_is_in_panels_with_room_for_what_options_mean(sagl_cli, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = sagl_cli("fit", "--help")[1]
    of = {}
    for line in shown.splitlines():
        if line.startswith("╭"):
            panel = line.strip("╭─╮ ")
        if found := re.match(r"│[* ]+(--[\w-]+)", line):
            of[found[1]] = panel
            if panel not in ("Options", "Arguments"):
                meaning = re.search(r"(?:<\w+>|[A-Z][A-Z=,…]*)  +", line)
                assert 78 - meaning.end() >= 28, line
    for name, parameter in sagl_parameters().items():
        assert of[option_of(name)] == parameter.panel, name
    assert of["--view"] == of["--backbone"] == "The data"
    assert of["--clusters"] == of["--recipe"] == "The clusters"
    assert of["--out"] == of["--device"] == "The run"
    assert set(of.values()) == {
        *("The data", "The clusters", "The network", "The training", "The run"),
        "Options",  # --help itself
    }


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_a_file_of_several_arrays_is_its_views(sagl_cli, tmp_path, suffix):
    views, labels = clustered_views(120)
    arrays = {**dict(views.items()), "labels": labels}
    path = tmp_path / f"both{suffix}"
    save = save_file if suffix == ".safetensors" else lambda a, f: np.savez(f, **a)
    save(arrays, path)
    quick = ("--clusters", 4, "--steps", 5, "--quiet")
    code, _, error = sagl_cli("fit", path, *quick, "--out", tmp_path / "run")
    assert code == 2
    assert "'labels'" in error  # is no view
    assert "--views NAME" in error
    chosen = ("--views", "wide,narrow", *quick, "--json")
    code, out, error = sagl_cli("fit", path, *chosen, "--out", tmp_path / "run")
    assert code == 0, error
    assert [view["name"] for view in json.loads(out)["views"]] == ["wide", "narrow"]
    found = tmp_path / "found.csv"
    assert sagl_cli("predict", tmp_path / "run", path, "--out", found)[0] == 0
    run = (tmp_path / "run" / "labels.csv").read_text().splitlines()
    predicted = found.read_text().splitlines()
    assert [x.split(",")[:2] for x in run] == [x.split(",")[:2] for x in predicted]
    assert predicted[0].startswith("row,")
    code, _, error = sagl_cli("fit", path, "--views", "clip", *quick, "--out", "other")
    assert code == 2
    assert "has no array 'clip'; choose one of: " in error
