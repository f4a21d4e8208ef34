"""``sagl names``."""

from __future__ import annotations

import sys
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from sagl.cli.options import RUN, option, show_table, takes

if TYPE_CHECKING:
    from sagl.estimator import SAGL


def _show(facts: dict[str, Any]) -> None:
    rows = [(str(f["cluster"]), f["name"], f"{f['size']:,}") for f in facts["names"]]
    show_table(f"names in {facts['run']}", ("no.", "name", "size"), rows, left=2)


@takes(show=_show)
def names(
    run: Path = RUN,
    rename: list[str] | None = option(
        None, "Call cluster N so. Repeat.", "--set", metavar="N=NAME"
    ),
    file: Path | None = option(
        None, "Names that the explorer of the run's report exported.", "--from"
    ),
    find: bool = option(
        False,
        "Find names for clusters that have none: words of texts, values of columns, "
        "or the most typical sample.",
        "--find",
    ),
    source: str | None = option(
        None, "For --find: the samples, if they are not where sagl fit found them."
    ),
    columns: Path | None = option(
        None, "For --find: a table of what else is known of the samples."
    ),
    keep: Path | None = option(
        None, "An earlier run of the same samples whose names are kept.", metavar="RUN"
    ),
    function: str | None = option(
        None, "For --find: a function of your own.", "--with", metavar="MODULE:FUNCTION"
    ),
) -> dict[str, Any]:
    """Show or change the names of a run's clusters; they are kept in RUN/names.json.

    Reports, sagl info, clusters and predict use them.

    Example: sagl names run --set 3=cats
    """
    from sagl.estimator import SAGL
    from sagl.run import given_names, save_names

    model = SAGL.load(run, "cpu")
    given = [_number_and_name(text) for text in rename or ()]
    if file is not None:
        model.rename(given_names(run, file, model.n_clusters_))
    if keep is not None:
        model.keep_names(SAGL.load(keep, "cpu"))
    if given:
        model.rename(dict(given))
    if find:
        _find(model, run, source, columns, function)
    elif source is not None or columns is not None or function is not None:
        raise ValueError("--source, --columns and --with belong to --find")
    if given or find or file is not None or keep is not None:
        save_names(run, model.names_)
    facts = [
        {"cluster": row.number, "name": row.name, "size": row.size}
        for row in model.clusters(1)
    ]
    return {"run": str(run), "names": facts}


def _number_and_name(text: str) -> tuple[int, str]:
    number, _, name = text.partition("=")
    if not number.strip().isdecimal() or not name.strip():
        raise ValueError(f"--set {text!r}: write N=NAME, e.g. 3=cats")
    return int(number), name


def _find(
    model: SAGL,
    run: Path,
    source: str | None,
    columns: Path | None,
    function: str | None,
) -> None:
    from sagl.report.inputs import open_inputs

    known = open_inputs(run, source=source, columns=columns)
    model._model.ids = known.ids
    texts = None
    if known.kind == "text":
        texts = [known.text(row) for row in range(len(known.ids))]
    values: dict[str, list[Any]] = {}
    for column in known.columns:
        values[column.name] = list(column.values)
        if column.kind == "category":
            values[column.name] = [column.categories[code] for code in column.values]
    own = None if function is None else _function(function)
    model.name_clusters(texts, values, own)


def _function(path: str) -> Any:
    """What ``module:function`` names, here or installed."""
    sys.path.append(str(Path.cwd()))
    try:
        return resolve_name(path)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"--with {path!r}: no such function ({error})") from None
