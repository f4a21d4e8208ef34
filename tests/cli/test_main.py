"""The command line end to end: what it writes, what it prints, what it refuses."""

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from scipy.sparse import load_npz

import sagl
from sagl import SAGL
from sagl.cli.main import COMMANDS, app, run
from tests.conftest import clustered_views


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Views and labels as files: 200 to fit, 40 to predict."""
    directory = tmp_path_factory.mktemp("files")
    views, labels = clustered_views()
    for name, array in views.items():
        np.save(directory / f"{name}.npy", array[:200])
        np.save(directory / f"new-{name}.npy", array[200:])
    np.save(directory / "labels.npy", labels[200:])
    return directory


def view_options(files, prefix=""):
    return [
        "--view",
        f"wide={files}/{prefix}wide.npy",
        "--view",
        f"narrow={files}/{prefix}narrow.npy",
    ]


def fit_options(files, out, *more):
    options = [*view_options(files), "--clusters", 4, "--steps", 60, "--seed", 0]
    return ["fit", *options, "--out", out, "--quiet", *more]


@pytest.fixture(scope="module")
def fitted_run(files, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["sagl", *map(str, fit_options(files, out))])
        with pytest.raises(SystemExit) as exit_:
            run()
    assert not exit_.value.code
    return out


def test_fit_writes_a_complete_run(fitted_run, files):
    names = {path.name for path in fitted_run.iterdir()}
    assert names == {
        "README.md",
        "config.json",
        "model.safetensors",
        "anchors.safetensors",
        "history.jsonl",
        "labels.csv",
        "graph.npz",
    }
    graph = load_npz(fitted_run / "graph.npz")
    assert graph.shape == (200, 200)
    np.testing.assert_allclose(graph.sum(axis=1), 1, atol=1e-5)


def test_fit_equals_python(fitted_run):
    views, _ = clustered_views()
    model = SAGL(4, steps=60, random_state=0).fit(views[:200])
    loaded = SAGL.load(fitted_run)
    np.testing.assert_array_equal(loaded.labels_, model.labels_)
    np.testing.assert_array_equal(
        loaded.predict_proba(views[200:]), model.predict_proba(views[200:])
    )


def test_fit_finds_the_number_of_clusters(sagl_cli, files, tmp_path):
    out = tmp_path / "run"
    options = [*view_options(files), "--steps", 60, "--out", out]
    code, printed, _ = sagl_cli("fit", *options, "--clusters", "auto", "--json")
    assert code == 0
    facts = json.loads(printed)
    assert facts["n_clusters"] == facts["cluster_count"]["best"] == 4
    assert not (out / "cluster-count.json").exists()
    assert "4 clusters (between" in sagl_cli("info", out)[1]
    options[-1] = tmp_path / "none"
    code, _, error = sagl_cli("fit", *options, "--clusters", "some")
    assert code == 2
    assert "--clusters must be a whole number or auto; got 'some'" in error
    assert not options[-1].exists()


def test_predict(sagl_cli, fitted_run, files, tmp_path):
    views, _ = clustered_views()
    expected = SAGL.load(fitted_run).predict_proba(views[200:])
    options = ["predict", fitted_run, *view_options(files, "new-"), "--out"]
    code, out, _ = sagl_cli(*options, tmp_path / "p.csv", "--json")
    assert code == 0
    assert json.loads(out)["n_samples"] == 40
    table = np.loadtxt(tmp_path / "p.csv", delimiter=",", skiprows=1)
    np.testing.assert_array_equal(table[:, 1], expected.argmax(axis=1))
    np.testing.assert_array_equal(table[:, 2], expected.max(axis=1))
    assert sagl_cli(*options, tmp_path / "p.npy")[0] == 0
    np.testing.assert_array_equal(np.load(tmp_path / "p.npy"), table[:, 1])


def test_predict_leaves_out_what_is_doubtful(sagl_cli, fitted_run, files, tmp_path):
    options = ["predict", fitted_run, *view_options(files, "new-")]
    options += ["--out", tmp_path / "p.npy", "--json"]
    facts = json.loads(sagl_cli(*options, "--agreement", 0.01)[1])
    assert facts["n_doubtful"] == 0
    facts = json.loads(sagl_cli(*options, "--agreement", 1)[1])
    doubtful = np.load(tmp_path / "p.npy") == -1
    assert facts["n_doubtful"] == doubtful.sum()
    assert facts["threshold"] > 0 or not doubtful.any()
    for agreement in (-1, 0, 1.01, 2, "nan"):
        refused(sagl_cli(*options, "--agreement", agreement), "above 0 and at most 1")


@pytest.mark.parametrize("protocol", ["inductive", "transductive", "batch"])
def test_evaluate(sagl_cli, fitted_run, files, protocol):
    options = ["evaluate", fitted_run, *view_options(files, "new-")]
    options += ["--labels", files / "labels.npy", "--protocol", protocol]
    code, out, _ = sagl_cli(*options, "--json")
    assert code == 0
    scores = json.loads(out)
    assert scores["protocol"] == protocol
    assert 0 < scores["acc"] <= 1
    code, out, _ = sagl_cli(*options)
    assert code == 0
    assert f"{scores['acc']:.4f}" in out
    assert ("order" in out) == (protocol == "batch")


def test_info(sagl_cli, fitted_run):
    code, out, _ = sagl_cli("info", fitted_run, "--json")
    assert code == 0
    facts = json.loads(out)
    assert facts["n_samples"] == 200
    assert sum(facts["cluster_sizes"]) == 200
    assert [view["name"] for view in facts["views"]] == ["wide", "narrow"]
    code, out, _ = sagl_cli("info", fitted_run)
    assert code == 0
    assert "wide (12)" in out


def test_version_and_help(sagl_cli):
    assert sagl_cli("--version")[1].strip() == f"sagl {sagl.__version__}"
    code, out, _ = sagl_cli("--help")
    assert code == 0
    assert all(word in out for word in ("demo", "fit", "predict", "evaluate", "info"))


def test_progress_goes_to_stderr(sagl_cli, files, tmp_path):
    arguments = [a for a in fit_options(files, tmp_path / "run") if a != "--quiet"]
    _, out, err = sagl_cli(*arguments, "--json")
    assert json.loads(out)
    assert "training" in err


def test_any_command_that_is_interrupted_says_so_in_one_line(
    sagl_cli, fitted, monkeypatch
):
    import sagl.run

    def interrupted(directory):
        raise KeyboardInterrupt

    monkeypatch.setattr(sagl.run, "read_config", interrupted)
    code, out, err = sagl_cli("info", fitted / "run")
    assert (code, out) == (130, "")
    assert err == "sagl: interrupted; the same command begins anew\n"


def test_one_of_several_that_is_ended_in_the_middle_of_an_import(
    sagl_cli, fitted, monkeypatch
):
    """Nobody can be asked then who is to say why."""
    import sagl.run

    def ended(directory):
        monkeypatch.setitem(sys.modules, "sagl.training.distributed", None)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(sagl.run, "read_config", ended)
    monkeypatch.setenv("RANK", "0")
    code, out, err = sagl_cli("info", fitted / "run")
    assert (code, out) == (1, "")
    assert err.startswith("sagl: error: ended by SIGTERM, perhaps because another pro")
    assert err.count("\n") == 1


def test_interrupted_fit_is_taken_up(sagl_cli, files, tmp_path, monkeypatch):
    """Ctrl-C in the middle, the same command again: the same bits as without it."""
    import sagl.training.trainer as trainer
    from sagl.training.checkpoint import Checkpointer

    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert sagl_cli(*fit_options(files, whole))[0] == 0

    monkeypatch.setattr(Checkpointer, "on_record", Checkpointer.write)
    original = trainer.Trainer._train_batch

    def interrupted(self, rows):
        if self.step == 40:
            raise KeyboardInterrupt
        original(self, rows)

    monkeypatch.setattr(trainer.Trainer, "_train_batch", interrupted)
    code, _, err = sagl_cli(*fit_options(files, broken))
    assert code == 130
    assert "takes up" in err
    assert {path.name for path in broken.iterdir()} == {"checkpoint.safetensors"}

    monkeypatch.setattr(trainer.Trainer, "_train_batch", original)
    assert sagl_cli(*fit_options(files, broken))[0] == 0
    for name in ("model.safetensors", "anchors.safetensors", "labels.csv"):
        assert (broken / name).read_bytes() == (whole / name).read_bytes(), name
    assert not (broken / "checkpoint.safetensors").exists()


def refused(result, *words):
    code, out, err = result
    assert code == 2, (code, out, err)
    assert err.startswith("sagl: error: ")
    assert err.count("\n") == 1, err
    for word in words:
        assert str(word) in err, (word, err)


def test_bad_views_are_refused_before_anything_is_written(sagl_cli, files, tmp_path):
    def fit(*views, clusters=4):
        options = [o for view in views for o in ("--view", view)]
        return sagl_cli(
            "fit", *options, "--clusters", clusters, "--out", tmp_path / "r"
        )

    def array(name, value):
        np.save(tmp_path / name, value)
        return f"x={tmp_path / name}"

    wide = f"wide={files}/wide.npy"
    good = np.load(files / "wide.npy")
    nan = good.copy()
    nan[7, 3] = np.nan
    refused(fit(wide, array("short.npy", good[:9])), "wide has 200", "x has 9")
    refused(fit(wide, array("nan.npy", nan)), "nan.npy", "NaN at row 7, column 3")
    refused(fit(wide, array("inf.npy", nan * np.inf)), "row 0")
    refused(fit(wide, array("flat.npy", np.ones((200, 2)))), "'x' is constant")
    refused(fit(wide, array("thin.npy", np.ones((200, 0)))), "no columns")
    refused(fit(wide, clusters=1), "n_clusters", "1")
    refused(fit(wide, clusters=201), "n_samples=200", "n_clusters=201")
    refused(fit(wide, "x=nowhere.npy"), "nowhere.npy", "no such file")
    (tmp_path / "text.npy").write_text("hello")
    refused(fit(wide, f"x={tmp_path}/text.npy"), "text.npy")
    data = (files / "wide.npy").read_bytes()
    (tmp_path / "cut.npy").write_bytes(data[:-100])
    refused(fit(wide, f"x={tmp_path}/cut.npy"), "cut.npy", "is cut short")
    refused(fit(wide, wide), "a view 'wide' already")
    assert not (tmp_path / "r").exists()


def test_bad_places_are_refused(sagl_cli, files, tmp_path, fitted_run):
    refused(
        sagl_cli(*fit_options(files, fitted_run)), fitted_run, "already holds a run"
    )
    (tmp_path / "file").touch()
    refused(sagl_cli(*fit_options(files, tmp_path / "file")), "is a file")
    refused(
        sagl_cli(*fit_options(files, tmp_path / "file" / "run")), "cannot be written"
    )
    options = ["predict", fitted_run, *view_options(files, "new-"), "--out"]
    refused(sagl_cli(*options, tmp_path / "p.docx"), "p.docx", ".csv")
    refused(sagl_cli(*options, tmp_path / "no" / "p.csv"), "no directory")


def test_other_views_and_labels_are_refused(sagl_cli, files, fitted_run, tmp_path):
    wide = f"wide={files}/new-wide.npy"

    def predict(*views):
        options = [o for view in views for o in ("--view", view)]
        return sagl_cli("predict", fitted_run, *options, "--out", tmp_path / "p.csv")

    refused(predict(wide), "narrow (6 columns)", "'narrow' is missing")
    refused(predict(wide, f"narrow={files}/new-wide.npy"), "'narrow' has 12 columns")
    refused(predict(wide, f"other={files}/new-narrow.npy"), "other")
    assert not (tmp_path / "p.csv").exists()
    np.save(tmp_path / "few.npy", np.zeros(7, dtype=int))
    options = ["evaluate", fitted_run, *view_options(files, "new-"), "--labels"]
    refused(sagl_cli(*options, tmp_path / "few.npy"), "40", "7")


def test_the_order_of_views_does_not_matter(sagl_cli, files, fitted_run, tmp_path):
    in_order = view_options(files, "new-")
    answers = []
    for options in (in_order, [*in_order[2:], *in_order[:2]]):
        table, graph = tmp_path / "p.csv", tmp_path / "g.npz"
        for command in (("predict", table), ("graph", graph)):
            name, out = command
            code, _, error = sagl_cli(name, fitted_run, *options, "--out", out)
            assert code == 0, error
        scored = [*options, "--labels", files / "labels.npy", "--json"]
        scores = [
            sagl_cli("evaluate", fitted_run, *scored, "--protocol", protocol)[1]
            for protocol in ("inductive", "transductive", "batch")
        ]
        answers.append((table.read_text(), load_npz(graph).toarray().tolist(), scores))
    assert answers[0] == answers[1]


def test_damaged_and_newer_runs_are_refused(sagl_cli, fitted_run, tmp_path):
    refused(sagl_cli("info", tmp_path), "holds no run")
    config = json.loads((fitted_run / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"format": 99}))
    refused(sagl_cli("info", tmp_path), "format 99", "upgrade")
    (tmp_path / "config.json").write_text(json.dumps(config))
    refused(sagl_cli("info", tmp_path), "model.safetensors is missing")


def test_usage_errors_exit_with_2(sagl_cli):
    assert sagl_cli("fit", "--clusters", "many")[0] == 2
    assert sagl_cli("nonsense")[0] == 2


def test_package_is_marked_as_typed():
    assert (Path(sagl.__file__).parent / "py.typed").exists()


def commands(group=None, path=()):
    """Every command with the words that it is called by."""
    group = typer.main.get_command(app) if group is None else group
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


@pytest.mark.parametrize(("path", "command"), list(commands()))
def test_help_ends_with_an_example_that_is_understood(sagl_cli, path, command):
    _, shown, _ = sagl_cli(*path, "--help")
    *_, title, example = [line.strip() for line in shown.splitlines() if line.strip()]
    assert title == "Example:"
    program, *words = shlex.split(example)
    assert (program, *words[: len(path)]) == ("sagl", *path)
    command.make_context(example, words[len(path) :])  # refuses what it does not know


def test_help_groups_commands_by_what_people_want(sagl_cli):
    shown = sagl_cli("--help")[1]
    places = [shown.index(f"─ {panel} ─") for panel in (*COMMANDS, "Features")]
    assert places == sorted(places)
    assert list(COMMANDS) == ["Cluster", "Look", "Compare", "Features"]
    assert shown.index("│ store ") > places[-1]


def test_the_shell_completes_commands_and_options():
    start = "from sagl.cli.main import app; app(prog_name='sagl')"

    def completed(words):
        said = {"_SAGL_COMPLETE": "complete_bash", "COMP_WORDS": words}
        said |= {"COMP_CWORD": str(len(words.split()) - 1)}
        shell = subprocess.run(
            [sys.executable, "-c", start],
            env=os.environ | said,
            capture_output=True,
            text=True,
            check=False,
        )
        return shell.stdout.split()

    assert completed("sagl pre") == ["predict"]
    assert "--clusters" in completed("sagl fit --clu")
