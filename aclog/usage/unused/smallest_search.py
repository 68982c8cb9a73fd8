"""An exact search for a smallest set that satisfies clauses, in bounded steps."""

from collections.abc import Iterator, Mapping, Sequence

from attrs import define

from aclog.usage.unused.keep_clauses import NO_PREMISE, KeepClause


@define(eq=False, kw_only=True)
class SmallestSearch:
    """Branches and bounds: what satisfies a clause keeps its first member, or not that one but the second, and so on.

    Clauses that have no member in common need a member each, which tells when a branch is no better.
    """

    clauses: Sequence[KeepClause]
    rank: Mapping[int, int]
    """The order of members: which of them to try first."""
    best: set[int]
    """The smallest set so far."""
    looks_left: int
    """How many more times a clause may be looked at."""

    def smallest(self) -> set[int]:
        """Return a smallest set, or the best of those found with the looks that are left."""
        todo: list[tuple[set[int], set[int]]] = [(set(), set())]
        while todo and self.looks_left > 0:
            kept, dropped = todo.pop()
            broken = self._broken(kept, dropped)
            if not broken:
                self.best = kept if len(kept) < len(self.best) else self.best
            elif broken[0] and len(kept) + _apart(broken) < len(self.best):
                todo += reversed(list(self._branches(broken[0], kept, dropped)))
        return self.best

    def _branches(
        self, members: tuple[int, ...], kept: set[int], dropped: set[int]
    ) -> Iterator[tuple[set[int], set[int]]]:
        dropped = set(dropped)
        for number in sorted(members, key=self.rank.__getitem__):
            yield kept | {number}, set(dropped)
            dropped.add(number)

    def _broken(self, kept: set[int], dropped: set[int]) -> list[tuple[int, ...]]:
        """Return the members to choose from of each clause that holds and is not satisfied, the fewest first."""
        self.looks_left -= len(self.clauses)
        found = {
            tuple(number for number in clause.members if number not in dropped)
            for clause in self.clauses
            if (clause.premise == NO_PREMISE or clause.premise in kept) and kept.isdisjoint(clause.members)
        }
        return sorted(found, key=lambda members: (len(members), members))


def _apart(broken: Sequence[tuple[int, ...]]) -> int:
    """Return how many of these clauses, taken in order, have no member in common."""
    taken: set[int] = set()
    count = 0
    for members in broken:
        if taken.isdisjoint(members):
            taken.update(members)
            count += 1
    return count
