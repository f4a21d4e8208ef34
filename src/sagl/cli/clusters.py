"""``sagl clusters``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sagl.cli.options import RUN, option, say, show_table, takes

if TYPE_CHECKING:
    from sagl.estimator import SAGL


def _show(facts: dict[str, Any]) -> None:
    def listed(values: list[Any]) -> str:
        return ", ".join(map(str, values))

    names = {row["number"]: row["name"] for row in facts["clusters"]}
    show_table(
        f"clusters of {facts['run']}",
        ("name", "typical", "doubtful", "near", "no.", "size", "confidence"),
        [
            (
                row["name"],
                listed(row["typical"]),
                listed(row["doubtful"]),
                listed([names.get(k, f"Cluster {k}") for k in row["nearest"]]),
                str(row["number"]),
                f"{row['size']:,}",
                f"{row['confidence']:.3f}",
            )
            for row in facts["clusters"]
        ],
        left=4,
    )
    if "outliers" in facts:
        say(f"most unlike all others: {listed(facts['outliers'])}")
        copies = facts["duplicates"]
        say(
            f"near-duplicates: {len(copies):,} groups of "
            f"{sum(map(len, copies)):,} samples"
        )
    if "out" in facts:
        say(f"every sample in {facts['out']}")


@takes(show=_show)
def clusters(
    run: Path = RUN,
    examples: int = option(3, "How many samples of each kind are named."),
    out: Path | None = option(
        None, "Write all that is known of each sample: a .csv or .parquet file."
    ),
) -> dict[str, Any]:
    """Show a run's clusters: names, sizes, typical and doubtful samples; outliers.

    Example: sagl clusters run --out samples.csv
    """
    from sagl.clusters.table import check_table_path, sample_table, write_table
    from sagl.estimator import SAGL

    if out is not None:
        check_table_path(out)
    model = SAGL.load(run, "cpu")
    if out is not None:
        write_table(out, sample_table(model._model))
    facts = _facts(run, model, examples)
    return facts if out is None else facts | {"out": str(out)}


def _facts(run: Path, model: SAGL, examples: int) -> dict[str, Any]:
    facts = {
        "run": str(run),
        "clusters": [row._asdict() for row in model.clusters(examples)],
    }
    if hasattr(model, "facts_"):
        facts |= {"outliers": model.most_unlike(examples)}
        facts |= {"duplicates": model.duplicates()}
    return facts
