"""``sagl demo | fit | predict | evaluate``."""

from __future__ import annotations

import inspect
import shutil
import sys
from pathlib import Path
from statistics import mean, pstdev
from typing import TYPE_CHECKING, Any

import typer

from sagl.cli.look import describe, report_progress, show_run
from sagl.cli.options import (
    BACKBONES,
    FILES,
    JOIN,
    LABELS,
    VIEWS,
    argument,
    check_joining,
    extraction,
    listed,
    loaded,
    option,
    refuse_idle,
    refuse_idle_of_models,
    running,
    say,
    show_table,
    taken_up,
    takes,
    together,
)
from sagl.parameters import Parameter, option_of, sagl_parameters

if TYPE_CHECKING:
    from sagl.estimator import SAGL
    from sagl.features.store import Joined


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


@takes(model_parameters, extraction, show=show_run)
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
        raise ValueError(f"--clusters must be a whole number or auto; got {clusters!r}")
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


def _show_predictions(facts: dict[str, Any]) -> None:
    doubtful = ""
    if facts["threshold"]:
        doubtful = f"; {facts['n_doubtful']:,} are doubtful (-1)"
    say(f"{facts['n_samples']:,} predictions in {facts['out']}{doubtful}")


@takes(loaded, show=_show_predictions)
def predict(
    opened: tuple[Path, SAGL, Joined],
    out: Path = option(
        ..., "A .csv of clusters and confidences, or .npy of clusters.", metavar="FILE"
    ),
    agreement: float | None = option(
        None,
        "Cluster -1 for doubtful samples; the others keep their cluster so "
        "often when the search starts elsewhere, e.g. 0.9.",
    ),
    layer: int | None = option(
        None, "Clusters of the layer that has so many; see sagl layers.", metavar="N"
    ),
) -> dict[str, Any] | None:
    """Give each sample of the views a cluster, whatever else is asked about.

    Example: sagl predict run --view dino=d.npy --view clip=c.npy --out clusters.csv
    """
    from sagl.estimator import DOUBTFUL
    from sagl.features.files import check_prediction_path, write_predictions

    check_prediction_path(out)
    _, model, given = opened
    threshold = 0.0 if agreement is None else model.threshold(agreement)
    with together(next(model.network_.parameters()).device) as ranks:
        clusters, confidence = model.predict_with_confidence(given.views)
    if not ranks.first:
        return None
    doubtful = confidence < threshold
    more: dict[str, list[str]] = {}
    if layer is not None:
        clusters = model.predict(given.views, layer=layer)
    elif model.names_:
        names = [model.cluster_name(k) for k in range(model.n_clusters_)]
        pairs = zip(clusters.tolist(), doubtful.tolist(), strict=True)
        more["name"] = ["" if left_out else names[k] for k, left_out in pairs]
    clusters[doubtful] = DOUBTFUL
    write_predictions(out, clusters, confidence, given.ids, more)
    return {
        "out": str(out),
        "n_samples": len(clusters),
        "n_doubtful": int(doubtful.sum()),
        "threshold": threshold,
        "mean_confidence": float(confidence.mean()),
    }


_MEASURES = {
    "acc": "ACC",
    "nmi": "NMI",
    "ari": "ARI",
    "ami": "AMI",
    "purity": "purity",
    "balanced_acc": "balanced ACC",
    "n_clusters": "clusters found",
}


def _show_scores(scores: dict[str, Any]) -> None:
    columns = {"score": scores}
    if "sorted" in scores:
        columns = {"shuffled": scores, "sorted by class": scores["sorted"]}
    rows = [[name] for name in _MEASURES.values()]
    for row, key in zip(rows, _MEASURES, strict=True):
        form = "d" if key == "n_clusters" else ".4f"
        row += [f"{column[key]:{form}}" for column in columns.values()]
    title = f"{scores['run']}, {scores['protocol']} protocol"
    show_table(f"{title}, {scores['n_samples']:,} samples", ["measure", *columns], rows)
    if "n_left_out" in scores:
        say(
            f"{scores['n_left_out']:,} samples were corrected by people and are left "
            "out of these scores"
        )
    if "sorted" in scores:
        say(f"{scores['note']}: class order alone is worth {scores['gap']:+.4f}")


