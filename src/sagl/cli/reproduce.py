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
    refuse_all_idle,
    refuse_idle,
    running,
    samples,
    show_table,
    taken_up,
    takes,
)
from sagl.cli.study import SEEDS, Running

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sagl.experiments.reproduce import Preset


@takes(Running)
def reproduce(
    runs: Running,
    dataset: str | None = argument(
        None,
        "pets, kitti, flowers, caltech101, eurosat, sun397, food101 or imagenet.",
        "DATASET",
    ),
    root: Path | None = samples(
        None,
        "The folder in which the official download was unpacked; --list names its "
        "files.",
        metavar="DIR",
    ),
    out: Path | None = running(
        None, "Features, runs, table and figures are kept here.", metavar="DIR"
    ),
    backbone: list[str] | None = samples(
        None,
        "As for sagl extract; repeat for each view. By default the paper's two, "
        "dinov3-l and siglip2-l-384.",
        metavar="MODEL",
    ),
    features: Path | None = samples(
        None,
        "Instead of --root: a directory with train/ and test/, each a feature "
        "store or one file per view with labels.npy.",
        metavar="DIR",
    ),
    views: str | None = samples(None, "Of --features, only these.", metavar="NAME,…"),
    methods: str | None = option(
        None,
        "As for sagl compare. By default the paper's SAGL and its ablations with the "
        "preset, SAGL's default recipe, k-means and the probe.",
        metavar="NAME,…",
    ),
    epochs: int | None = option(
        None, "Shorten what the preset trains; the table says so."
    ),
    seeds: int = SEEDS,
    workers: int | None = WORKERS,
    device: str = DEVICE,
    show_list: bool = option(
        False, "Show the presets and what to download; then end.", "--list"
    ),
) -> None:
    """Run one of the paper's data sets with the paper's settings, beside its figures.

    Extracts the features of the paper's splits, runs every method with several seeds
    and writes a table and figures with what the paper published. The same command
    takes up what was interrupted; --minutes does not cut the extraction short. Data
    sets are not downloaded.

    Example: sagl reproduce pets --root oxford-pets --out reproduction
    """
    from sagl.checks import integer
    from sagl.experiments import reproduce as steps
    from sagl.report.style import load

    if show_list:
        refuse_all_idle("--list shows the presets and ends", "show_list", "as_json")
        _show_presets(list(steps.PRESETS.values()), runs.as_json)
        return
    if dataset is None:
        known = ", ".join(steps.PRESETS)
        raise ValueError(f"name a data set: {known}; --list shows them")
    preset = steps.find_preset(dataset)
    names = listed(methods) or steps.DEFAULT_METHODS
    chosen = steps.preset_methods(preset, names, epochs)
    if not set(steps.BY_PRESET).intersection(names):
        refuse_idle("no method is run with the preset", "epochs")
    if out is None:
        raise ValueError("say where the results are kept: --out DIR")
    integer("--seeds", seeds, 1)
    if (root is None) == (features is None):
        raise ValueError(
            "give --root, the folder of the data set, or --features; one of the two "
            f"({preset.title} is {preset.download})"
        )
    if features is not None and backbone:
        raise ValueError("--backbone goes with --root; of --features pick --views")
    if features is not None:
        refuse_idle("features are there, and no samples are read", "workers")
    if root is not None and views:
        raise ValueError("--views goes with --features; with --root give --backbone")
    load("matplotlib")  # hours before the figures are drawn
    start = time.monotonic()
    used: Sequence[str] | None = None
    with taken_up():
        if root is not None:
            used = backbone or steps.BACKBONES
            options = {"workers": workers, "device": device, "progress": not runs.quiet}
            source = steps.extract_features(preset, root, used, out, **options)
        elif features is not None:
            source = steps.given_features(preset, features, listed(views))
    study = steps.Reproduction(
        *(preset, source, chosen, out),
        backbones=used,
        epochs=epochs,
        seeds=seeds,
        device=device,
    )
    if runs.minutes is not None:
        left = max(0.0, runs.minutes - (time.monotonic() - start) / 60)
        runs = replace(runs, minutes=left)
    runs.run(study)


def _show_presets(presets: list[Preset], as_json: bool) -> None:
    if as_json:
        print_json([asdict(preset) for preset in presets])
        return
    rows = [
        [
            *(p.name, f"{p.n_train:,}", f"{p.n_test:,}", f"{p.n_classes:,}"),
            *(f"{p.learning_rate:g}", f"{p.batch_size:,}"),
            *(f"{value:g}" for value in (p.gamma, p.beta, p.dropout)),
        ]
        for p in presets
    ]
    columns = ("name", "train", "test", "C", "lr", "B", "γ", "β", "dropout")
    show_table("", columns, rows)
    for p in presets:
        note = f" Note: {p.note}." if p.note else ""
        line = f"{p.name}: {p.download}. Split: {p.splits}.{note}"
        Console().print(line, highlight=False, markup=False)
