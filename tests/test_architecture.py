"""The shape of the code itself: imports point one way, nothing prints, no pickle."""

import ast
import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sagl

SOURCE = Path(sagl.__file__).parent
# Each part may import from parts of a lower level only, and from itself.
LEVEL = {
    "_version": 0,
    "storage": 0,
    "checks": 0,
    "environment": 0,
    "matrices": 0,
    "parameters": 0,
    "processes": 0,
    "progress": 0,
    "schema": 0,
    "unchanged": 0,
    "later": 1,
    "views": 1,
    "nn": 1,
    "training": 2,
    "features": 2,
    "evaluation": 3,
    "search": 3,
    "recipes": 3,
    "selection": 4,
    "settings": 4,
    "pipeline": 5,
    "prediction": 6,
    "model": 7,
    "clusters": 8,
    "run_files": 9,
    "card": 9,
    "run": 11,
    "hub": 12,
    "estimator": 13,
    "baselines": 14,
    "report": 15,
    "experiments": 16,
    "serve": 17,
    "cli": 18,
    "__init__": 19,
    "__main__": 19,
}
FILES = sorted(SOURCE.rglob("*.py"))
DOCUMENT = Path(__file__).parents[1] / "docs" / "architecture.md"


def part(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_modules(path: Path) -> set[str]:
    """What a module imports when it runs; what is for types alone does not count."""
    modules = set()
    tree = ast.parse(path.read_text())
    for node in tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            modules.add(node.module)
    return modules


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_one_way(path):
    here = part(path)
    for module in imported_modules(path):
        if not module.startswith("sagl."):
            continue
        there = module.split(".")[1]
        assert there == here or LEVEL[there] < LEVEL[here], f"{here} imports {there}"


def test_nn_needs_torch_alone():
    allowed = {"torch", "sagl", "__future__"}
    for path in (SOURCE / "nn").glob("*.py"):
        for module in imported_modules(path):
            root = module.split(".")[0]
            assert root in allowed or root in sys.stdlib_module_names, (
                f"{path}: {module}"
            )


def described_modules(text: str) -> list[str]:
    """The modules that the document lists, each below the heading of its package."""
    modules, package = [], ""
    for line in text.partition("## The modules\n")[2].splitlines():
        if line.startswith("### "):
            heading = re.match(r"### `([\w/]+/)`: \w", line)
            package = heading[1] if heading else ""
        elif line:
            entry = re.match(r"- `(\w+\.py)`: \S", line)
            assert entry, f"{DOCUMENT.name}: not a module and what it does: {line}"
            modules.append(package + entry[1])
    return modules


def test_the_document_lists_every_module_once():
    """Packages' own files are left out: what they do is in their headings."""
    described = described_modules(DOCUMENT.read_text(encoding="utf-8"))
    there = [path for path in FILES if path.name != "__init__.py"]
    assert sorted(described) == sorted(
        path.relative_to(SOURCE).as_posix() for path in there
    )


def test_files_that_the_document_names_exist():
    """But for those that its examples invent, which it calls new."""
    text = DOCUMENT.read_text(encoding="utf-8").partition("## The modules\n")[0]
    text = re.sub(r"new\s+`[\w/]+\.py`", "", text)
    named = re.findall(r"`([\w/]+(?:\.py|/))`", text)
    assert len(named) > 10
    for name in named:
        roots = (SOURCE, SOURCE.parents[1])
        assert any((root / name).exists() for root in roots), name


def test_the_document_orders_parts_as_imports_do():
    """The list of lines, each of which imports from those above it alone."""
    text = DOCUMENT.read_text(encoding="utf-8")
    lines = re.findall(r"^\d+\. (.*)$", text, re.MULTILINE)
    parts = [part for line in lines for part in re.findall(r"`(\w+)`", line)]
    assert {*parts, "_version", "__init__", "__main__"} == set(LEVEL)
    levels = [[LEVEL[p] for p in re.findall(r"`(\w+)`", line)] for line in lines]
    assert all(max(a) < min(b) for a, b in itertools.pairwise(levels))
    for line, numbers in zip(lines, levels, strict=True):
        if "each from" in line or "likewise" in line:
            assert sorted(set(numbers)) == numbers, line


def test_nothing_prints_or_loads_pickles():
    for path in FILES:
        text = path.read_text()
        if part(path) != "cli":
            assert not re.search(r"^\s*print\(", text, re.MULTILINE), path
        assert not re.search(r"pickle\.load|allow_pickle=True|torch\.load", text), path


def test_help_does_not_wait_for_torch():
    """The command line must answer --help without loading the heavy libraries."""
    code = "import sys, sagl.cli.main; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "typer" in loaded
    heavy = {"torch", "numpy", "scipy", "sklearn", "transformers", "matplotlib", "PIL"}
    heavy |= {"fastapi", "pydantic", "uvicorn"}
    assert not heavy & set(loaded)
