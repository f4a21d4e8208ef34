"""Things that are linked, directly or by a chain."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import pairwise


class Links:
    """The groups that chains of links make of whole numbers.

    >>> links = Links([[1, 2], [5, 6], [2, 3]])
    >>> links.groups, links.path(1, 3)
    ([[1, 2, 3], [5, 6]], [1, 2, 3])
    """

    def __init__(self, linked: Sequence[Sequence[int]]) -> None:
        self._near: dict[int, list[int]] = {}
        for members in linked:
            for one, other in pairwise(members):
                self._near.setdefault(one, []).append(other)
                self._near.setdefault(other, []).append(one)
        self.groups: list[list[int]] = []
        self._home: dict[int, int] = {}
        for member in self._near:
            if member in self._home:
                continue
            group = [*self._reached(member)]
            self._home |= dict.fromkeys(group, group[0])
            self.groups.append(group)

    def home(self, member: int) -> int:
        """The same for all of a group."""
        return self._home.get(member, member)

    def path(self, one: int, other: int) -> list[int]:
        """A shortest chain between two of a group."""
        before = self._reached(one)
        chain = [other]
        while chain[-1] != one:
            chain.append(before[chain[-1]])
        return chain[::-1]

    def _reached(self, start: int) -> dict[int, int]:
        """All that can be reached, in order, and from where each was."""
        before, queue = {start: start}, deque([start])
        while queue:
            member = queue.popleft()
            for other in self._near.get(member, ()):
                if other not in before:
                    before[other] = member
                    queue.append(other)
        return before
