"""``sagl predict``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sagl.cli.options import loaded, option, say, takes, together

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sagl.estimator import SAGL
    from sagl.features.store import Joined


def _show(facts: dict[str, Any]) -> None:
    doubtful = ""
    if facts["threshold"]:
        doubtful = f"; {facts['n_doubtful']:,} are doubtful (-1)"
    say(f"{facts['n_samples']:,} predictions in {facts['out']}{doubtful}")


@takes(loaded, show=_show)
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
        more["name"] = _names(model, clusters, doubtful)
    clusters[doubtful] = DOUBTFUL
    write_predictions(out, clusters, confidence, given.ids, more)
    return {
        "out": str(out),
        "n_samples": len(clusters),
        "n_doubtful": int(doubtful.sum()),
        "threshold": threshold,
        "mean_confidence": float(confidence.mean()),
    }


def _names(
    model: SAGL, clusters: NDArray[np.int64], doubtful: NDArray[np.bool_]
) -> list[str]:
    """The name of each sample's cluster; none for doubtful samples."""
    names = [model.cluster_name(k) for k in range(model.n_clusters_)]
    pairs = zip(clusters.tolist(), doubtful.tolist(), strict=True)
    return ["" if left_out else names[k] for k, left_out in pairs]
