"""Options of the commands that read samples or a feature store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

FilesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--view",
        metavar="NAME=FILE",
        help="A view: a .npy, .npz, .safetensors, .csv or .parquet file with one row "
        "per sample. Repeat for each view; FILE.npz::KEY picks one array of several.",
    ),
]
StoreArgument = Annotated[
    Path | None,
    typer.Argument(metavar="[STORE]", help="A feature store, instead of --view."),
]
ViewsOption = Annotated[
    str | None, typer.Option(help="Of a store, only these views: NAME,NAME,…")
]
JoinOption = Annotated[
    str | None,
    typer.Option(
        help="Samples that are not in every view: error, or inner to leave them out."
    ),
]
BackboneOption = Annotated[
    list[str] | None,
    typer.Option(
        "--backbone",
        metavar="[NAME=]BACKBONE",
        help="A pretrained model: hf:ID, timm:ID, npy:FILE or a short name of sagl "
        "backbones. Repeat for each view, which is called NAME.",
    ),
]
KindOption = Annotated[
    str | None, typer.Option(help="What the samples are, if unclear: image or text.")
]
ColumnOption = Annotated[
    str | None, typer.Option(help="Of a table: the column with the samples.")
]
IdColumnOption = Annotated[
    str | None, typer.Option(help="Of a table: the column with the ids.")
]
LabelColumnOption = Annotated[
    str | None,
    typer.Option(help="Of a table: the column with the labels. They only score."),
]
SplitOption = Annotated[
    str | None, typer.Option(help="Of a data set: which part, e.g. train.")
]
WorkersOption = Annotated[
    int | None,
    typer.Option(help="Processes that decode samples; by default one per free core."),
]
RemoteCodeOption = Annotated[
    bool,
    typer.Option(
        "--trust-remote-code", help="Run code that comes with a model from the hub."
    ),
]


def listed(names: str | None) -> list[str] | None:
    """``NAME,NAME`` as a list."""
    return None if names is None else [name.strip() for name in names.split(",")]


def reader_options(
    kind: str | None,
    column: str | None,
    id_column: str | None,
    label_column: str | None,
    split: str | None,
) -> dict[str, Any]:
    """Those that were given."""
    return {
        "kind": kind,
        "column": column,
        "id_column": id_column,
        "label_column": label_column,
        "split": split,
    }
