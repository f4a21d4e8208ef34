"""What a reproduction ends in: a table, its figures, and the protocols in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sagl.baselines.registry import METHODS, find_method
from sagl.experiments.compare_table import (
    COLUMNS,
    Row,
    as_json,
    cells,
    csv_table,
    markdown_table,
    record,
    rows_of,
)
from sagl.experiments.published import Published, published_figures
from sagl.experiments.reproduce import BY_PRESET, Reproduction
from sagl.report.figures import draw_accuracy, draw_training_times
from sagl.report.saving import save
from sagl.storage import write_json, write_text

# The paper has figures for these.
_MEASURES = ("acc", "nmi", "ari")
_COSTS = ("clusters", "seconds", "peak MiB")
HEAD = (
    "method",
    *(text for m in _MEASURES for text in (m.upper(), "paper")),
    *("worst ACC", *_COSTS, ""),
)
NOT_RUN = "published, not run"
_FORMATS = ("png", "svg")


def result_rows(reproduction: Reproduction) -> list[Row]:
    """Rows of the comparison, and after them what the paper has and was not run."""
    rows = rows_of(reproduction.comparison)
    there = {row.name for row in rows}
    unseen = [
        Row(
            name=name,
            title=METHODS[name].title,
            supervised=METHODS[name].supervised,
            runs=0,
            published_acc=figure.acc,
            note=NOT_RUN,
        )
        for name, figure in published_figures(reproduction.preset.title).items()
        if name in METHODS and name not in there
    ]
    return sorted([*rows, *unseen], key=lambda row: (row.supervised, not row.mean))


def table_cells(
    reproduction: Reproduction,
    rows: Sequence[Row],
    bold: tuple[str, str] = ("**", "**"),
) -> list[list[str]]:
    """The rows as text: each measured score, the paper's beside it, and the costs."""
    published = published_figures(reproduction.preset.title)
    lines = []
    for row, line in zip(rows, cells(rows, bold), strict=True):
        shown = dict(zip(COLUMNS, line, strict=True))
        scores = [
            text
            for m in _MEASURES
            for text in (shown[m.upper()], _paper(published.get(row.name), m))
        ]
        worst = "" if row.worst_acc is None else f"{row.worst_acc:.3f}"
        costs = [shown[name] for name in _COSTS]
        lines.append([shown["method"], *scores, worst, *costs, row.note])
    return lines


def _paper(figure: Published | None, measure: str) -> str:
    value = None if figure is None else getattr(figure, measure)
    return "" if value is None else f"{value:.3f}"


def protocols(reproduction: Reproduction) -> dict[str, str]:
    """How the figures of each column came about, in words."""
    last = max((task.seed for task in reproduction.comparison.tasks), default=0)
    names = {method.name for method in reproduction.comparison.methods}
    spread = "one seed, so that nothing is known of the spread"
    if last:
        spread = f"mean ± standard deviation over seeds 0 to {last}"
    measured = (
        "inductive. Fitted on the training part without labels; each test sample is "
        f"predicted alone, so that neither company nor order matters; {spread}. Labels "
        "score and choose nothing: no setting, no checkpoint, no seed."
    )
    if names & set(BY_PRESET):
        measured += (
            " Rows of the paper's SAGL and its ablations take the settings that the "
            "paper found by labels; all others run at their own defaults."
        )
    found = {
        "measured": measured,
        "paper": (
            "as published: one figure, the best after tuning. The released code "
            "builds the graph of test samples inside test batches that are not "
            "shuffled; the files are sorted by class, so a sample's batch mates are "
            "mostly of its own class and labels leak through the order. Its search "
            "scores 480 settings × 31 checkpoints on the test labels and reports the "
            "best."
        ),
    }
    if "linear-probe" in names:
        found["linear probe"] = (
            "with labels. Logistic regression on all views side by side, fitted with "
            "the labels of the training part; the paper's is on one backbone, and the "
            "better of its two is shown."
        )
    return found


def remarks(reproduction: Reproduction) -> list[str]:
    """Lines below the table: protocols, what was done otherwise, what is disputed."""
    lines = [f"{name}: {said}" for name, said in protocols(reproduction).items()]
    departures = reproduction.departures()
    lines.append(
        f"otherwise than in the paper: {'; '.join(departures)}"
        if departures
        else "data, features and epochs: the paper's"
    )
    if reproduction.preset.note:
        lines.append(f"settings: {reproduction.preset.note}")
    return lines


def markdown(reproduction: Reproduction, rows: Sequence[Row]) -> str:
    comparison = reproduction.comparison
    table = markdown_table(HEAD, table_cells(reproduction, rows))
    said = "".join(f"- {line}\n" for line in remarks(reproduction))
    return (
        f"# {reproduction.preset.title}\n\n{comparison.n_clusters} clusters; "
        f"{comparison.n_train:,} samples fitted, {comparison.n_scored:,} scored.\n\n"
        f"{table}\n{said}"
    )


def csv_text(reproduction: Reproduction, rows: Sequence[Row]) -> str:
    """The comparison's table with the paper's NMI and ARI, too."""
    published = published_figures(reproduction.preset.title)
    records = []
    for row in rows:
        figure = published.get(row.name)
        more = {
            f"published_{m}": None if figure is None else getattr(figure, m)
            for m in ("nmi", "ari")
        }
        records.append({**record(row), **more})
    return csv_table(records)


def json_value(reproduction: Reproduction, rows: Sequence[Row]) -> dict[str, Any]:
    figures = published_figures(reproduction.preset.title)
    return {
        **as_json(reproduction.comparison, rows),
        "preset": reproduction.preset.as_dict(),
        "backbones": reproduction.backbones,
        "epochs": reproduction.epochs or reproduction.preset.epochs,
        "published": {
            name: {m: getattr(figure, m) for m in _MEASURES}
            for name, figure in figures.items()
        },
        "protocols": protocols(reproduction),
        "departures": reproduction.departures(),
    }


def write_results(reproduction: Reproduction, rows: Sequence[Row]) -> list[str]:
    """Write the table and, when something was measured, its figures; their names."""
    out, title = reproduction.comparison.out, reproduction.preset.title
    write_text(out / "table.md", markdown(reproduction, rows))
    write_text(out / "table.csv", csv_text(reproduction, rows))
    write_json(out / "table.json", json_value(reproduction, rows))
    names = ["table.md", "table.csv", "table.json"]
    measured = [_without_epochs(row) for row in rows if row.mean]
    if measured:
        if reproduction.epochs not in (None, reproduction.preset.epochs):
            title += f", {reproduction.epochs} of {reproduction.preset.epochs} epochs"
        drawn = {
            "accuracy": draw_accuracy(measured, data=title, published_as="published"),
            "training_times": draw_training_times({title: measured}),
        }
        for name, ax in drawn.items():
            for form in _FORMATS:
                save(ax, out / f"{name}.{form}")
                names.append(f"{name}.{form}")
    return names


def _without_epochs(row: Row) -> Row:
    """A title short enough for a figure, whose own title says how long was trained."""
    return replace(row, title=find_method(row.name).title)
