"""The headline numbers of a report: with labels how right, without how sure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sagl.evaluation.graphs import weight_inside
from sagl.evaluation.metrics import clustering_scores
from sagl.report.build import RunData

CONFIDENT = 0.9
INDUCTIVE = (
    "Protocol: inductive, on the fitted samples. Each sample was given its cluster "
    "alone, against the run's anchors; labels only score."
)
LABEL_FREE = (
    "No labels were given, so these numbers say how sure the run is and not how right. "
    f"A sample is confident from {CONFIDENT} on."
)


@dataclass(frozen=True)
class Number:
    """One headline number."""

    label: str
    value: str
    unit: str = ""


def headline(data: RunData) -> list[Number]:
    """Scores where labels are known, then what can be said without them."""
    return [*scores(data), *label_free(data)]


def protocol(data: RunData) -> str:
    """In words, how the numbers came about."""
    return LABEL_FREE if data.inputs.labels is None else INDUCTIVE


def scores(data: RunData) -> list[Number]:
    """ACC, NMI and ARI of the fitted samples; nothing without labels."""
    if data.inputs.labels is None:
        return []
    found = clustering_scores(data.inputs.labels, data.labels)
    return [
        Number(name, f"{found[key]:.3f}")
        for name, key in (("ACC", "acc"), ("NMI", "nmi"), ("ARI", "ari"))
    ]


def label_free(data: RunData) -> list[Number]:
    """What needs no labels, with the score that chose between partitions."""
    numbers = [
        Number("Clusters in use", str(len(data.clusters)), f"of {data.n_clusters}"),
        Number("Mean confidence", f"{data.confidence.mean():.3f}"),
        Number("Confident samples", percent((data.confidence >= CONFIDENT).mean())),
    ]
    score = getattr(data.model, "score_", None)
    if score is not None:
        numbers += [
            Number("Label-free score", f"{score.total:.2f}", "nats"),
            Number("Predicted by a view unseen", percent(score.agreement)),
        ]
    agreement = view_agreement(data)
    if agreement is not None:
        numbers.append(Number("Views agree on", percent(agreement)))
    if data.mean_graph is not None:
        inside = weight_inside(data.mean_graph, data.labels)
        numbers.append(Number("Graph inside clusters", percent(inside)))
    return numbers


def view_agreement(data: RunData) -> float | None:
    """Share of samples for which every view alone would choose the same cluster."""
    choices = data.view_labels
    if choices is None or len(choices) < 2:
        return None
    return float(np.mean((choices == choices[0]).all(axis=0)))


def percent(share: float) -> str:
    """A share as people read it.

    Examples
    --------
    >>> percent(0.9996), percent(0.042), percent(1.0)
    ('99.9%', '4.2%', '100%')
    """
    if share in (0, 1):
        return f"{share:.0%}"
    # Never 100% for less than all.
    return f"{min(share, 0.999):.1%}"
