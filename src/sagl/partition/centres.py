"""k-means, from scikit-learn, quiet about samples that come many times."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning


def kmeans_labels(
    rows: NDArray[np.floating], n_clusters: int, seed: int, starts: int
) -> NDArray[np.int64]:
    """Labels 0 … C − 1 of rows (n, d). With fewer distinct rows some stay unused."""
    kmeans = KMeans(n_clusters, n_init=starts, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Number of distinct", ConvergenceWarning)
        labels: NDArray[np.int64] = kmeans.fit_predict(rows).astype(np.int64)
    return labels
