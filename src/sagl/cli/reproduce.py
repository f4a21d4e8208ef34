"""``sagl reproduce``."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from sagl.cli.options import (
    DEVICE,
    WORKERS,
    argument,
    listed,
    option,
    print_json,
    taken_up,
    takes,
)
from sagl.cli.study import SEEDS, Running, narrow_table, run_option

if TYPE_CHECKING:
    from sagl.experiments.reproduce import Preset

_SETTINGS = ("name", "train", "test", "C", "lr", "B", "γ", "β", "dropout")


@takes(Running)
def reproduce(
    runs: Running,
    dataset: str | None = argument(
        None,
        "pets, kitti, flowers, caltech101, eurosat, sun397, food101 or imagenet.",
        "DATASET",
    ),
    root: Path | None = option(
        None,
        "The folder in which the official download was unpacked; --list names its "
        "files.",
        metavar="DIR",
    ),
    out: Path | None = option(
        None, "Features, runs, table and figures are kept here.", metavar="DIR"
    ),
    backbone: list[str] | None = option(
        None,
        "As for sagl extract; repeat for each view. By default the paper's two, "
        "dinov3-l and siglip2-l-384.",
        metavar="[NAME=]BACKBONE",
    ),
    features: Path | None = option(
        None,
        "Instead of --root: a directory with train/ and test/, each a feature "
        "store or one file per view with labels.npy.",
        metavar="DIR",
    ),
    views: str | None = option(None, "Of --features, only these: NAME,NAME,…"),
    methods: str | None = option(
        None,
        "NAME,NAME,… as for sagl compare. By default the paper's SAGL and its "
        "ablations with the preset, SAGL's default recipe, k-means and the probe.",
    ),
    epochs: int | None = option(
        None, "Shorten what the preset trains; the table says so."
    ),
    seeds: int = SEEDS,
    minutes: float | None = run_option(
        None, "Stop after so many minutes; extraction is not cut short."
    ),
    workers: int | None = WORKERS,
    device: str = DEVICE,
    show_list: bool = option(
        False, "Show the presets and what to download; then end.", "--list"
    ),
) -> None:
    """Run one of the paper's data sets with the paper's settings, beside its figures.

    Extracts the features of the paper's splits, runs every method with several seeds
    and writes a table and figures with what the paper published. The same command
    takes up what was interrupted. Data sets are not downloaded.
    """
    from sagl.experiments import reproduce as steps
    from sagl.report.style import load

    if show_list:
        _show_presets(list(steps.PRESETS.values()), runs.as_json)
        return
    if dataset is None:
        known = ", ".join(steps.PRESETS)
        raise ValueError(f"name a data set: {known}; --list shows them")
    preset = steps.find_preset(dataset)
    names = listed(methods) or steps.DEFAULT_METHODS
    chosen = steps.preset_methods(preset, names, epochs)
    if out is None:
        raise ValueError("say where the results are kept: --out DIR")
    if seeds < 1:
        raise ValueError(f"--seeds must be at least 1; got {seeds}")
    if (root is None) == (features is None):
        raise ValueError(
            "give --root, the folder of the data set, or --features; one of the two "
            f"({preset.title} is {preset.download})"
        )
    if features is not None and backbone:
        raise ValueError("--backbone goes with --root; of --features pick --views")
    if root is not None and views:
        raise ValueError("--views goes with --features; with --root give --backbone")
    load("matplotlib")  # hours before the figures are drawn
    start = time.monotonic()
    used = None
    with taken_up():
        if features is not None:
            source = steps.given_features(preset, features, listed(views))
        else:
            assert root is not None
            used = backbone or steps.BACKBONES
            options = {"workers": workers, "device": device, "progress": not runs.quiet}
            source = steps.extract_features(preset, root, used, out, **options)
    study = steps.Reproduction(
        preset,
        source,
        chosen,
        out,
        backbones=used,
        epochs=epochs,
        seeds=seeds,
        device=device,
    )
    if minutes is not None:
        minutes = max(0.0, minutes - (time.monotonic() - start) / 60)
    replace(runs, minutes=minutes).run(study)


def _show_presets(presets: list[Preset], as_json: bool) -> None:
    if as_json:
        print_json([asdict(preset) for preset in presets])
        return
    table = narrow_table(_SETTINGS)
    for p in presets:
        whole = (p.n_train, p.n_test, p.n_classes, p.batch_size)
        n_train, n_test, n_classes, size = (f"{value:,}" for value in whole)
        rate, *weights = (
            f"{value:g}" for value in (p.learning_rate, p.gamma, p.beta, p.dropout)
        )
        table.add_row(p.name, n_train, n_test, n_classes, rate, size, *weights)
    console = Console()
    console.print(table)
    for p in presets:
        note = f" Note: {p.note}." if p.note else ""
        line = f"{p.name}: {p.download}. Split: {p.splits}.{note}"
        console.print(line, highlight=False, markup=False)
