"""``sagl fit``."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from sagl.cli.info import describe, show
from sagl.cli.options import (
    BACKBONES,
    FILES,
    JOIN,
    JSON,
    VIEWS,
    answer,
    argument,
    extraction,
    listed,
    option,
    taken_up,
    takes,
)
from sagl.parameters import Parameter, option_of, sagl_parameters

_EFFORT = "How good, how long"  # panels of --help
_NETWORK = "Network and loss"
_OF_EFFORT = (
    *("recipe", "refine", "cluster_sizes", "n_restarts", "epochs", "steps"),
    *("batch_size", "tolerance", "patience", "n_anchors"),
)


def model_parameters(**given: Any) -> dict[str, Any]:
    """Parameters of ``SAGL``: an option for each that is declared there."""
    return {name: _number_or_word(value) for name, value in given.items()}


def _number_or_word(value: Any) -> Any:
    """Text that says a whole number, where words such as "auto" are taken, too."""
    is_number = isinstance(value, str) and value.lstrip("-").isdecimal()
    return int(value) if is_number else value


def _option(parameter: Parameter) -> inspect.Parameter:
    name, default = parameter.name, parameter.default
    types = {"bool": bool, "float": float, "int": int}
    of = [types[part] for part in parameter.annotation.split(" | ") if part in types]
    made: Any = of[0] if of and not isinstance(default, str) else str
    flag = option_of(name)
    if made is bool:
        flag += flag.replace("--", "/--no-", 1)
    words = parameter.values or (("N", default) if of and made is str else ())
    info = option(
        default,
        parameter.help,
        flag,
        panel=_EFFORT if name in _OF_EFFORT else _NETWORK,
        metavar="|".join(words) or None,
    )
    made = made | None if default is None else made
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=info, annotation=made)


vars(model_parameters)["__signature__"] = inspect.Signature(
    [_option(parameter) for parameter in sagl_parameters().values()]
)


@takes(model_parameters, extraction)
def fit(
    params: dict[str, Any],
    options: dict[str, Any],
    clusters: str = option(..., "The number of clusters, or auto.", metavar="N|auto"),
    out: Path = option(..., "The run directory.", metavar="RUN"),
    source: str | None = argument(
        None,
        "Samples for --backbone, e.g. a folder of images, or a feature store.",
        "[SOURCE]",
    ),
    seed: int = option(0, "Seed of everything random."),
    graph_file: bool | None = option(
        None, "Write graph.npz; by default up to 50,000 samples."
    ),
    as_json: bool = JSON,
    view: list[str] | None = FILES,
    backbone: list[str] | None = BACKBONES,
    views: str | None = VIEWS,
    join: str | None = JOIN,
) -> None:
    """Learn clusters from views and write them to RUN.

    The views are files (--view), a feature store, or extracted from samples into
    RUN/features (--backbone). What was interrupted is taken up by the same command.
    """
    from sagl.estimator import SAGL
    from sagl.experiments.fit import fit_run, run_input
    from sagl.run import refuse_existing_run

    refuse_existing_run(out)
    n_clusters = _number_or_word(clusters)
    if isinstance(n_clusters, str) and n_clusters != "auto":
        raise ValueError(f"--clusters must be a number or auto; got {clusters!r}")
    model = SAGL(
        n_clusters,
        random_state=seed,
        device=options["device"],
        verbose=options["progress"],
        **params,
    )
    with taken_up("the run"):
        given = run_input(
            out,
            source,
            view,
            backbone,
            names=listed(views),
            join=join,  # type: ignore[arg-type]
            accept=model.resolved,  # not after hours of extraction
            **options,
        )
        fit_run(
            model,
            given.views,
            out,
            graph=graph_file,
            ids=given.ids,
            source=given.source,
        )
    answer(describe(out), as_json, show)
