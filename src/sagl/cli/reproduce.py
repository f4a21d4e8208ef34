"""``sagl reproduce``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from sagl.cli.experiment import JobsOption, SeedsOption, print_table, run_kept
from sagl.cli.options import DeviceOption, JsonOption, QuietOption, print_json
from sagl.cli.source_options import WorkersOption, listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sagl.experiments.compare_table import Row
    from sagl.experiments.presets import Preset
    from sagl.experiments.reproduce import Reproduction
    from sagl.features.split import Source

# Columns of the table that stand together in a terminal; 0 is the method.
_TOGETHER = ((0, 1, 2, 7), (0, 3, 4, 5, 6), (0, 8, 9, 10))
_SETTINGS = ("name", "train", "test", "C", "lr", "B", "γ", "β", "dropout")


def reproduce(
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
        typer.Option(
            metavar="DIR",
            help="The folder in which the official download was unpacked; --list "
            "names its files.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Features, runs, table and figures are kept here."
        ),
    ] = None,
    backbone: Annotated[
        list[str] | None,
        typer.Option(
            "--backbone",
            metavar="[NAME=]BACKBONE",
            help="As for sagl extract; repeat for each view. By default the paper's "
            "two, dinov3-l and siglip2-l-384.",
        ),
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Instead of --root: a directory with train/ and test/, each a feature "
            "store or one file per view with labels.npy.",
        ),
    ] = None,
    views: Annotated[
        str | None, typer.Option(help="Of --features, only these: NAME,NAME,…")
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            help="NAME,NAME,… as for sagl compare. By default the paper's SAGL and its "
            "ablations with the preset, SAGL's default recipe, k-means and the probe.",
        ),
    ] = None,
    seeds: SeedsOption = 5,
    epochs: Annotated[
        int | None,
        typer.Option(help="Shorten what the preset trains; the table says so."),
    ] = None,
    jobs: JobsOption = 1,
    minutes: Annotated[
        float | None,
        typer.Option(help="Stop after so many minutes; extraction is not cut short."),
    ] = None,
    workers: WorkersOption = None,
    device: DeviceOption = "auto",
    show_list: Annotated[
        bool,
        typer.Option("--list", help="Show the presets and what to download; then end."),
    ] = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run one of the paper's data sets with the paper's settings, beside its figures.

    Extracts the features of the paper's splits, runs every method with several seeds
    and writes a table and figures with what the paper published. The same command
    takes up what was interrupted. Data sets are not downloaded.
    """
    if show_list:
        _show_presets(as_json)
        return
    from sagl.experiments import reproduce as steps
    from sagl.experiments.compare import Comparison
    from sagl.experiments.presets import BACKBONES, PRESETS, find_preset
    from sagl.experiments.reproduce_table import result_rows, write_results
    from sagl.report.style import load

    if dataset is None:
        raise ValueError(f"name a data set: {', '.join(PRESETS)}; --list shows them")
    preset = find_preset(dataset)
    chosen = steps.preset_methods(
        preset, listed(methods) or steps.DEFAULT_METHODS, epochs
    )
    if out is None:
        raise ValueError("say where the results are kept: --out DIR")
    for name, value in (("--seeds", seeds), ("--jobs", jobs)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1; got {value}")
    load("matplotlib")  # hours before the figures are drawn
    start = time.monotonic()
    used = tuple(backbone or BACKBONES)
    try:
        source = _source(
            *(preset, root, features, listed(views), backbone, out),
            workers=workers,
            device=device,
            progress=not quiet,
        )
    except KeyboardInterrupt:
        typer.echo("sagl: interrupted; the same command takes up the rest", err=True)
        raise typer.Exit(130) from None
    comparison = Comparison(source, chosen, out, seeds=seeds, device=device)
    if minutes is not None:
        minutes = max(0.0, minutes - (time.monotonic() - start) / 60)
    run_kept(comparison, jobs, minutes, quiet)
    reproduction = steps.Reproduction(
        preset, comparison, used if features is None else None, epochs
    )
    rows = result_rows(reproduction)
    written = write_results(reproduction, rows)
    if as_json:
        from sagl.experiments.reproduce_table import json_value

        print_json(json_value(reproduction, rows))
    else:
        _show(reproduction, rows, written)


def _source(
    preset: Preset,
    root: Path | None,
    features: Path | None,
    views: list[str] | None,
    backbones: list[str] | None,
    out: Path,
    **options: Any,
) -> Source:
    from sagl.experiments.presets import BACKBONES
    from sagl.experiments.reproduce import extract_features, given_features

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


def _show(
    reproduction: Reproduction, rows: Sequence[Row], written: Sequence[str]
) -> None:
    """Scores, costs, remarks: tables narrow enough for a terminal."""
    from sagl.experiments.reproduce_table import HEAD, NOT_RUN, remarks, table_cells

    comparison = reproduction.comparison
    console = Console()
    console.print(
        f"{reproduction.preset.title}: {comparison.n_clusters} clusters, "
        f"{comparison.n_train:,} samples fitted, {comparison.n_scored:,} scored"
    )
    lines = table_cells(reproduction, rows, ("[bold]", "[/bold]"))
    supervised = [row.supervised for row in rows]
    for columns in _TOGETHER:
        print_table(console, HEAD, lines, columns, apart=supervised)
    unseen = [row.title for row in rows if row.note == NOT_RUN]
    notes = [f"{r.title}: {r.note}" for r in rows if r.note not in ("", NOT_RUN)]
    if unseen:
        notes.append(f"{NOT_RUN}: {', '.join(unseen)}")
    for text in (*notes, *remarks(reproduction)):
        console.print(text, highlight=False, markup=False)
    console.print(f"kept in {comparison.out}: {', '.join(written)}")


def _show_presets(as_json: bool) -> None:
    from sagl.experiments.presets import PRESETS

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
