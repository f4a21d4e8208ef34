"""How many clusters there are: the number whose clusters say much and come back.

For each candidate number, several partitions are found, each on a resample of its own
and from a start of its own, and carried over to all samples by ridge regression.

    value = information × agreement

information is what a view's guess, made without the sample, and the label of a
neighbour tell of the label, in nats. It grows with the number of clusters without end;
agreement is the mean adjusted Rand index of the partitions, which falls once clusters
are cut where nothing separates them, or joined in one of several ways. Alone it is
highest for a few coarse clusters, so the value errs upwards where it errs, and
agreement downwards: the interval reaches from one to the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score
from torch import Tensor

from sagl.nn.missing import without_nan
from sagl.nn.neighbours import unit_rows
from sagl.schema import check, parse_json, plain
from sagl.search.anneal import anneal, reanneal
from sagl.search.proposals import spectral_labels
from sagl.search.ridge import Ridge
from sagl.search.score import graph_information, guesses, mutual_information
from sagl.search.space import Space, one_hot
from sagl.storage import write_json
from sagl.training.distributed import from_first, ranks, spread

_PARTITIONS = 6
_RESAMPLE = 0.7  # the share of the samples that each partition is found on
_STEPS, _POLISH = 50, 25
_HOT = 0.7  # where annealing from random starts begins
# A strong ridge penalty can use but few directions. To the weak one of the search ever
# more clusters look predictable.
_PENALTY = 100.0
# Many neighbours, unless there are few samples: what the nearest few have in common
# divides any cluster further.
_NEIGHBOURS, _NEIGHBOUR_SHARE = 40, 1 / 25
_EVERY_UP_TO = 12  # candidates are all numbers up to this one, then
_GROWTH = 1.14  # each so many times the one before, up to
_MOST = 256  # at most
_PER_CLUSTER = 8  # and no fewer samples per cluster than this
_AGREED = 0.5  # partitions that agree less than this are found anew each time
_SAME = 0.95  # and those that agree so much are one: the clusters are there
_WIDE = 2.0  # an interval whose ends differ by more than this factor says little
_NEARLY = 0.85  # of the best value: half or twice as many clusters are about as good


class CountPoint(NamedTuple):
    """One candidate: its value, how sure that is, and what it is made of."""

    n_clusters: int
    value: float
    deviation: float
    information: float
    agreement: float


class ClusterCount(NamedTuple):
    """An estimate of the number of clusters.

    Attributes
    ----------
    best : int
        The number with the highest value.
    low, high : int
        The smallest and the largest number whose value is not clearly worse, or whose
        partitions agree most. A fit has the :attr:`runners_up` below ``best`` as
        layers.
    sure : bool
        False where the data do not tell: the interval is wide, partitions hardly agree,
        the best candidate is the first or the last, or half or twice as many clusters
        are nearly as good and its own partitions are not the same each time.
    curve : tuple of CountPoint
        Every candidate.
    """

    best: int
    low: int
    high: int
    sure: bool
    curve: tuple[CountPoint, ...]

    @property
    def runners_up(self) -> list[int]:
        """Other numbers that stand out: peaks of the value that are nearly as high,
        and the number whose partitions agree most."""
        values = [0.0, *(point.value for point in self.curve), 0.0]
        peaks = {
            point.n_clusters
            for point, before, after in zip(
                self.curve, values[:-2], values[2:], strict=True
            )
            if point.value >= max(before, after, _NEARLY * max(values))
        }
        steadiest = max(self.curve, key=_agreement).n_clusters
        return sorted((peaks | {steadiest}) - {self.best})

    def __repr__(self) -> str:
        tried = f"{len(self.curve)} numbers tried"
        return f"<ClusterCount: {self.in_words()}; {tried}>"

    def in_words(self) -> str:
        """One line for people."""
        text = f"{self.best} clusters (between {self.low} and {self.high})"
        if self.sure:
            return text
        return f"{text}; the data do not tell clearly: look at the curve"

    def as_dict(self) -> dict[str, Any]:
        return dict(plain(self))


def _agreement(point: CountPoint) -> tuple[float, float]:
    """To compare candidates by; of those that agree alike the more valuable."""
    return point.agreement, point.value


def default_candidates(n_samples: int) -> list[int]:
    """Numbers of clusters worth trying, rising.

    >>> default_candidates(200)
    [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18, 21, 24]
    """
    most = max(2, min(_MOST, n_samples // _PER_CLUSTER))
    numbers = [2]
    while True:
        last = numbers[-1]
        more = last + 1 if last < _EVERY_UP_TO else round(last * _GROWTH)
        if more > most:
            return numbers
        numbers.append(more)


@torch.no_grad()
def count_clusters(
    features: Sequence[Tensor],
    candidates: Sequence[int],
    seed: int,
    on_candidate: Callable[[CountPoint], None] | None = None,
    *,
    scales: int = 1,
) -> ClusterCount:
    """Try each candidate on samples given by standardised views, (n, d) each.

    Or by the same views on several ``scales``, one after the other.
    """
    views = [unit_rows(h.float()) for h in features]
    n = len(views[0])
    rng = np.random.default_rng(seed)
    size = max(2, round(_RESAMPLE * n))
    resamples = [rng.permutation(n)[:size] for _ in range(_PARTITIONS)]
    near = min(_NEIGHBOURS, max(2, round(_NEIGHBOUR_SHARE * size)))
    everyone = [without_nan(x) for x in views]
    spaces = [
        Space([x[rows] for x in views], near, scales=scales)
        for rows in map(np.sort, resamples)
    ]
    fits = [[Ridge(s, _PENALTY) for s in space.spectra] for space in spaces]
    curve = []

    def attempt(n_clusters: int) -> tuple[Tensor]:
        point = _try(spaces, fits, everyone, n_clusters, seed)
        return (torch.tensor(point, dtype=torch.float64),)

    for (measured,) in spread([partial(attempt, count) for count in candidates]):
        n_clusters, *measures = measured.tolist()
        point = CountPoint(int(n_clusters), *measures)
        curve.append(point)
        if on_candidate is not None:
            on_candidate(point)
    return conclude(curve)


def _try(
    spaces: Sequence[Space],
    fits: Sequence[Sequence[Ridge]],
    views: Sequence[Tensor],
    n_clusters: int,
    seed: int,
) -> CountPoint:
    nats, everywhere = [], []
    for i, space in enumerate(spaces):
        if i % 2:
            start = spectral_labels(space, n_clusters, seed + i)
            labels = reanneal(space, start, n_clusters, steps=_POLISH)
        else:
            start = _random_start(space, n_clusters, seed + i)
            labels = anneal(space, start, hot=_HOT, steps=_STEPS)
        nats.append(_information(space, fits[i], labels, n_clusters))
        everywhere.append(_carried_over(space, labels, views, n_clusters))
    agreement = np.eye(len(spaces))
    for i, j in combinations(range(len(spaces)), 2):
        agreement[i, j] = agreement[j, i] = adjusted_rand_score(
            everywhere[i], everywhere[j]
        )
    return _point(n_clusters, np.array(nats), agreement)


def _information(
    space: Space, fits: Sequence[Ridge], labels: Tensor, n_clusters: int
) -> float:
    """As ``score``, by a stiffer regression and the graph of all views."""
    tables = guesses(fits, labels, n_clusters)
    linear = sum(mutual_information(table) for table in tables) / len(tables)
    return linear + graph_information(space, labels, n_clusters)


def _random_start(space: Space, n_clusters: int, seed: int) -> Tensor:
    """Soft labels by random linear maps of the views, (n, C).

    Not k-means: its partitions resemble each other at any number of clusters.
    """
    generator = torch.Generator().manual_seed(seed)
    z = torch.zeros(len(space), n_clusters, device=space.views[0].device)
    for x in space.views:
        W = torch.randn(x.shape[1], n_clusters, generator=generator)
        z += x @ W.to(x)
    z = (z - z.mean(dim=0)) / z.std(dim=0).clamp_min(1e-6)
    return torch.softmax(2 * z, dim=1)


def _carried_over(
    space: Space, labels: Tensor, views: Sequence[Tensor], n_clusters: int
) -> NDArray[np.int64]:
    """Labels of all samples from those of a resample."""
    Y = one_hot(labels, n_clusters)
    Y = Y - Y.mean(dim=0)
    z = [x @ fit.weights(Y) for x, fit in zip(views, space.fits, strict=True)]
    everyone: NDArray[np.int64] = sum(z[1:], start=z[0]).argmax(dim=1).cpu().numpy()
    return everyone


def _point(
    n_clusters: int, nats: NDArray[np.float64], agreement: NDArray[np.float64]
) -> CountPoint:
    """Value of a candidate, and its deviation by leaving out one partition in turn."""
    n = len(nats)

    def parts(kept: NDArray[np.int64]) -> tuple[float, float]:
        pairs = agreement[np.ix_(kept, kept)][np.triu_indices(len(kept), 1)]
        return float(nats[kept].mean()), float(pairs.mean())

    every = np.arange(n)
    information, agreed = parts(every)
    left_out = np.array([np.prod(parts(np.delete(every, i))) for i in every])
    spread = left_out - left_out.mean()
    deviation = float(np.sqrt((n - 1) / n * (spread**2).sum()))
    return CountPoint(n_clusters, information * agreed, deviation, information, agreed)


def conclude(curve: Sequence[CountPoint]) -> ClusterCount:
    """The best candidate, those that are not clearly worse, and whether that helps."""
    best = max(range(len(curve)), key=lambda i: curve[i].value)
    least = curve[best].value - curve[best].deviation
    near = [p.n_clusters for p in curve if p.value + p.deviation >= least]
    steadiest = max(curve, key=_agreement).n_clusters
    low, high = min(near[0], steadiest), max(near[-1], steadiest)
    inside = 0 < best < len(curve) - 1
    reproducible = curve[best].agreement >= _AGREED
    narrow = high <= _WIDE * low
    count, value = curve[best].n_clusters, curve[best].value
    far = [p.value for p in curve if not count / _WIDE < p.n_clusters < _WIDE * count]
    peaked = max(far, default=0.0) < _NEARLY * value
    clear = peaked or (steadiest == count and curve[best].agreement >= _SAME)
    sure = inside and reproducible and narrow and clear
    return ClusterCount(count, low, high, sure, tuple(curve))


def kept_count(
    path: Path,
    fingerprint: dict[str, Any],
    estimate: Callable[[], ClusterCount],
) -> ClusterCount:
    """An estimate that a killed run finds again at ``path``."""
    try:
        kept = parse_json(from_first(lambda: _content(path)).decode())
        if kept["of"] == fingerprint:
            known: ClusterCount = check(ClusterCount, kept["count"])
            return known
    except (ValueError, KeyError, TypeError):
        pass  # not there, or not ours: estimated anew
    count = estimate()
    if ranks().first:
        write_json(path, {"of": fingerprint, "count": count.as_dict()})
    return count


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
