"""``sagl report`` and the report that ``sagl demo`` ends with."""

import json

import pytest

from sagl import SAGL
from sagl.run import ALL_VIEWS
from tests.report.pages import Page


def test_a_run_alone(sagl_cli, fitted):
    code, out, err = sagl_cli("report", fitted / "run", "--quiet")
    assert code == 0, err
    assert out.splitlines()[-1].startswith(str(fitted / "run" / "report.html"))
    page = Page((fitted / "run" / "report.html").read_text(encoding="utf-8"))
    assert [view["name"] for view in page.payload["views"]] == [ALL_VIEWS]


def test_with_everything(sagl_cli, fitted, tmp_path):
    (tmp_path / "columns.csv").write_text(
        "id,mass\n" + "".join(f"{row},{row / 7:.3f}\n" for row in range(1, 241))
    )
    (tmp_path / "texts.txt").write_text(
        "".join(f"text number {row}\n" for row in range(240))
    )
    options = [f"--view={name}={fitted}/{name}.npy" for name in ("wide", "narrow")]
    code, out, err = sagl_cli(
        "report",
        fitted / "run",
        *options,
        *("--labels", fitted / "labels.npy"),
        *("--source", tmp_path / "texts.txt"),
        *("--columns", tmp_path / "columns.csv"),
        *("--parquet", tmp_path / "atlas.parquet"),
        *("--out", tmp_path / "page.html"),
        *("--map", tmp_path / "map.png", "--beside", fitted / "run", "--view-maps"),
        *("--no-tsne", "--json", "--quiet"),
    )
    assert code == 0, err
    result = json.loads(out)
    assert result["out"] == str(tmp_path / "page.html")
    assert float(result["headline"]["ACC"]) > 0.9
    assert (tmp_path / "atlas.parquet").exists()
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    assert (result["moved"], result["map"]) == (0, str(tmp_path / "map.png"))
    payload = Page((tmp_path / "page.html").read_text("utf-8")).payload
    assert [view["name"] for view in payload["views"]] == ["wide", "narrow"]
    assert payload["texts"][3] == "text number 3"
    columns = [column["name"] for column in payload["columns"]]
    assert columns == ["True label", "mass", "Cluster in run"]
    assert [one["name"] for one in payload["maps"]] == ["wide", "narrow"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--labels", "none.npy"], "none.npy: no such file"),
        (["--names", "none.json"], "none.json: no such file"),
        (["--columns", "none.csv"], "none.csv: no such file"),
        (["--store", "none"], "none"),
        (["--source", "none"], "none: no such file or folder"),
        (["--out", "page.pdf"], "must end in .html"),
        (["--parquet", "page.csv"], "must end in .parquet"),
        (["--map", "map.txt"], "map.txt"),
        (["--embedding", "pca"], "choose tsne or umap"),
        (["--beside", "none"], "none holds no run"),
        (["--view-maps"], "--view-maps has no effect here"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(
    sagl_cli, fitted, tmp_path, monkeypatch, options, words
):
    monkeypatch.chdir(tmp_path)
    arguments = ["report", fitted / "run", "--out", tmp_path / "x.html", *options]
    code, out, err = sagl_cli(*arguments)
    assert code == 2
    assert err.startswith("sagl: error: ")
    assert err.count("\n") == 1
    assert words in err
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_no_run(sagl_cli, tmp_path):
    code, _, err = sagl_cli("report", tmp_path)
    assert code == 2
    assert "holds no run" in err


@pytest.mark.slow
def test_demo_ends_with_the_path_of_its_report(sagl_cli, tmp_path):
    code, out, err = sagl_cli("demo", "--out", tmp_path / "demo")
    assert code == 0, err
    report = tmp_path / "demo" / "report.html"
    assert out.rstrip().endswith(str(report))
    page = Page(report.read_text(encoding="utf-8"))
    payload = page.payload
    n = len(SAGL.load(tmp_path / "demo").labels_)
    assert len(payload["ids"]) == len(payload["thumbnails"]) == n
