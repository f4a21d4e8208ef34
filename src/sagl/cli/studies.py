"""``sagl compare | ablate | sensitivity | combine | sweep | reproduce``."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from sagl.cli.study import (
    SEEDS,
    Running,
    StudyOptions,
    parse_pairs,
    parse_value,
    parse_values,
    study_options,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sagl.baselines.registry import Method
    from sagl.experiments.reproduce import Preset


@takes(study_options, out=Path("comparison"))
def compare(
    options: StudyOptions,
    methods: str = option(
        "all",
        "all, or some by name; module:Class takes a class of your own.",
        metavar="NAME,…",
    ),
    param: list[str] | None = option(
        None,
        "A parameter of one method, e.g. turtle:steps=1000. Repeat.",
        "--param",
        metavar="METHOD:NAME=VALUE",
    ),
    looks: int = option(8, "Points of each curve of quality over time."),
    class_names: Path | None = option(
        None, "One name per line, for zero-shot and LaFTer."
    ),
    text_encoder: str | None = option(
        None, "A CLIP directory or name, for zero-shot and LaFTer."
    ),
    text_view: str | None = option(None, "The view that belongs to the text encoder."),
) -> None:
    """Run every method on the same views and tabulate how good and how fast it is.

    Labels only score, except in rows that say otherwise. Runs are kept in DIR: the same
    command takes up what was interrupted.

    Example: sagl compare --data pets --methods all --seeds 5 --out comparison
    """
    from sagl.experiments.compare import Comparison

    chosen = parse_methods(methods, param or [], class_names, text_encoder, text_view)
    options.run(Comparison, methods=chosen, looks=looks)


def parse_methods(
    names: str,
    params: list[str],
    class_names: Path | None,
    text_encoder: str | None,
    text_view: str | None,
) -> list[Method]:
    """The methods that the options name, with their parameters."""
    from dataclasses import replace

    from sagl.baselines.registry import METHODS, find_method
    from sagl.experiments.sweep import distinct

    wanted = list(METHODS) if names == "all" else names.split(",")
    wanted = distinct("--methods", [name.strip() for name in wanted])
    chosen = [find_method(name) for name in wanted]
    more: dict[str, dict[str, Any]] = {method.name: {} for method in chosen}
    form = "METHOD:NAME=VALUE"
    for place, value in parse_pairs("--param", params, form).items():
        method, _, name = place.rpartition(":")
        if not (method and name):
            raise ValueError(f"--param {place}={value}: expected {form}")
        if method not in more:
            raise ValueError(
                f"--param {place}={value}: {method!r} is not among the methods"
            )
        more[method][name] = parse_value(value)
    named = ("class_names", "text_encoder", "text_view")
    if not any("class names" in method.needs for method in chosen):
        refuse_idle("it is for zero-shot and lafter, and neither is run", *named)
    if class_names is None or text_encoder is None:
        refuse_idle("--class-names and --text-encoder go together", *named)
    else:
        lines = class_names.read_text(encoding="utf-8").splitlines()
        extra = {
            "class_names": [line.strip() for line in lines if line.strip()],
            "text_encoder": text_encoder,
            "view": text_view,
        }
        for known in chosen:
            if "class names" in known.needs:
                more[known.name] |= extra
    return [replace(m, params={**m.params, **more[m.name]}) for m in chosen]


@takes(study_options, out=Path("ablation"))
def ablate(options: StudyOptions) -> None:
    """Take SAGL apart: without its search, graph, sparsity or gate, beside the whole.

    Labels only score, and there need not be any. Runs are kept in DIR: the same command
    takes up what was interrupted.

    Example: sagl ablate --data pets --param steps=500 --out ablation
    """
    from sagl.experiments.compare import Ablation

    options.run(Ablation)


@takes(study_options, seeds=3, out=Path("sensitivity"))
def sensitivity(
    options: StudyOptions,
    gamma: str = option("1,2,5,10,20", "Weights of diversity.", metavar="VALUE,…"),
    beta: str = option("0.1,0.2,0.5,1,2", "Weights of alignment.", metavar="VALUE,…"),
    batch_size: str | None = option(
        None,
        "By default 1/2, 1, 2 and 4 times the size that SAGL takes.",
        metavar="VALUE,…",
    ),
) -> None:
    """How much the paper's network depends on γ × β and on the batch size.

    Without a search (refine=false), which would find the clusters instead: by the
    default recipe these settings train its graph alone. --param sets other things, e.g.
    recipe=paper. Runs are kept in DIR: the same command takes up what was interrupted.

    Example: sagl sensitivity --data pets --gamma 1,5,20 --beta 0.1,1
    """
    from sagl.experiments.compare import Sensitivity

    options.run(
        Sensitivity,
        gammas=parse_values("--gamma", gamma),
        betas=parse_values("--beta", beta),
        batch_sizes=parse_values("--batch-size", batch_size) if batch_size else None,
    )


@takes(study_options, seeds=3, out=Path("combinations"))
def combine(
    options: StudyOptions,
    at_least: int = option(1, "Views in a combination."),
    max_views: int | None = option(None, "The most views in a combination."),
) -> None:
    """Run SAGL on every combination of the views and say which one to take.

    The choice is made without labels: by how well all views, whether fitted or not,
    predict the clusters. Runs are kept in DIR: the same command takes up what was
    interrupted.

    Example: sagl combine --data pets --clusters 37 --max-views 2
    """
    from sagl.experiments.compare import Combination

    options.run(Combination, at_least=at_least, at_most=max_views)


@takes(study_options, seeds=3, out=Path("sweep"))
def sweep(
    options: StudyOptions,
    clusters: int = option(..., "The number of clusters."),
    grid: list[str] | None = option(
        None,
        "Values of a parameter of sagl fit, e.g. width=32,64. Repeat.",
        "--grid",
        metavar="NAME=VALUE,…",
    ),
    ranges: list[str] | None = option(
        None,
        "For optuna: a setting between two numbers, on a logarithmic scale "
        "if LOW is above 0 and :linear does not follow. Repeat.",
        "--range",
        metavar="NAME=LOW..HIGH",
    ),
    search: str = option(
        "grid", "grid: every combination; optuna: --trials proposals."
    ),
    trials: int = option(30, "Settings that optuna proposes."),
) -> None:
    """Choose settings of SAGL without labels, by how well the views predict clusters.

    By the default recipe a search finds the clusters and trains a graph: width,
    normalize, steps, learning_rate, cluster_sizes and n_restarts say how. gamma, beta,
    pseudo_label and alignment are of the paper's loss: try them with --param
    recipe=paper. Labels, if there are any, are shown for information and never used.
    Runs are kept in DIR: the same command takes up what was interrupted.

    Example: sagl sweep --data pets --clusters 37 --grid width=32,64
    """
    from sagl.experiments.sweep import Sweep

    if search == "grid":
        refuse_idle("a grid is tried as a whole; it is of --search optuna", "trials")
    form = "NAME=VALUE,VALUE,…"
    options.run(
        Sweep,
        n_clusters=clusters,
        grid={
            name: parse_values(f"--grid {name}", values)
            for name, values in parse_pairs("--grid", grid, form).items()
        },
        ranges=parse_ranges(ranges),
        search=search,
        trials=trials,
    )


def parse_ranges(texts: list[str] | None) -> dict[str, tuple[float, float, bool]]:
    """Lows, highs, and whether between them is logarithmic."""
    form = "NAME=LOW..HIGH or NAME=LOW..HIGH:linear"
    range_of = {}
    for name, text in parse_pairs("--range", texts, form).items():
        ends, colon, scale = text.partition(":")
        low, _, high = ends.partition("..")
        values = parse_value(low), parse_value(high)
        numbers = all(type(value) in (int, float) for value in values)
        if not (numbers and (scale == "linear" or not colon)):
            raise ValueError(f"--range {name}={text}: expected {form}")
        range_of[name] = (*values, values[0] > 0 and not colon)
    return range_of


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
    from sagl.experiments.sweep import distinct
    from sagl.report.style import load

    if show_list:
        refuse_all_idle("--list shows the presets and ends", "show_list", "as_json")
        _show_presets(list(steps.PRESETS.values()), runs.as_json)
        return
    if dataset is None:
        known = ", ".join(steps.PRESETS)
        raise ValueError(f"name a data set: {known}; --list shows them")
    preset = steps.find_preset(dataset)
    names = distinct("--methods", listed(methods) or steps.DEFAULT_METHODS)
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
