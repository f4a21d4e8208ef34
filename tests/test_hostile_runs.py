"""Runs that damage or malice has changed: one line or the same answer, and no more.

Bytes and structure are changed at random; unless said otherwise the checksums are made
right again, as somebody would who means harm.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sagl import SAGL
from sagl.cli.look import describe, show_run
from sagl.report.inputs import open_inputs
from sagl.run import MODEL, PARTS
from tests.fuzz.mutation import bytes_changed, header_changed, value_changed
from tests.runs import change_config, enter_parts

DATA = Path(__file__).parent / "data"
EXAMPLES = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
WIDTHS = {"a": 5, "b": 4}


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A run of today's format, saved from one of an older."""
    run = tmp_path_factory.mktemp("sound") / "run"
    SAGL.load(DATA / "run-0.1", device="cpu").save(run)
    return run


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    return shutil.copytree(DATA / "run-0.1", tmp_path_factory.mktemp("old") / "run")


@pytest.fixture(scope="module")
def samples():
    with np.load(DATA / "run-0.1-answers.npz") as kept:
        return {"a": kept["a"][:20], "b": kept["b"][:20]}


@pytest.fixture(scope="module")
def answers(sound, samples):
    return SAGL.load(sound, device="cpu").predict_proba(samples)


def attempt(call, *arguments):
    """What a call returns, and the line with which it refuses."""
    try:
        return call(*arguments), None
    except ValueError as error:
        return None, str(error)


def outcome(run, samples):
    """What a run answers, or None if it is refused in one line."""
    model, line = attempt(lambda: SAGL.load(run, device="cpu"))
    if line is not None:
        assert "\n" not in line
        assert str(run) in line
        assert len(line) < 1_000
        return None
    show_run(describe(run))
    _, line = attempt(open_inputs, run)
    if line is not None:
        assert "\n" not in line
        assert str(run) in line
    q, line = attempt(model.predict_proba, samples)
    if line is not None:  # its views have other names or widths
        assert "the model was fitted on the views" in line
        return None
    assert np.isfinite(q).all()
    assert len(model.labels_) == len(model.confidence_)
    return q


def copied(run, tmp_path_factory):
    return shutil.copytree(run, tmp_path_factory.mktemp("changed") / "run")


@EXAMPLES
@given(data=st.data())
def test_a_config_with_a_right_checksum(data, sound, samples, tmp_path_factory):
    run = copied(sound, tmp_path_factory)
    config = json.loads((run / "config.json").read_text())
    config.pop("checksum")
    other = value_changed(config, data.draw)
    (run / "config.json").write_text(json.dumps(other))
    if isinstance(other, dict):
        change_config(run, lambda config: config.update(checksum=""))
    outcome(run, samples)


@EXAMPLES
@given(data=st.data())
def test_a_config_of_an_older_run(data, old, samples, tmp_path_factory):
    run = copied(old, tmp_path_factory)
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps(value_changed(config, data.draw)))
    outcome(run, samples)


@EXAMPLES
@given(data=st.data(), name=st.sampled_from(["config.json", *PARTS]))
def test_bytes_that_are_not_what_was_written(
    data, name, sound, samples, answers, tmp_path_factory
):
    """Damage changes no answer: refused, or the same."""
    run = copied(sound, tmp_path_factory)
    (run / name).write_bytes(bytes_changed((run / name).read_bytes(), data.draw))
    q = outcome(run, samples)
    if q is not None:
        np.testing.assert_array_equal(q, answers)


@EXAMPLES
@given(data=st.data(), name=st.sampled_from(PARTS))
def test_bytes_with_right_checksums(data, name, sound, samples, tmp_path_factory):
    run = copied(sound, tmp_path_factory)
    (run / name).write_bytes(bytes_changed((run / name).read_bytes(), data.draw))
    enter_parts(run)
    outcome(run, samples)


@EXAMPLES
@given(data=st.data(), name=st.sampled_from(PARTS[:2]))
def test_headers_of_tensors(data, name, sound, samples, tmp_path_factory):
    run = copied(sound, tmp_path_factory)
    (run / name).write_bytes(header_changed((run / name).read_bytes(), data.draw))
    enter_parts(run)
    outcome(run, samples)


