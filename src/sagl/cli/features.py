"""``sagl extract | backbones | views | store``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from sagl.cli.options import (
    BACKBONES,
    FILES,
    ID_COLUMN,
    JOIN,
    JSON,
    QUIET,
    STORE,
    VIEWS,
    add_command,
    argument,
    check_joining,
    extraction,
    listed,
    option,
    print_json,
    refuse_idle,
    refuse_idle_of_models,
    say,
    show_table,
    taken_up,
    takes,
)


def _show_extraction(done: dict[str, Any]) -> None:
    if not done["complete"]:
        say(
            f"part {done['part']} of {done['parts']} is done; the last process "
            f"finishes the store, or: sagl store merge {done['store']}"
        )
        return
    for name, view in done["views"].items():
        say(f"{name}: {view['rows']:,} rows of {view['dim']} {view['dtype']}")
    say(f"{done['samples']:,} samples in {done['store']}")
    if done["skipped"]:
        skipped = f"{done['store']}/skipped.csv"
        say(f"{done['skipped']:,} could not be used: {skipped} says why")


@takes(extraction, show=_show_extraction)
def extract(
    options: dict[str, Any],
    source: str = argument(
        ...,
        "A folder of images, a list of files, a table, tar shards, a file of texts, or "
        "the name of a data set.",
        "SOURCE",
    ),
    out: Path = option(..., "The feature store; may be there.", metavar="STORE"),
    backbone: list[str] | None = BACKBONES,
    dtype: str | None = option(
        None, "float16, float32 or float64; by default float16."
    ),
    batch_size: int = option(64, "Samples that are embedded together."),
    shard: str | None = option(
        None,
        "Do part I of N, counted from 0; by default what torchrun or Slurm "
        "say, else all.",
        metavar="I/N",
    ),
) -> dict[str, Any]:
    """Turn samples into features, one view per backbone, and write them to STORE.

    Views that STORE has already stay as they are. What was interrupted is taken up by
    the same command. Samples that cannot be read are listed in STORE/skipped.csv.

    Example: sagl extract photos --backbone dinov2-s --backbone clip-b32 --out store
    """
    from sagl.environment import share_of_process
    from sagl.features.extraction import extract_source

    refuse_idle_of_models(backbone or [])
    options |= {"dtype": dtype, "batch_size": batch_size}
    part, parts = options["share"] = share_of_process(shard)
    with taken_up():
        done = extract_source(source, backbone or [], out, **options).as_dict()
    return {**done, "part": part, "parts": parts}


_NOTES = """
* the paper's four
[bold yellow]labels[/bold yellow]: classes that a model was taught may overlap with \
those looked for, and then the result is not label-free: {taught}
gated: accept the terms on the model's page on the Hugging Face hub, then log in with: \
hf auth login
Others: hf:ID (a model on the hub, or a directory: hf:./model), timm:NAME, npy:FILE \
(saved features), module:function#image or #text. CLIP and SigLIP embed texts as \
NAME#text."""


def _show_backbones(known: list[dict[str, Any]]) -> None:
    console = Console()
    for kind, title in (("image", "Images"), ("text", "Texts")):
        table = Table(title=title, title_justify="left", box=None, pad_edge=False)
        for name in ("name", "weights", "dim", "trained by", "licence"):
            right = name in ("weights", "dim")
            table.add_column(name, justify="right" if right else "left", no_wrap=True)
        for model in known:
            if model["kind"] == kind:
                table.add_row(*_cells(model))
        console.print(table)
    taught = "; ".join(f"{m['name']} {m['labels']}" for m in known if m["labels"])
    console.print(_NOTES.format(taught=taught), highlight=False)


def _cells(model: dict[str, Any]) -> list[str]:
    trained = model["objective"]
    if model["labels"]:
        trained = f"[bold yellow]{trained}[/bold yellow]"
    return [
        model["name"] + (" *" if model["paper"] else ""),
        f"{model['millions']:,.0f} M",
        str(model["dim"]),
        trained,
        model["licence"] + (", gated" if model["gated"] else ""),
    ]


@takes(show=_show_backbones)
def backbones() -> list[dict[str, Any]]:
    """List the backbones that have a short name.

    Example: sagl backbones --json
    """
    from sagl.features.backbones import KNOWN

    return [known.as_json() for known in KNOWN.values()]


def _show_views(facts: dict[str, Any]) -> None:
    from sagl.evaluation.cka import THRESHOLDS, PairVerdict

    names = list(facts["views"])
    title = f"CKA of {len(names)} views, {facts['n_samples']:,} samples"
    rows = [
        [name, *(f"{value:.3f}" for value in row)]
        for name, row in zip(names, facts["cka"], strict=True)
    ]
    show_table(title, ("view", *names), rows)
    for pair in facts["pairs"]:
        say(PairVerdict(**pair).in_words())
    levels = ", ".join(f"{v} from {least:g}" for v, least in THRESHOLDS.items())
    say(f"rules of thumb: {levels}, below that unrelated", style="dim")
    if facts["out"]:
        say(f"picture: {facts['out']}")
    if choice := facts["choice"]:
        rows = [[", ".join(t["views"]), f"{t['score']:.3f}"] for t in choice["tried"]]
        title = "which views to use, by a score that needs no labels"
        show_table(title, ("views", "score"), rows)
        say(f"use: {', '.join(choice['views'])}")


