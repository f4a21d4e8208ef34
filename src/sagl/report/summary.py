"""What a report says about a run in words: what was found, numbers, doubts, facts."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sagl.clusters.shown import sentence
from sagl.evaluation.cka import judge_views
from sagl.evaluation.graphs import weight_inside
from sagl.evaluation.metrics import clustering_scores
from sagl.evaluation.protocols import predict_in_batches
from sagl.report.run_data import RunData
from sagl.run import read_config, run_checksum

CONFIDENT = 0.9
_LARGEST = 0.5  # a share of all samples that is suspicious for one of many clusters
_EVEN = 3  # times its even share
_MOVING = 0.02
_DOUBTFUL = 0.5
_DISAGREE = 0.5
_ORDER = 0.02  # the least difference between two orders that is noted
_SORTED = 0.5  # how far above chance neighbours in the file share a cluster
_ORDER_ROWS = 20_000


class Number(NamedTuple):
    """A figure, and what it means in a phrase."""

    label: str
    value: str
    meaning: str


class Concern(NamedTuple):
    """Something to look at: a headline, and what it means."""

    title: str
    text: str


def found(data: RunData) -> str:
    """What was found, in one sentence."""
    return sentence(data.labels, data.model.view_names_)


def headline(data: RunData) -> list[Number]:
    """Scores where labels are known, then what can be said without them."""
    numbers = []
    if data.inputs.labels is not None:
        rows = _scored(data)
        scores = clustering_scores(data.inputs.labels[rows], data.labels[rows])
        for name, meaning in (
            ("acc", "share of samples in the cluster that is matched to their class"),
            ("nmi", "what clusters and classes tell of each other, from 0 to 1"),
            ("ari", "pairs put together or apart as in the classes; by chance 0"),
        ):
            numbers.append(Number(name.upper(), f"{scores[name]:.3f}", meaning))
    in_use = f"{len(data.used)} of {len(data.clusters)}"
    mean, sure = data.confidence.mean(), (data.confidence >= CONFIDENT).mean()
    numbers += [
        Number("Clusters in use", in_use, "hold samples, of those asked for"),
        Number("Mean confidence", f"{mean:.3f}", "probability of a sample's cluster"),
        Number("Confident samples", percent(sure), f"are sure to {CONFIDENT} or more"),
    ]
    score = getattr(data.model, "score_", None)
    if score is not None:
        meaning = "what a view or a neighbour tells of a sample's cluster; what the "
        meaning += "search made large"
        alike = "of the samples: a view that was not asked predicts their cluster"
        numbers += [
            Number("Label-free score", f"{score.total:.2f} nats", meaning),
            Number("Predicted by a view unseen", percent(score.agreement), alike),
        ]
    if data.view_agreement is not None:
        meaning = "of the samples: every view alone would choose the same cluster"
        numbers.append(Number("Views agree on", percent(data.view_agreement), meaning))
    if data.graph is not None:
        inside = percent(weight_inside(data.graph, data.labels))
        meaning = "of the graph's weight joins samples of one cluster"
        numbers.append(Number("Graph inside clusters", inside, meaning))
    return numbers


def _scored(data: RunData) -> NDArray[np.int64]:
    """The samples that nobody corrected."""
    corrections = getattr(data.model, "corrections_", None)
    rows = np.arange(len(data))
    return rows if corrections is None else np.delete(rows, corrections.rows)


def protocol(data: RunData) -> str:
    """In words, how the numbers came about."""
    if data.inputs.labels is None:
        return (
            "No labels were given, so these numbers say how sure the run is and not "
            "how right."
        )
    left_out = len(data) - len(_scored(data))
    text = f"; {left_out:,} that people corrected are left out" if left_out else ""
    return (
        "Protocol: inductive, on the fitted samples. Each sample was given its cluster "
        f"alone, against the run's anchors; labels only score{text}."
    )


def percent(share: float) -> str:
    """A share as people read it.

    Examples
    --------
    >>> percent(0.9996), percent(0.042), percent(1.0)
    ('99.9%', '4.2%', '100%')
    """
    # Never 100% for less than all.
    return f"{share:.0%}" if share in (0, 1) else f"{min(share, 0.999):.1%}"


def concerns(data: RunData) -> list[Concern]:
    """All that looks wrong, the gravest first."""
    checks = (check_clusters, check_views, check_batches, check_sorted)
    return [concern for check in checks for concern in check(data)]


def check_clusters(data: RunData) -> Iterator[Concern]:
    """Clusters that are empty, swallow the others, still move, or are mere guesses."""
    settings, history = data.model.settings_, data.model.history_
    n_clusters = len(data.clusters)
    empty = [cluster.number for cluster in data.clusters if not cluster.size]
    if empty:
        listed = ", ".join(map(str, empty[:12])) + " and more" * (len(empty) > 12)
        yield Concern(
            f"{len(empty)} of {n_clusters} clusters are empty",
            f"No sample is in cluster {listed}. Try a larger gamma (now "
            f"{settings.gamma:g}), a larger batch_size (now {settings.batch_size}), "
            "another seed, or ask for fewer clusters.",
        )
    largest = max(data.clusters, key=lambda cluster: cluster.size)
    share = largest.size / len(data)
    if share >= _LARGEST and share * n_clusters >= _EVEN:
        cure = f"a larger gamma (now {settings.gamma:g})"
        if settings.refine:
            cure = 'cluster_sizes="balanced"'
        yield Concern(
            "One cluster holds most samples",
            f"Cluster {largest.number} holds {percent(share)} of all samples. If you "
            f"do not expect that, the run has collapsed: try {cure} or another seed.",
        )
    changed = float(history[-1].get("changed", 0)) if history else 0.0
    if changed > _MOVING and not settings.refine:  # a search does not move them
        yield Concern(
            "Training ended while samples were still moving",
            f"{percent(changed)} of the samples changed their cluster between the last "
            f"two records. More steps (now {data.model.n_steps_:,}) may change the "
            "result.",
        )
    mean = float(data.confidence.mean())
    if mean < _DOUBTFUL:
        yield Concern(
            "Most samples are doubtful",
            f"The mean confidence is {mean:.2f}. The number of clusters may not fit "
            "the data, or training was too short.",
        )


def check_views(data: RunData) -> Iterator[Concern]:
    """Views that choose different clusters, repeat each other or share nothing."""
    agreement = data.view_agreement
    if agreement is not None and agreement < _DISAGREE:
        yield Concern(
            "The views disagree",
            f"Only for {percent(agreement)} of the samples would every view alone "
            "choose the same cluster. One of the views may see something else than "
            "what you are after; try without it.",
        )
    titles = {
        "repeat": "Two views are nearly the same",
        "unrelated": "Two views have little in common",
    }
    pairs = [] if data.cka is None else judge_views(data.cka, data.model.view_names_)
    for pair in pairs:
        if pair.verdict in titles:
            yield Concern(titles[pair.verdict], pair.in_words())


def check_batches(data: RunData) -> Iterator[Concern]:
    """Predictions in consecutive batches that depend on the order of the samples.

    The run's own labels do not; the paper's way of testing does, and whoever compares
    with it should know how much.
    """
    views = data.inputs.views
    if views is None or data.model.settings_.graph == "identity":
        return
    size = data.model.settings_.batch_size
    # Whole stretches of the file, because it is the order in it that matters.
    n_batches = max(1, min(len(data) // size, _ORDER_ROWS // size))
    starts = np.linspace(0, len(data) - size, n_batches).astype(np.int64)
    rows = np.unique((starts[:, None] + np.arange(size)).ravel())
    sampled = views[rows]
    shuffled = np.random.default_rng(0).permutation(len(rows))
    in_file = predict_in_batches(data.model, sampled, size)
    mixed = predict_in_batches(data.model, sampled, size, shuffled)
    # Any two orders differ a little. It is the file's own that must not stand out:
    # in it, batches agree with the run's clusters more or less than in a random one.
    agree = [float((labels == data.labels[rows]).mean()) for labels in (in_file, mixed)]
    share = sum(agree) / 2
    chance = 3 * (2 * share * (1 - share) / len(rows)) ** 0.5
    if abs(agree[0] - agree[1]) > max(_ORDER, chance):
        changed = float((in_file != mixed).mean())
        yield Concern(
            "Batch-wise predictions depend on the order of the samples",
            f"Predicted in consecutive batches of {size}, as papers often test, "
            f"{percent(changed)} of the samples change cluster when their order is "
            "shuffled: batch mates decide about a sample. The clusters in this report "
            "do not depend on the order; score with the inductive protocol.",
        )


def check_sorted(data: RunData) -> Iterator[Concern]:
    """Samples that lie sorted by cluster in their file."""
    if len(data) < 100:
        return
    same = float((data.labels[1:] == data.labels[:-1]).mean())
    chance = float(((np.bincount(data.labels) / len(data)) ** 2).sum())
    if chance <= 0.9 and same - chance >= _SORTED * (1 - chance):
        yield Concern(
            "The samples lie sorted in their file",
            f"{percent(same)} of neighbouring rows share a cluster, by chance it would "
            f"be {percent(chance)}. The clusters here do not depend on the order, but "
            "any score computed batch by batch will look better than it is: shuffle "
            "first.",
        )


def tables(data: RunData) -> dict[str, dict[str, Any]]:
    """What was run and with what, as tables of names and values by their titles."""
    config, model = read_config(data.directory), data.model
    widths = zip(model.view_names_, model.view_widths_, strict=True)
    packages = ("torch", "numpy", "scipy", "scikit-learn")
    return {
        "Run": {
            "directory": data.directory.name,
            "recipe": model.recipe,
            "samples": f"{len(data):,}",
            "steps": f"{model.n_steps_:,}",
            "made by": f"sagl {config.get('sagl', '?')}",
            "checksum": run_checksum(data.directory)[:16],
        },
        "Views": {name: f"{width:,} columns" for name, width in widths},
        "Settings": {
            name: f"{value:g}" if isinstance(value, float) else str(value)
            for name, value in config["settings"].items()
        },
        "This report was made with": {"python": platform.python_version()}
        | {package: version(package) for package in packages},
    }
