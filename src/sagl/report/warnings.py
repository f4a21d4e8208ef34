"""What looks wrong about a run, in plain words and with something to do about it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sagl.evaluation.cka import cka_matrix, judge_views
from sagl.evaluation.protocols import predict_in_batches
from sagl.report.build import RunData
from sagl.report.numbers import percent, view_agreement

CHECKED = (
    "collapse, empty clusters, unfinished training, views that repeat each other, "
    "dependence on the order of the samples"
)
_LARGEST = 0.5  # a share of all samples that is suspicious for one of many clusters
_EVEN = 3  # times its even share
_MOVING = 0.02
_DOUBTFUL = 0.5
_DISAGREE = 0.5
_ORDER = 0.02  # the least difference between two orders that is noted
_SORTED = 0.5  # how far above chance neighbours in the file share a cluster
_ORDER_ROWS = 20_000


@dataclass(frozen=True)
class Concern:
    """Something to look at: a headline, and what it means."""

    title: str
    text: str


def concerns(data: RunData) -> list[Concern]:
    """All that looks wrong, the gravest first."""
    checks = (
        check_empty(data),
        check_collapse(data),
        check_moving(data),
        check_confidence(data),
        check_agreement(data),
        *check_views(data),
        check_order(data),
        check_sorted(data),
    )
    return [concern for concern in checks if concern is not None]


def check_empty(data: RunData) -> Concern | None:
    """Clusters that hold no sample."""
    used = {cluster.number for cluster in data.clusters}
    empty = [k for k in range(data.n_clusters) if k not in used]
    if not empty:
        return None
    listed = ", ".join(map(str, empty[:12])) + (" and more" if len(empty) > 12 else "")
    settings = data.model.settings_
    return Concern(
        f"{len(empty)} of {data.n_clusters} clusters are empty",
        f"No sample is in cluster {listed}. Try a larger gamma (now "
        f"{settings.gamma:g}), a larger batch_size (now {settings.batch_size}), "
        "another seed, or ask for fewer clusters.",
    )


def check_collapse(data: RunData) -> Concern | None:
    """One cluster that swallows most samples."""
    sizes = np.bincount(data.labels, minlength=data.n_clusters)
    largest = int(sizes.argmax())
    share = sizes[largest] / len(data)
    if share < _LARGEST or share * data.n_clusters < _EVEN:
        return None
    return Concern(
        "One cluster holds most samples",
        f"Cluster {largest} holds {percent(share)} of all samples. If you do not "
        "expect that, the run has collapsed: try a larger gamma (now "
        f"{data.model.settings_.gamma:g}) or another seed.",
    )


def check_moving(data: RunData) -> Concern | None:
    """Training that ended before samples had settled."""
    record = data.model.history_[-1]
    changed = float(record.get("changed", 0))
    if changed <= _MOVING:
        return None
    return Concern(
        "Training ended while samples were still moving",
        f"{percent(changed)} of the samples changed their cluster between the last "
        f"two records. More steps (now {data.model.n_steps_:,}) may change the result.",
    )


def check_confidence(data: RunData) -> Concern | None:
    """Clusters that are hardly more than guesses."""
    mean = float(data.confidence.mean())
    if mean >= _DOUBTFUL:
        return None
    return Concern(
        "Most samples are doubtful",
        f"The mean confidence is {mean:.2f}. The number of clusters may not fit the "
        "data, or training was too short.",
    )


def check_agreement(data: RunData) -> Concern | None:
    """Views that would choose different clusters."""
    agreement = view_agreement(data)
    if agreement is None or agreement >= _DISAGREE:
        return None
    return Concern(
        "The views disagree",
        f"Only for {percent(agreement)} of the samples would every view alone choose "
        "the same cluster. One of the views may see something else than what you are "
        "after; try without it.",
    )


def check_views(data: RunData) -> list[Concern]:
    """Views that repeat each other, or have nothing in common."""
    views = data.inputs.views
    if views is None or len(views.names) < 2 or len(views) < 4:
        return []
    matrix = cka_matrix(views, batch_size="auto")
    titles = {
        "repeat": "Two views are nearly the same",
        "unrelated": "Two views have little in common",
    }
    return [
        Concern(titles[pair.verdict], pair.in_words())
        for pair in judge_views(matrix, views.names)
        if pair.verdict in titles
    ]


def check_order(data: RunData) -> Concern | None:
    """Predictions in consecutive batches that depend on the order of the samples.

    The run's own labels do not; the paper's way of testing does, and whoever compares
    with it should know how much.
    """
    views = data.inputs.views
    if views is None or data.model.settings_.graph == "identity":
        return None
    size = data.model.settings_.batch_size
    # Whole stretches of the file, because it is the order in it that matters.
    n_batches = max(1, min(len(data) // size, _ORDER_ROWS // size))
    starts = np.linspace(0, len(data) - size, n_batches).astype(np.int64)
    rows = np.unique((starts[:, None] + np.arange(size)).ravel())
    some = views[rows]
    shuffled = np.random.default_rng(0).permutation(len(rows))
    in_file = predict_in_batches(data.model, some, size)
    mixed = predict_in_batches(data.model, some, size, shuffled)
    # Any two orders differ a little. It is the file's own that must not stand out:
    # in it, batches agree with the run's clusters more or less than in a random one.
    agree = [float((found == data.labels[rows]).mean()) for found in (in_file, mixed)]
    share = sum(agree) / 2
    chance = 3 * (2 * share * (1 - share) / len(rows)) ** 0.5
    if abs(agree[0] - agree[1]) <= max(_ORDER, chance):
        return None
    changed = float((in_file != mixed).mean())
    return Concern(
        "Batch-wise predictions depend on the order of the samples",
        f"Predicted in consecutive batches of {size}, as papers often test, "
        f"{percent(changed)} of the samples change cluster when their order is "
        "shuffled: batch mates decide about a sample. The clusters in this report do "
        "not depend on the order; score with the inductive protocol.",
    )


def check_sorted(data: RunData) -> Concern | None:
    """Samples that lie sorted by cluster in their file."""
    if len(data) < 100:
        return None
    labels = data.labels
    same = float((labels[1:] == labels[:-1]).mean())
    share = np.bincount(labels) / len(labels)
    chance = float((share**2).sum())
    if chance > 0.9 or (same - chance) / (1 - chance) < _SORTED:
        return None
    return Concern(
        "The samples lie sorted in their file",
        f"{percent(same)} of neighbouring rows share a cluster, by chance it would be "
        f"{percent(chance)}. The clusters here do not depend on the order, but any "
        "score computed batch by batch will look better than it is: shuffle first.",
    )
