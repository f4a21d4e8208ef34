"""``report.html`` of a run, from start to end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from sagl.report.atlas import write_atlas
from sagl.report.build import RunData, collect
from sagl.report.drawings import draw_run
from sagl.report.inputs import Inputs
from sagl.report.numbers import headline, protocol
from sagl.report.page import render
from sagl.report.payload import shown_rows
from sagl.report.style import load
from sagl.report.thumbnails import Thumbnails, make_thumbnails
from sagl.report.warnings import concerns
from sagl.storage import write_text

FILE_NAME = "report.html"
STAGES = 7  # how often ``progress`` is called at most
_THUMBNAILS = 5_000  # pictures in one page

Progress = Callable[[str], None]


def write_report(
    run: Path,
    inputs: Inputs,
    out: Path | None = None,
    *,
    thumbnails: bool = True,
    tsne_rows: int | None = None,
    graph: bool | None = None,
    parquet: Path | None = None,
    device: str = "auto",
    progress: Progress = lambda what: None,
) -> dict[str, Any]:
    """Write the report of a run and say what is in it.

    Parameters
    ----------
    run : Path
        A run directory.
    inputs : Inputs
        From :func:`~sagl.report.inputs.open_inputs`, or made by hand.
    out : Path, optional
        By default ``report.html`` in the run.
    thumbnails : bool, default=True
        Whether pictures are shown, where there are any.
    tsne_rows : int, optional
        Samples in the t-SNE figures; 0 leaves those figures out.
    graph : bool, optional
        Whether to compute a graph per view; by default up to 50,000 samples.
    parquet : Path, optional
        Where to write a table for embedding-atlas.
    device : str, default="auto"
    progress : callable
        Told what is done next.

    Returns
    -------
    dict
        Path and size of the page, headline numbers, warnings.
    """
    out = run / FILE_NAME if out is None else out
    check_writable(out, ".html")
    if parquet is not None:
        check_writable(parquet, ".parquet")
        load("pyarrow.parquet")
    load_extra()
    data = collect(run, inputs, graph=graph, device=device, progress=progress)
    rows = shown_rows(data)
    progress("figures")
    size = {} if tsne_rows is None else {"tsne_rows": tsne_rows}
    figures = list(draw_run(data, **size))
    progress("warnings")
    found = concerns(data)
    progress("thumbnails")
    pictures = _thumbnails(data, rows, thumbnails)
    progress("page")
    write_text(out, render(data, figures, found, pictures, rows))
    if parquet is not None:
        write_atlas(parquet, data)
    return {
        "out": str(out),
        "bytes": out.stat().st_size,
        "n_samples": len(data),
        "protocol": protocol(data),
        "headline": {n.label: f"{n.value} {n.unit}".strip() for n in headline(data)},
        "warnings": [f"{c.title}. {c.text}" for c in found],
        "parquet": None if parquet is None else str(parquet),
    }


def load_extra() -> None:
    """Refuse at once, and not after minutes of work, when a library is missing."""
    for module in ("jinja2", "matplotlib", "openTSNE"):
        load(module)


def check_writable(path: Path, suffix: str) -> None:
    """Refuse a file that could not be written, before any work is done."""
    if path.suffix.lower() != suffix:
        raise ValueError(f"{path}: the name must end in {suffix}")
    if path.is_dir():
        raise ValueError(f"{path} is a directory; name a file in it")
    if not path.parent.is_dir():
        raise ValueError(f"{path}: there is no directory {path.parent}; make it first")


def _thumbnails(data: RunData, rows: Iterable[int], wanted: bool) -> Thumbnails:
    samples = data.inputs.samples
    if not wanted or samples is None or samples.kind != "image":
        return Thumbnails({}, False, 0)
    # First those in the lists of the clusters, then others at random.
    listed = [row for c in data.clusters for row in (*c.typical, *c.doubtful)]
    others = np.setdiff1d(np.asarray(rows), listed)
    drawn = np.random.default_rng(0).permutation(others)
    chosen = [*listed, *drawn][: max(_THUMBNAILS, len(listed))]
    return make_thumbnails(sorted(int(row) for row in chosen), data.inputs.sample)
