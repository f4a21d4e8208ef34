"""``sagl reproduce``: from pictures to a table beside the paper's; bad input."""

import json
import shutil

import pytest

from tests.experiments.small_runs import run_in_this_process, write_split
from tests.experiments.test_reproduce import make_pets

pytest.importorskip("matplotlib")


def test_from_pictures_to_the_table_and_again(sagl_cli, tmp_path, monkeypatch):
    """Real file layouts: the official lists, models as transformers saves them."""
    pytest.importorskip("transformers")
    from tests.features.models import save_dinov3, save_siglip2

    run_in_this_process(monkeypatch)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    make_pets(tmp_path / "data")
    save_dinov3(tmp_path / "dino")
    save_siglip2(tmp_path / "siglip")
    command = (
        *("reproduce", "pets", "--root", "data", "--out", "out", "--workers", 1),
        *("--backbone", "hf:./dino", "--backbone", "text=hf:./siglip"),
        *("--methods", "sagl-paper,linear-probe", "--seeds", 1, "--epochs", 2),
    )
    code, _, err = sagl_cli(*command, "--minutes", 0, "--quiet")
    assert code == 0, err
    assert "not run yet" in (tmp_path / "out/table.md").read_text()
    assert not (tmp_path / "out/accuracy.png").exists()

    shutil.rmtree(tmp_path / "dino")  # the features are there
    code, out, err = sagl_cli(*command)
    assert code == 0, err
    assert "[2/2] linear probe, seed 0: ACC" in err
    assert "SAGL (paper), 2 epochs" in (tmp_path / "out/table.md").read_text()
    assert "2 epochs instead of 600" in " ".join(out.split())
    assert "24 / 12 samples instead of 3,680 / 3,669" in " ".join(out.split())
    assert "features of hf:./dino and text=hf:./siglip" in " ".join(out.split())
    for name in ("table.md", "table.csv", "accuracy.png", "training_times.svg"):
        assert (tmp_path / "out" / name).exists(), name

    runs = {p: p.stat().st_mtime_ns for p in (tmp_path / "out/runs").iterdir()}
    code, out, err = sagl_cli(*command, "--json", "--quiet")
    assert code == 0, err
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "out/runs").iterdir()} == runs
    printed = json.loads(out)
    assert printed["data"] == "Pets"
    assert printed["n_clusters"] == 3
    rows = {row["name"]: row for row in printed["rows"]}
    assert rows["linear-probe"]["mean"]["acc"] > 0.5
    assert rows["sagl-paper"]["published_acc"] == 0.9757
    assert printed["departures"][2] == "2 epochs instead of 600"


def test_from_features_that_are_there(sagl_cli, tmp_path, monkeypatch):
    run_in_this_process(monkeypatch)
    split = write_split(tmp_path / "split")
    code, out, err = sagl_cli(
        *("reproduce", "KITTI", "--features", split, "--views", "wide,narrow"),
        *("--methods", "kmeans", "--seeds", 1, "--out", tmp_path / "out"),
    )
    assert code == 0, err
    assert out.startswith("KITTI: 3 clusters, 60 samples fitted; scored with labels")
    assert "the released code trains with a learning rate of 1e-3" in " ".join(
        out.split()
    )
    assert ": published, not run" in " ".join(out.split())
    tables = [line for line in out.splitlines() if not line.startswith("kept in")]
    assert max(map(len, tables)) <= 80


def test_list(sagl_cli):
    code, out, _ = sagl_cli("reproduce", "--list")
    assert code == 0
    assert "1,281,167" in out
    assert "pets: Oxford-IIIT Pet: images.tar.gz" in out
    code, out, _ = sagl_cli("reproduce", "--list", "--json")
    presets = {preset["name"]: preset for preset in json.loads(out)}
    assert len(presets) == 8
    assert presets["eurosat"]["beta"] == 0.1
    assert presets["eurosat"]["n_test"] == 5_000


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "name a data set: pets, kitti, flowers, caltech101, eurosat, sun397"),
        (["cifar"], "no data set 'cifar' in the paper; there are pets, kitti, flowers"),
        (["pets"], "give --root, the folder of the data set, or --features"),
        (["pets", "--root", "x", "--features", "y"], "one of the two"),
        (["pets", "--root", "nowhere"], "nowhere: there is no such folder"),
        (["pets", "--root", "EMPTY"], "Oxford-IIIT Pets needs images.tar.gz and"),
        (["pets", "--features", "EMPTY"], "there is no directory train in it"),
        (["pets", "--features", "x", "--backbone", "clip-b16"], "goes with --root"),
        (["pets", "--root", "x", "--views", "a"], "--views goes with --features"),
        (["pets", "--root", "x", "--methods", "kmean"], "no method 'kmean'"),
        (["pets", "--root", "x", "--epochs", "0"], "epochs"),
        (
            ["pets", "--root", "x", "--seeds", "0"],
            "--seeds must be a whole number of at least 1",
        ),
        (
            ["pets", "--root", "x", "--jobs", "0"],
            "--jobs must be a whole number of at least 1",
        ),
    ],
)
def test_bad_input_is_one_line(sagl_cli, tmp_path, monkeypatch, arguments, line):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "EMPTY").mkdir()
    code, _, err = sagl_cli("reproduce", *arguments, "--out", "out")
    assert code == 2
    assert err.count("\n") == 1
    assert line in err
    assert not (tmp_path / "out").exists()
    assert "--out DIR" in sagl_cli("reproduce", "pets")[2]
