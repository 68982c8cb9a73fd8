"""The fewest ACLs that must stay, so that the most can go together.

That is a smallest hitting set, whose clauses may hold on a premise only. Clauses fall apart into groups that share no
ACL; in each, what is forced is kept first, then the best of several greedy answers is taken, and an exact search looks
for a smaller one until it is sure or has looked at clauses MOST_LOOKS times. The answer is never larger than a greedy
one, and depends on nothing but the arguments.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from heapq import heappop, heappush

from aclog.usage.unused.keep_clauses import NO_PREMISE, KeepClause
from aclog.usage.unused.smallest_search import SmallestSearch

MOST_LOOKS = 200_000
"""How often the searches look at a clause, all groups together: well under a second."""


def fewest_kept(clauses: Iterable[KeepClause], worth: Callable[[int], int]) -> set[int]:
    """Return the ACLs to keep; of equals those of the higher `worth`, such as the number of accesses they matched."""
    kept, left = _forced(set(clauses))
    looks = MOST_LOOKS
    for group in sorted(_apart(left), key=len):
        greedy, rank = _greedily(group, worth)
        search = SmallestSearch(clauses=group, rank=rank, best=greedy, looks_left=looks)
        kept |= search.smallest()
        looks = search.looks_left
    return kept


def _forced(clauses: set[KeepClause]) -> tuple[set[int], set[KeepClause]]:
    """Return what stays in any case, and the clauses that this does not settle."""
    kept: set[int] = set()
    while new := {each.members[0] for each in clauses if each.premise == NO_PREMISE and len(each.members) == 1} - kept:
        kept |= new
        left = (each for each in clauses if kept.isdisjoint(each.members))
        clauses = {KeepClause(NO_PREMISE, each.members) if each.premise in kept else each for each in left}
    return kept, clauses


def _apart(clauses: Collection[KeepClause]) -> list[list[KeepClause]]:
    """Return the clauses in groups that share no ACL, in the order of their smallest ACLs."""
    leader: dict[int, int] = {}

    def find(number: int) -> int:
        """Return the ACL that stands for the group of this one."""
        while (above := leader.setdefault(number, number)) != number:
            leader[number] = leader[above]
            number = above
        return number

    for clause in clauses:
        first = find(clause.members[0])
        for each in (*clause.members[1:], *_premises(clause)):
            low, high = sorted((first, find(each)))
            leader[high] = first = low
    groups: dict[int, list[KeepClause]] = defaultdict(list)
    for clause in sorted(clauses):
        groups[find(clause.members[0])].append(clause)
    return [groups[number] for number in sorted(groups)]


def _greedily(clauses: Sequence[KeepClause], worth: Callable[[int], int]) -> tuple[set[int], dict[int, int]]:
    """Return the best of the greedy answers, and the ACLs of the clauses ranked from the one of the highest worth."""
    numbers = {number for clause in clauses for number in (*clause.members, *_premises(clause))}
    dearest = sorted(numbers, key=lambda number: (-worth(number), number))
    rank = {number: at for at, number in enumerate(dearest)}
    starts = (numbers, _taken_by_count(clauses, rank))
    return min((_thinned(clauses, start, dearest[::-1]) for start in starts), key=len), rank


def _thinned(clauses: Sequence[KeepClause], start: Collection[int], order: Sequence[int]) -> set[int]:
    """Return what is left when everything goes, in this order, that can go by itself; again until nothing can."""
    kept, of_member, of_premise = set(start), defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for at, clause in enumerate(clauses):
        for number in clause.members:
            of_member[number].append(at)
        of_premise[clause.premise].append(at)
    holds = [each.premise == NO_PREMISE or each.premise in kept for each in clauses]
    left = [sum(number in kept for number in each.members) for each in clauses]
    changed = True
    while changed:
        changed = False
        for number in order:
            if number in kept and all(left[at] > 1 or not holds[at] for at in of_member[number]):
                kept.remove(number)
                changed = True
                for at in of_member[number]:
                    left[at] -= 1
                for at in of_premise[number]:
                    holds[at] = False
    return kept


def _taken_by_count(clauses: Sequence[KeepClause], rank: dict[int, int]) -> set[int]:
    """Return what is kept when the ACL that settles the most clauses is taken, again and again."""
    kept: set[int] = set()
    of_member: dict[int, set[KeepClause]] = defaultdict(set)
    of_premise: dict[int, list[KeepClause]] = defaultdict(list)
    for clause in clauses:
        of_premise[clause.premise].append(clause)
    queue: list[tuple[int, int, int]] = []
    premise = NO_PREMISE
    while True:
        opened = [each for each in of_premise.pop(premise, ()) if kept.isdisjoint(each.members)]
        for clause in opened:
            for number in clause.members:
                of_member[number].add(clause)
        for number in {number for clause in opened for number in clause.members}:
            heappush(queue, (-len(of_member[number]), rank[number], number))
        # an entry may be out of date, but then it promises too much, and its number is in the queue again
        while queue and -queue[0][0] != len(of_member[queue[0][2]]):
            _, place, number = heappop(queue)
            if of_member[number]:
                heappush(queue, (-len(of_member[number]), place, number))
        if not queue:
            return kept
        premise = heappop(queue)[2]
        kept.add(premise)
        for clause in list(of_member[premise]):
            for number in clause.members:
                of_member[number].discard(clause)


def _premises(clause: KeepClause) -> tuple[int, ...]:
    return () if clause.premise == NO_PREMISE else (clause.premise,)