@takes(show=_show_views)
def views(
    store: Path | None = STORE,
    view: list[str] | None = FILES,
    id_column: str | None = ID_COLUMN,
    join: str | None = JOIN,
    out: Path | None = option(None, "A picture: .png, .svg or .pdf.", metavar="FILE"),
    batch_size: int | None = option(
        None,
        "Average over batches of so many rows; by default exact "
        "up to 50,000 rows, then 512.",
    ),
    seed: int = option(0, "Of the batches."),
    clusters: int | None = option(
        None,
        "Also choose the views to use for so many clusters, without labels: "
        "more views can hurt. Takes minutes.",
    ),
    quiet: bool = QUIET,
) -> dict[str, Any]:
    """Compare every pair of views by CKA and say which repeat or complement each other.

    1 is the same, 0 nothing in common, whatever the scale and rotation of the features.
    With --clusters, also say which of them to use. Samples that miss a view are left
    out.

    Example: sagl views store --clusters 10
    """
    from sagl.evaluation import cka
    from sagl.features.split import read_input
    from sagl.selection import choose_views

    if out is not None:
        from sagl.report.saving import check_format

        check_format(out)
    check_joining(store, view, id_column)
    given = read_input(
        store,
        view,
        join=join or "error",  # type: ignore[arg-type]
        id_column=id_column,
    ).views
    given = cka.with_all_views(given)
    if len(given.names) < 2:
        raise ValueError(
            f"there is one view only, {given.names[0]!r}; comparing takes two or more"
        )
    size = cka.suitable_batch_size(given) if batch_size is None else batch_size
    if clusters is None and size is None:
        refuse_idle("all rows are compared at once", "seed")
    matrix = cka.cka_matrix(given, batch_size=size, seed=seed, progress=not quiet)
    choice = None
    if clusters is not None:
        chosen = choose_views(given, clusters, random_state=seed, progress=not quiet)
        tried = [
            {"views": list(subset.names), "score": subset.score.total}
            for subset in chosen.tried
        ]
        choice = {"views": list(chosen.best), "tried": tried}
    if out is not None:
        from sagl.report import save
        from sagl.report.figures import draw_cka

        save(draw_cka(matrix, given.names), out)
    return {
        "n_samples": len(given),
        "views": dict(zip(given.names, given.widths, strict=True)),
        "cka": matrix.tolist(),
        "batch_size": size,
        "pairs": [asdict(pair) for pair in cka.judge_views(matrix, given.names)],
        "choice": choice,
        "out": out and str(out),
    }


STORE_PATH = argument(..., "A feature store.", "STORE")


def _facts_of_store(path: Path) -> dict[str, Any]:
    from sagl.features.store import FeatureStore

    return FeatureStore.open(path).describe()


def _show_store(facts: dict[str, Any]) -> None:
    rows = [
        [
            *(name, str(view["model"] or ""), f"{view['rows']:,}", f"{view['dim']:,}"),
            *(view["dtype"], f"{view['files']:,}", f"{view['bytes'] / 2**20:,.1f}"),
        ]
        for name, view in facts["views"].items()
    ]
    columns = ("view", "model", "samples", "width", "type", "files", "MiB")
    show_table(f"feature store {facts['store']}", columns, rows, left=2)
    labelled = "with labels" if facts["labelled"] else "without labels"
    say(f"{facts['samples']:,} samples are in every view, {labelled}")
    if facts["skipped"]:
        say(f"{facts['skipped']:,} were skipped: skipped.csv says why")
    for name in facts["unfinished"]:
        say(f"view {name} is not finished")


@takes(show=_show_store)
def info(path: Path = STORE_PATH) -> dict[str, Any]:
    """Show the views of a store, their models and their samples.

    Example: sagl store info features
    """
    return _facts_of_store(path)


def verify(path: Path = STORE_PATH, as_json: bool = JSON) -> None:
    """Read everything: checksums, rows, and values that are NaN or infinite.

    Ends with exit code 1 when something is wrong.

    Example: sagl store verify features
    """
    from sagl.features.store_tools import verify as find_faults

    faults = find_faults(path)
    if as_json:
        print_json({"store": str(path), "faults": faults})
    else:
        summary = f"{path}: {len(faults)} faults" if faults else f"{path} is whole"
        for line in (*faults, summary):
            say(line)
    if faults:
        raise typer.Exit(1)


@takes(show=_show_store)
def merge(
    paths: list[Path] = argument(..., "Stores, or unfinished parts of one.", "STORE…"),
    out: Path | None = option(
        None,
        "The merged store; without it a single STORE is finished.",
        metavar="STORE",
    ),
) -> dict[str, Any]:
    """Make one store of several, or finish one that several processes wrote to.

    Example: sagl store merge first second --out both
    """
    from sagl.features.store_tools import merge as merge_stores

    return _facts_of_store(merge_stores(paths, out))


def _show_files(facts: dict[str, Any]) -> None:
    for file in facts["files"]:
        say(file)


@takes(show=_show_files)
def export(
    path: Path = STORE_PATH,
    out: Path = option(..., "Where the files go.", metavar="DIR"),
    form: str = option("npy", "npy, npz, parquet or csv.", "--format"),
    views: str | None = VIEWS,
    join: str | None = JOIN,
) -> dict[str, Any]:
    """Write one file per view, the ids and the labels for other tools.

    Example: sagl store export features --out files --format parquet
    """
    from sagl.features.store import FeatureStore
    from sagl.features.store_tools import export as export_store

    opened, how = FeatureStore.open(path), join or "error"
    files = export_store(opened, out, form, names=listed(views), join=how)  # type: ignore[arg-type]
    return {"files": [str(file) for file in files]}


store = typer.Typer(
    name="store",
    help="Look at, check, merge and export feature stores.",
    no_args_is_help=True,
)
for command in (info, verify, merge, export):
    add_command(store, command)
