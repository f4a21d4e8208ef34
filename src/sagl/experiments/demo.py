"""The demo: real digits, three views, SAGL beside k-means, in under a minute."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.preprocessing import normalize

from sagl.estimator import SAGL
from sagl.evaluation.metrics import clustering_scores
from sagl.evaluation.protocols import evaluate
from sagl.experiments.digits import load
from sagl.experiments.fit import fit_run
from sagl.views import Views


def run_demo(out: Path, seed: int = 0, *, verbose: bool = False) -> dict[str, Any]:
    """Fit the digits into ``out`` and score both methods on held-out digits."""
    digits = load()
    n_clusters = len(np.unique(digits.train_labels))
    start = time.perf_counter()
    model = SAGL(n_clusters, random_state=seed, verbose=verbose)
    fit_run(model, digits.train, out)
    seconds = time.perf_counter() - start
    kmeans = KMeans(n_clusters, n_init=10, random_state=seed)
    kmeans.fit(concatenated(digits.train))
    predicted = kmeans.predict(concatenated(digits.test))
    return {
        "out": str(out),
        "views": dict(zip(digits.train.names, digits.train.widths, strict=True)),
        "n_train": len(digits.train),
        "n_test": len(digits.test),
        "seed": seed,
        "seconds": round(seconds, 1),
        "sagl": evaluate(model, digits.test, digits.test_labels),
        "kmeans": clustering_scores(digits.test_labels, predicted),
        "sparsity": dict(
            zip(digits.train.names, model.history_[-1]["sparsity"], strict=True)
        ),
    }


def concatenated(views: Views) -> NDArray[np.float32]:
    """All views side by side, each row of each view scaled to length one."""
    return np.concatenate(
        [normalize(np.asarray(array, dtype=np.float32)) for _, array in views.items()],
        axis=1,
    )


def free_directory(wanted: Path) -> Path:
    """``wanted``, or the first of wanted-2, wanted-3, ... that is not there yet."""
    candidate, number = wanted, 1
    while candidate.exists():
        number += 1
        candidate = wanted.with_name(f"{wanted.name}-{number}")
    return candidate