@EXAMPLES
@given(data=st.data())
def test_records_of_samples_and_of_the_history(data, sound, samples, tmp_path_factory):
    run = copied(sound, tmp_path_factory)
    lines = (run / "history.jsonl").read_text().splitlines()
    records = value_changed([json.loads(line) for line in lines], data.draw)
    records = records if isinstance(records, list) else [records]
    text = "".join(json.dumps(record) + "\n" for record in records)
    (run / "history.jsonl").write_text(text)
    source = {"source": "x.txt", "reader": "lines", "options": {"kind": "text"}}
    source = value_changed(
        {**source, "store": "features", "views": ["a", "b"]}, data.draw
    )
    (run / "source.json").write_text(json.dumps(source))
    enter_parts(run)
    outcome(run, samples)


# Each was once accepted, or ended in a traceback.
CORPUS = [
    ("settings", "alpha", "1.5"),
    ("settings", "n_clusters", 1e400),
    ("settings", "n_clusters", True),
    ("settings", "dropout", None),
    ("settings", "graph", ["sparse"]),
    ("settings", "search", []),
    ("params", "recipe", 3),
    ("params", "recipe", None),
    ("params", "checkpoint_dir", "/tmp"),
    ("params", "callbacks", ["os:system"]),
    (None, "params", []),
    (None, "views", {}),
    (None, "views", [{"name": "a", "width": 5}] * 2),
    (None, "view_weights", [0.5]),
    (None, "view_weights", ["a", "b"]),
    (None, "score", {"linear": 1}),
    (None, "doubt", {"confidence": [0.5], "kept": [], "agreement": []}),
    (None, "doubt", {"confidence": "ab", "kept": "ab", "agreement": "ab"}),
    (None, "cluster_count", {"best": 3}),
    (None, "cluster_sizes", 5),
    (None, "voters", None),
    (None, "n_samples", 7),
    (None, "n_steps", "5"),
    (None, "sha256", {}),
    (None, "sagl", {}),
]


@pytest.mark.parametrize(("part", "name", "value"), CORPUS, ids=str)
@pytest.mark.parametrize("which", ["sound", "old"])
def test_cases_that_were_found(request, which, part, name, value, tmp_path_factory):
    run = copied(request.getfixturevalue(which), tmp_path_factory)

    def change(config):
        (config if part is None else config[part])[name] = value

    change_config(run, change)
    with pytest.raises(ValueError, match=r"config\.json is damaged") as caught:
        SAGL.load(run)
    assert "\n" not in str(caught.value)


def test_voters_that_are_gone_are_missed(old, tmp_path_factory):
    """They were once left out without a word, and the run predicted otherwise."""
    run = copied(old, tmp_path_factory)
    change_config(run, lambda config: config.pop("voters"))
    with pytest.raises(ValueError, match="'voters' is missing"):
        SAGL.load(run)


@pytest.mark.parametrize("blank", ["\n", "\r\n\r\n"])
def test_blank_lines_between_the_labels(sound, samples, tmp_path_factory, blank):
    """Found by the bytes above: the report's reader stumbled over them."""
    run = copied(sound, tmp_path_factory)
    head, rest = (run / "labels.csv").read_text().split("\n", 1)
    (run / "labels.csv").write_text(f"{head}\n{blank}{rest}")
    enter_parts(run)
    outcome(run, samples)


@pytest.mark.parametrize("store", ["../other", "features/../../x"])
def test_paths_stay_in_the_run(sound, tmp_path_factory, store):
    run = copied(sound, tmp_path_factory)
    (run / "source.json").write_text(json.dumps({"store": store}))
    enter_parts(run)
    with pytest.raises(ValueError, match="leaves the run"):
        open_inputs(run)


def test_nothing_in_a_run_is_imported(sound, samples, tmp_path_factory, monkeypatch):
    """Names of modules in its files are words."""
    import importlib
    import os

    run = copied(sound, tmp_path_factory)
    source = {"source": "os:system", "reader": "os:system", "options": {}}
    (run / "source.json").write_text(json.dumps(source | {"backbone": "os:system"}))
    enter_parts(run)
    real, called = importlib.import_module, []
    monkeypatch.setattr(os, "system", lambda *_: called.append("system"))
    monkeypatch.setattr(
        importlib, "import_module", lambda name, *a: called.append(name) or real(name)
    )
    assert outcome(run, samples) is not None
    assert "system" not in called
    assert "os" not in called


def test_no_tensor_may_be_infinite(sound, tmp_path_factory):
    from sagl.storage import read_tensors, write_tensors

    run = copied(sound, tmp_path_factory)
    tensors, _ = read_tensors(run / MODEL)
    next(iter(tensors.values())).view(-1)[0] = float("nan")
    write_tensors(run / MODEL, tensors)
    enter_parts(run)
    with pytest.raises(ValueError, match="no finite numbers"):
        SAGL.load(run)
