"""Every number that decides how clusters are searched for, with what speaks for it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from sagl.checks import integer, number


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """The settings of the search, saved with a run.

    What each was measured to be worth is in ``docs/algorithm.md``.

    Parameters
    ----------
    rows, rows_per_cluster : int
        The search looks at so many samples, drawn at random, or so many per cluster if
        that is more. They are also those that new samples attend to, and by which
        confidence is calibrated. Where there are at least three times as many samples,
        what was found is annealed once more among four times as many, and heads are
        fitted to those.
    starts : int
        k-means partitions that are annealed, per restart.
    proposals : int
        Split-and-merge moves that are tried on the best partition, in each of two
        rounds: the √proposals most promising merges with as many splits. Fewer where
        each costs more than among 2,500 samples in 400 clusters.
    steps : int
        Of annealing. From labels that are there it takes two fifths of them.
    hot, warm, cold : float
        The temperature that annealing begins with, from labels that are there, and ends
        with.
    smoothing : float
        What labels that are there give up to all clusters before they are annealed.
    penalty : float
        Of the ridge regressions, in units of the mean squared length of a row.
    neighbour_share : float
        How many of the samples of an average cluster are neighbours in the graph along
        which clusters are drawn; at least 5, at most 50.
    graph_weight : float
        Of the neighbours beside the regressions when clusters are drawn.
    view_power : float
        How sharply views are weighted by what is not known of the others.
    trust : float
        Of log odds: clusters of one sample are not independent.
    size_power : float
        Clusters of any sizes are worth their information per so much of their entropy.
    size_margin : float
        How much more clearly clusters of any sizes must be told apart to replace
        balanced ones (``evidence.clarity``).
    attention : float
        How much of what neighbours tell is told by the network's attention graph.
    sharpness : float
        The attention score of two samples of the same direction, at the start.
    vote : float
        What neighbours of one cluster say in a prediction, in deviations of what the
        heads say.
    """

    rows: int = 5_000
    rows_per_cluster: int = 20
    starts: int = 8
    proposals: int = 400
    steps: int = 100
    hot: float = 1.0
    warm: float = 0.3
    cold: float = 0.1
    smoothing: float = 0.3
    penalty: float = 10.0
    neighbour_share: float = 1 / 3
    graph_weight: float = 0.5
    view_power: float = 3.0
    trust: float = 0.5
    size_power: float = 0.75
    size_margin: float = 0.07
    attention: float = 0.5
    sharpness: float = 25.0
    vote: float = 1.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(field.default, int):
                integer(field.name, value, 1)
            else:
                number(field.name, value, 0)

    @classmethod
    def of(cls, value: SearchConfig | dict[str, Any] | None) -> SearchConfig:
        """From what a user or a saved run gives."""
        if isinstance(value, SearchConfig):
            return value
        unknown = sorted(set(value or ()) - {field.name for field in fields(cls)})
        if unknown:
            known = ", ".join(field.name for field in fields(cls))
            raise ValueError(f"search has no {unknown[0]!r}; it has {known}")
        return cls(**(value or {}))

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def rows_of(self, n_clusters: int) -> int:
        """How many samples the search looks at, if there are so many."""
        return max(self.rows, self.rows_per_cluster * n_clusters)

    def wide_rows_of(self, n_samples: int, n_clusters: int) -> int:
        """Among how many of the samples clusters are annealed once more; 0 for none."""
        searched = self.rows_of(n_clusters)
        return min(n_samples, _WIDE * searched) if n_samples >= _WIDER * searched else 0

    def proposals_of(self, n_samples: int, n_clusters: int) -> int:
        """How many moves are tried: a move takes time in proportion to both numbers.

        >>> config = SearchConfig()
        >>> config.proposals_of(5_000, 100), config.proposals_of(20_000, 1000)
        (400, 20)
        """
        return max(
            1, min(self.proposals, self.proposals * _CHEAP // (n_samples * n_clusters))
        )

    def neighbours(self, n_samples: int, n_clusters: int) -> int:
        """How many neighbours a sample has when there are so many clusters.

        >>> SearchConfig().neighbours(3000, 100), SearchConfig().neighbours(60000, 10)
        (10, 50)
        """
        share = round(self.neighbour_share * n_samples / n_clusters)
        return max(_FEWEST, min(_MOST, share))


# Neighbours: fewer say nothing, more make the graph dense and no better.
_FEWEST, _MOST = 5, 50
# Heads of 512 columns want some tens of samples per cluster, and neighbours as many to
# choose from. Of fewer than three times the samples of the search it changes little.
_WIDER, _WIDE = 3, 4
_CHEAP = 1_000_000  # samples times clusters, up to which all moves are tried