@takes(loaded, show=_show_scores)
def evaluate(
    opened: tuple[Path, SAGL, Joined],
    labels: Path | None = LABELS,
    protocol: str = option(
        "inductive", "inductive, transductive, or batch (depends on the order)."
    ),
) -> dict[str, Any]:
    """Score a run's predictions for views with known labels.

    Example: sagl evaluate run --view dino=d.npy --view clip=c.npy --labels y.csv
    """
    from sagl.evaluation.protocols import evaluate as score
    from sagl.features.split import true_labels

    run, model, given = opened
    truth = true_labels(given, labels)
    scores = score(model, given.views, truth, protocol)  # type: ignore[arg-type]
    return {"run": str(run), "n_samples": len(truth), **scores}


TSNE_ROWS = 200  # in the figures of the demo's report, which is to be quick


def write_demo_report(directory: Path, *, quiet: bool) -> str | None:
    """The path of the run's report; None without the libraries that it needs."""
    from sagl.experiments.digits import DigitImages, load
    from sagl.report.inputs import Inputs, with_samples
    from sagl.report.page import load_extra, write_report

    try:
        load_extra()
    except ValueError as error:
        typer.echo(f"sagl: no report: {error}", err=True)
        return None
    digits = load()
    images = DigitImages(digits.train)
    known = Inputs(images.ids, digits.train, labels=digits.train_labels)
    inputs = with_samples(known, images, "digits")
    with report_progress(quiet) as begun:
        report = write_report(directory, inputs, tsne_rows=TSNE_ROWS, progress=begun)
    return str(report["out"])


def _show_demo(result: dict[str, Any]) -> None:
    views = ", ".join(f"{name} ({width})" for name, width in result["views"].items())
    runs = len(result["seeds"])
    say(f"{result['n_train']} digits without labels; views: {views}")
    show_table(
        f"{result['n_test']} held-out digits, mean ± sd of {runs} seeds",
        ("method", "ACC", "NMI", "ARI", "clusters"),
        [["k-means", *_cells(result["kmeans"])], ["SAGL", *_cells(result["sagl"])]],
    )
    sparsity = ", ".join(f"{n} {s:.1%}" for n, s in result["sparsity"].items())
    say(f"pairs of samples that the sparse graphs keep: {sparsity}")
    say(f"trained {runs} times in {result['seconds']} s")
    say(f"the first run is in {result['out']}; look at it with: ", end="")
    program = "sagl" if shutil.which("sagl") else sys.argv[0]  # not on everyone's path
    say(f"{program} info {result['out']}", style="bold")
    if result["report"]:
        say("open its report in a browser: ", end="")
        say(result["report"], style="bold")


def _cells(scores: list[dict[str, Any]]) -> list[str]:
    columns = [[run[measure] for run in scores] for measure in ("acc", "nmi", "ari")]
    cells = [f"{mean(values):.3f} ± {pstdev(values):.3f}" for values in columns]
    return [*cells, "/".join(str(run["n_clusters"]) for run in scores)]


@takes(show=_show_demo)
def demo(
    out: Path | None = option(
        None, "Where to write the run; by default a new directory here.", metavar="RUN"
    ),
    seed: int = option(0, "The first of the seeds."),
) -> dict[str, Any]:
    """Cluster handwritten digits seen through three views; takes a minute or two.

    Example: sagl demo --out digits
    """
    from sagl.experiments.digits import free_directory, run_demo

    directory = free_directory(Path("sagl-demo")) if out is None else out
    watched = sys.stderr.isatty()
    result = run_demo(directory, seed, verbose=watched)
    return {**result, "report": write_demo_report(directory, quiet=not watched)}
