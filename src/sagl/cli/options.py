"""Options that several commands share, and reading what they name."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from sagl.views import Views

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]
DeviceOption = Annotated[
    str, typer.Option(help="cpu, cuda, mps, or auto: CUDA when there is one.")
]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")]


def cluster_number(text: str) -> int | Literal["auto"]:
    """What ``--clusters`` says: a number, or auto."""
    if text == "auto":
        return "auto"
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"--clusters must be a number or auto; got {text!r}") from None


def read_views(options: list[str]) -> Views:
    """The views named on the command line."""
    from sagl.features.split import read_views as read

    return read(options)


def print_json(value: Any) -> None:
    json.dump(value, sys.stdout, indent=2, default=float)
    sys.stdout.write("\n")
