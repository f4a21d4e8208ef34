"""Pages of the documentation may link to files of the repository, as on any code host.

Those files are brought into the site under ``project/``, and links between them and
the pages are rewritten. What is not brought in remains a broken link, which fails the
build.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/RESULTS.md")
FOLDERS = ("benchmarks/figures", "benchmarks/runs", "examples")
_LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?(\))")


def on_files(files: Files, config: Any) -> Files:
    """Add the repository's files to those of the site."""
    paths = [ROOT / name for name in PAGES]
    for folder in FOLDERS:
        paths += (path for path in (ROOT / folder).rglob("*") if path.is_file())
    for path in paths:
        place = f"project/{path.relative_to(ROOT).as_posix()}"
        if "__pycache__" not in place:
            files.append(File.generated(config, place, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Turn links between files of the repository into links between pages."""
    here = page.file.src_uri

    def moved(link: re.Match[str]) -> str:
        start, target, anchor, end = link.groups(default="")
        source = posixpath.dirname(_in_repository(here))
        wanted = _on_site(posixpath.normpath(posixpath.join(source, target)))
        return start + posixpath.relpath(wanted, posixpath.dirname(here)) + anchor + end

    return _LINK.sub(moved, markdown)


def _in_repository(page: str) -> str:
    return page[len("project/") :] if page.startswith("project/") else f"docs/{page}"


def _on_site(path: str) -> str:
    return path[len("docs/") :] if path.startswith("docs/") else f"project/{path}"
