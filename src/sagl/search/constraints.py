"""What annealing is to keep to, when somebody has said something of single samples.

Samples that are linked are one group, and a group has one row of soft labels. A group
may be put into some clusters only: into one, if its label is known. Groups that are
apart give way to each other: the surer one comes first, and the other one has what is
left. Annealing that is given constraints applies them in each step; regressions and the
graph then carry them to all other samples.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

_LEAST = 1e-9  # what is left of a row, to be scaled to sum to one


@dataclass(frozen=True)
class Constraints:
    """Of some samples, the rows of annealing.

    Parameters
    ----------
    rows, group : Tensor of shape (r,)
        The samples, and the group of each, 0 to G − 1.
    allowed : Tensor of shape (G, C), of bool
        Into which clusters each group may be put; there is one for each.
    apart : sequence of sets of int, one per group
        The groups that it must not share a cluster with.
    emphasis : Tensor of shape (n,)
        As how many samples each counts where others learn from it.
    shares : Tensor of shape (C,), optional
        Sizes that clusters are brought close to, of sum one, where sizes are balanced;
        by default all the same.
    """

    rows: Tensor
    group: Tensor
    allowed: Tensor
    apart: Sequence[Collection[int]]
    emphasis: Tensor
    shares: Tensor | None = None

    def to(self, device: torch.device) -> Constraints:
        """The same on a device."""
        return replace(
            self,
            rows=self.rows.to(device),
            group=self.group.to(device),
            allowed=self.allowed.to(device),
            emphasis=self.emphasis.to(device),
            shares=None if self.shares is None else self.shares.to(device),
        )

    def within(self, p: Tensor) -> Tensor:
        """What speaks for clusters, (n, C): one row per group, −∞ where it may not."""
        if len(self.rows) == 0:
            return p
        G, C = self.allowed.shape
        sums = p.new_zeros(G, C).index_add_(0, self.group, p[self.rows])
        sizes = torch.bincount(self.group, minlength=G)[:, None]
        of_groups = (sums / sizes).masked_fill(~self.allowed, -torch.inf)
        return p.index_copy(0, self.rows, of_groups[self.group])

    def kept_apart(self, Y: Tensor) -> Tensor:
        """Soft labels (n, C), where groups that are apart have given way."""
        if not any(self.apart):
            return Y
        q = self._of_groups(Y)
        done: set[int] = set()
        for group in self._surest_first(q):
            before = [other for other in self.apart[group] if other in done]
            if before:
                left = q[group] * (1 - q[before]).clamp_min(0).prod(dim=0)
                if float(left.sum()) > _LEAST:
                    q[group] = left / left.sum()
            done.add(group)
        return Y.index_copy(0, self.rows, q[self.group])

    def decided(self, Y: Tensor) -> Tensor:
        """Labels (n,) from soft labels, all constraints kept that can be."""
        labels = Y.argmax(dim=1)
        if len(self.rows) == 0:
            return labels
        q = self._of_groups(Y).masked_fill(~self.allowed, -1.0)
        chosen = q.argmax(dim=1)
        done: set[int] = set()
        for group in self._surest_first(q):
            before = [other for other in self.apart[group] if other in done]
            if before:
                left = q[group].index_fill(0, chosen[before], -1.0)
                # Where nothing is left, two that should be apart are not.
                if float(left.max()) >= 0:
                    chosen[group] = left.argmax()
            done.add(group)
        return labels.index_copy(0, self.rows, chosen[self.group])

    def _of_groups(self, Y: Tensor) -> Tensor:
        """The one row that the samples of each group have, (G, C)."""
        q = Y.new_zeros(self.allowed.shape)
        return q.index_copy_(0, self.group, Y[self.rows])

    def _surest_first(self, q: Tensor) -> list[int]:
        """Groups that are to be apart from others."""
        order: list[int] = q.amax(dim=1).argsort(descending=True, stable=True).tolist()
        return [group for group in order if self.apart[group]]


def by_sizes(labels: Tensor, n_clusters: int) -> Constraints:
    """Nothing but that balanced clusters are brought close to the sizes of labels."""
    none = torch.empty(0, dtype=torch.int64, device=labels.device)
    sizes = torch.bincount(labels, minlength=n_clusters).clamp_min(1).float()
    return Constraints(
        none,
        none,
        torch.empty(0, n_clusters, dtype=torch.bool, device=labels.device),
        [],
        torch.ones(len(labels), device=labels.device),
        sizes / sizes.sum(),
    )


def constraints(
    n_samples: int,
    n_clusters: int,
    *,
    allowed: Mapping[int, Collection[int]],
    linked: Sequence[Sequence[int]] = (),
    apart: Sequence[tuple[int, int]] = (),
    emphasis: Mapping[int, float] | None = None,
    shares: Tensor | None = None,
) -> Constraints:
    """From what is said of samples, by their rows.

    ``allowed`` has the clusters that a sample may be put into, of those for which that
    is said. Groups in ``linked`` have no sample in common.
    """
    members = [list(rows) for rows in linked]
    known = {row: g for g, rows in enumerate(members) for row in rows}
    for row in (*allowed, *(row for pair in apart for row in pair)):
        if row not in known:
            known[row] = len(members)
            members.append([row])
    may = torch.ones(len(members), n_clusters, dtype=torch.bool)
    for row, clusters in allowed.items():
        some = torch.zeros(n_clusters, dtype=torch.bool)
        some[list(clusters)] = True
        may[known[row]] &= some
    others: list[set[int]] = [set() for _ in members]
    for one, other in apart:
        others[known[one]].add(known[other])
        others[known[other]].add(known[one])
    weight = torch.ones(n_samples)
    for row, factor in (emphasis or {}).items():
        weight[row] = factor
    rows = [row for group in members for row in group]
    groups = [g for g, group in enumerate(members) for _ in group]
    return Constraints(
        torch.tensor(rows, dtype=torch.int64),
        torch.tensor(groups, dtype=torch.int64),
        may,
        [sorted(each) for each in others],
        weight,
        shares,
    )
