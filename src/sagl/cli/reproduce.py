"""``sagl reproduce``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from sagl.cli.options import (
    DeviceOption,
    WorkersOption,
    listed,
    option,
    print_json,
    taken_up,
    takes,
)
from sagl.cli.study import Running, SeedsOption, print_table, run_option, running

if TYPE_CHECKING:
    from sagl.experiments.paper import Preset
    from sagl.features.split import Source

_SETTINGS = ("name", "train", "test", "C", "lr", "B", "γ", "β", "dropout")


@takes(running)
def reproduce(
    runs: Running,
    dataset: Annotated[
        str | None,
        typer.Argument(
            metavar="DATASET",
            help="pets, kitti, flowers, caltech101, eurosat, sun397, food101 or "
            "imagenet.",
            show_default=False,
        ),
    ] = None,
    root: Annotated[
        Path | None,
        option(
            "The folder in which the official download was unpacked; --list names its "
            "files.",
            metavar="DIR",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        option("Features, runs, table and figures are kept here.", metavar="DIR"),
    ] = None,
    backbone: Annotated[
        list[str] | None,
        option(
            "As for sagl extract; repeat for each view. By default the paper's two, "
            "dinov3-l and siglip2-l-384.",
            metavar="[NAME=]BACKBONE",
        ),
    ] = None,
    features: Annotated[
        Path | None,
        option(
            "Instead of --root: a directory with train/ and test/, each a feature "
            "store or one file per view with labels.npy.",
            metavar="DIR",
        ),
    ] = None,
    views: Annotated[
        str | None, option("Of --features, only these: NAME,NAME,…")
    ] = None,
    methods: Annotated[
        str | None,
        option(
            "NAME,NAME,… as for sagl compare. By default the paper's SAGL and its "
            "ablations with the preset, SAGL's default recipe, k-means and the probe."
        ),
    ] = None,
    epochs: Annotated[
        int | None, option("Shorten what the preset trains; the table says so.")
    ] = None,
    seeds: SeedsOption = 5,
    minutes: Annotated[
        float | None,
        run_option("Stop after so many minutes; extraction is not cut short."),
    ] = None,
    workers: WorkersOption = None,
    device: DeviceOption = "auto",
    show_list: Annotated[
        bool, option("Show the presets and what to download; then end.", "--list")
    ] = False,
) -> None:
    """Run one of the paper's data sets with the paper's settings, beside its figures.

    Extracts the features of the paper's splits, runs every method with several seeds
    and writes a table and figures with what the paper published. The same command
    takes up what was interrupted. Data sets are not downloaded.
    """
    if show_list:
        _show_presets(runs.as_json)
        return
    from sagl.experiments import compare as steps
    from sagl.experiments.paper import BACKBONES, PRESETS, find_preset
    from sagl.report.style import load

    if dataset is None:
        raise ValueError(f"name a data set: {', '.join(PRESETS)}; --list shows them")
    preset = find_preset(dataset)
    chosen = steps.preset_methods(
        preset, listed(methods) or steps.DEFAULT_METHODS, epochs
    )
    if out is None:
        raise ValueError("say where the results are kept: --out DIR")
    for name, value in (("--seeds", seeds), ("--jobs", runs.jobs)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1; got {value}")
    load("matplotlib")  # hours before the figures are drawn
    start = time.monotonic()
    with taken_up():
        source = _source(
            *(preset, root, features, listed(views), backbone, out),
            workers=workers,
            device=device,
            progress=not runs.quiet,
        )
    study = steps.Reproduction(
        preset,
        source,
        chosen,
        out,
        backbones=(backbone or BACKBONES) if features is None else None,
        epochs=epochs,
        seeds=seeds,
        device=device,
    )
    if minutes is not None:
        minutes = max(0.0, minutes - (time.monotonic() - start) / 60)
    runs._replace(minutes=minutes).run(study)


def _source(
    preset: Preset,
    root: Path | None,
    features: Path | None,
    views: list[str] | None,
    backbones: list[str] | None,
    out: Path,
    **options: Any,
) -> Source:
    from sagl.experiments.compare import extract_features, given_features
    from sagl.experiments.paper import BACKBONES

    if (root is None) == (features is None):
        raise ValueError(
            "give --root, the folder of the data set, or --features; one of the two "
            f"({preset.title} is {preset.download})"
        )
    if features is not None:
        if backbones:
            raise ValueError("--backbone goes with --root; of --features pick --views")
        return given_features(preset, features, views)
    if views:
        raise ValueError("--views goes with --features; with --root give --backbone")
    assert root is not None
    return extract_features(preset, root, backbones or BACKBONES, out, **options)


def _show_presets(as_json: bool) -> None:
    from sagl.experiments.paper import PRESETS

    if as_json:
        print_json([preset.as_dict() for preset in PRESETS.values()])
        return
    console = Console()
    lines = [
        [
            p.name,
            *(f"{size:,}" for size in (p.n_train, p.n_test, p.n_classes)),
            *(f"{p.learning_rate:g}", f"{p.batch_size:,}"),
            *(f"{value:g}" for value in (p.gamma, p.beta, p.dropout)),
        ]
        for p in PRESETS.values()
    ]
    print_table(console, _SETTINGS, lines, range(len(_SETTINGS)))
    for p in PRESETS.values():
        note = f" Note: {p.note}." if p.note else ""
        line = f"{p.name}: {p.download}. Split: {p.splits}.{note}"
        console.print(line, highlight=False, markup=False)
