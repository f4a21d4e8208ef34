"""What came after a fit: corrections by people, updates with new samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sagl.schema import Positive, plain

# Of corrections, for one and for several.
_KINDS = {
    "labels": ("label", "labels"),
    "must_link": ("must-link", "must-links"),
    "cannot_link": ("cannot-link", "cannot-links"),
    "merge": ("merger", "mergers"),
    "split": ("split", "splits"),
    "wrong": ("marked as wrong", "marked as wrong"),
}
CORRECTIONS = tuple(_KINDS)


class Corrected(NamedTuple):
    """What people said of training samples, by their rows, and a fit has kept to.

    Attributes
    ----------
    given : dict of str to int
        How many corrections of each kind there were.
    labels, wrong : tuple of pairs
        Row and the cluster that the sample is in, or is not in.
    must_link : tuple of tuples
        Rows of samples of one cluster.
    cannot_link : tuple of pairs
        Rows of two samples of different clusters.
    unmet : int
        Pairs that should be apart and could not be kept so.
    overruled : int
        Samples that the model by itself would put elsewhere.
    moved : int
        Samples that are in another cluster than before the last refit.
    digests : tuple of str
        Of the features of all these samples: by them scores leave them out.
    """

    given: dict[str, int]
    labels: tuple[tuple[int, int], ...]
    wrong: tuple[tuple[int, int], ...]
    must_link: tuple[tuple[int, ...], ...]
    cannot_link: tuple[tuple[int, int], ...]
    unmet: int
    overruled: int
    moved: int
    digests: tuple[str, ...]

    @property
    def rows(self) -> list[int]:
        """Of all samples that something was said of."""
        pairs = [row for row, _ in (*self.labels, *self.wrong)]
        links = [row for rows in (*self.must_link, *self.cannot_link) for row in rows]
        return sorted({*pairs, *links})

    def renumbered(
        self, place: Sequence[tuple[int, ...]], labels: Sequence[int]
    ) -> Corrected:
        """The same when each cluster has other numbers, and samples these labels."""
        return self._replace(
            labels=tuple((row, int(labels[row])) for row, _ in self.labels),
            wrong=tuple((row, new) for row, k in self.wrong for new in place[k]),
        )

    def in_words(self) -> str:
        """One line for people: how many of which kind."""
        words = [
            f"{count:,} {_KINDS[kind][count != 1]}"
            for kind, count in self.given.items()
            if count
        ]
        text = f"{sum(self.given.values()):,} corrections: {', '.join(words)}"
        return f"{text}; {self.unmet:,} not kept" if self.unmet else text


class Stream(NamedTuple):
    """Of a model that took in new samples after its fit.

    Attributes
    ----------
    seen : int
        Samples of the fit and of all updates.
    updates : int
    whole : bool
        Whether the earlier samples were there at each update. If not, all that is known
        of them are the anchors, and ``labels_`` are those of the last samples alone.
    """

    seen: Positive
    updates: Positive
    whole: bool


class NewCluster(NamedTuple):
    """A cluster that new samples made, and what speaks for it."""

    number: int
    size: int  # samples looked at, the earlier ones with them
    earlier: int  # of these, samples that were there before
    recall: float  # share that regressions know as such, each sample left out
    gain: float  # nats that views and neighbours tell more than without it
    typical: list[Any]


class ViewDrift(NamedTuple):
    """How far a view's new samples are from the earlier ones."""

    view: str
    distance: float  # energy coefficient, 0 alike to 1
    p_value: float  # of as much by chance, by permutation


class ClusterDrift(NamedTuple):
    """What became of a cluster."""

    number: int
    name: str
    before: float  # its share of earlier samples, as they were
    earlier: float  # the same, as they are now
    new: float  # its share of new samples
    shift: float | None  # of its mean, in deviations of its samples; None without any


class Update(NamedTuple):
    """What taking in new samples has changed.

    Attributes
    ----------
    n_new, n_earlier : int
        New samples, and earlier ones that were there to be looked at.
    moved : float
        The share of those earlier ones that are in another cluster now.
    new_clusters : tuple of NewCluster
    views : tuple of ViewDrift
    clusters : tuple of ClusterDrift
        Of the clusters that were there before.
    """

    n_new: int
    n_earlier: int
    moved: float
    new_clusters: tuple[NewCluster, ...]
    views: tuple[ViewDrift, ...]
    clusters: tuple[ClusterDrift, ...]

    def as_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return dict(plain(self))
