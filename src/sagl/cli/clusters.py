"""``sagl clusters | layers | names``."""

from __future__ import annotations

import sys
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from sagl.cli.options import RUN, option, say, show_table, takes

if TYPE_CHECKING:
    from sagl.estimator import SAGL


def _show_clusters(facts: dict[str, Any]) -> None:
    def listed(values: list[Any]) -> str:
        return ", ".join(map(str, values))

    names = {row["number"]: row["name"] for row in facts["clusters"]}
    show_table(
        f"clusters of {facts['run']}",
        ("name", "typical", "doubtful", "near", "no.", "size", "confidence"),
        [
            (
                row["name"],
                listed(row["typical"]),
                listed(row["doubtful"]),
                listed([names.get(k, f"Cluster {k}") for k in row["nearest"]]),
                str(row["number"]),
                f"{row['size']:,}",
                f"{row['confidence']:.3f}",
            )
            for row in facts["clusters"]
        ],
        left=4,
    )
    if "outliers" in facts:
        say(f"most unlike all others: {listed(facts['outliers'])}")
        copies = facts["duplicates"]
        say(
            f"near-duplicates: {len(copies):,} groups of "
            f"{sum(map(len, copies)):,} samples"
        )
    if "out" in facts:
        say(f"every sample in {facts['out']}")


@takes(show=_show_clusters)
def clusters(
    run: Path = RUN,
    examples: int = option(3, "How many samples of each kind are named."),
    out: Path | None = option(
        None, "Write all that is known of each sample: a .csv or .parquet file."
    ),
) -> dict[str, Any]:
    """Show a run's clusters: names, sizes, typical and doubtful samples; outliers.

    Example: sagl clusters run --out samples.csv
    """
    from sagl.clusters.table import check_table_path, sample_table, write_table
    from sagl.estimator import SAGL

    if out is not None:
        check_table_path(out)
    model = SAGL.load(run, "cpu")
    if out is not None:
        write_table(out, sample_table(model._model))
    rows = [row._asdict() for row in model.clusters(examples)]
    facts: dict[str, Any] = {"run": str(run), "clusters": rows}
    if hasattr(model, "facts_"):
        facts |= {"outliers": model.most_unlike(examples)}
        facts |= {"duplicates": model.duplicates()}
    return facts if out is None else facts | {"out": str(out)}


def _show_layers(facts: dict[str, Any]) -> None:
    show_table(
        f"layers of {facts['run']}",
        ("clusters", "stability", "information kept", ""),
        [
            (
                str(layer["n_clusters"]),
                f"{layer['stability']:.3f}",
                f"{layer['kept']:.0%}",
                "asked for" if layer["n_clusters"] == facts["n_clusters"] else "",
            )
            for layer in facts["layers"]
        ],
        left=0,
    )


@takes(show=_show_layers)
def layers(run: Path = RUN) -> dict[str, Any]:
    """Show a run's layers: partitions from coarse to fine, each inside the next.

    sagl predict --layer N gives the clusters of one of them.

    Example: sagl layers run
    """
    from sagl.estimator import SAGL

    model = SAGL.load(run, "cpu")
    if not hasattr(model, "layers_"):
        raise ValueError(
            f"{run} has no layers: it was fitted without a search, or by an older sagl"
        )
    return {
        "run": str(run),
        "n_clusters": model.n_clusters_,
        "layers": [layer._asdict() for layer in model.layers_],
    }


def _show_names(facts: dict[str, Any]) -> None:
    rows = [(str(f["cluster"]), f["name"], f"{f['size']:,}") for f in facts["names"]]
    show_table(f"names in {facts['run']}", ("no.", "name", "size"), rows, left=2)


@takes(show=_show_names)
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
    given = _numbers_and_names(rename or [])
    exported = None
    if file is not None:
        exported = given_names(run, file, model.n_clusters_)
        model.rename(exported.clusters)
    if keep is not None:
        model.keep_names(SAGL.load(keep, "cpu"))
    model.rename(given)
    if find:
        _find(model, run, source, columns, function)
    elif source is not None or columns is not None or function is not None:
        raise ValueError("--source, --columns and --with belong to --find")
    if given or find or file is not None or keep is not None:
        save_names(run, model.names_, exported)
    facts = [
        {"cluster": row.number, "name": row.name, "size": row.size}
        for row in model.clusters(1)
    ]
    return {"run": str(run), "names": facts}


def _numbers_and_names(options: list[str]) -> dict[int, str]:
    given: dict[int, str] = {}
    for text in options:
        number, _, name = text.partition("=")
        if not number.strip().isdecimal() or not name.strip():
            raise ValueError(f"--set {text!r}: write N=NAME, e.g. 3=cats")
        if int(number) in given:
            raise ValueError(f"--set {text!r}: cluster {int(number)} has two names")
        given[int(number)] = name
    return given


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
    sys.path.append(str(Path.cwd()))
    try:
        return resolve_name(path)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"--with {path!r}: no such function ({error})") from None
