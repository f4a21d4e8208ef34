"""Names from what is known of the samples, without a language model.

Texts: the words of a cluster by c-TF-IDF (Grootendorst 2022), that is how often they
are in its texts, and how rarely in all. Columns of a table: the values that are over-
represented in a cluster. Else: its most typical sample. A function of the user's may
make the name from all of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

from sagl.clusters.names import checked_names, unique
from sagl.clusters.table import called, typical_rows
from sagl.model import Model

_WORDS = 3  # in a name
_TOLD = 10  # words and samples that a user's function is told
_LONGEST = 60  # characters of a name that was made here
_LEAST = 4.0  # deviations from chance from which on a value is over-represented


class About(NamedTuple):
    """What a function that names a cluster is told about it."""

    number: int
    size: int
    typical: list[Any]  # its most typical texts, or ids where there are no texts
    words: list[str]  # of its texts, those that tell it from the others
    values: list[str]  # of columns: those that are over-represented, "column: value"


def found_names(
    model: Model,
    *,
    texts: Sequence[str] | None = None,
    columns: Mapping[str, Sequence[Any]] | None = None,
    names: Callable[[About], str] | None = None,
) -> dict[int, str]:
    """Names for the clusters that have none yet, beside those that have one."""
    n, labels = len(model.labels), model.labels
    for what, rows in {"texts": texts, **(columns or {})}.items():
        if rows is not None and len(rows) != n:
            raise ValueError(f"{what}: {len(rows)} entries for {n} samples")
    words = {} if texts is None else keywords(texts, labels, _TOLD)
    values = over_represented(columns or {}, labels)
    made = {}
    for k in np.unique(labels).tolist():
        if k in model.names:
            continue
        typical = typical_rows(model, k, _TOLD)
        about = About(
            k,
            int((labels == k).sum()),
            called(model, typical) if texts is None else [texts[i] for i in typical],
            words.get(k, []),
            values.get(k, []),
        )
        made[k] = (names or _name)(about)
        if not isinstance(made[k], str) or not made[k].strip():
            raise ValueError(f"cluster {k}: its name is {made[k]!r}, not a text")
    taken = dict(model.names)
    for k, name in unique(made).items():
        number = 2
        while name in taken.values():
            name, number = f"{made[k]} {number}", number + 1
        taken[k] = name
    return checked_names(taken, model.settings.n_clusters)


def _name(about: About) -> str:
    """Words, else values, else the sample that stands for the cluster."""
    if about.words:
        return ", ".join(about.words[:_WORDS])[:_LONGEST]
    if about.values:
        return ", ".join(about.values[:_WORDS])[:_LONGEST]
    return f"like {about.typical[0]}"


def keywords(
    texts: Sequence[str], labels: NDArray[np.int64], n_words: int
) -> dict[int, list[str]]:
    """The words that tell the texts of each cluster from the others, best first.

    A word in a single text tells nothing of a cluster and is left out, if there are
    others.

    >>> import numpy as np
    >>> texts = ["red apple", "green apple", "fast car", "a red car"]
    >>> words = keywords(texts, np.array([0, 0, 1, 1]), 1)
    >>> words
    {0: ['apple'], 1: ['car']}
    """
    counter = CountVectorizer(
        stop_words="english", token_pattern=r"(?u)\b[^\W\d_]\w+\b"
    )
    try:
        counts = counter.fit_transform(texts)
    except ValueError:  # no words at all
        return {}
    vocabulary = counter.get_feature_names_out()
    known = (counts > 0).sum(axis=0).A1
    often = known > 1 if (known > 1).any() else known > 0
    counts, vocabulary = counts[:, often], vocabulary[often]
    clusters = np.unique(labels)
    of = np.stack([counts[labels == k].sum(axis=0).A1 for k in clusters])  # (C, words)
    share = of / of.sum(axis=1, keepdims=True).clip(min=1)
    mean_words = of.sum() / len(clusters)
    worth = share * np.log1p(mean_words / of.sum(axis=0).clip(min=1))
    best = np.argsort(-worth, axis=1, kind="stable")[:, :n_words]
    return {
        int(k): [str(vocabulary[w]) for w in chosen if worth[i, w] > 0]
        for i, (k, chosen) in enumerate(zip(clusters, best, strict=True))
    }


def over_represented(
    columns: Mapping[str, Sequence[Any]], labels: NDArray[np.int64]
) -> dict[int, list[str]]:
    """What is in each cluster more often than chance would have it, the surest first.

    A value of a column of words, or "high" and "low" of one of numbers, each more than
    four deviations from what a random draw of as many samples would have.

    >>> import numpy as np
    >>> kind = ["cat"] * 50 + ["dog"] * 50
    >>> over_represented({"kind": kind}, np.repeat([0, 1], 50))
    {0: ['kind: cat'], 1: ['kind: dog']}
    """
    found: dict[int, list[tuple[float, str]]] = {}
    for column, values in columns.items():
        numbers = _numbers(values)
        if numbers is not None:
            for k, z in _deviations(numbers, labels).items():
                what = f"{column}: {'high' if z > 0 else 'low'}"
                found.setdefault(k, []).append((abs(z), what))
            continue
        words = np.array(["" if v is None else str(v) for v in values])
        for value in np.unique(words[words != ""]):
            for k, z in _deviations((words == value).astype(float), labels).items():
                found.setdefault(k, []).append((z, f"{column}: {value}"))
    return {
        k: [what for z, what in sorted(pairs, key=lambda p: -p[0]) if z >= _LEAST]
        for k, pairs in sorted(found.items())
    }


def _numbers(values: Sequence[Any]) -> NDArray[np.float64] | None:
    """A column as numbers, NaN where missing; None if it is one of words."""
    try:
        numbers = np.array([np.nan if v in (None, "") else float(v) for v in values])
    except (TypeError, ValueError):
        return None
    return numbers if np.isfinite(numbers).any() else None


def _deviations(x: NDArray[np.float64], labels: NDArray[np.int64]) -> dict[int, float]:
    """How far the mean of each cluster is from that of a random draw, in deviations."""
    there = np.isfinite(x)
    x, labels = x[there], labels[there]
    n, spread = len(x), x.std()
    found = {}
    for k in np.unique(labels).tolist() if spread > 0 else ():
        inside = x[labels == k]
        m = len(inside)
        left = (n - m) / max(n - 1, 1)  # of a draw without replacement
        if left > 0:
            found[k] = float((inside.mean() - x.mean()) / (spread * (left / m) ** 0.5))
    return found
