"""``sagl refit | update``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sagl.cli.look import describe
from sagl.cli.options import (
    DEVICE,
    FILES,
    ID_COLUMN,
    RUN,
    STORE,
    check_joining,
    loaded,
    option,
    running,
    say,
    show_table,
    takes,
)

if TYPE_CHECKING:
    from sagl.estimator import SAGL
    from sagl.features.store import Joined
    from sagl.report.inputs import Inputs


def _show_refit(facts: dict[str, Any]) -> None:
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


@takes(show=_show_refit)
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


def _show_update(facts: dict[str, Any]) -> None:
    told = facts["update"]
    say(
        f"{told['n_new']:,} new samples beside {told['n_earlier']:,} earlier ones, of "
        f"which {told['moved']:.1%} are in another cluster now"
    )
    show_table(
        "views",
        ("view", "energy distance", "p"),
        [
            (v["view"], f"{v['distance']:.3f}", f"{v['p_value']:.3f}")
            for v in told["views"]
        ],
    )
    show_table(
        "clusters so far: share of samples, shift of the mean in deviations",
        ("name", "no.", "before", "earlier, now", "new", "shift"),
        [
            (
                each["name"],
                str(each["number"]),
                *(f"{each[part]:.1%}" for part in ("before", "earlier", "new")),
                "" if each["shift"] is None else f"{each['shift']:.2f}",
            )
            for each in told["clusters"]
        ],
    )
    if told["new_clusters"]:
        show_table(
            "new clusters",
            ("typical", "no.", "samples", "earlier ones", "recall", "nats"),
            [
                (
                    ", ".join(map(str, each["typical"])),
                    str(each["number"]),
                    f"{each['size']:,}",
                    f"{each['earlier']:,}",
                    f"{each['recall']:.2f}",
                    f"{each['gain']:+.3f}",
                )
                for each in told["new_clusters"]
            ],
        )
    else:
        say("no new clusters")
    say(f"{facts['run']}: {facts['n_clusters']} clusters", style="bold")


@takes(loaded, show=_show_update)
def update(
    given: tuple[Path, SAGL, Joined],
    out: Path = running(..., "The new run directory.", metavar="RUN2"),
    with_old: list[str] | None = option(
        None,
        "Look at the samples of the fit, too: a feature store, NAME=FILE for "
        "each view, or run: where the run has them. Without, they are known by the "
        "anchors that the run keeps.",
        "--with-old",
        metavar="PLACE",
    ),
) -> dict[str, Any]:
    """Take in new samples: old clusters keep numbers and names, new ones are told.

    Says how far new samples are from earlier ones, view by view and cluster by cluster.

    Example: sagl update run --view dino=d2.npy --view clip=c2.npy --out run2
    """
    from sagl.clusters.update import joined
    from sagl.experiments.fit import write_fitted
    from sagl.run import refuse_existing_run, refuse_foreign

    run, model, new = given
    refuse_existing_run(out)
    refuse_foreign(out)
    old, ids, source = None, list(new.ids), new.source
    if with_old is not None:
        files = with_old if len(with_old) > 1 or "=" in with_old[0] else None
        store = None if files or with_old == ["run"] else Path(with_old[0])
        _, known = opened(run, store, files, None, str(model.device))
        old = known.views
        assert old is not None
        ids, source = _all_ids(list(known.ids), ids), {}
    changed, views = model.update(new.views, old, ids=ids), new.views
    if old is not None:
        views = joined(old, views.as_fitted(old.names, old.widths))
    write_fitted(changed, views, out, ids=ids, source=source)
    return describe(out) | {"update": changed.update_.as_dict()}


def _all_ids(earlier: list[str], new: list[str]) -> list[str]:
    """Of all samples: numbers go on where both are numbered."""
    numbered = [str(row) for row in range(max(len(earlier), len(new)))]
    if earlier == numbered[: len(earlier)] and new == numbered[: len(new)]:
        return [str(row) for row in range(len(earlier) + len(new))]
    twice = set(earlier) & set(new)
    if twice:
        raise ValueError(
            f"sample {min(twice)!r} is among the earlier and among the new samples; "
            "give new samples ids of their own"
        )
    return [*earlier, *new]
