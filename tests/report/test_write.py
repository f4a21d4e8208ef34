"""A report from start to end."""

import json

import pytest

from sagl.report.inputs import Inputs
from sagl.report.write import check_writable, write_report
from tests.conftest import clustered_views
from tests.report.pages import Page


@pytest.fixture(scope="module")
def written(small_run, tmp_path_factory):
    views, labels = clustered_views()
    ids = [f"sample {row}" for row in range(240)]
    folder = tmp_path_factory.mktemp("reports")
    told = []
    result = write_report(
        small_run,
        Inputs(ids, views, labels=labels),
        folder / "report.html",
        tsne_rows=60,
        parquet=folder / "atlas.parquet",
        progress=told.append,
    )
    return folder, result, told


def test_what_is_said_about_it(written):
    folder, result, told = written
    json.dumps(result)
    assert result["bytes"] == (folder / "report.html").stat().st_size
    assert result["headline"]["ACC"] == "1.000"
    assert result["n_samples"] == 240
    assert told[-1] == "page"
    assert {path.name for path in folder.iterdir()} == {"report.html", "atlas.parquet"}


def test_all_figures_are_there_with_words(written):
    page = Page((written[0] / "report.html").read_text(encoding="utf-8"))
    titles = " ".join(page.text)
    for title in (
        "Cluster sizes",
        "Confidence",
        "Clusters and true classes",
        "How alike the views are",
        "Loss",
        "Sparsity of the graphs in training",
        "Graph: wide",
        "Graph: narrow",
        "From features to representations: wide",
        "From features to representations: narrow",
    ):
        assert title in titles
    pictures = [a for a in page.attributes("svg") if a.get("role") == "img"]
    pictures += [a for a in page.attributes("img")]
    assert len(pictures) == 10
    assert all(len(a.get("aria-label") or a.get("alt") or "") > 20 for a in pictures)


def test_the_same_input_is_the_same_page(written, small_run, tmp_path):
    views, labels = clustered_views()
    ids = [f"sample {row}" for row in range(240)]
    write_report(
        small_run,
        Inputs(ids, views, labels=labels),
        tmp_path / "again.html",
        tsne_rows=60,
    )
    first = (written[0] / "report.html").read_bytes()
    assert (tmp_path / "again.html").read_bytes() == first


def test_bad_places_are_refused_at_once(small_run, tmp_path):
    for path, words in [
        (tmp_path / "report.pdf", "must end in .html"),
        (tmp_path / "none" / "report.html", "no directory"),
    ]:
        with pytest.raises(ValueError, match=words):
            write_report(small_run, Inputs([]), path)
    (tmp_path / "dir.html").mkdir()
    with pytest.raises(ValueError, match="is a directory"):
        check_writable(tmp_path / "dir.html", ".html")
