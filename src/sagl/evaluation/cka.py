"""How alike two views are: debiased linear CKA, and what to make of it.

Centred kernel alignment (Kornblith et al., 2019) compares the similarities between
samples that two views see: 1 where they see the same, whatever the rotation and the
scale, 0 where they have nothing in common. The usual estimate of it is far above 0 for
unrelated views with more columns than there are samples; this one is built on the
unbiased estimate of HSIC (Song et al., 2012), which is not.

With rows centred, K = X Xᵀ, its diagonal k, and the same for Y,

    HSIC = (‖XᵀY‖² − n/(n − 2) Σ k l + Σ k Σ l / ((n − 1)(n − 2))) / (n (n − 3)),

so that one pass over the rows suffices and nothing of size n × n is ever held. For
millions of rows HSIC is averaged over random batches (Nguyen et al., 2021): the value
of each batch is unbiased, so their mean tends to the exact one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sagl.checks import integer
from sagl.progress import Bar
from sagl.progress import progress as show_progress
from sagl.views import Views

__all__ = [
    *("THRESHOLDS", "PairVerdict", "cka_matrix", "debiased_cka", "judge_views"),
    *("suitable_batch_size", "with_all_views"),
]

Float = NDArray[np.float64]
Verdict = Literal["repeat", "overlap", "complement", "unrelated"]

_LEAST_ROWS = 4  # HSIC divides by n − 3
_BLOCK_VALUES = 1 << 22  # held at once when rows are read in blocks
# Below this share of its biased value an unbiased HSIC is rounding.
_ROUNDING = 1e-11

# Exact up to here; beyond, random batches cost a tenth and differ by less than 0.01.
_EXACT_ROWS = 50_000
_EXACT_WIDTH = 4_096
_BATCH_ROWS = 512

# The least CKA of each verdict; :func:`judge_views` says why. Below all: unrelated.
THRESHOLDS: dict[Verdict, float] = {"repeat": 0.9, "overlap": 0.75, "complement": 0.3}


def debiased_cka(x: ArrayLike, y: ArrayLike) -> float:
    """Debiased linear CKA of two matrices with the same samples as rows."""
    return float(cka_matrix(Views([np.asarray(x), np.asarray(y)]))[0, 1])


def cka_matrix(
    views: Views,
    *,
    batch_size: int | Literal["auto"] | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Float:
    """Debiased linear CKA between every pair of views, (L, L), ones on the diagonal.

    Parameters
    ----------
    views : Views
        At least four samples that have all views; others are left out. Values lie
        between −1 and 1; below 0 means 0.
    batch_size : int, "auto" or None, default=None
        None takes all rows at once, exactly. A number averages HSIC over random
        batches of so many rows or a few more. "auto" does that beyond 50,000 rows
        or 4,096 columns, with batches of 512.
    progress : bool, default=False
        Show a progress bar on stderr.

    Examples
    --------
    >>> import numpy as np
    >>> from sagl import Views
    >>> from sagl.evaluation.cka import cka_matrix
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.normal(size=(2, 200, 30))
    >>> cka_matrix(Views({"a": a, "turned": a[:, ::-1], "other": b})).round(1) + 0.0
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """
    views = with_all_views(views)
    if len(views) < _LEAST_ROWS:
        raise ValueError(
            f"CKA needs at least {_LEAST_ROWS} samples that have all views; there are "
            f"{len(views)}"
        )
    if batch_size == "auto":
        batch_size = suitable_batch_size(views)
    if batch_size is not None:
        integer("batch_size", batch_size, _LEAST_ROWS)
    total = len(views) * (2 if batch_size is None else 1)  # exact: means first
    with show_progress(total, "comparing", "rows", show=progress) as bar:
        if batch_size is None:
            hsic = _exact(views, bar)
        else:
            hsic = _batched(views, batch_size, seed, bar)
    return _normalized(hsic, views)


def with_all_views(views: Views) -> Views:
    """Those samples that miss no view."""
    if views.present is None:
        return views
    return views[np.flatnonzero(views.present.all(axis=1))]


def suitable_batch_size(views: Views) -> int | None:
    """None where the exact value is quick enough, otherwise a size for batches."""
    small = len(views) <= _EXACT_ROWS and max(views.widths) <= _EXACT_WIDTH
    return None if small else min(_BATCH_ROWS, len(views))


def _exact(views: Views, bar: Bar) -> Float:
    n, L = len(views), len(views.names)
    means = [np.zeros(width) for width in views.widths]
    for block in _blocks(views):
        for mean, h in zip(means, block, strict=True):
            mean += h.sum(axis=0) / n
        bar.update(len(block[0]))
    products = {  # XᵀY of views i ≤ j
        (i, j): np.zeros((views.widths[i], views.widths[j]))
        for i in range(L)
        for j in range(i, L)
    }
    norms_products, norms = np.zeros((L, L)), np.zeros(L)  # Σ k l, Σ k
    for block in _blocks(views):
        centred = [h - mean for h, mean in zip(block, means, strict=True)]
        for (i, j), product in products.items():
            product += centred[i].T @ centred[j]
        k = np.stack([(x * x).sum(axis=1) for x in centred])  # (L, rows)
        norms_products += k @ k.T
        norms += k.sum(axis=1)
        bar.update(len(block[0]))
    cross = np.zeros((L, L))
    for (i, j), product in products.items():
        cross[i, j] = cross[j, i] = np.vdot(product, product)
    return _hsic(cross, norms_products, norms, n)


def _batched(views: Views, batch_size: int, seed: int, bar: Bar) -> Float:
    """The mean of HSIC over random batches; here the b × b matrices are the cheap way.

    Each view's matrix is computed once, and a pair costs b² only. Batches are random
    because files are often sorted, and within one class little is left to compare.
    """
    n_batches = max(1, len(views) // batch_size)
    order = np.random.default_rng(seed).permutation(len(views))
    total = np.zeros((len(views.names),) * 2)
    for rows in np.array_split(order, n_batches):
        total += _batch_hsic(views.take(rows))
        bar.update(len(rows))
    return total / n_batches


def _batch_hsic(features: Sequence[NDArray[Any]]) -> Float:
    centred = [h - h.mean(axis=0, dtype=np.float64) for h in features]
    grams = [x @ x.T for x in centred]
    flat = np.stack([gram.ravel() for gram in grams])
    k = np.stack([gram.diagonal() for gram in grams])
    return _hsic(flat @ flat.T, k @ k.T, k.sum(axis=1), k.shape[1])


def _hsic(cross: Float, norms_products: Float, norms: Float, n: int) -> Float:
    """The formula at the top of this file, for every pair of views."""
    correction = norms_products * n / (n - 2)
    outer = np.outer(norms, norms) / ((n - 1) * (n - 2))
    unbiased = cross - correction + outer
    # A view without structure leaves rounding errors only: call them zero.
    scale = np.sqrt(np.outer(cross.diagonal(), cross.diagonal()))
    unbiased[np.abs(unbiased) <= _ROUNDING * scale] = 0
    hsic: Float = unbiased / (n * (n - 3))
    return hsic


def _normalized(hsic: Float, views: Views) -> Float:
    own = hsic.diagonal()
    for name, value in zip(views.names, own, strict=True):
        if value <= 0:
            raise ValueError(
                f"view {name!r} has nothing to compare: all its rows are equal, "
                "or all but one, or equally far apart; leave it out"
            )
    root = np.sqrt(own)
    cka: Float = hsic / root / root[:, None]
    np.fill_diagonal(cka, 1.0)
    return cka.clip(-1, 1)


def _blocks(views: Views) -> Iterator[list[Float]]:
    rows = max(1, _BLOCK_VALUES // sum(views.widths))
    for block in views.blocks(rows):
        yield [h.astype(np.float64) for h in block]


@dataclass(frozen=True)
class PairVerdict:
    """Two views, their CKA, and what it says about using them together."""

    first: str
    second: str
    cka: float
    verdict: Verdict

    def in_words(self) -> str:
        """One plain sentence."""
        pair, value = f"{self.first} and {self.second}", f"(CKA {self.cka:.3f})"
        return {
            "repeat": f"{pair} repeat each other {value}: one of the two is enough.",
            "overlap": f"{pair} overlap {value}: the second adds little to the first.",
            "complement": f"{pair} complement each other {value}: each sees something "
            "that the other does not.",
            "unrelated": f"{pair} have little in common {value}: one of them may see "
            "something else than what you are after; try each alone.",
        }[self.verdict]


def judge_views(cka: ArrayLike, names: Sequence[str]) -> list[PairVerdict]:
    """Say of every pair of views whether they repeat or complement each other.

    ``cka`` is that of :func:`cka_matrix`. The most alike come first. The thresholds are
    rules of thumb, taken from the paper's tables of CKA and of ACC by pair of backbones
    on eight data sets:

    * at least 0.9, *repeat*: above any pair of different backbones there (at most
      0.86, CLIP and SigLIP 2, trained alike); such views see the same neighbours;
    * 0.75 to 0.9, *overlap*: CLIP beside SigLIP 2 (0.75 to 0.86 on seven sets);
      adding CLIP as a third view lowered ACC on all eight;
    * 0.3 to 0.75, *complement*: DINOv3 beside SigLIP 2 (0.46 to 0.70 on seven sets),
      the best choice on seven of eight;
    * below 0.3, *unrelated*: ConvNeXt V2 beside either (0.04 to 0.25), which lost up
      to 30 points of ACC: the views share too little to be aligned.

    Examples
    --------
    >>> from sagl.evaluation.cka import judge_views
    >>> [pair] = judge_views([[1, 0.95], [0.95, 1]], ["b16", "b32"])
    >>> pair.in_words()
    'b16 and b32 repeat each other (CKA 0.950): one of the two is enough.'
    """
    matrix = np.asarray(cka, dtype=np.float64)
    if matrix.shape != (len(names), len(names)):
        raise ValueError(
            f"{len(names)} names for CKA of shape {matrix.shape}; there must be one "
            "row and one column per name"
        )
    pairs = []
    for i, j in combinations(range(len(names)), 2):
        value = float(matrix[i, j])
        reached = [verdict for verdict, least in THRESHOLDS.items() if value >= least]
        verdict: Verdict = reached[0] if reached else "unrelated"
        pairs.append(PairVerdict(names[i], names[j], value, verdict))
    return sorted(pairs, key=lambda pair: -pair.cka)
