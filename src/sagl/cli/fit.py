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
    VIEWS,
    argument,
    check_joining,
    extraction,
    listed,
    option,
    refuse_idle,
    refuse_idle_of_models,
    running,
    taken_up,
    takes,
    together,
)
from sagl.parameters import Parameter, option_of, sagl_parameters


def model_parameters(**given: Any) -> dict[str, Any]:
    """Parameters of ``SAGL``: an option for each that is declared there."""
    return {name: _number_or_word(value) for name, value in given.items()}


def _number_or_word(value: Any) -> Any:
    """Text that says a whole number, where words such as "auto" are taken, too."""
    is_number = isinstance(value, str) and value.lstrip("-").isdecimal()
    return int(value) if is_number else value


def _option(parameter: Parameter) -> inspect.Parameter:
    default, help = parameter.default, parameter.help
    types = {"bool": bool, "float": float, "int": int}
    of = [types[part] for part in parameter.annotation.split(" | ") if part in types]
    made: Any = of[0] if of and not isinstance(default, str) else str
    flag = option_of(parameter.name)
    if made is bool:
        flag += flag.replace("--", "/--no-", 1)
    if parameter.values:  # not where they would leave no room for the help
        help = f"{', '.join(parameter.values)}. {help}"
    metavar = ("N" if of else "WORD") if made is str else None
    info = option(default, help, flag, panel=parameter.panel, metavar=metavar)
    made = made | None if default is None else made
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(parameter.name, kind, default=info, annotation=made)


vars(model_parameters)["__signature__"] = inspect.Signature(
    [_option(parameter) for parameter in sagl_parameters().values()]
)


@takes(model_parameters, extraction, show=show)
def fit(
    params: dict[str, Any],
    options: dict[str, Any],
    source: str | None = argument(
        None,
        "Samples for --backbone, e.g. a folder of images; or features: a store, or a "
        ".npz or .safetensors file whose arrays are the views.",
        "[SOURCE]",
    ),
    view: list[str] | None = FILES,
    backbone: list[str] | None = BACKBONES,
    views: str | None = VIEWS,
    join: str | None = JOIN,
    clusters: str = option(
        ..., "How many, or auto.", panel="The clusters", metavar="N"
    ),
    out: Path = running(..., "The run directory.", metavar="RUN"),
    force: bool = running(
        False, "Write to RUN even if it holds other files; they stay.", "--force"
    ),
    seed: int = running(0, "Seed of everything random."),
    graph_file: bool | None = running(
        None, "Write graph.npz; by default up to 50,000 samples."
    ),
) -> dict[str, Any] | None:
    """Learn clusters from views and write them to RUN.

    The views are files (--view), a feature store, or extracted from samples into
    RUN/features (--backbone). What was interrupted is taken up by the same command.

    Example: sagl fit --view dino=dino.npy --view clip=clip.npy --clusters 10 --out run
    """
    from sagl.environment import pick_device
    from sagl.estimator import SAGL
    from sagl.experiments.fit import fit_run, run_input
    from sagl.features.split import holds_features
    from sagl.run import refuse_existing_run, refuse_foreign
    from sagl.settings import without_effect

    refuse_existing_run(out)
    if not force:
        refuse_foreign(out)
    given_features = source is None or holds_features(Path(source))
    if not given_features:
        refuse_idle_of_models(backbone or [])
    else:
        for_samples = ("kind", "column", "label_column", "split", "workers")
        why = "features are there, and no samples are read"
        refuse_idle(why, *for_samples, "trust_remote_code")
        check_joining(source, view, options["reader"]["id_column"])
        if view:
            refuse_idle("--view names the views", "views")
    n_clusters = _number_or_word(clusters)
    if isinstance(n_clusters, str) and n_clusters != "auto":
        raise ValueError(f"--clusters must be a number or auto; got {clusters!r}")
    model = SAGL(n_clusters, random_state=seed, device=options["device"], **params)
    few = 2 if n_clusters == "auto" else max(2, n_clusters)  # enough to be refused by
    for name, reason in without_effect(model.resolved(few)).items():
        refuse_idle(reason, name)
    options |= {"names": listed(views), "join": join}
    options["accept"] = model.resolved  # not after hours of extraction
    with together(pick_device(options["device"])) as ranks, taken_up("the run"):
        options["progress"] &= ranks.first
        model.set_params(verbose=options["progress"])
        given = run_input(out, source, view, backbone, **options)
        known: dict[str, Any] = {"ids": given.ids, "source": given.source}
        fit_run(model, given.views, out, graph=graph_file, **known)
    return describe(out) if ranks.first else None
