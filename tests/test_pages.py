"""Every block of code in README and on the pages is run, and the site can be built."""

import inspect
import re
import subprocess
import sys
from importlib import import_module

import pytest

from tests.pages import ROOT, blocks, make_targets, run_page, write_files

# It asks a server: tests/serve/test_document.py runs one.
_NOT_RUN = ("serving.md",)
PAGES = sorted(
    page
    for page in (*ROOT.glob("docs/**/*.md"), ROOT / "CONTRIBUTING.md")
    if page.name not in _NOT_RUN
    and any(language in ("python", "bash") for language, _ in blocks(page))
)


@pytest.fixture
def folder(tmp_path):
    write_files(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page(page, folder, monkeypatch):
    run_page(page, folder, monkeypatch)


def test_make_targets_exist():
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES):
        text = page.read_text(encoding="utf-8")
        shown = re.findall(r"(?:^    |`)make (\w+)", text, re.MULTILINE)
        assert set(shown) <= make_targets(), page


PUBLIC = ("", ".selection", ".evaluation", ".baselines", ".training", ".report")


@pytest.mark.parametrize("package", PUBLIC)
def test_everything_public_has_an_example(package):
    """In its docstring, or on the page of its package; both are run."""
    module = import_module(f"sagl{package}")
    page = ROOT / "docs" / "api" / f"{package[1:] or 'sagl'}.md"
    shown = "".join(code for language, code in blocks(page) if language == "python")
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            mentioned = re.search(rf"\b{name}\b", shown)
            own = thing.__doc__ or ""  # not what it inherits
            assert ">>>" in own or mentioned, f"{module.__name__}.{name}"


@pytest.mark.slow
def test_the_site_is_built_and_fetches_nothing(tmp_path):
    """A broken link or reference fails; pages open without a server or network."""
    pytest.importorskip("mkdocstrings", reason="mkdocs: the extra 'docs'")
    site = tmp_path / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", site]
    subprocess.run(command, cwd=ROOT, check=True)
    pages = list(site.rglob("*.html"))
    assert len(pages) > 25
    fetched = re.compile(r"<(?:script|link|img|iframe)[^>]*(src|href)=.(https?:)?//")
    for page in pages:
        assert not fetched.search(page.read_text(encoding="utf-8")), page
    reference = (site / "api" / "sagl.html").read_text(encoding="utf-8")
    for method in ("fit", "predict", "merge", "typical"):
        assert f'id="sagl.estimator.SAGL.{method}"' in reference
