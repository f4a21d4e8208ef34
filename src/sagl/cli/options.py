"""Options that several commands share, each declared once, and how commands take them.

A group of options is a function or a dataclass: its parameters are the options, what
it returns is what they say. ``@takes(group)`` adds them to a command, which gets that.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand

if TYPE_CHECKING:
    import torch

    from sagl.estimator import SAGL
    from sagl.features.store import Joined
    from sagl.nn.ranks import Ranks


# Control characters, what turns the direction of writing, and halves of characters.
_COMMANDS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def option(
    default: Any, help: str, *names: str, panel: str | None = None, **more: Any
) -> Any:
    """An option with its default (``...``: it must be given) and its help."""
    return typer.Option(default, *names, help=help, rich_help_panel=panel, **more)


def argument(default: Any, help: str, metavar: str) -> Any:
    """The same for what stands without a name."""
    return typer.Argument(default, help=help, metavar=metavar, show_default=False)


_given: ContextVar[dict[str, str]] = ContextVar("given")


class Command(TyperCommand):
    """A command that knows which of its options were given."""

    def invoke(self, ctx: Any) -> Any:
        given = {}
        for each in self.params:
            source = ctx.get_parameter_source(each.name)
            if source is not None and source.name == "COMMANDLINE":
                off = ctx.params.get(each.name) is False and each.secondary_opts
                argument = each.param_type_name == "argument" and each.metavar
                given[str(each.name)] = argument or (off or each.opts)[0]
        _refuse_overwriting(ctx.params)
        token = _given.set(given)
        try:
            return super().invoke(ctx)
        finally:
            _given.reset(token)


def _refuse_overwriting(params: Mapping[str, Any]) -> None:
    """Refuse to write over a file that another option names, or a part of a run."""
    outputs = {"--out": "out", "--map": "map_file", "--parquet": "parquet"}
    for flag, of in outputs.items():
        out = params.get(of)
        if not (isinstance(out, Path) and out.is_file()):
            continue
        if out.name in _parts_of_run(out.parent):
            raise ValueError(f"{flag} {out} is a part of a run; name another file")
        for name, given in params.items():
            for text in given if isinstance(given, list) else [given]:
                if name == of or not isinstance(text, str | Path):
                    continue
                named = str(text).partition("::")[0]  # FILE, NAME=FILE, FILE::KEY
                for file in (named, named.partition("=")[2]):
                    if Path(file).is_file() and out.samefile(file):
                        raise ValueError(
                            f"{flag} {out} would write over what is read from it; "
                            "name another file"
                        )


def _parts_of_run(directory: Path) -> Iterable[str]:
    if not (directory / "config.json").is_file():
        return ()
    from sagl.run import read_config

    try:
        parts: dict[str, str] = read_config(directory)["sha256"]
    except (ValueError, KeyError):  # of something else, or of an early version
        return ()
    return parts


def refuse_idle(reason: str, *names: str) -> None:
    """Refuse options that were given where they would have no effect."""
    for name, flag in _given.get({}).items():
        if name in names:
            raise ValueError(f"{flag} has no effect here: {reason}; leave it out")


def refuse_all_idle(reason: str, *but: str) -> None:
    """The same of all that were given but these."""
    refuse_idle(reason, *_given.get({}).keys() - set(but))


samples = partial(option, panel="The data")
running = partial(option, panel="The run")
JSON = running(False, "Print JSON on stdout.", "--json")
QUIET = running(False, "No progress bar.", "--quiet", "-q")
DEVICE = running("auto", "cpu, cuda, mps, or auto: CUDA when there is one.")
RUN = argument(..., "A run directory.", "RUN")
STORE = argument(None, "A feature store, instead of --view.", "[STORE]")
FILES = samples(
    None,
    "A view: a .npy, .npz, .safetensors, .csv or .parquet file with one row per "
    "sample. Repeat for each view; FILE.npz::KEY picks one array of several.",
    "--view",
    metavar="NAME=FILE",
)
VIEWS = samples(None, "Of a store, only these views.", metavar="NAME,…")
JOIN = samples(
    None,
    "Samples that are not in every view: error, inner to leave them out, or outer to "
    "keep them, with views missing.",
    metavar="HOW",
)
LABELS = samples(
    None,
    "True labels, one per sample: they only score. By default the store's.",
    metavar="FILE",
)
ID_COLUMN = samples(
    None,
    "Of tables: the column with the ids; files of views are joined by it.",
    metavar="NAME",
)
BACKBONES = samples(
    None,
    "A pretrained model: hf:ID, timm:ID, npy:FILE or a short name of sagl backbones. "
    "Repeat for each view; NAME=MODEL calls it NAME.",
    "--backbone",
    metavar="MODEL",
)
WORKERS = samples(None, "Processes that decode samples; by default one per free core.")


@dataclass
class Reading:
    """Options of a reader."""

    kind: str | None = samples(
        None, "What the samples are, if unclear: image or text.", metavar="KIND"
    )
    column: str | None = samples(
        None, "Of a table: the column with the samples.", metavar="NAME"
    )
    id_column: str | None = ID_COLUMN
    label_column: str | None = samples(
        None,
        "Of a table: the column with the labels. They only score.",
        metavar="NAME",
    )
    split: str | None = samples(
        None, "Of a data set: which part, e.g. train.", metavar="NAME"
    )


def _extraction(
    reading: Reading,
    workers: int | None = WORKERS,
    trust_remote_code: bool = samples(
        False, "Run code that comes with a model from the hub.", "--trust-remote-code"
    ),
    device: str = DEVICE,
    quiet: bool = QUIET,
) -> dict[str, Any]:
    """Arguments of ``extract_source``."""
    named = {"workers": workers, "trust_remote_code": trust_remote_code}
    more = {"device": device, "progress": not quiet}
    return {"reader": vars(reading), **named, **more}


def loaded(
    run: Path = RUN,
    store: Path | None = STORE,
    view: list[str] | None = FILES,
    id_column: str | None = ID_COLUMN,
    join: str | None = JOIN,
    device: str = DEVICE,
) -> tuple[Path, SAGL, Joined]:
    """A run, its model, and views to ask it about."""
    from sagl.estimator import SAGL
    from sagl.features.split import read_input

    check_joining(store, view, id_column)
    model = SAGL.load(run, device)
    given = read_input(
        store,
        view,
        model.view_names_,
        join or "error",  # type: ignore[arg-type]
        id_column,
    )
    return run, model, given


def check_joining(store: object, files: object, id_column: str | None) -> None:
    """Refuse what joins views where nothing is joined."""
    if files and store is None:
        if id_column is None:
            refuse_idle("files without --id-column are taken row by row", "join")
    elif store is not None:
        refuse_idle("a feature store has its own ids", "id_column")


def refuse_idle_of_models(backbones: Sequence[str]) -> None:
    """Refuse what says how models run where none runs, or none that it is for."""
    from sagl.features.backbones import parse_backbones, parse_name

    if not backbones:
        return  # said better by who needs them
    sources = {parse_name(name).source for name in parse_backbones(backbones).values()}
    if sources == {"npy"}:
        of_models = ("workers", "device", "batch_size")
        refuse_idle("the features are there, and no model is asked", *of_models)
    if "hf" not in sources:
        refuse_idle("no model is from the Hugging Face hub", "trust_remote_code")


def takes(
    *groups: Callable[..., Any],
    show: Callable[[Any], None] | None = None,
    **defaults: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the options of groups; it gets their values as first arguments.

    ``defaults`` replace those of options in the groups. An option that the command
    declares itself is its own, and the group takes its default. What takes groups may
    be a group, too. With ``show`` the command has ``--json`` and returns facts, which
    are printed for machines or shown to people.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        own = _options(command, skip=len(groups))
        shared = [_options(group) for group in groups]
        options = {name: option for group in shared for name, option in group.items()}
        for name, default in defaults.items():
            info = copy(options[name].default)
            info.default = default
            options[name] = options[name].replace(default=info)
        options = {**own, **{n: o for n, o in options.items() if n not in own}}
        if show is not None:
            kind = inspect.Parameter.KEYWORD_ONLY
            options["as_json"] = inspect.Parameter(
                "as_json", kind, default=JSON, annotation=bool
            )

        def called(**given: Any) -> Any:
            values = [
                group(
                    **{
                        name: option.default.default if name in own else given[name]
                        for name, option in of_group.items()
                    }
                )
                for group, of_group in zip(groups, shared, strict=True)
            ]
            result = command(*values, **{name: given[name] for name in own})
            if show is None or result is None:  # not the first of several processes
                return result
            return (print_json if given["as_json"] else show)(result)

        called.__name__, called.__doc__ = command.__name__, command.__doc__
        called.__module__ = command.__module__
        called.__annotations__ = {n: o.annotation for n, o in options.items()}
        vars(called)["__signature__"] = inspect.Signature(list(options.values()))
        return called

    return decorate


def _options(
    function: Callable[..., Any], skip: int = 0
) -> dict[str, inspect.Parameter]:
    """Parameters after the first few, their types no longer text.

    Only theirs: what a group returns may be known to type checkers alone.
    """
    names = vars(sys.modules[function.__module__])
    options = {}
    for option in list(inspect.signature(function).parameters.values())[skip:]:
        made = option.annotation
        made = eval(made, names) if isinstance(made, str) else made
        kind = inspect.Parameter.KEYWORD_ONLY
        options[option.name] = option.replace(annotation=made, kind=kind)
    return options


def add_command(
    app: typer.Typer, command: Callable[..., Any], panel: str | None = None
) -> None:
    """Add a command; the last paragraph of its docstring is an example of its use."""
    text, _, example = (inspect.getdoc(command) or "").rpartition("\n\n")
    epilog = example.replace("Example: ", "Example:\n\n")
    app.command(cls=Command, help=text, epilog=epilog, rich_help_panel=panel)(command)


extraction = takes(Reading)(_extraction)


@contextmanager
def taken_up(rest: str = "the rest") -> Iterator[None]:
    """An interruption ends with a line that says how to go on, and exit code 130."""
    try:
        yield
    except KeyboardInterrupt:
        from sagl.training.distributed import first_to_fail

        if first_to_fail():
            typer.echo(f"sagl: interrupted; the same command takes up {rest}", err=True)
        raise typer.Exit(130) from None


@contextmanager
def together(device: torch.device | None = None) -> Iterator[Ranks]:
    """Join the processes that torchrun has started; all but the first are silent."""
    from sagl.training.distributed import joined

    with joined(device) as ranks:
        if ranks.first:
            yield ranks
            return
        with (
            Path(os.devnull).open("w") as nowhere,
            redirect_stdout(nowhere),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            yield ranks


def listed(names: str | None) -> list[str] | None:
    """``NAME,NAME`` as a list."""
    return None if names is None else [name.strip() for name in names.split(",")]


def print_json(value: Any) -> None:
    json.dump(value, sys.stdout, indent=2, default=float)
    sys.stdout.write("\n")


def show_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1
) -> None:
    """A table on stdout; the first few columns are words, all others numbers."""
    table = Table(title=as_text(title), title_justify="left", box=SIMPLE_HEAD)
    table.show_edge = table.pad_edge = False
    for i, column in enumerate(columns):
        table.add_column(as_text(column), justify="left" if i < left else "right")
    for row in rows:
        table.add_row(*map(as_text, row))
    Console(soft_wrap=True).print(table)


def say(line: str, **style: Any) -> None:
    """A line on stdout, as it is: not wrapped, and nothing in it is markup."""
    Console(soft_wrap=True).print(visible(line), markup=False, highlight=False, **style)


def as_text(cell: str) -> Text:
    """A cell of a table, in which nothing is markup."""
    return Text(visible(cell))


def visible(text: str) -> str:
    """Words out of files, with what a terminal would obey written as its code.

    >>> print(visible("clear \\x1b[2J"))
    clear \\x1b[2J
    """
    return _COMMANDS.sub(lambda found: ascii(found[0])[1:-1], text)
