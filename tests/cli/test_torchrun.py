"""The command line under torchrun: real processes, one run, one line when one fails."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import load_npz

import sagl
from sagl import SAGL, Views
from sagl.card import CARD
from sagl.experiments.fit import fit_run
from sagl.run import CONFIG, GRAPH, PARTS
from sagl.search.config import SearchConfig
from tests.cli.test_extract import BACKBONES
from tests.conftest import clustered_views

HOME = Path(sagl.__file__).parents[1]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Views of 151 samples that overlap, and a backbone of texts."""
    folder = tmp_path_factory.mktemp("views")
    views, labels = clustered_views(151, 4, spread=1.2)
    for name, array in views.items():
        np.save(folder / f"{name}.npy", array)
    np.save(folder / "labels.npy", labels)
    (folder / "toy_models.py").write_text(BACKBONES)
    (folder / "texts.txt").write_text("".join(f"o{'xo' * i}\n" for i in range(40)))
    return folder


def command(*arguments):
    return [sys.executable, "-m", "sagl", *map(str, arguments)]


def torchrun(count, *arguments):
    launcher = ["torch.distributed.run", "--nproc-per-node", str(count), "-m"]
    words = ["sagl", *map(str, arguments)]
    return [sys.executable, "-m", *launcher, *words]


def environment(folder):
    paths = os.pathsep.join([str(HOME), str(folder)])
    return {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}


def call(words, folder, code=0):
    """stdout and stderr of a command that ends with this code."""
    done = subprocess.run(
        words,
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


def fit_options(out, *more):
    files = [word for name in ("wide", "narrow") for word in ("--view", f"{name}.npy")]
    return ["fit", *files, "--clusters", 4, "--out", out, *more]


def errors(stderr):
    return [line for line in stderr.splitlines() if line.startswith("sagl: ")]


def arrays_of(folder):
    return {name: np.load(folder / f"{name}.npy") for name in ("wide", "narrow")}


def test_fit(files):
    out, shown = call(torchrun(2, *fit_options("two", "--json")), files)
    assert json.loads(out)["n_samples"] == 151, "one process prints, and once"
    assert len([line for line in shown.splitlines() if "search" in line]) == 1
    assert not errors(shown)
    search = {field.name: field.default for field in fields(SearchConfig)}
    one = SAGL(4, search=search, random_state=0).fit(arrays_of(files))
    two = SAGL.load(files / "two")
    assert two.score_ == one.score_
    assert np.array_equal(two.labels_, one.labels_)
    there = {p.name for p in (files / "two").iterdir()}
    assert there == {CONFIG, GRAPH, CARD, *PARTS}
    for name, tensor in two.network_.state_dict().items():
        np.testing.assert_allclose(
            tensor, one.network_.state_dict()[name], rtol=1e-3, atol=1e-5
        )


@pytest.mark.slow
def test_predict_and_graph(files):
    model = fit_run(SAGL(4, random_state=0), Views(arrays_of(files)), files / "run")
    views = ["--view", "wide=wide.npy", "--view", "narrow=narrow.npy"]
    out, _ = call(torchrun(3, "predict", "run", *views, "--out", "run.csv"), files)
    assert out.count("predictions in") == 1
    clusters, confidence = model.predict_with_confidence(arrays_of(files))
    table = np.loadtxt(files / "run.csv", delimiter=",", skiprows=1)
    assert np.array_equal(table[:, 1:], np.stack([clusters, confidence], axis=1))
    call(torchrun(2, "graph", "run", *views, "--out", "run.npz"), files)
    assert (load_npz(files / "run.npz") != load_npz(files / "run/graph.npz")).nnz == 0


@pytest.mark.slow
def test_extraction_and_runs_of_a_comparison_are_shared(files):
    texts = ["texts.txt", "--backbone", "n=toy_models:lengths#text"]
    call(command("extract", *texts, "--out", "one.store", "--quiet"), files)
    out, _ = call(
        torchrun(2, "extract", *texts, "--out", "two.store", "--quiet"), files
    )
    assert "40 samples in two.store" in out
    shards = [
        sorted(p.rglob("*.npy")) for p in (files / "one.store", files / "two.store")
    ]
    assert len(shards[0]) > 0
    for a, b in zip(*shards, strict=True):
        assert a.read_bytes() == b.read_bytes()
    study = ["--view", "wide.npy", "--view", "narrow.npy", "--labels", "labels.npy"]
    study += ["--methods", "kmeans,gmm", "--seeds", 2, "--looks", 0, "--out", "study"]
    out, _ = call(torchrun(2, "compare", *study, "--json"), files)
    found = json.loads(out)
    assert len(found["runs"]) == 4
    assert not any("error" in run for run in found["runs"])


@pytest.mark.slow
def test_what_is_refused_is_said_once(files):
    (files / "taken").mkdir()
    (files / "taken" / "config.json").write_text("{}")
    _, shown = call(torchrun(2, *fit_options("taken")), files, code=1)
    (line,) = errors(shown)
    assert "taken already holds a run" in line
    _, shown = call(torchrun(2, *fit_options("new", "--nonsense")), files, code=1)
    assert shown.count("No such option") == 1
    assert not (files / "new").exists()


def processes_of(parent):
    """Of torchrun: those that work, in order of their start."""
    listed = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return sorted(map(int, listed))


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["dead", "stuck"])
def test_a_process_that_dies_ends_all(files, tmp_path, how):
    """torchrun ends those that live; of one that stands still others must tell."""
    more = ["--recipe", "paper", "--tolerance", 0, "--epochs", 10**6]
    words = torchrun(3, *fit_options(tmp_path / "run", *more))
    job = subprocess.Popen(
        words, cwd=files, env=environment(files), stderr=subprocess.PIPE, text=True
    )
    try:
        begun = time.monotonic()
        while not (tmp_path / "run").exists():
            assert time.monotonic() - begun < 120, "no run began"
            time.sleep(0.1)
        time.sleep(3)
        struck = time.monotonic()
        os.kill(processes_of(job.pid)[-1], how)
        (line,) = (text for text in job.stderr if text.startswith("sagl: "))
        assert time.monotonic() - struck < 100  # torchrun gives the stuck one 30
        assert job.wait(10) == 1
    finally:
        for process in processes_of(job.pid) if job.poll() is None else ():
            os.kill(process, signal.SIGKILL)
        job.kill()
        job.stderr.close()
    assert "error: " in line
    assert "the same command takes up what was done" in line
    assert how == signal.SIGKILL or "process 2 has been silent for" in line
