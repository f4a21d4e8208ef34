"""``model.report()``: the page of a model in memory, and its frame in a notebook."""

import html

import numpy as np
import pytest
from PIL import Image

from sagl import SAGL
from tests.conftest import clustered_views
from tests.report.pages import HOSTILE, Page


@pytest.fixture(scope="module")
def model(small_run):
    return SAGL.load(small_run).rename({0: HOSTILE[1]})


@pytest.fixture(scope="module")
def page(model):
    _, labels = clustered_views()
    texts = [HOSTILE[row % len(HOSTILE)] for row in range(240)]
    columns = {"mass": np.arange(240) / 7, "kind": ["a", None] * 120}
    return model.report(texts=texts, labels=labels, columns=columns)


def test_the_page_is_that_of_the_model(page, model):
    payload = Page(page.html).payload
    assert payload["cluster"] == model.labels_.tolist()
    assert payload["names"] == {"0": HOSTILE[1]}
    assert payload["texts"][0] == HOSTILE[0]
    columns = [column["name"] for column in payload["columns"]]
    assert columns == ["True label", "mass", "kind"]
    assert repr(page).startswith("Report(SAGL, 240 samples in 4 clusters")


def test_a_notebook_shows_it_apart(page):
    frame = Page(page._repr_html_())
    [(tag, attributes)] = frame.tags
    assert tag == "iframe"
    assert html.unescape(html.escape(page.html)) == attributes["srcdoc"]
    assert attributes["sandbox"] == "allow-scripts allow-downloads"


def test_it_is_saved(page, tmp_path):
    path = page.save(tmp_path / "page.html")
    assert path.read_text(encoding="utf-8") == page.html
    with pytest.raises(ValueError, match=r"must end in \.html"):
        page.save(tmp_path / "page.pdf")


def test_pictures_of_any_kind(model, tmp_path):
    Image.new("RGB", (9, 9), "red").save(tmp_path / "red.png")
    kinds = [
        Image.new("L", (9, 9)),
        np.zeros((9, 9, 3), np.uint8),
        np.ones((9, 9)),
        tmp_path / "red.png",
        str(tmp_path / "gone.png"),
    ]
    page = Page(model.report(images=kinds * 48).html)
    assert len(page.payload["thumbnails"]) == 4 * 48
    assert "48 pictures could not be read" in " ".join(page.text)


def test_what_does_not_fit_is_refused(model):
    for known, error in [
        ({"texts": ["a"]}, "texts: 1 entries for 240 samples"),
        ({"columns": {"mass": [1.0]}}, "mass: 1 entries"),
        ({"texts": ["a"] * 240, "images": []}, "either texts or images"),
        ({"embedding": "pca"}, "choose tsne or umap"),
        ({"X": {"other": np.zeros((240, 3))}}, "'wide' is missing"),
    ]:
        with pytest.raises(ValueError, match=error):
            model.report(**known)
