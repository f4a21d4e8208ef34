"""Scores of clusterings and the protocols by which predictions are made."""

from sagl.evaluation.metrics import (
    ami,
    ari,
    balanced_accuracy,
    clustering_accuracy,
    clustering_scores,
    match_clusters,
    n_clusters_found,
    nmi,
    purity,
)
from sagl.evaluation.protocols import (
    evaluate,
    predict_in_batches,
    predict_transductive,
)

__all__ = [
    "ami",
    "ari",
    "balanced_accuracy",
    "clustering_accuracy",
    "clustering_scores",
    "evaluate",
    "match_clusters",
    "n_clusters_found",
    "nmi",
    "predict_in_batches",
    "predict_transductive",
    "purity",
]
