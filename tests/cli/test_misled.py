"""Input that would mislead: ids, foreign directories, options that do nothing."""

import csv
import json
import shutil

import numpy as np
import pytest

from sagl import SAGL
from sagl.experiments.fit import fit_run
from sagl.features.split import read_files
from sagl.features.store import write_view
from sagl.run import refuse_foreign
from tests.conftest import clustered_views

IDS = [f"{i:03d}.jpg" for i in range(60)]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Two views as tables with ids, each in an order of its own; labels; a store."""
    folder = tmp_path_factory.mktemp("tables")
    views, labels = clustered_views(60)
    for seed, (name, array) in enumerate(views.items()):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["photo", *(f"x{i}" for i in range(array.shape[1]))])
            for row in np.random.default_rng(seed).permutation(60):
                writer.writerow([IDS[row], *map(repr, array[row].tolist())])
        np.save(folder / f"{name}.npy", array)
        write_view(folder / "store", name, IDS, array)
    np.save(folder / "labels.npy", labels)
    (folder / "text.txt").write_text("one\ntwo\nthree\n")
    (folder / "names.txt").write_text("one\ntwo\n")
    return folder


def view_options(folder, suffix):
    return [
        word
        for name in ("wide", "narrow")
        for word in ("--view", f"{name}={folder}/{name}.{suffix}")
    ]


def fit_options(out, *more):
    return ["fit", "--clusters", 4, "--steps", 3, "--quiet", "--out", out, *more]


def refused(outcome, *words):
    code, out, error = outcome
    assert code == 2
    assert out == ""
    assert error.startswith("sagl: error: ")
    assert error.count("\n") == 1
    for word in words:
        assert word in error


def labels_of(path):
    with path.open(newline="") as file:
        return {row["sample"]: row["cluster"] for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def run(tables, tmp_path_factory):
    """A run of the tables, joined by their ids."""
    options = [f"{name}={tables}/{name}.csv" for name in ("wide", "narrow")]
    joined = read_files(options, "photo")
    out = tmp_path_factory.mktemp("runs") / "python"
    model = SAGL(4, steps=3, random_state=0)
    fit_run(model, joined.views, out, ids=joined.ids)
    return out


class TestIds:
    def test_a_fit_joins_by_them_and_keeps_them(self, sagl_cli, tables, run, tmp_path):
        out = tmp_path / "run"
        ids = ["--id-column", "photo"]
        code, _, error = sagl_cli(
            *fit_options(out, *view_options(tables, "csv"), *ids, "--seed", 0)
        )
        assert code == 0, error
        assert set(labels_of(out / "labels.csv")) == set(IDS)
        assert labels_of(out / "labels.csv") == labels_of(run / "labels.csv")

    def test_so_do_other_commands(self, sagl_cli, tables, run, tmp_path):
        views = [*view_options(tables, "csv"), "--id-column", "photo"]
        out = tmp_path / "p.csv"
        code, _, error = sagl_cli("predict", run, *views, "--out", out)
        assert code == 0, error
        assert labels_of(out) == labels_of(run / "labels.csv")
        code, _, error = sagl_cli("graph", run, *views, "--out", tmp_path / "g.csv")
        assert code == 0, error
        assert IDS[0] in (tmp_path / "g.csv").read_text()
        code, out, error = sagl_cli("views", *views, "--json")
        assert code == 0, error
        _, expected, _ = sagl_cli("views", *view_options(tables, "npy"), "--json")
        ours, theirs = (json.loads(text)["cka"] for text in (out, expected))
        np.testing.assert_allclose(ours, theirs, atol=1e-6)

    def test_a_report_joins_views_to_the_run(self, sagl_cli, tables, run, tmp_path):
        pytest.importorskip("matplotlib", reason="needs the extra report")
        turned = tmp_path / "wide.csv"
        head, *lines = (tables / "wide.csv").read_text().splitlines()
        turned.write_text("\n".join([head, *sorted(lines)]) + "\n")
        views = ["--view", f"wide={turned}", *view_options(tables, "csv")[2:]]
        more = ["--id-column", "photo", "--no-tsne", "--quiet"]
        page = tmp_path / "r.html"
        code, _, error = sagl_cli("report", run, *views, *more, "--out", page)
        assert code == 0, error

    def test_a_table_with_ids_gets_the_right_advice(self, sagl_cli, tables, tmp_path):
        options = fit_options(tmp_path / "run", *view_options(tables, "csv"))
        refused(sagl_cli(*options), "wide.csv", "'photo'", "--id-column photo")
        assert not (tmp_path / "run").exists()
        studied = ["combine", *view_options(tables, "csv"), "--clusters", 4]
        outcome = sagl_cli(*studied, "--out", tmp_path / "study")
        assert "--id-column" not in outcome[2]


@pytest.mark.parametrize("form", ["wide={}", "wide={}::wide"])
def test_what_is_read_is_not_written_over(sagl_cli, fitted, tables, tmp_path, form):
    own = tmp_path / "own.npy"
    own.write_bytes((tables / "wide.npy").read_bytes())
    before = own.read_bytes()
    views = ["--view", form.format(own), *view_options(tables, "npy")[2:]]
    words = ("predict", fitted / "run", *views, "--out", tmp_path / "x" / ".." / own)
    refused(sagl_cli(*words), "--out", "would write over what is read")
    assert own.read_bytes() == before


class TestFeaturesAsASource:
    """What people try first: a file of features without --view."""

    def test_fit(self, sagl_cli, tables, tmp_path):
        for name in ("wide.npy", "wide.csv"):
            words = ["fit", tables / name, "--clusters", 4, "--out", tmp_path / "run"]
            refused(sagl_cli(*words), f"--view NAME={tables / name}", "--backbone")

    def test_predict(self, sagl_cli, tables, run, tmp_path):
        words = ["predict", run, tables / "wide.npy", "--out", tmp_path / "p.csv"]
        refused(sagl_cli(*words), f"--view NAME={tables / 'wide.npy'}")

    def test_nothing_at_all(self, sagl_cli, tmp_path):
        words = ["fit", "--clusters", 4, "--out", tmp_path / "run"]
        refused(sagl_cli(*words), "give a SOURCE, or views with --view NAME=FILE")


class TestNothingReadIsWrittenOver:
    @pytest.mark.parametrize(
        ("command", "name"),
        [
            ("predict {run} {views} --out {file}", "link.npy"),
            ("graph {run} --labels {labels}::x --json --out {file}", "labels.npz"),
            ("report {run} --columns {table} --no-tsne --parquet {file}", "t.parquet"),
        ],
        ids=["a link", "--labels", "--columns"],
    )
    def test_by(self, sagl_cli, tables, run, tmp_path, command, name):
        for source in ("wide.npy", "narrow.npy"):
            shutil.copy(tables / source, tmp_path)
        np.savez(tmp_path / "labels.npz", x=np.load(tables / "labels.npy"))
        (tmp_path / "t.parquet").write_text("kept")
        (tmp_path / "link.npy").symlink_to(tmp_path / "wide.npy")
        before = (tmp_path / name).read_bytes()
        words = command.format(
            run=run,
            views=" ".join(map(str, view_options(tmp_path, "npy"))),
            labels=tmp_path / "labels.npz",
            table=tmp_path / "t.parquet",
            file=tmp_path / name,
        )
        refused(sagl_cli(*words.split()), name, "would write over what is read")
        assert (tmp_path / name).read_bytes() == before


@pytest.mark.parametrize(
    ("command", "part"), [("clusters", "labels.csv"), ("graph", "graph.npz")]
)
def test_a_part_of_a_run_is_not_written_over(sagl_cli, run, command, part):
    before = (run / part).read_bytes()
    refused(sagl_cli(command, run, "--out", run / part), part, "is a part of a run")
    assert (run / part).read_bytes() == before


class TestForeignDirectories:
    @pytest.fixture
    def options(self, tables, tmp_path):
        (tmp_path / "thesis").mkdir()
        (tmp_path / "thesis" / "chapter.tex").write_text("words")
        return fit_options(tmp_path / "thesis", *view_options(tables, "npy"))

    def test_they_are_refused(self, sagl_cli, options, tmp_path):
        refused(sagl_cli(*options), "is not empty", "chapter.tex", "--force")
        assert [p.name for p in (tmp_path / "thesis").iterdir()] == ["chapter.tex"]

    def test_force_keeps_what_is_there(self, sagl_cli, options, tmp_path):
        code, out, error = sagl_cli(*options, "--force")
        assert code == 0, error
        assert (tmp_path / "thesis" / "chapter.tex").read_text() == "words"
        assert "chapter.tex" not in out  # it is no file of the run
        assert "labels.csv" in out

    @pytest.mark.parametrize("name", ["model.safetensors", "source.json", "graph.npz"])
    def test_force_overwrites_nothing(self, sagl_cli, options, tmp_path, name):
        (tmp_path / "thesis" / name).write_text("mine")
        refused(sagl_cli(*options, "--force"), name, "would be overwritten")
        assert (tmp_path / "thesis" / name).read_text() == "mine"

    def test_a_run_is_never_overwritten(self, sagl_cli, fitted, tables):
        options = fit_options(fitted / "run", *view_options(tables, "npy"), "--force")
        refused(sagl_cli(*options), "already holds a run")

    @pytest.mark.parametrize(
        "left",
        [(), (".config.json.0a1b2c3d.tmp",), (".probe-17", "cluster-count.json")],
    )
    def test_what_a_killed_fit_left_is_taken_up(self, sagl_cli, tables, tmp_path, left):
        out = tmp_path / "run"
        out.mkdir()
        for name in left:
            (out / name).write_text("{}")
        code, _, error = sagl_cli(*fit_options(out, *view_options(tables, "npy")))
        assert code == 0, error


# Command lines, and the options in them that would have no effect. All options of all
# commands were looked at. Those that say how something is shown or where it is computed
# (--json, --quiet, --device) are taken everywhere.
IDLE = [
    *(
        (f"fit --clusters 4 --out {{new}} {{npy}} {option}", option.split()[0])
        for option in (
            *("--kind text", "--column a", "--label-column a", "--split train"),
            *("--workers 1", "--trust-remote-code", "--views wide", "--join inner"),
            *("--tolerance 0.1", "--patience 3", "--gate-input z"),
        )
    ),
    (
        "fit --clusters 4 --out {new} {npy} --no-refine --cluster-sizes any",
        "--cluster-s",
    ),
    ("fit --clusters 4 --out {new} {npy} --graph dense --alpha 2", "--alpha"),
    (
        "fit --clusters 4 --out {new} {npy} --graph identity --self-loops",
        "--self-loops",
    ),
    (
        "fit --clusters 4 --out {new} {npy} --graph identity --no-self-loops",
        "--no-self",
    ),
    ("fit --clusters 4 --out {new} {npy} --graph identity --gate shrink", "--gate"),
    ("fit --clusters 4 --out {new} {npy} --graph identity --dropout .1", "--dropout"),
    ("fit {store} --clusters 4 --out {new} --id-column a", "--id-column"),
    ("fit {store} --clusters 4 --out {new} --workers 2", "--workers"),
    (
        "fit {text} --backbone npy:{text} --clusters 2 --out {new} --trust-remote-code",
        "--trust",
    ),
    ("extract {text} --backbone npy:{text} --out {new} --trust-remote-code", "--trust"),
    ("extract {text} --backbone npy:{text} --out {new} --workers 1", "--workers"),
    ("extract {text} --backbone npy:{text} --out {new} --batch-size 3", "--batch-size"),
    ("extract {text} --backbone npy:{text} --out {new} --device cpu", "--device"),
    ("extract {text} --backbone a:b --out {new} --trust-remote-code", "--trust-remote"),
    ("predict {run} {npy} --out {new}.csv --join inner", "--join"),
    ("predict {run} {store} --out {new}.csv --id-column a", "--id-column"),
    ("evaluate {run} {npy} --labels {labels} --join inner", "--join"),
    ("graph {run} {npy} --join inner", "--join"),
    ("graph {run} --join inner", "--join"),
    ("graph {run} --id-column a", "--id-column"),
    ("graph {run} --view wide --join inner", "--join"),
    ("graph {run} {store} --id-column a", "--id-column"),
    ("graph {run} --out {new}.npz --labels {labels}", "--labels"),
    ("report {run} --out {new}.html --id-column a", "--id-column"),
    ("report {run} --out {new}.html --thumbnails", "--thumbnails"),
    ("report {run} --out {new}.html --no-thumbnails", "--no-thumbnails"),
    ("report {run} --out {new}.html --no-tsne", "--no-tsne"),
    ("report {run} --out {new}.html --graph", "--graph"),
    ("report {run} --out {new}.html --store {store} --id-column a", "--id-column"),
    ("views {npy} --seed 3", "--seed"),
    ("views {npy} --join inner", "--join"),
    ("views {store} --id-column a", "--id-column"),
    ("compare {npy} --views wide --clusters 4 --out {new}", "--views"),
    ("ablate {npy} --test-labels {labels} --clusters 4 --out {new}", "--test-labels"),
    ("combine {npy} --views wide --clusters 4 --out {new}", "--views"),
    ("sensitivity {npy} --views wide --clusters 4 --out {new}", "--views"),
    ("sweep {npy} --clusters 4 --grid width=2,3 --trials 3 --out {new}", "--trials"),
    (
        "compare {npy} --clusters 4 --out {new} --methods kmeans --class-names {names} "
        "--text-encoder x",
        "--class-names",
    ),
    ("compare {npy} --clusters 4 --out {new} --class-names {names}", "--class-names"),
    ("compare {npy} --clusters 4 --out {new} --text-encoder x", "--text-encoder"),
    ("compare {npy} --clusters 4 --out {new} --text-view x", "--text-view"),
    ("reproduce --list --seeds 3", "--seeds"),
    ("reproduce pets --list", "DATASET"),
    ("reproduce pets --features {store} --out {new} --workers 2", "--workers"),
    (
        "reproduce pets --features {store} --out {new} --methods kmeans --epochs 2",
        "--epochs",
    ),
]


@pytest.mark.parametrize(("line", "option"), IDLE, ids=[line for line, _ in IDLE])
def test_an_option_without_effect_is_refused(
    sagl_cli, tables, fitted, tmp_path, line, option
):
    places = {
        "{npy}": " ".join(view_options(tables, "npy")),
        "{new}": str(tmp_path / "new"),
        "{store}": str(tables / "store"),
        "{text}": str(tables / "text.txt"),
        "{labels}": str(tables / "labels.npy"),
        "{names}": str(tables / "names.txt"),
        "{run}": str(fitted / "run"),
    }
    for name, place in places.items():
        line = line.replace(name, place)
    refused(sagl_cli(*line.split()), option, "has no effect")
    assert not list(tmp_path.iterdir())


def test_a_fit_that_was_killed_before_its_store_had_anything_goes_on(tmp_path):
    """The directory of its features is there, and in it a lock."""
    (tmp_path / "run" / "features").mkdir(parents=True)
    (tmp_path / "run" / "features" / ".lock").touch()
    refuse_foreign(tmp_path / "run")
    (tmp_path / "run" / "features" / "mine.npy").touch()
    with pytest.raises(ValueError, match="it holds features, which is of no run"):
        refuse_foreign(tmp_path / "run")
