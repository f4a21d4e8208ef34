"""``sagl update``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sagl.cli.info import describe
from sagl.cli.options import loaded, option, running, say, show_table, takes
from sagl.cli.refit import opened

if TYPE_CHECKING:
    from sagl.estimator import SAGL
    from sagl.features.store import Joined
    from sagl.views import Views


def _show(facts: dict[str, Any]) -> None:
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


@takes(loaded, show=_show)
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
    from sagl.experiments.fit import write_fitted
    from sagl.run import refuse_existing_run, refuse_foreign

    run, model, new = given
    refuse_existing_run(out)
    refuse_foreign(out)
    old, ids = None, list(new.ids)
    if with_old is not None:
        old, earlier = _earlier(run, with_old, str(model.device))
        ids = _all_ids(earlier, ids)
    changed = model.update(new.views, old, ids=ids)
    views = new.views if old is None else _joined(old, new.views)
    source = new.source if old is None else {}
    write_fitted(changed, views, out, ids=ids, source=source)
    return describe(out) | {"update": changed.update_.as_dict()}


def _earlier(run: Path, places: list[str], device: str) -> tuple[Views, list[str]]:
    """Views and ids of the fit."""
    if places == ["run"]:
        _, known = opened(run, None, None, None, device)
    elif len(places) == 1 and "=" not in places[0]:
        _, known = opened(run, Path(places[0]), None, None, device)
    else:
        _, known = opened(run, None, places, None, device)
    assert known.views is not None
    return known.views, list(known.ids)


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


def _joined(old: Views, new: Views) -> Views:
    from sagl.clusters.update import joined

    return joined(old, new.as_fitted(old.names, old.widths))
