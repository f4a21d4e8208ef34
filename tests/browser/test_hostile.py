"""File names, texts and names of clusters with markup in them run nothing."""

import re
from dataclasses import replace

import numpy as np
import pytest

from sagl import SAGL
from sagl.clusters.names import Names
from sagl.experiments.fit import fit_run
from sagl.report.inputs import Inputs, make_column, with_samples
from sagl.report.page import write_report
from tests.browser.watching import payload_of, read_csv
from tests.conftest import QUICK, clustered_views
from tests.report.pages import HOSTILE, Pictures, Texts


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("hostile") / "<b>run</b> & 'co'"
    model = SAGL(4, steps=60, search=QUICK, random_state=0)
    fit_run(model, clustered_views()[0], directory)
    return directory


@pytest.mark.parametrize("kind", ["image", "text"])
def test_hostile_names_are_shown_as_text(run, open_page, tmp_path, kind):
    views, labels = clustered_views()
    ids = [f"{HOSTILE[row % len(HOSTILE)]} {row}" for row in range(240)]
    known = Inputs(
        ids,
        views,
        labels=np.array([HOSTILE[k] for k in labels]),
        columns=(make_column(HOSTILE[1], [HOSTILE[0], HOSTILE[7]] * 120),),
        names=Names({0: HOSTILE[0], 1: HOSTILE[5], 2: HOSTILE[6]}),
    )
    samples = Pictures(ids) if kind == "image" else Texts(ids, ids)
    path = tmp_path / "report.html"
    inputs = with_samples(known, samples, "here")
    write_report(run, replace(inputs, notes=(HOSTILE[9],)), path, tsne_rows=0)
    report = open_page(path)
    page = report.page
    payload = payload_of(path)
    assert payload["ids"] == ids

    assert page.locator("#cluster-0 h3 bdi").text_content() == HOSTILE[0]
    assert page.locator("h1").text_content() == run.name
    for row in range(len(HOSTILE)):
        page.fill("#search", re.split("[\n\udce4]", ids[row])[0])  # what can be typed
        button = page.locator(f"#found button[data-row='{row}']")
        assert whole(button.text_content()) == whole(ids[row])
        button.click()
        assert whole(page.locator("#sample-id").text_content()) == whole(ids[row])
        if kind == "text":
            shown = page.locator("#panel .text").text_content()
            assert whole(shown) == whole(ids[row])
    page.select_option("#colour", label=HOSTILE[1])
    page.select_option("#colour", label="True label")
    page.select_option("#colour", label="Cluster")
    for k, name in enumerate(HOSTILE[1:5]):
        page.locator(f"#legend [data-code='{k}']").click()
        page.fill("#cluster-name", name)
        page.keyboard.press("Enter")
    page.mouse.move(600, 400)
    table = read_csv(report.download("#export-labels"))
    assert [whole(line["sample"]) for line in table] == [whole(name) for name in ids]
    page.reload()
    page.wait_for_selector("html[data-explorer]")
    assert page.locator("#cluster-0 h3 bdi").text_content() == HOSTILE[1]

    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.querySelectorAll('script').length") == 1
    report.check_quiet(visits=2)


def whole(text):
    """Half characters become the sign for one that cannot be shown."""
    return text.encode("utf-8", "replace").decode().replace("\ufffd", "?")


def test_a_script_that_gets_in_does_not_run(run, open_page, tmp_path):
    """Even if escaping failed, the page's policy would stop it."""
    views, _ = clustered_views()
    path = tmp_path / "report.html"
    write_report(run, Inputs([str(i) for i in range(240)], views), path, tsne_rows=0)
    text = path.read_text(encoding="utf-8")
    bad = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
    bad += "<img src='https://example.org/x.png'>"
    path.write_text(text.replace("<footer", bad + "<footer"), encoding="utf-8")
    report = open_page(path)
    assert report.page.evaluate("window.hacked") is None
    assert any("Content Security Policy" in error for error in report.errors)
    # Chromium tells of the request and of who stopped it before it left.
    assert report.stopped["https://example.org/x.png"] == "csp"
