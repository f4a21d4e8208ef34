"""How predictions for a test set are made before they are scored.

* ``inductive``: each sample against the stored anchors, alone. The default.
* ``transductive``: one graph over the whole test set; needs all of it at once.
* ``batch``: the paper's test loop. The graph is built inside consecutive batches, so
  the answer depends on the order of the samples: sorted by class, batch mates are
  mostly of a sample's own class and the labels leak through the order. Both orders
  are scored, and the gap between them is reported.

The last two ask the network alone: with a search, the clusters of a sample's neighbours
are then those that their heads say, not those of the anchors.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from sagl.checks import check_choice, integer
from sagl.evaluation.metrics import clustering_scores, coded
from sagl.nn.inference import transductive_probabilities
from sagl.nn.network import Network
from sagl.training.feed import Feed
from sagl.views import Views

__all__ = ["evaluate", "predict_in_batches", "predict_transductive"]

ProtocolName = Literal["inductive", "transductive", "batch"]
Labels = NDArray[np.int64]


class FittedModel(Protocol):
    """What a model must offer to be evaluated."""

    network_: Network
    settings_: Any

    def predict(self, X: Any) -> Labels: ...
    def was_corrected(self, X: Any) -> NDArray[np.bool_]: ...
    def check_views(self, X: Any) -> Views: ...


def evaluate(
    model: FittedModel,
    X: Any,
    y_true: Any,
    protocol: ProtocolName = "inductive",
    *,
    batch_size: int | None = None,
    random_state: int = 0,
) -> dict[str, Any]:
    """Score a fitted model on views with known labels, which only score.

    Samples that somebody corrected (``SAGL.refit``) are known by their features and
    left out: their labels were used.

    Returns
    -------
    dict
        ``protocol`` and the scores of :func:`~sagl.evaluation.clustering_scores`, with
        ``n_left_out`` if samples were left out. For
        ``batch`` those of the shuffled order, with ``sorted`` (the scores in class
        order), ``gap`` (how much ACC the order alone is worth) and a ``note``.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from sagl import SAGL
    >>> from sagl.evaluation import evaluate, predict_in_batches, predict_transductive
    >>> X, y = make_blobs(200, n_features=8, centers=3, random_state=0)
    >>> views = {"left": X[:, :4], "right": X[:, 4:]}
    >>> model = SAGL(n_clusters=3, refine=False, steps=50, random_state=0).fit(views)
    >>> evaluate(model, views, y)["acc"] > 0.9
    True
    >>> predict_transductive(model, views).shape
    (200,)
    >>> by_class = np.argsort(y)  # an order that leaks labels
    >>> predict_in_batches(model, views, batch_size=100, order=by_class).shape
    (200,)
    """
    views = model.check_views(X)
    shape = np.shape(y_true)
    if shape != (len(views),):
        raise ValueError(
            f"{len(views)} samples need {len(views)} labels, got shape {shape}"
        )
    labels = coded(y_true, "y_true").codes
    kept = ~model.was_corrected(views)
    if not kept.any():
        raise ValueError("all samples were corrected: there is nothing to score")
    check_choice("protocol", protocol, ProtocolName)

    def scores(predicted: Labels) -> dict[str, Any]:
        return clustering_scores(labels[kept], predicted[kept])

    more: dict[str, Any] = {} if kept.all() else {"n_left_out": int((~kept).sum())}
    if protocol == "inductive":
        return {"protocol": protocol, **scores(model.predict(views)), **more}
    if protocol == "transductive":
        predicted = predict_transductive(model, views)
        return {"protocol": protocol, **scores(predicted), **more}
    size = model.settings_.batch_size if batch_size is None else batch_size
    integer("batch_size", size, 1)
    by_class = np.argsort(labels, kind="stable")
    shuffled = np.random.default_rng(random_state).permutation(len(views))
    by_order, usual = (
        scores(predict_in_batches(model, views, size, order))
        for order in (by_class, shuffled)
    )
    return {
        "protocol": protocol,
        **usual,
        "sorted": by_order,
        "gap": by_order["acc"] - usual["acc"],
        "batch_size": size,
        "note": "predictions of this protocol depend on the order of the samples",
        **more,
    }


def predict_transductive(model: FittedModel, X: Any) -> Labels:
    """Clusters by one graph over all given samples."""
    feed = _feed(model, X)
    q = transductive_probabilities(model.network_, feed.in_order())
    return q.argmax(dim=1).cpu().numpy()


@torch.no_grad()
def predict_in_batches(
    model: FittedModel, X: Any, batch_size: int, order: Labels | None = None
) -> Labels:
    """Clusters by graphs inside consecutive batches of the given order."""
    feed = _feed(model, X)
    order = np.arange(len(feed)) if order is None else order
    predicted = np.empty(len(feed), dtype=np.int64)
    for start in range(0, len(feed), batch_size):
        rows = order[start : start + batch_size]
        q = model.network_.vote(model.network_(feed(rows)))
        predicted[rows] = q.argmax(dim=1).cpu().numpy()
    return predicted


def _feed(model: FittedModel, X: Any) -> Feed:
    device = next(model.network_.parameters()).device
    return Feed(model.check_views(X), model.network_, device)
