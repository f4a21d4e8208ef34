"""``sagl``: the commands and how their errors are shown."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, Any

import typer

from sagl import __version__
from sagl.cli.ablate import ablate
from sagl.cli.backbones import backbones
from sagl.cli.combine import combine
from sagl.cli.compare import compare
from sagl.cli.demo import demo
from sagl.cli.evaluate import evaluate
from sagl.cli.extract import extract
from sagl.cli.fit import fit
from sagl.cli.graph import graph
from sagl.cli.info import info
from sagl.cli.predict import predict
from sagl.cli.report import report
from sagl.cli.reproduce import reproduce
from sagl.cli.sensitivity import sensitivity
from sagl.cli.store import store
from sagl.cli.sweep import sweep
from sagl.cli.views import views

app = typer.Typer(
    name="sagl",
    help="Clusters, representations and sparse graphs from several frozen views, "
    "without labels.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
for command in (
    demo,
    extract,
    fit,
    predict,
    evaluate,
    graph,
    report,
    compare,
    ablate,
    sensitivity,
    combine,
    sweep,
    reproduce,
    views,
    backbones,
    info,
):
    app.command()(command)
app.add_typer(store, name="store")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sagl {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    pass


def run() -> None:
    """Entry point: bad input ends in one line on stderr and exit code 2."""
    warnings.showwarning = _show_warning
    try:
        app()
    except (ValueError, OSError) as error:
        _fail(error, 2)
    except FloatingPointError as error:
        _fail(error, 1)


def _fail(error: Any, code: int) -> None:
    line = " ".join(str(error).split())
    print(f"sagl: error: {line}", file=sys.stderr)
    sys.exit(code)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    line = " ".join(str(message).split())
    print(f"sagl: warning: {line}", file=sys.stderr)
