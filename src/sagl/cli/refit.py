"""``sagl refit``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sagl.cli.info import describe
from sagl.cli.options import (
    DEVICE,
    FILES,
    ID_COLUMN,
    RUN,
    STORE,
    check_joining,
    option,
    running,
    say,
    takes,
)

if TYPE_CHECKING:
    from sagl.estimator import SAGL
    from sagl.report.inputs import Inputs


def _show(facts: dict[str, Any]) -> None:
    kept = facts["corrections"]
    say(kept["text"])
    say(
        f"{kept['moved']:,} of {facts['n_samples']:,} samples are in another cluster "
        "than before"
    )
    if kept["overruled"]:
        say(
            f"{kept['overruled']:,} corrected samples are where people put them; the "
            "model by itself would put them elsewhere"
        )
    say(f"{facts['run']}: {facts['n_clusters']} clusters", style="bold")


@takes(show=_show)
def refit(
    run: Path = RUN,
    store: Path | None = STORE,
    corrections: Path = option(
        ...,
        "What is to be corrected: JSON, see docs/corrections.md, or a file that the "
        "explorer of the run's report exported.",
        metavar="FILE",
    ),
    view: list[str] | None = FILES,
    id_column: str | None = ID_COLUMN,
    out: Path = running(..., "The new run directory.", metavar="RUN2"),
    device: str = DEVICE,
) -> dict[str, Any]:
    """Correct a run's clusters: labels of a few samples, links, merge, split, wrong.

    Views are those of the fit; by default they are taken from where the run has them.
    Names and numbers of clusters stay.

    Example: sagl refit run --corrections corrections.json --out run2
    """
    from sagl.clusters.corrections import is_empty, plan_of
    from sagl.clusters.corrections_file import read_corrections
    from sagl.experiments.fit import write_fitted
    from sagl.run import refuse_existing_run, refuse_foreign, run_checksum

    check_joining(store, view, id_column)
    refuse_existing_run(out)
    refuse_foreign(out)
    model, known = opened(run, store, view, id_column, device)
    given = read_corrections(corrections, model._model, run_checksum(run))
    try:
        if is_empty(plan_of(model._model, given)):
            raise ValueError("there is nothing to correct in it")
    except ValueError as error:
        raise ValueError(f"{corrections}: {error}") from None
    new = model.refit(known.views, given)
    ids = list(known.ids)
    assert known.views is not None
    write_fitted(new, known.views, out, ids=ids, source=source_of(run))
    return describe(out)


def opened(
    run: Path,
    store: Path | None,
    view: list[str] | None,
    id_column: str | None,
    device: str,
) -> tuple[SAGL, Inputs]:
    """A run's model and the views of its fit, given or where the run has them."""
    from sagl.estimator import SAGL
    from sagl.report.inputs import open_inputs

    model = SAGL.load(run, device)
    known = open_inputs(run, store=store, views=view or (), id_column=id_column)
    if known.views is None:
        raise ValueError(
            f"{run} does not say where its views are; give those of the fit with "
            "--view, or a feature store"
        )
    if any(name != str(row) for row, name in enumerate(known.ids)):
        model._model.ids = list(known.ids)  # what the explorer of its report calls them
    return model, known


def source_of(run: Path) -> dict[str, Any]:
    """Where a run's samples and features are, as another run can say it."""
    from sagl.report.inputs import source_record
    from sagl.run import FEATURES

    record = source_record(run)
    if "store" in record or (run / FEATURES).is_dir():
        record["store"] = str((run / record.get("store", FEATURES)).resolve())
    return record
