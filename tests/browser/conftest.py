"""A real browser and a real report: what a person would open."""

import shutil
import sys

import pytest

from sagl import SAGL
from sagl.cli.demo import write_demo_report
from sagl.experiments.digits import load
from sagl.experiments.fit import fit_run
from tests.browser.watching import Watched


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium without a window."""
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


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory):
    """The first of the demo's runs and its report, as `sagl demo` makes them."""
    directory = tmp_path_factory.mktemp("demo") / "sagl-demo"
    model = SAGL(10, steps=500, random_state=0)  # a quarter of the demo's
    fit_run(model, load().train, directory)
    write_demo_report(directory, quiet=True)
    return directory
