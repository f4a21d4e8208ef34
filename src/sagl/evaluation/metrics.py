"""How well clusters agree with known classes.

Labels are used here and nowhere before: nothing that trains or chooses a model calls
this module. Classes and clusters may be named by whole numbers or by strings, and
their numbers need not be equal.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array, csr_array, diags_array, hstack
from scipy.sparse.csgraph import min_weight_full_bipartite_matching
from sklearn.metrics import (
    adjusted_mutual_info_score,
    adjusted_rand_score,
    normalized_mutual_info_score,
)
from sklearn.metrics.cluster import contingency_matrix

__all__ = [
    *("ami", "ari", "balanced_accuracy", "clustering_accuracy", "clustering_scores"),
    *("match_clusters", "n_clusters_found", "nmi", "purity"),
]

Label = int | str

# Up to this many cells (128 MiB of float64) the dense solver is used: it is quicker
# than the sparse one unless the table is nearly empty.
_MAX_DENSE_CELLS = 2**24


class Coded(NamedTuple):
    """Labels as numbers: sample i has the label ``names[codes[i]]``."""

    names: list[Label]
    codes: NDArray[np.intp]


def coded_pair(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[Coded, Coded]:
    """Code both sides, which must be equally long."""
    true, pred = coded(y_true, "y_true"), coded(y_pred, "y_pred")
    n_true, n_pred = len(true.codes), len(pred.codes)
    if n_true != n_pred:
        raise ValueError(
            f"y_true has {n_true} labels and y_pred has {n_pred}; give one of each "
            "per sample, in the same order"
        )
    return true, pred


def coded(labels: ArrayLike, name: str) -> Coded:
    """Code labels, whole numbers or strings; errors call them ``name``."""
    array = np.asarray(labels)
    if array.dtype.kind == "U" and not isinstance(labels, np.ndarray):
        # NumPy turns ["a", nan] into the strings "a" and "nan": look before it does.
        array = np.asarray(labels, dtype=object)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must be one-dimensional, got shape {array.shape}; give one label "
            "per sample, not probabilities or one-hot rows"
        )
    if array.size == 0:
        raise ValueError(f"{name} is empty; give at least one label")
    if array.dtype == object:
        strings = np.array([isinstance(value, str) for value in array])
        missing = np.array([value is None for value in array])
        _refuse_first(array, (strings != strings[0]) | missing, name)
        array = np.asarray(array.tolist())
    if array.dtype.kind not in "biufU":
        raise ValueError(
            f"{name} holds values of type {array.dtype}; labels must be whole numbers "
            "or strings"
        )
    if array.dtype.kind == "f":
        _refuse_first(array, ~np.isfinite(array) | (array != np.floor(array)), name)
    names, codes = np.unique(array, return_inverse=True)
    whole = map(int, names) if array.dtype.kind == "f" else names.tolist()
    return Coded(list(whole), codes)


def _refuse_first(array: NDArray[Any], bad: NDArray[np.bool_], name: str) -> None:
    if bad.any():
        i = int(np.argmax(bad))
        raise ValueError(
            f"{name}[{i}] is {array.tolist()[i]!r}; labels must be all whole numbers "
            "or all strings, without missing values"
        )


def clustering_accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Fraction of samples that are right after the best one-to-one matching.

    Clusters or classes left over when their numbers differ stay without a partner, and
    their samples count as wrong.

    Examples
    --------
    >>> clustering_accuracy(["cat", "cat", "dog", "dog"], [1, 1, 0, 1])
    0.75
    """
    table = _contingency(*coded_pair(y_true, y_pred))
    return _accuracy(table, _match(table))


def match_clusters(y_true: ArrayLike, y_pred: ArrayLike) -> dict[Label, Label]:
    """Map each cluster to its class in the matching of :func:`clustering_accuracy`.

    There are as many pairs as the smaller of the two sides has members, even where a
    pair shares no sample; clusters left over are absent. Of several matchings with the
    same accuracy, the one with the highest mean recall is taken, so that renaming
    clusters does not change any score.

    Examples
    --------
    >>> match_clusters(["cat", "cat", "dog", "dog"], [1, 1, 0, 1])
    {0: 'dog', 1: 'cat'}
    """
    true, pred = coded_pair(y_true, y_pred)
    rows, columns = _match(_contingency(true, pred))
    class_of = dict(zip(columns.tolist(), rows.tolist(), strict=True))
    return {pred.names[j]: true.names[class_of[j]] for j in sorted(class_of)}


def balanced_accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Mean recall over the classes, in the matching of :func:`match_clusters`.

    A class without a cluster has recall 0. Small classes weigh as much as large ones.

    Examples
    --------
    >>> from sagl.evaluation import balanced_accuracy
    >>> balanced_accuracy(["cat", "cat", "cat", "dog"], [1, 1, 1, 1])
    0.5
    """
    table = _contingency(*coded_pair(y_true, y_pred))
    return _mean_recall(table, _match(table))


def purity(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Fraction of samples that belong to the majority class of their cluster.

    It rises with the number of clusters and is 1 when each sample is its own cluster,
    so it says little without that number.

    Examples
    --------
    >>> from sagl.evaluation import purity
    >>> purity(["cat", "cat", "dog", "dog"], [1, 1, 0, 1])
    0.75
    """
    return _purity(_contingency(*coded_pair(y_true, y_pred)))


