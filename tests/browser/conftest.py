"""A real browser and a real report: what a person would open."""

import shutil
import sys

import pytest

from sagl import SAGL, Views
from sagl.cli.fit import write_demo_report
from sagl.experiments.digits import load
from sagl.experiments.fit import fit_run
from sagl.report.inputs import Inputs, with_samples
from sagl.report.page import write_report
from tests.browser.watching import Watched
from tests.conftest import QUICK, clustered_views
from tests.report.pages import Texts


@pytest.fixture(scope="package")
def browser():
    """Debian's Chromium without a window.

    Not for longer than these tests: as long as Playwright is there, an event loop runs
    in this thread, and no other can.
    """
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs playwright: pip install playwright"
    )
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    if not sys.platform.startswith("linux"):
        pytest.skip("written for Debian's Chromium")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser):
    """Opens a page from a file and waits until its explorer is ready."""
    contexts = []

    def open_(path, before=None, **options):
        options = {"viewport": {"width": 1280, "height": 950}} | options
        context = browser.new_context(reduced_motion="reduce", **options)
        contexts.append(context)
        context.set_default_timeout(120_000)  # a busy machine is no error
        page = context.new_page()
        if before is not None:
            page.add_init_script(before)
        watched = Watched(page)
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-explorer]")
        return watched

    yield open_
    for context in contexts:
        context.close()


def rich_views():
    """Of the report below, and true labels."""
    views, labels = clustered_views(spread=1.0)
    arrays = {name: array.copy() for name, array in views.items()}
    for array in arrays.values():
        array[230:] = array[:10]  # the same ten samples once more
    return Views(arrays), labels


@pytest.fixture(scope="session")
def rich_report(tmp_path_factory):
    """A page with all that a report may have: texts, maps of views, another run."""
    directory = tmp_path_factory.mktemp("rich")
    views, labels = rich_views()
    model = SAGL(4, search=QUICK, random_state=0).fit(views)
    ids = [f"s{row}" for row in range(240)]
    model.save(directory / "run", ids=ids)
    model._model.labels = model.labels_.copy()
    model._model.labels[::40] = (model.labels_[::40] + 1) % 4  # six of them elsewhere
    model.rename({0: "cats"}).save(directory / "later", ids=ids)
    kinds = ["cat", "dog", "bird", "fish"]
    texts = [f"about a {kinds[k]}, no. {row}" for row, k in enumerate(labels)]
    inputs = with_samples(Inputs(ids, views, labels=labels), Texts(ids, texts), "x")
    path = directory / "report.html"
    write_report(
        directory / "run",
        inputs,
        path,
        tsne_rows=0,
        view_maps=True,
        beside=directory / "later",
    )
    return path


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory):
    """A run on the demo's digits and its report, as `sagl demo` makes it."""
    directory = tmp_path_factory.mktemp("demo") / "sagl-demo"
    model = SAGL(10, search=QUICK, random_state=0)
    fit_run(model, load().train, directory)
    write_demo_report(directory, quiet=True)
    return directory
