"""``sagl``: the commands and how their errors are shown."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from typing import Any, NoReturn

import typer

from sagl import __version__
from sagl.cli.clusters import clusters, layers, names
from sagl.cli.features import backbones, extract, store, views
from sagl.cli.fit import demo, evaluate, fit, predict
from sagl.cli.look import graph, info, report
from sagl.cli.options import add_command, visible
from sagl.cli.refit import refit, update
from sagl.cli.serve import serve
from sagl.cli.studies import ablate, combine, compare, reproduce, sensitivity, sweep
from sagl.processes import end_with_torchrun, told_to_end

# By what people want.
COMMANDS = {
    "Cluster": (demo, fit, predict, refit, update, serve),
    "Look": (report, info, clusters, layers, names, graph, evaluate),
    "Compare": (compare, ablate, sensitivity, combine, sweep, reproduce),
    "Features": (extract, backbones, views),
}
app = typer.Typer(
    name="sagl",
    help="Clusters, representations and sparse graphs from several frozen views, "
    "without labels.",
    epilog="Example:\n\nsagl demo\n\nsagl COMMAND --help shows one for each command.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for panel, commands in COMMANDS.items():
    for command in commands:
        add_command(app, command, panel)
app.add_typer(store, name="store", rich_help_panel=panel)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sagl {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version."
    ),
) -> None:
    pass


def run() -> None:
    """Entry point: bad input ends in one line on stderr and exit code 2."""
    warnings.showwarning = _show_warning
    try:
        _run_together() if "RANK" in os.environ else app()
    except KeyboardInterrupt:
        _interrupted()
    except SystemExit as end:
        # So typer ends what does not say itself how to go on (``taken_up``).
        if isinstance(getattr(end.__context__, "__cause__", None), KeyboardInterrupt):
            _interrupted()
        raise
    except (ValueError, OSError) as error:
        # One that lost another process has had no bad input.
        _fail(error, 1 if isinstance(error, ConnectionError) else 2)
    except FloatingPointError as error:
        _fail(error, 1)


def _interrupted() -> NoReturn:
    print("sagl: interrupted; the same command begins anew", file=sys.stderr)
    sys.exit(130)


def _run_together() -> None:
    """As one of several processes, of which one says what is wrong."""
    end_with_torchrun()
    try:
        with told_to_end(_say):
            sys.exit(app(standalone_mode=False))
    except Exception as error:
        code = getattr(error, "exit_code", None)  # of click's, wherever typer has it
        if code is None:
            raise
        if _is_first_to_fail():
            error.show()  # type: ignore[attr-defined]
        sys.exit(code)


def _say(why: str) -> None:
    """From a thread, while another may wait for ever in the middle of an import."""
    if "sagl.training.distributed" not in sys.modules or _is_first_to_fail():
        print(f"sagl: error: {why}", file=sys.stderr, flush=True)


def _fail(error: Any, code: int) -> None:
    if _is_first_to_fail():
        line = visible(" ".join(str(error).split()))
        full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
        if full and "make room" not in line:
            line += "; make room and give the same command again"
        print(f"sagl: error: {line}", file=sys.stderr)
    sys.exit(code)


def _is_first_to_fail() -> bool:
    if "RANK" not in os.environ:
        return True
    try:
        from sagl.training.distributed import first_to_fail

        return first_to_fail()
    except Exception:  # of all kinds, where it was ended in the middle of an import
        return True


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    line = visible(" ".join(str(message).split()))
    print(f"sagl: warning: {line}", file=sys.stderr)