def nmi(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Mutual information divided by the arithmetic mean of the two entropies.

    Examples
    --------
    >>> from sagl.evaluation import nmi
    >>> nmi(["cat", "cat", "dog", "dog"], [1, 1, 0, 0])
    1.0
    """
    true, pred = coded_pair(y_true, y_pred)
    return float(normalized_mutual_info_score(true.codes, pred.codes))


def ami(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Mutual information adjusted for chance, with arithmetic averaging.

    Examples
    --------
    >>> from sagl.evaluation import ami
    >>> ami(["cat", "cat", "dog", "dog"], [1, 1, 0, 0])
    1.0
    """
    true, pred = coded_pair(y_true, y_pred)
    return float(adjusted_mutual_info_score(true.codes, pred.codes))


def ari(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Agreement over pairs of samples, adjusted for chance (adjusted Rand index).

    Examples
    --------
    >>> from sagl.evaluation import ari
    >>> ari(["cat", "cat", "dog", "dog"], [1, 0, 1, 0])
    -0.5
    """
    true, pred = coded_pair(y_true, y_pred)
    return float(adjusted_rand_score(true.codes, pred.codes))


def n_clusters_found(y_pred: ArrayLike) -> int:
    """Count the clusters that hold at least one sample.

    Examples
    --------
    >>> from sagl.evaluation import n_clusters_found
    >>> n_clusters_found([0, 0, 7])
    2
    """
    return len(coded(y_pred, "y_pred").names)


def clustering_scores(y_true: ArrayLike, y_pred: ArrayLike) -> dict[str, float]:
    """All the scores of this module, with the matching solved once.

    A million samples in a thousand clusters take half a minute, nearly all of it for
    the adjusted mutual information; a hundred thousand take two seconds.

    Examples
    --------
    >>> scores = clustering_scores([0, 0, 1, 1], [1, 1, 0, 1])
    >>> scores["acc"], scores["n_clusters"]
    (0.75, 2)
    """
    true, pred = coded_pair(y_true, y_pred)
    table = _contingency(true, pred)
    pairs = _match(table)
    return {
        "acc": _accuracy(table, pairs),
        "nmi": nmi(true.codes, pred.codes),
        "ari": ari(true.codes, pred.codes),
        "ami": ami(true.codes, pred.codes),
        "purity": _purity(table),
        "balanced_acc": _mean_recall(table, pairs),
        "n_clusters": len(pred.names),
    }


def _contingency(true: Coded, pred: Coded) -> csr_array:
    """How many samples each class (row) shares with each cluster (column)."""
    return csr_array(contingency_matrix(true.codes, pred.codes, sparse=True))


_Pairs = tuple[NDArray[np.intp], NDArray[np.intp]]  # classes, their clusters


def _match(table: csr_array) -> _Pairs:
    """Pair rows with columns one to one, with the largest total count.

    Ties go to the larger sum of recalls: each recall is scaled to stay below one
    sample in total, so it never outweighs a count.
    """
    n_rows, n_columns = table.shape
    weights = table.astype(np.float64).tocoo()
    recall = weights.data / table.sum(axis=1)[weights.row]
    weights.data += recall / (n_rows + 1)
    if n_rows * n_columns <= _MAX_DENSE_CELLS:
        rows, columns = linear_sum_assignment(weights.toarray(), maximize=True)
        return rows, columns
    return _match_sparse(weights)


def _match_sparse(weights: coo_array) -> _Pairs:
    """The same matching without the dense table.

    SciPy's sparse solver wants every row matched and takes no zero weight. So each
    row gets a column of its own with weight 1, and all counts are raised by 1: a row
    that takes its own column is one left over.
    """
    n_rows, n_columns = weights.shape
    raised = weights.copy()
    raised.data += 1
    padded = hstack([raised, diags_array(np.ones(n_rows))], format="csr")
    rows, columns = min_weight_full_bipartite_matching(padded, maximize=True)
    shares = columns < n_columns
    rows, columns = rows[shares], columns[shares]
    # The dense solver pairs what is left over on both sides, so do it here too.
    rest = min(n_rows, n_columns) - len(rows)
    free_rows = np.setdiff1d(np.arange(n_rows), rows)[:rest]
    free_columns = np.setdiff1d(np.arange(n_columns), columns)[:rest]
    return np.append(rows, free_rows), np.append(columns, free_columns)


def _accuracy(table: csr_array, pairs: _Pairs) -> float:
    return float(table[pairs].sum() / table.sum())


def _mean_recall(table: csr_array, pairs: _Pairs) -> float:
    recall = table[pairs] / table.sum(axis=1)[pairs[0]]
    return float(recall.sum() / table.shape[0])


def _purity(table: csr_array) -> float:
    return float(table.max(axis=0).sum() / table.sum())
