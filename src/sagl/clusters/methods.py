"""What a fitted ``SAGL`` can be asked about its clusters, and told about them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from sagl.checks import integer
from sagl.clusters import edit
from sagl.clusters.asking import worth_asking
from sagl.clusters.describe import look
from sagl.clusters.duplicates import NONE, duplicate_groups
from sagl.clusters.layers import labels_at
from sagl.clusters.names import checked_names, kept_names, name_of
from sagl.clusters.naming import About, found_names
from sagl.clusters.neighbours import Neighbour, neighbours
from sagl.clusters.refit import digests, refitted
from sagl.clusters.shown import Shown
from sagl.clusters.table import (
    Cluster,
    as_frame,
    called,
    check_cluster,
    cluster_table,
    sample_table,
    typical_rows,
)
from sagl.clusters.update import updated
from sagl.later import Corrected, Stream, Update
from sagl.model import Facts, Model
from sagl.prediction import most_likely
from sagl.views import Views


class ClusterMethods(Shown):
    """For an estimator that has a ``Model``."""

    _model: Model
    corrections_: Corrected
    stream_: Stream
    update_: Update

    def _take(self, model: Model) -> None:
        raise NotImplementedError

    def fit(self, X: Any, y: None = None) -> Self:
        """Learn clusters from the views."""
        raise NotImplementedError

    def check_views(self, X: Any) -> Views:
        """``X`` as views, refused unless they are those of the fit."""
        raise NotImplementedError

    def clusters(self, n: int = 5) -> list[Cluster]:
        """A row per cluster: name, size, confidence, samples, nearest clusters.

        ``n`` is how many typical samples, doubtful samples and nearest clusters are
        named. Samples are called by their ids if the run has them, else by their
        numbers. ``pandas.DataFrame(model.clusters())`` is a table.
        """
        check_is_fitted(self)
        return cluster_table(self._model, n)

    def typical(self, cluster: int, n: int = 10) -> list[Any]:
        """The most typical training samples of a cluster, the most typical first."""
        check_is_fitted(self)
        number = check_cluster(self._model, cluster)
        return called(self._model, typical_rows(self._model, number, n))

    def outliers(self, X: Any = None) -> NDArray[np.float64]:
        """How unlike all others each sample is; the larger, the less like them.

        Of the training samples, or of those given, each by itself: 0 (among its like)
        to 2. It is one minus the mean cosine of the nearest anchors.
        """
        return self._seen().outlier if X is None else self._look(X)[0]

    def most_unlike(self, n: int = 10) -> list[Any]:
        """The training samples with the highest ``outliers``, the highest first."""
        scores = self.outliers()
        return called(self._model, np.argsort(-scores, kind="stable")[:n])

    def disagreement(self, X: Any = None) -> NDArray[np.float64]:
        """How differently the views see each sample: 0 alike, 1 each its own way.

        Of the training samples, or of those given, each by itself.
        """
        return self._seen().disagreement if X is None else self._look(X)[1]

    def duplicates(self, X: Any = None) -> list[list[Any]]:
        """Groups of near-duplicates among the training samples, or those given.

        Two samples are near-duplicates if they are much nearer to each other, in all
        views together, than samples are to their nearest neighbours. Training samples
        are called by their ids if the run has them; all others by their numbers.
        """
        if X is None:
            groups = self._seen().duplicate
        else:
            views = self.check_views(X)
            labels = most_likely(self._model.predictor, views)[0]
            groups = duplicate_groups(self._model.network, views, labels)
        rows = [
            np.flatnonzero(groups == g) for g in range(groups.max(initial=NONE) + 1)
        ]
        return [called(self._model, r) if X is None else r.tolist() for r in rows]

    def neighbours(self, X: Any, n: int = 5) -> list[list[Neighbour]]:
        """For each sample the training samples that it attends to most, each by itself.

        At most ``n`` anchors with their weights, the largest first; those without
        weight are left out.
        """
        views = self.check_views(X)
        return neighbours(self._model, views, integer("n", n, 1))

    def labels_at(self, layer: int) -> NDArray[np.int64]:
        """The training samples' clusters in the layer of so many clusters."""
        check_is_fitted(self)
        return labels_at(self._model, layer, None, self._model.labels)

    def to_frame(self, ids: Sequence[Any] | None = None) -> Any:
        """A row per training sample: a data frame of pandas where it is installed.

        Else a dictionary of columns. ``ids`` are what the samples are called, if not
        as in the run.
        """
        check_is_fitted(self)
        return as_frame(sample_table(self._model, ids))

    def cluster_name(self, cluster: int) -> str:
        """What a cluster is called."""
        check_is_fitted(self)
        return name_of(self._model.names, check_cluster(self._model, cluster))

    def rename(self, names: Mapping[int, str]) -> Self:
        """Call clusters by these names, each its own; others keep theirs."""
        check_is_fitted(self)
        every = {**self._model.names, **names}
        self._model.names = checked_names(every, self._model.settings.n_clusters)
        self._take(self._model)
        return self

    def name_clusters(
        self,
        texts: Sequence[str] | None = None,
        columns: Mapping[str, Sequence[Any]] | None = None,
        names: Callable[[About], str] | None = None,
    ) -> Self:
        """Name clusters that have no name, from what is known of training samples.

        Without any of these a cluster is named after its most typical sample.

        Parameters
        ----------
        texts : sequence of str, optional
            What the samples are: names are the words that tell a cluster's texts.
        columns : mapping of str to sequence, optional
            What else is known of each sample: names are values that are
            over-represented.
        names : callable, optional
            Makes the name of a cluster from what is known ``About`` it, a language
            model, say.
        """
        check_is_fitted(self)
        return self.rename(
            found_names(self._model, texts=texts, columns=columns, names=names)
        )

    def keep_names(self, before: ClusterMethods) -> Self:
        """Take over the names of an earlier fit to samples that are here, too.

        A cluster has the name of the one before with which it shares most of both.
        Samples are matched by their ids, or by their places where there are none.
        """
        check_is_fitted(self)
        old, new = before._model, self._model
        here, there = _shared_rows(new, old)
        kept = kept_names(old.names, old.labels[there], new.labels[here])
        return self.rename(kept)

    def merge(self, X: Any, *clusters: int) -> Self:
        """A new model in which these clusters are one, by the name of the first.

        ``X`` are the views of the fit: the heads are solved anew for the new clusters.
        The samples of these clusters are put together, a few doubtful ones of others
        may move; what samples are compared by stays. Later clusters move up by number.
        """
        return self._other(edit.merged(self._model, self.check_views(X), clusters))

    def split(self, X: Any, cluster: int) -> Self:
        """A new model in which this cluster is two; the second is the last by number.

        ``X`` are the views of the fit: its samples are cut in two by 2-means on all
        views, and the heads are solved anew. A few doubtful samples of other clusters
        may move, too.
        """
        return self._other(edit.split(self._model, self.check_views(X), cluster))

    def worth_asking(self, X: Any, n: int = 20) -> list[Any]:
        """At most ``n`` training samples whose clusters a person should tell, in order.

        Each is like many doubtful samples that are unlike those before it, so what is
        said of it says something of them. ``X`` are the views of the fit; samples that
        were corrected before are not asked for again.
        """
        check_is_fitted(self)
        views = self.check_views(X)
        rows = worth_asking(self._model, views, integer("n", n, 1))
        return called(self._model, rows)

    def refit(self, X: Any, corrections: Mapping[str, Any]) -> Self:
        """A new model that keeps to what people said of samples and clusters.

        The search is not made anew: its clusters are corrected, and regressions and the
        graph carry that to other samples; what samples are compared by stays. In
        ``labels_`` every correction is kept, or a warning says how many could not be.
        What was said is in ``corrections_``; ``sagl.evaluation`` leaves these samples
        out of scores.

        Parameters
        ----------
        X : views of the fit
        corrections : mapping
            Any of ``labels`` (a mapping of samples to the number or name of a cluster;
            a new name makes a new cluster), ``must_link`` and ``cannot_link`` (lists of
            groups of samples), ``wrong`` (samples that are not of their cluster),
            ``merge`` (lists of clusters that are one) and ``split`` (clusters that are
            two). Samples are called by their ids if the run has them, else by their
            numbers. ``docs/corrections.md`` has more.

        Examples
        --------
        >>> from sklearn.datasets import make_blobs
        >>> from sagl import SAGL
        >>> X, _ = make_blobs(120, n_features=8, centers=3, random_state=0)
        >>> model = SAGL(n_clusters=3, random_state=0).fit(X)
        >>> other = (int(model.labels_[7]) + 1) % 3
        >>> corrected = model.refit(X, {"labels": {7: other}})
        >>> int(corrected.labels_[7]) == other
        True
        """
        check_is_fitted(self)
        return self._other(refitted(self._model, self._whole(X), corrections))

    def update(
        self, X: Any, old: Any = None, *, ids: Sequence[str] | None = None
    ) -> Self:
        """A new model that takes in new samples; old clusters keep numbers and names.

        ``update_`` says what has changed: new clusters and what speaks for them, the
        share of earlier samples that moved, drift of each view and cluster.

        Parameters
        ----------
        X : views of the new samples
        old : views of the fit, optional
            With these all features of all samples are looked at, and ``labels_`` are
            those of all, the new ones last. Without, what is known of
            earlier samples is the anchors that the model keeps, and ``labels_`` are
            those of the new samples.
        ids : sequence of str, optional
            What the samples of ``labels_`` are called.
        """
        check_is_fitted(self)
        views = self._whole(X)
        before = None if old is None else self._whole(old)
        return self._other(updated(self._model, views, before, ids))

    def partial_fit(self, X: Any, y: None = None) -> Self:
        """Take in more samples, as ``update`` does; the first ones are a fit.

        Earlier samples are known by the anchors that the model keeps. ``labels_`` are
        those of these samples, ``update_`` says what they have changed.
        """
        if not hasattr(self, "_model"):
            return self.fit(X)
        self._take(updated(self._model, self._whole(X)))
        return self

    def was_corrected(self, X: Any) -> NDArray[np.bool_]:
        """Which samples somebody has said something of, by their features, (n,)."""
        views = self.check_views(X)
        if self._model.corrections is None:
            return np.zeros(len(views), dtype=bool)
        known = set(self._model.corrections.digests)
        return np.array([digest in known for digest in digests(views)], dtype=bool)

    def _whole(self, X: Any) -> Views:
        """Views of samples that miss none; those of the fit must not have either."""
        views = self.check_views(X)
        views.check_values()
        if self._model.missing is not None:
            raise ValueError(
                "the model was fitted on samples that miss views, and corrections and "
                "updates need all views of all samples: fit again instead"
            )
        return views

    def _other(self, model: Model) -> Self:
        other = copy.copy(self)
        other._take(model)
        return other

    def _look(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        seen = look(self._model, self.check_views(X))
        return seen.outlier, seen.disagreement

    def _seen(self) -> Facts:
        check_is_fitted(self)
        if self._model.facts is None:
            raise ValueError(
                "this run says nothing about single samples: an older sagl saved it; "
                "give the views"
            )
        return self._model.facts


def _shared_rows(new: Model, old: Model) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of the samples that both were fitted on."""
    if new.ids is None or old.ids is None:
        if len(new.labels) != len(old.labels):
            raise ValueError(
                f"the earlier model has {len(old.labels):,} samples, this one "
                f"{len(new.labels):,}, and not both know their ids: which are the "
                "same is unknown"
            )
        rows = np.arange(len(new.labels))
        return rows, rows
    place = {name: row for row, name in enumerate(old.ids)}
    pairs = [(row, place[name]) for row, name in enumerate(new.ids) if name in place]
    here, there = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return here, there
