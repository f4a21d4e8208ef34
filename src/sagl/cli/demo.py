"""``sagl demo``."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from statistics import mean, pstdev
from typing import Any

import typer

from sagl.cli.options import option, say, show_table, takes
from sagl.cli.report import report_progress

TSNE_ROWS = 200  # in the figures of the demo's report, which is to be quick


def write_demo_report(directory: Path, *, quiet: bool) -> str | None:
    """The path of the run's report; None without the libraries that it needs."""
    from sagl.experiments.digits import DigitImages, load
    from sagl.report.inputs import Inputs, with_samples
    from sagl.report.page import load_extra, write_report

    try:
        load_extra()
    except ValueError as error:
        typer.echo(f"sagl: no report: {error}", err=True)
        return None
    digits = load()
    images = DigitImages(digits.train)
    known = Inputs(images.ids, digits.train, labels=digits.train_labels)
    inputs = with_samples(known, images, "digits")
    with report_progress(quiet) as begun:
        report = write_report(directory, inputs, tsne_rows=TSNE_ROWS, progress=begun)
    return str(report["out"])


def _show(result: dict[str, Any]) -> None:
    views = ", ".join(f"{name} ({width})" for name, width in result["views"].items())
    runs = len(result["seeds"])
    say(f"{result['n_train']} digits without labels; views: {views}")
    show_table(
        f"{result['n_test']} held-out digits, mean ± sd of {runs} seeds",
        ("method", "ACC", "NMI", "ARI", "clusters"),
        [["k-means", *_cells(result["kmeans"])], ["SAGL", *_cells(result["sagl"])]],
    )
    sparsity = ", ".join(f"{n} {s:.1%}" for n, s in result["sparsity"].items())
    say(f"pairs of samples that the sparse graphs keep: {sparsity}")
    say(f"trained {runs} times in {result['seconds']} s")
    say(f"the first run is in {result['out']}; look at it with: ", end="")
    program = "sagl" if shutil.which("sagl") else sys.argv[0]  # not on everyone's path
    say(f"{program} info {result['out']}", style="bold")
    if result["report"]:
        say("open its report in a browser: ", end="")
        say(result["report"], style="bold")


def _cells(scores: list[dict[str, Any]]) -> list[str]:
    columns = [[run[measure] for run in scores] for measure in ("acc", "nmi", "ari")]
    cells = [f"{mean(values):.3f} ± {pstdev(values):.3f}" for values in columns]
    return [*cells, "/".join(str(run["n_clusters"]) for run in scores)]


@takes(show=_show)
def demo(
    out: Path | None = option(
        None, "Where to write the run; by default a new directory here.", metavar="RUN"
    ),
    seed: int = option(0, "The first of the seeds."),
) -> dict[str, Any]:
    """Cluster handwritten digits seen through three views; takes a minute or two.

    Example: sagl demo --out digits
    """
    from sagl.experiments.digits import free_directory, run_demo

    directory = free_directory(Path("sagl-demo")) if out is None else out
    watched = sys.stderr.isatty()
    result = run_demo(directory, seed, verbose=watched)
    return {**result, "report": write_demo_report(directory, quiet=not watched)}
