"""Hundreds of clustering tasks out of a few sets: no single set can be tuned to.

    python benchmarks/tasks.py --data ../shared/data --count 20

A task is a set with some of its views, some of its classes (some merged in pairs), so
many training samples, and classes of the sizes that the set has or of falling ones, one
in twenty at the end. Its number alone decides what it is.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from data import all_views, load
from sagl import Views

SIZES = (150, 500, 2_000)
LEAST_PER_CLASS = 8  # training samples, in the mean
LEAST_TO_TAIL = 40  # training samples that a class needs to be the first of a tail
MOST_TEST = 1_000
TAIL = 20
_SINGLE, _FEWER, _MERGED, _TAILED = 0.3, 0.5, 0.15, 0.25  # chances


@dataclass(frozen=True)
class Task:
    """What is to be clustered; labels are for scoring alone."""

    number: int
    set: str
    train: Views
    test: Views
    labels: NDArray[np.int64]
    test_labels: NDArray[np.int64]
    n_clusters: int
    merged: bool
    tail: int  # the largest class is so many times the smallest by design; 1: as it is

    @property
    def name(self) -> str:
        parts = [f"{self.number}", self.set, "+".join(self.train.names)]
        parts += [f"{len(self.train)} of {self.n_clusters}"]
        parts += ["merged"] * self.merged + [f"1:{self.tail}"] * (self.tail > 1)
        return " ".join(parts)

    @property
    def is_balanced(self) -> bool:
        """Whether the largest class is less than three times the smallest."""
        sizes = np.bincount(self.labels)
        return bool(sizes.max() < 3 * sizes.min())


def task(directory: Path, number: int) -> Task:
    """The task of this number, always the same one."""
    rng = np.random.default_rng(number)
    sets = all_views(directory)
    name = list(sets)[number % len(sets)]
    views = _views(sets[name], rng)
    split = load(directory, name, views)
    classes, labels = np.unique(split.train_labels, return_inverse=True)
    test_labels = np.searchsorted(classes, split.test_labels)
    n = min(int(rng.choice(SIZES)), len(labels))
    kept = _classes(len(classes), n, rng)
    tailed = rng.random() < _TAILED and np.bincount(labels).min() >= LEAST_TO_TAIL
    tail = TAIL if tailed else 1
    share = _shares(labels, kept, tail)
    rows = _draw(labels, share, n, rng)
    test_rows = _draw(test_labels, share, MOST_TEST, rng)
    group = np.full(len(classes), -1)
    merged = rng.random() < _MERGED
    group[kept] = np.arange(len(kept)) // 2 if merged else np.arange(len(kept))
    return Task(
        number,
        name,
        split.train[rows],
        split.test[test_rows],
        group[labels[rows]],
        group[test_labels[test_rows]],
        int(group.max()) + 1,
        merged,
        tail,
    )


def tasks(directory: Path, count: int) -> Iterator[Task]:
    return (task(directory, number) for number in range(count))


def _views(names: list[str], rng: np.random.Generator) -> list[str]:
    single = rng.random() < _SINGLE or len(names) == 1
    count = 1 if single else int(rng.integers(2, len(names) + 1))
    return sorted(rng.choice(names, count, replace=False).tolist(), key=names.index)


def _classes(n_classes: int, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Which classes stay: all, or some of them, so that there are samples enough."""
    most = max(3, min(n_classes, n // LEAST_PER_CLASS))
    count = most
    if rng.random() < _FEWER:
        count = int(rng.integers(max(3, most // 4), most + 1))
    return rng.permutation(n_classes)[:count]


def _shares(
    labels: NDArray[np.int64], kept: NDArray[np.int64], tail: int
) -> NDArray[np.float64]:
    """What part of each class may be drawn, (classes,): none of those that go."""
    sizes = np.bincount(labels)
    share = np.zeros(len(sizes))
    share[kept] = 1.0
    if tail > 1:
        wanted = tail ** -np.linspace(0, 1, len(kept))
        room = (sizes[kept] / wanted).min()
        share[kept] = wanted * room / sizes[kept]
    return share


def _draw(
    labels: NDArray[np.int64],
    share: NDArray[np.float64],
    most: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Rows, rising, at most so many, of each class its share and two at least."""
    sizes = np.bincount(labels, minlength=len(share)) * share
    scale = min(1.0, most / sizes.sum())
    rows = []
    for c in np.flatnonzero(share):
        members = rng.permutation(np.flatnonzero(labels == c))
        rows.append(members[: max(2, round(sizes[c] * scale))])
    return np.sort(np.concatenate(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--count", type=int, default=200)
    options = parser.parse_args()
    for each in tasks(options.data, options.count):
        print(each.name, "balanced" if each.is_balanced else "unbalanced")


if __name__ == "__main__":
    main()
