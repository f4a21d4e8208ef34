"""``sagl backbones``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from sagl.cli.options import JSON, print_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sagl.features.backbones import KnownBackbone

_TITLES = {"image": "Images", "text": "Texts"}


def backbones(as_json: bool = JSON) -> None:
    """List the backbones that have a short name."""
    from sagl.features.backbones import KNOWN

    if as_json:
        print_json([known.as_json() for known in KNOWN.values()])
        return
    console = Console()
    for kind, title in _TITLES.items():
        rows = [known for known in KNOWN.values() if known.kind == kind]
        console.print(_table(title, rows))
    _show_notes(console, KNOWN.values())


def _table(title: str, rows: Iterable[KnownBackbone]) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("weights", justify="right", no_wrap=True)
    table.add_column("dim", justify="right", no_wrap=True)
    table.add_column("trained by", no_wrap=True)
    table.add_column("licence", no_wrap=True)
    for known in rows:
        name = f"{known.name} *" if known.paper else known.name
        trained = known.objective
        if known.labels:
            trained = f"[bold yellow]{trained}[/bold yellow]"
        licence = known.licence + (", gated" if known.gated else "")
        size = f"{known.millions:,.0f} M"
        table.add_row(name, size, str(known.dim), trained, licence)
    return table


def _show_notes(console: Console, rows: Iterable[KnownBackbone]) -> None:
    taught = "; ".join(f"{known.name} {known.labels}" for known in rows if known.labels)
    lines = (
        "\n* the paper's four",
        "[bold yellow]labels[/bold yellow]: classes that a model was taught may "
        "overlap with those looked for, and then the result is not label-free: "
        f"{taught}",
        "gated: accept the terms on the model's page on the Hugging Face hub, then "
        "log in with: hf auth login",
        "Others: hf:ID (a model on the hub, or a directory: hf:./model), timm:NAME, "
        "npy:FILE (saved features), module:function#image or #text. CLIP and SigLIP "
        "embed texts as NAME#text.",
    )
    for line in lines:
        console.print(line, highlight=False)
