"""Samples that miss a view, from the shell: files with NaN, stores, tables."""

import csv
import json

import numpy as np
import pytest
from scipy.sparse import load_npz

from sagl.features.store import write_view
from tests.conftest import clustered_views

IDS = [f"{i:03d}.jpg" for i in range(120)]
LITTLE = ["--steps", 3, "--quiet"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two views, the second with 30 rows less: with NaN, with ids, and as a store."""
    folder = tmp_path_factory.mktemp("missing")
    views, labels = clustered_views(120)
    for name, array in views.items():
        array = np.array(array)
        rows = np.arange(120) if name == "wide" else np.arange(30, 120)
        write_view(folder / "store", name, [IDS[i] for i in rows], array[rows])
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["photo", *(f"x{i}" for i in range(array.shape[1]))])
            writer.writerows([IDS[i], *map(repr, array[i].tolist())] for i in rows)
        if name == "narrow":
            array[:30] = np.nan
        np.save(folder / f"{name}.npy", array)
    np.save(folder / "labels.npy", labels)
    return folder


def named(folder, suffix):
    names = ("wide", "narrow")
    return [w for n in names for w in ("--view", f"{n}={folder}/{n}.{suffix}")]


@pytest.fixture(scope="module")
def run(files):
    """A run of the store, all its samples kept."""
    from sagl import SAGL
    from sagl.experiments.fit import fit_run
    from sagl.features.split import open_input

    given = open_input(files / "store", None, "outer")
    out = files / "run"
    fit_run(
        SAGL(4, steps=3, random_state=0),
        given.views,
        out,
        ids=given.ids,
        source=given.source,
    )
    return out


def clusters(path):
    with path.open(newline="") as file:
        return [row["cluster"] for row in csv.DictReader(file)]


def test_nan_ids_and_stores_are_one_and_the_same(sagl_cli, files, run, tmp_path):
    ids = ["--id-column", "photo"]
    sources = {
        "npy": named(files, "npy"),
        "csv": [*named(files, "csv"), *ids, "--join", "outer"],
        "store": [files / "store", "--join", "outer"],
    }
    for name, words in sources.items():
        out = tmp_path / f"{name}.csv"
        code, _, error = sagl_cli("predict", run, *words, "--out", out)
        assert code == 0, error
        assert clusters(out) == clusters(run / "labels.csv")


def test_fit_and_info_say_who_misses_what(sagl_cli, files, tmp_path):
    out = tmp_path / "run"
    code, _, error = sagl_cli(
        "fit", *named(files, "npy"), "--clusters", 4, "--out", out, *LITTLE
    )
    assert code == 0, error
    assert "warning" not in error.lower()
    code, shown, _ = sagl_cli("info", out, "--json")
    assert json.loads(shown)["missing"] == [0, 30]
    assert "narrow 30 samples" in sagl_cli("info", out)[1]
    graph = load_npz(out / "graph.npz")
    assert np.isfinite(graph.data).all()


def test_graph_report_and_evaluate(sagl_cli, files, run, tmp_path):
    code, shown, error = sagl_cli("graph", run, "--view", "narrow", "--json")
    assert code == 0, error
    assert json.loads(shown)["no_neighbour"] == 30
    page = tmp_path / "page.html"
    code, _, error = sagl_cli(
        "report", run, "--labels", files / "labels.npy", "--out", page, "--quiet"
    )
    assert code == 0, error
    assert page.stat().st_size > 10_000
    code, shown, error = sagl_cli(
        *("evaluate", run, *named(files, "npy")),
        *("--labels", files / "labels.npy", "--json"),
    )
    assert code == 0, error
    assert json.loads(shown)["acc"] > 0.9


def refused(outcome, *words):
    code, out, error = outcome
    assert (code, out) == (2, "")
    assert error.count("\n") == 1
    for word in words:
        assert word in error


def test_what_is_no_missing_view_is_refused(sagl_cli, files, tmp_path):
    def fit(*words):
        return sagl_cli(
            "fit", *words, "--clusters", 4, "--out", tmp_path / "r", *LITTLE
        )

    wide, narrow = (np.load(files / f"{n}.npy") for n in ("wide", "narrow"))
    narrow[40, 2] = np.nan
    np.save(tmp_path / "half.npy", narrow)
    both = ["--view", f"wide={files}/wide.npy", "--view", f"n={tmp_path}/half.npy"]
    refused(fit(*both), "half.npy", "NaN at row 40, column 2", "whole row of NaN")
    wide[3] = np.nan
    np.save(tmp_path / "lost.npy", wide)
    both = ["--view", f"w={tmp_path}/lost.npy", "--view", f"n={files}/narrow.npy"]
    refused(fit(*both), "all hold NaN at row 3", "leave it out")
    refused(fit(*named(files, "npy"), "--recipe", "paper"), "'narrow'", "refine=True")
    refused(fit(files / "store"), "'inner' takes those, 'outer' keeps all")
    refused(fit(files / "store", "--join", "left"), "error, inner or outer")
    refused(fit(*named(files, "csv"), "--id-column", "photo"), "'outer' keeps all")
    assert not (tmp_path / "r").exists()
