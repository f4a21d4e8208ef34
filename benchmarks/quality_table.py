"""The tables of quality.py, and in plain words whether SAGL wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sagl.experiments.table import Row, cells, markdown_table

PROBE, SAGL, TURTLE = "linear-probe", "sagl", "turtle"
MEASURES = ("acc", "nmi", "ari")
TIMES = ("seconds", "to k-means+10", "to TURTLE")
HEAD = ("set", "method", "ACC", "NMI", "ARI", "worst ACC", *TIMES, "")
# With a wrong number of clusters a one-to-one matching must lose: ACC is not fair.
FAIR = {
    "plain": ("acc", "nmi"),
    "long-tail": ("acc", "nmi"),
    "double": ("nmi", "ari"),
    "half": ("nmi", "ari"),
}
Tables = Mapping[str, Sequence[Row]]  # rows of a comparison by the set's name


def markdown(tables: Tables) -> str:
    """One table for all sets; the best mean without labels of each set in bold."""
    lines = []
    for name, rows in tables.items():
        shown = [row for row in rows if not _is_skipped(row)]
        for row, cell in zip(shown, cells(shown), strict=True):
            worst = "" if row.worst_acc is None else f"{row.worst_acc:.3f}"
            scores = [cell[measure.upper()] for measure in MEASURES]
            times = [cell[column] for column in TIMES]
            lines.append([name, cell["method"], *scores, worst, *times, row.note])
    return markdown_table(HEAD, lines)


def sentences(tables: Tables, version: str) -> list[str]:
    """A line per set, then the summary."""
    found = [_verdict(name, rows, FAIR[version]) for name, rows in tables.items()]
    if "acc" in FAIR[version]:
        found += [_gap_closed(tables), _above_turtle(tables)]
    skipped = {
        f"{row.title}: {row.note}"
        for rows in tables.values()
        for row in rows
        if _is_skipped(row)
    }
    return [line for line in (*found, *sorted(skipped)) if line]


def best_other(rows: Sequence[Row], measure: str) -> Row | None:
    """The best method without labels that is no form of SAGL."""
    others = [
        row
        for row in rows
        if measure in row.mean and not row.supervised and not _is_sagl(row)
    ]
    return max(others, key=lambda row: row.mean[measure], default=None)


def named(rows: Sequence[Row], name: str) -> Row | None:
    """A row with results, by the method's name."""
    return next((row for row in rows if row.name == name and row.mean), None)


def _verdict(name: str, rows: Sequence[Row], measures: Sequence[str]) -> str:
    ours = named(rows, SAGL)
    parts = []
    for m in measures:
        other = best_other(rows, m)
        if ours is None or other is None:
            return f"{name}: no verdict, SAGL or every other method is missing"
        ahead = 100 * (ours.mean[m] - other.mean[m])
        word = "wins by" if ahead > 0 else "loses by" if ahead < 0 else "draws:"
        parts.append(
            f"{word} {abs(ahead):.1f} points of {m.upper()} ({ours.mean[m]:.3f}, the "
            f"best other is {other.title} with {other.mean[m]:.3f})"
        )
    return f"{name}: SAGL {', '.join(parts)}"


def _gap_closed(tables: Tables) -> str:
    """How much of the way from the best other to the probe SAGL goes, on average."""
    shares = []
    for rows in tables.values():
        ours, probe = named(rows, SAGL), named(rows, PROBE)
        other = best_other(rows, "acc")
        if ours is None or probe is None or other is None:
            continue
        gap = probe.mean["acc"] - other.mean["acc"]
        if gap > 0:  # else there is nothing to close
            shares.append((ours.mean["acc"] - other.mean["acc"]) / gap)
    if not shares:
        return ""
    return (
        "of the gap between the best other method and the linear probe SAGL closes "
        f"{100 * float(np.mean(shares)):.0f} % (mean of {len(shares)} of "
        f"{len(tables)} sets)"
    )


def _above_turtle(tables: Tables) -> str:
    pairs = [(named(rows, SAGL), named(rows, TURTLE)) for rows in tables.values()]
    known = [(ours, turtle) for ours, turtle in pairs if ours and turtle]
    if not known:
        return ""
    above = sum((a.worst_acc or 0.0) > b.mean["acc"] for a, b in known)
    return f"SAGL's worst seed is above TURTLE's mean on {above} of {len(known)} sets"


def _is_sagl(row: Row) -> bool:
    return row.name == SAGL or row.name.startswith(f"{SAGL}-")


def _is_skipped(row: Row) -> bool:
    """Whether a method lacks something here that no other run would bring."""
    return row.note.startswith("not run: needs")
