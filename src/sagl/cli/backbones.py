"""``sagl backbones``."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from sagl.cli.options import takes

_COLUMNS = {"name": "left", "weights": "right", "dim": "right"}
_COLUMNS |= {"trained by": "left", "licence": "left"}
_NOTES = """
* the paper's four
[bold yellow]labels[/bold yellow]: classes that a model was taught may overlap with \
those looked for, and then the result is not label-free: {taught}
gated: accept the terms on the model's page on the Hugging Face hub, then log in with: \
hf auth login
Others: hf:ID (a model on the hub, or a directory: hf:./model), timm:NAME, npy:FILE \
(saved features), module:function#image or #text. CLIP and SigLIP embed texts as \
NAME#text."""


def _show(known: list[dict[str, Any]]) -> None:
    console = Console()
    for kind, title in (("image", "Images"), ("text", "Texts")):
        table = Table(title=title, title_justify="left", box=None, pad_edge=False)
        for name, side in _COLUMNS.items():
            table.add_column(name, justify=side, no_wrap=True)  # type: ignore[arg-type]
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


@takes(show=_show)
def backbones() -> list[dict[str, Any]]:
    """List the backbones that have a short name.

    Example: sagl backbones --json
    """
    from sagl.features.backbones import KNOWN

    return [known.as_json() for known in KNOWN.values()]
