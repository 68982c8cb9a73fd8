"""ACLs of a state that the accesses of a window do not need, and those that can be removed together."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum, StrEnum
from functools import cached_property
from heapq import heappop, heappush
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, Final, NamedTuple, Self, TypeVar

import numpy as np
from attrs import field
from numpy.typing import NDArray

from aclog.authorizer.acl import StandardAcl, StandardAclWithId, code_name, rule_of
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import WILDCARD, WILDCARD_PRINCIPAL, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.index.base import Base
from aclog.authorizer.index.layout import ALLOWED, DENIED, known_type, resource_name, rule_mask, split_pair
from aclog.metalog.columns import Bools, Bytes, Int64s
from aclog.metalog.values import define, frozen
from aclog.usage.window import DAY, AccessSets, UnreadAccesses

# The constraints of a removal that changes no decision of a window, as clauses over the removable ACLs.
#
# An access is evaluated twice: with the ACLs of its own time, where removed ACLs stay as they were, and with those in
# force now. A clause lists ACLs of which one must stay. A clause with a premise applies only if the premise stays: a
# DENY is not needed if every ACL that it overrules is also removed.


NO_PREMISE = -1


class KeepClause(NamedTuple):
    """One of `members` must stay if `premise` does; NO_PREMISE: always."""

    premise: int
    members: tuple[int, ...]


class _Counts(NamedTuple):
    """By set: its lives, those in force now, and those that may go; DENY or ALLOW."""

    all: Int64s
    present: Int64s
    may_go: Int64s


def keep_clauses(sets: AccessSets, *, present: Bools, may_go: Bools) -> set[KeepClause]:
    """Return the clauses of these sets, given by life which are in force now, and which of these are removable.

    A removable ACL was in force in the whole window, so it is in the set of every access that it matches. Other ACLs in
    force now stay, and may match more accesses than their sets contain: the caller keeps a DENY that overrules such an
    ALLOW (`may_open`).
    """
    if not len(sets):
        return set()
    owner = np.repeat(np.arange(len(sets)), np.diff(sets.starts))
    goes, now = may_go[sets.members], present[sets.members]
    denies, allows = (_counts(sets, owner, kind, now, goes) for kind in (sets.denies, ~sets.denies))
    # DENY: no DENY may stay; an ALLOW is overruled by each, at its time or now
    open_now = (denies.may_go > 0) & (denies.present == denies.may_go)
    open_then = open_now & (denies.all == denies.may_go)
    overrules = open_now & (allows.present > allows.may_go) | open_then & (allows.all > allows.may_go)
    overrules_what_may_go = open_now & ~overrules & (allows.may_go > 0)
    # ALLOW: no DENY decides, at its time or now, and no other ALLOW stays
    free_then = (denies.all == 0) & (allows.all == allows.may_go)
    free_now = (denies.present == 0) & (allows.present == allows.may_go)
    allowed = (allows.may_go > 0) & (free_then | free_now)
    clauses = {KeepClause(NO_PREMISE, each) for each in _members(sets, owner, overrules, sets.denies & goes)}
    clauses |= {KeepClause(NO_PREMISE, each) for each in _members(sets, owner, allowed, ~sets.denies & goes)}
    overruling = _members(sets, owner, overrules_what_may_go, sets.denies & goes)
    overruled = _members(sets, owner, overrules_what_may_go, ~sets.denies & goes)
    for those, whom in zip(overruling, overruled, strict=True):
        clauses |= {KeepClause(premise, those) for premise in whom}
    return clauses


def _counts(sets: AccessSets, owner: Int64s, kind: Bools, present: Bools, may_go: Bools) -> _Counts:
    count = len(sets)
    return _Counts(*(np.bincount(owner[kind & each], minlength=count) for each in (True, present, may_go)))


def _members(sets: AccessSets, owner: Int64s, which: Bools, eligible: Bools) -> Iterator[tuple[int, ...]]:
    """Yield the eligible members of each selected set, all of which have some, ascending."""
    at = np.flatnonzero(eligible & which[owner])
    order = at[np.lexsort((sets.members[at], owner[at]))]
    members = sets.members[order].tolist()
    starts = np.flatnonzero(np.diff(owner[order], prepend=-1)).tolist()
    for start, end in pairwise([*starts, len(members)]):
        yield tuple(members[start:end])


def presence_clauses(patterns: Int64s, lives: Int64s, may_go: Bools) -> set[KeepClause]:
    """Return the clauses that keep an ACL on each resource pattern, given by ACL, of those as old as the window.

    With allow.everyone.if.no.acl.found, any ACL on a resource denies all that no ACL allows, so the last one must not
    be removed. A younger one denied nothing before it was added.
    """
    order = np.lexsort((lives, patterns))
    members, goes = lives[order].tolist(), may_go[order]
    starts = np.flatnonzero(np.diff(patterns[order], prepend=-1))
    if not len(starts):
        return set()
    emptied = np.logical_and.reduceat(goes, starts).tolist()
    spans = pairwise([*starts.tolist(), len(members)])
    groups = (tuple(members[start:end]) for (start, end), empty in zip(spans, emptied, strict=True) if empty)
    return {KeepClause(NO_PREMISE, each) for each in groups}


# Lookup of 16-byte keys among others: a million in a tenth of a second.


def places_of(keys: Bytes, among: Bytes) -> Int64s:
    """Return for each row of `keys` the row of `among` that equals it, -1 if none does; (n, 16) and (m, 16).

    The rows of `among` are distinct.
    """
    if not len(among):
        return np.full(len(keys), -1, np.int64)
    (among_high, among_low), (key_high, key_low) = _halves(among), _halves(keys)
    order = np.argsort(among_high)
    ordered = among_high[order]
    # Random keys almost never share their first halves; numbered ones do.
    if (ordered[1:] == ordered[:-1]).any():
        order = np.argsort(_whole(among))
        at = np.searchsorted(_whole(among)[order], _whole(keys))
    else:
        by_key = np.argsort(key_high)  # bisections in ascending order stay in the cache
        at = np.empty(len(keys), np.int64)
        at[by_key] = np.searchsorted(ordered, key_high[by_key])
    places = order[np.minimum(at, len(among) - 1)]
    return np.where((among_high[places] == key_high) & (among_low[places] == key_low), places, -1)


def _halves(keys: Bytes) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    numbers = np.ascontiguousarray(keys).view(">u8").reshape(-1, 2)
    return numbers[:, 0].astype(np.uint64), numbers[:, 1].astype(np.uint64)


def _whole(keys: Bytes) -> NDArray[Any]:
    return np.ascontiguousarray(keys).view("S16").reshape(-1)


# DENY rules that may keep a younger ALLOW from granting access.
#
# The matches of a younger ALLOW are known only since it exists: it may allow requests that an older DENY overruled.


MOST_PAIRS = 1 << 18
"""The most pairs of a DENY and an ALLOW that are compared: a tenth of a second."""


def may_open(denies: Sequence[StandardAcl], younger: Iterable[StandardAcl]) -> list[bool]:
    """Return for each DENY whether one of these ALLOWs may match a request that it matches; True if in doubt."""
    of_type: dict[int, list[StandardAcl]] = defaultdict(list)
    for acl in younger:
        of_type[acl.resource_type].append(acl)
    return [any(_overlap(deny, allow) for allow in of_type[deny.resource_type]) for deny in denies]


def _overlap(deny: StandardAcl, allow: StandardAcl) -> bool:
    return (
        _operations_overlap(deny, allow)
        and _same_or_all(deny.principal, allow.principal, WILDCARD_PRINCIPAL)
        and (_same_or_all(deny.host, allow.host, WILDCARD) or "/" in deny.host + allow.host)
        and (_covers(deny, allow) or _covers(allow, deny))
    )


def _operations_overlap(deny: StandardAcl, allow: StandardAcl) -> bool:
    denied = rule_mask(deny.operation, deny.permission_type) // DENIED
    return bool(denied & rule_mask(allow.operation, allow.permission_type) // ALLOWED)


def _same_or_all(one: str, other: str, everything: str) -> bool:
    return one == other or everything in (one, other)


def _covers(one: StandardAcl, other: StandardAcl) -> bool:
    """Return whether one ACL covers the first name of the other."""
    if one.resource_name in {other.resource_name, WILDCARD}:
        return True
    return one.pattern_type != PatternType.LITERAL and other.resource_name.startswith(one.resource_name)


# Gaps: times for which a broker logged nothing, so that its accesses are unknown.


@frozen(kw_only=True)
class Silence:
    """A gap between two lines of a broker; times in us since 1970."""

    broker: str | None
    """None for lines without a broker."""
    since: int | None
    """The last line before, or None."""
    to: int | None
    """The first line after, or None."""


@frozen(eq=False, kw_only=True)
class HeardHours:
    """The hours in which a broker logged anything, ascending: first and last line of each, in us since 1970."""

    first: Int64s
    last: Int64s


HOUR = 3_600_000_000
"""In us; a shorter gap may be missed, since the index has hours."""


def silences(broker_hours: Mapping[str | None, HeardHours], start: int, until: int, *, gap: int) -> Iterator[Silence]:
    """Yield the gaps of at least `gap` in the window from `start` to `until` (us since 1970), broker by broker.

    A gap is measured inside the window. A broker is expected to log all the time, even before its first line and after
    its last one.
    """
    for broker in sorted(broker_hours, key=lambda name: (name is not None, name or "")):
        hours = broker_hours[broker]
        lasts = np.concatenate(([np.iinfo(np.int64).min], hours.last))
        firsts = np.concatenate((hours.first, [np.iinfo(np.int64).max]))
        begins, ends = np.maximum(lasts, start), np.minimum(firsts, until)
        for at in np.flatnonzero((ends > begins) & (ends - begins >= gap)).tolist():
            yield Silence(
                broker=broker,
                since=None if at == 0 else int(lasts[at]),
                to=None if at == len(hours.first) else int(firsts[at]),
            )


def first_heard(all_hours: Iterable[HeardHours], start: int) -> int | None:
    """Return the time of the first line of any broker from `start` on, or None."""
    times = []
    for hours in all_hours:
        at = int(np.searchsorted(hours.last, start))
        if at < len(hours.first):
            times.append(max(int(hours.first[at]), start))
    return min(times, default=None)


# An exact search for a smallest set that satisfies clauses, with a limited number of steps.


@define(eq=False, kw_only=True)
class SmallestSearch:
    """Branch and bound: a solution has the first member of a clause, or the second one but not the first, and so on.

    Clauses without a common member need a member each, which bounds a branch.
    """

    clauses: Sequence[KeepClause]
    rank: Mapping[int, int]
    """The order of members: lower ranks are tried first."""
    best: set[int]
    """The smallest set so far."""
    looks_left: int
    """The remaining number of clause evaluations."""

    def smallest(self) -> set[int]:
        """Return a smallest set, or the best one within the limit."""
        todo: list[tuple[set[int], set[int]]] = [(set(), set())]
        while todo and self.looks_left > 0:
            keep, dropped = todo.pop()
            broken = self._broken(keep, dropped)
            if not broken:
                self.best = keep if len(keep) < len(self.best) else self.best
            elif broken[0] and len(keep) + _apart(broken) < len(self.best):
                todo += reversed(list(self._branches(broken[0], keep, dropped)))
        return self.best

    def _branches(
        self, members: tuple[int, ...], keep: set[int], dropped: set[int]
    ) -> Iterator[tuple[set[int], set[int]]]:
        dropped = set(dropped)
        for number in sorted(members, key=self.rank.__getitem__):
            yield keep | {number}, set(dropped)
            dropped.add(number)

    def _broken(self, keep: set[int], dropped: set[int]) -> list[tuple[int, ...]]:
        """Return the possible members of each clause that applies and is not satisfied, the fewest first."""
        self.looks_left -= len(self.clauses)
        broken = {
            tuple(number for number in clause.members if number not in dropped)
            for clause in self.clauses
            if (clause.premise == NO_PREMISE or clause.premise in keep) and keep.isdisjoint(clause.members)
        }
        return sorted(broken, key=lambda members: (len(members), members))


def _apart(broken: Sequence[tuple[int, ...]]) -> int:
    """Return how many of these clauses, taken in order, have no common member."""
    used: set[int] = set()
    count = 0
    for members in broken:
        if used.isdisjoint(members):
            used.update(members)
            count += 1
    return count


# The fewest ACLs that must stay, so that the most can be removed together.
#
# This is a smallest hitting set, in which clauses may have a premise. Clauses are split into groups without a common
# ACL; in each, forced ACLs are kept first, then the best of several greedy solutions is taken, and an exact search
# looks for a smaller one until it has a proof or has evaluated clauses MOST_LOOKS times. The result is never larger
# than a greedy one, and depends only on the arguments.


MOST_LOOKS = 200_000
"""The most clause evaluations of the searches in all groups together: well under a second."""


def fewest_kept(clauses: Iterable[KeepClause], worth: Callable[[int], int]) -> set[int]:
    """Return the ACLs to keep; of equals those with the higher `worth`, such as the number of accesses they matched."""
    keep, unsettled = _forced(set(clauses))
    looks = MOST_LOOKS
    for group in sorted(_separate_clauses(unsettled), key=len):
        greedy, rank = _greedily(group, worth)
        search = SmallestSearch(clauses=group, rank=rank, best=greedy, looks_left=looks)
        keep |= search.smallest()
        looks = search.looks_left
    return keep


def _forced(clauses: set[KeepClause]) -> tuple[set[int], set[KeepClause]]:
    """Return the forced ACLs, and the clauses that they do not satisfy."""
    keep: set[int] = set()
    while new := {each.members[0] for each in clauses if each.premise == NO_PREMISE and len(each.members) == 1} - keep:
        keep |= new
        unsettled = (each for each in clauses if keep.isdisjoint(each.members))
        clauses = {KeepClause(NO_PREMISE, each.members) if each.premise in keep else each for each in unsettled}
    return keep, clauses


def _separate_clauses(clauses: Collection[KeepClause]) -> list[list[KeepClause]]:
    """Return the clauses in groups without a common ACL, in the order of their smallest ACLs."""
    leader: dict[int, int] = {}

    def find(number: int) -> int:
        """Return the representative of an ACL's group."""
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
    """Return the best greedy solution, and the rank of the ACLs, highest worth first."""
    numbers = {number for clause in clauses for number in (*clause.members, *_premises(clause))}
    dearest = sorted(numbers, key=lambda number: (-worth(number), number))
    rank = {number: at for at, number in enumerate(dearest)}
    starts = (numbers, _taken_by_count(clauses, rank))
    return min((_thinned(clauses, start, dearest[::-1]) for start in starts), key=len), rank


def _thinned(clauses: Sequence[KeepClause], start: Collection[int], order: Sequence[int]) -> set[int]:
    """Return a minimal solution: remove in this order every ACL that can be removed, until none can."""
    keep, of_member, of_premise = set(start), defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for at, clause in enumerate(clauses):
        for number in clause.members:
            of_member[number].append(at)
        of_premise[clause.premise].append(at)
    holds = [each.premise == NO_PREMISE or each.premise in keep for each in clauses]
    counts = [sum(number in keep for number in each.members) for each in clauses]
    changed = True
    while changed:
        changed = False
        for number in order:
            if number in keep and all(counts[at] > 1 or not holds[at] for at in of_member[number]):
                keep.remove(number)
                changed = True
                for at in of_member[number]:
                    counts[at] -= 1
                for at in of_premise[number]:
                    holds[at] = False
    return keep


def _taken_by_count(clauses: Sequence[KeepClause], rank: dict[int, int]) -> set[int]:
    """Return a greedy solution: add the ACL that satisfies the most clauses, until all are satisfied."""
    keep: set[int] = set()
    of_member: dict[int, set[KeepClause]] = defaultdict(set)
    of_premise: dict[int, list[KeepClause]] = defaultdict(list)
    for clause in clauses:
        of_premise[clause.premise].append(clause)
    queue: list[tuple[int, int, int]] = []
    premise = NO_PREMISE
    while True:
        opened = [each for each in of_premise.pop(premise, ()) if keep.isdisjoint(each.members)]
        for clause in opened:
            for number in clause.members:
                of_member[number].add(clause)
        for number in {number for clause in opened for number in clause.members}:
            heappush(queue, (-len(of_member[number]), rank[number], number))
        # an entry may be stale, but then its count is too high, and the ACL is in the queue again
        while queue and -queue[0][0] != len(of_member[queue[0][2]]):
            _, place, number = heappop(queue)
            if of_member[number]:
                heappush(queue, (-len(of_member[number]), place, number))
        if not queue:
            return keep
        premise = heappop(queue)[2]
        keep.add(premise)
        for clause in list(of_member[premise]):
            for number in clause.members:
                of_member[number].discard(clause)


def _premises(clause: KeepClause) -> tuple[int, ...]:
    return () if clause.premise == NO_PREMISE else (clause.premise,)


# The ACLs of a state by number: those of the base that are in force, then those of the overlay.


@frozen(eq=False, kw_only=True)
class StateRules:
    """A million ACLs as numbers, with objects on demand."""

    acls: AclsImage
    rows: Int64s
    """Of the base, ascending."""
    added: tuple[StandardAclWithId, ...]

    @classmethod
    def of(cls, acls: AclsImage) -> Self:
        """Number the ACLs of an image."""
        overlay = acls.index.overlay
        present = np.ones(len(acls.index.base), np.bool_)
        present[list(overlay.removed)] = False
        return cls(acls=acls, rows=np.flatnonzero(present), added=tuple(map(rule_of, overlay.added.values())))

    def __len__(self) -> int:
        """Return the number of rules."""
        return len(self.rows) + len(self.added)

    @property
    def _base(self) -> Base:
        return self.acls.index.base

    @property
    def has_ids(self) -> bool:
        """Whether the source has ids."""
        return self._base.has_ids or bool(self.added)

    @property
    def ids(self) -> Bytes:
        """The 16 bytes of each id, as rows; of a source with ids."""
        of_base = np.frombuffer(self._base.ids.ids, np.uint8).reshape(-1, 16)
        of_added = b"".join(rule.id.bytes for rule in self.added if rule.id is not None)
        return np.concatenate((of_base[self.rows], np.frombuffer(of_added, np.uint8).reshape(-1, 16)))

    @property
    def denies(self) -> Bools:
        """Which ACLs deny: as in Kafka, every permission except ALLOW does."""
        of_base = np.frombuffer(self._base.permissions, np.uint8)[self.rows]
        of_added = np.array([rule.acl.permission_type & 0xFF for rule in self.added], np.uint8)
        denies: Bools = np.concatenate((of_base, of_added)) != int(AclPermissionType.ALLOW)
        return denies

    @property
    def throwing(self) -> Bools:
        """Which rules have a principal without a colon: Kafka's authorizer throws when it visits one."""
        base = self._base
        on = (
            np.isin(self.patterns[: len(self.rows)], list(base.colonless_resources)) if base.colonless_resources else ()
        )
        numbers = [*np.flatnonzero(on).tolist(), *range(len(self.rows), len(self))]
        throwing = np.zeros(len(self), np.bool_)
        throwing[[number for number in numbers if ":" not in self.rule(number).acl.principal]] = True
        return throwing

    @property
    def patterns(self) -> Int64s:
        """A number for the resource pattern of each rule."""
        base = self._base
        starts = [base.rows(*base.cells(at)).start for at in range(len(base.resources))]
        of_base = np.searchsorted(np.array(starts, np.int64), self.rows, "right") - 1
        new: dict[tuple[int, str, int], int] = {}
        of_added = np.empty(len(self.added), np.int64)
        for at, rule in enumerate(self.added):
            acl = rule.acl
            literal = acl.pattern_type == PatternType.LITERAL
            number = base.resource(known_type(acl.resource_type), acl.resource_name, literal=literal)
            key = (acl.resource_type, acl.resource_name, acl.pattern_type)
            of_added[at] = number if number >= 0 else new.setdefault(key, len(starts) + len(new))
        return np.concatenate((of_base, of_added))

    def rule(self, number: int) -> StandardAclWithId:
        """Return the rule of a number."""
        at = number - len(self.rows)
        return self.added[at] if at >= 0 else self._base.rule(int(self.rows[number]))

    def principals(self, numbers: Int64s) -> list[str]:
        """Return the principals of these ACLs, without an object for each."""
        return [principal for principal, _ in self.subjects(numbers)]

    def subjects(self, numbers: Int64s) -> list[tuple[str, str]]:
        """Return the principals and hosts of these ACLs, without an object for each."""
        base, rows = self._base, self.rows[numbers[numbers < len(self.rows)]]
        starts = base.cell_rows
        cells = rows if isinstance(starts, range) else np.searchsorted(np.asarray(starts), rows, "right") - 1
        pairs = np.asarray(base.cell_pairs)[cells].tolist()
        of_pair = {pair: split_pair(base.pairs.key(pair)) for pair in set(pairs)}
        of_base = iter([of_pair[pair] for pair in pairs])
        places = (numbers - len(self.rows)).tolist()
        added = [(rule.acl.principal, rule.acl.host) for rule in self.added]
        return [next(of_base) if at < 0 else added[at] for at in places]

    def in_text_order(self, which: Bools | None = None) -> Iterator[tuple[int, StandardAclWithId]]:
        """Yield the number and the ACL of all ACLs, or of the selected ones, in the order of `acls list`.

        One name at a time, so they are never all in memory.
        """
        base, keys = self._base, self._base.resources
        included = np.ones(len(self), np.bool_) if which is None else which
        number_of_row = np.full(len(base), -1, np.int64)
        number_of_row[self.rows] = np.where(included[: len(self.rows)], np.arange(len(self.rows)), -1)
        places = [(*_place(key[0], resource_name(key)), at) for at, key in enumerate(map(keys.key, range(len(keys))))]
        added_positions = np.flatnonzero(included[len(self.rows) :]).tolist()
        acls = ((at, self.added[at].acl) for at in added_positions)
        places += [(*_place(acl.resource_type, acl.resource_name), ~at) for at, acl in acls]
        for _, together in groupby(sorted(places), key=itemgetter(0, 1)):
            batch: list[tuple[int, StandardAclWithId]] = []
            for *_, at in together:
                if at < 0:
                    batch.append((len(self.rows) + ~at, self.added[~at]))
                    continue
                numbers = number_of_row[slice(*_row_range(base, at))]
                batch += ((number, self.rule(number)) for number in numbers[numbers >= 0].tolist())
            yield from sorted(batch, key=_text)


def _row_range(base: Base, resource: int) -> tuple[int, int]:
    rows = base.rows(*base.cells(resource))
    return rows.start, rows.stop


def _place(resource_type: int, name: str) -> tuple[str, str]:
    return code_name(ResourceType, resource_type), name


def _text(numbered: tuple[int, StandardAclWithId]) -> tuple[str | None, ...]:
    return tuple(numbered[1].to_dict().values())[:-1]  # without the id


# The answers of an access log about an ACL.


class Answer(StrEnum):
    """Whether the accesses of a window need an ACL."""

    NEVER_MATCHED = "NEVER_MATCHED"
    """No access in the window matches the ACL."""
    NEVER_NEEDED = "NEVER_NEEDED"
    """Some accesses match, but each would be decided the same without the ACL."""
    NEEDED = "NEEDED"
    NOT_JUDGED = "NOT_JUDGED"
    """The ACL is not known to have been in force in the whole window, or an access that may have needed it could not be
    read or decided."""


MEANINGS: Final[Mapping[str, str]] = {
    Answer.NEVER_MATCHED: "no access matched the ACL",
    Answer.NEVER_NEEDED: "every access would be decided the same without it",
    Answer.NEEDED: "an access would be decided differently without it",
    Answer.NOT_JUDGED: "not in force for the entire window, or its use is unknown",
}
"""Of each answer, for people."""


# The answer about each ACL of a state, and the reason why some are not judged.


ANSWERS = tuple(Answer)
"""By the code of an answer."""


class Unjudged(IntEnum):
    """The reason why an ACL is not judged; the lowest code wins."""

    JUDGED = 0
    NOT_INDEXED = 1
    """The index has no life of this ACL."""
    YOUNG = 2
    """Its life began within the window."""
    SILENCE = 3
    """A broker has a gap in the window, in which an access may have needed the ACL."""
    UNREAD = 4
    """An access that may have needed the rule could not be read or decided."""


@frozen(eq=False, kw_only=True)
class RuleLives:
    """The lives of the ACLs of a state, by ACL."""

    number: Int64s
    """In the index; -1 if it is not there."""
    begin: Int64s
    """In us since 1970."""
    exact: Bools
    """Whether the begin is from a log; otherwise it is the beginning of the first run that saw the ACL."""
    resettled: Bools | None = None
    """Whether the begin is the end of accesses that were evaluated by other settings than the last ones."""

    def older_than(self, start: int, first_access: int | None) -> Bools:
        """Return which ACLs are known to be at least as old as a window (us since 1970).

        An ACL that has been in force since the first known access counts as in force from the beginning of the window,
        unless it is known to be younger: `first_access` is the first one of the window, None if it has none.
        """
        known_since = start if first_access is None else max(start, first_access)
        old: Bools = (self.number >= 0) & (self.begin <= np.where(self.exact, start, known_since))
        return old


@frozen(eq=False, kw_only=True)
class Judgement:
    """The answers by ACL."""

    answer: Bytes
    """Codes of ANSWERS."""
    unjudged: Bytes
    """Codes of Unjudged."""

    @classmethod
    def of(
        cls,
        lives: RuleLives,
        *,
        matched: Bools,
        needed: Bools,
        old: Bools,
        silent: bool,
        unread: Bools | None = None,
    ) -> "Judgement":
        """Judge the ACLs: whether each was matched and needed in the window, and is as old as the window.

        `silent`: whether any broker has a gap in the window; `unread`: whether an unread access may have needed the
        ACL. An ACL that was needed is needed in any case; all other answers are about the complete window, so all of it
        must be known.
        """
        never = ~needed
        unknown = np.zeros_like(needed) if unread is None else unread
        unjudged = np.select(
            [~never, lives.number < 0, ~old, np.full(len(needed), silent), unknown],
            [Unjudged.JUDGED, Unjudged.NOT_INDEXED, Unjudged.YOUNG, Unjudged.SILENCE, Unjudged.UNREAD],
            Unjudged.JUDGED,
        ).astype(np.uint8)
        return cls(
            answer=np.select(
                [needed, unjudged != Unjudged.JUDGED, matched],
                [_code(Answer.NEEDED), _code(Answer.NOT_JUDGED), _code(Answer.NEVER_NEEDED)],
                _code(Answer.NEVER_MATCHED),
            ).astype(np.uint8),
            unjudged=unjudged,
        )

    def is_(self, answer: Answer) -> Bools:
        """Return which rules have this answer."""
        matches: Bools = self.answer == _code(answer)
        return matches

    @property
    def unused(self) -> Bools:
        """Which ACLs were never matched, or matched and never needed."""
        return self.is_(Answer.NEVER_MATCHED) | self.is_(Answer.NEVER_NEEDED)


def _code(answer: Answer) -> int:
    return ANSWERS.index(answer)


# The ACLs of a state that the accesses of a window do not need, and those that can be removed together.


_Item = TypeVar("_Item", bound=np.generic)


@frozen(kw_only=True)
class JudgedWindow:
    """A window of whole days (UTC), and the least length of a gap; times in us since 1970."""

    start: int
    until: int
    gap: int

    @classmethod
    def ending(cls, until: int, days: int, *, gap: int) -> "JudgedWindow":
        """Return the window from the beginning of the day that is `days` before `until`."""
        return cls(start=(until - days * DAY) // DAY * DAY, until=until, gap=gap)

    @property
    def first_day(self) -> int:
        """The first day, since 1970."""
        return self.start // DAY

    @property
    def last_day(self) -> int:
        """The day of the end, which counts completely."""
        return self.until // DAY


@frozen(eq=False, kw_only=True)
class WindowUse:
    """The uses of a window, by the number of a life."""

    matched: Bools
    needed: Bools
    worth: Callable[[Int64s], Int64s]
    """Returns the worth of lives when some must be kept: the number of accesses they matched."""
    sets: AccessSets
    broker_hours: Mapping[str | None, HeardHours]
    """By expected broker, at any time."""
    first_access: int | None
    """In the window, us since 1970."""
    allow_everyone: bool = False
    """Whether any access was evaluated with allow.everyone.if.no.acl.found."""
    unread: UnreadAccesses = field(factory=UnreadAccesses)
    """Accesses that may lie in the window and could not be read or decided."""


@frozen(eq=False, kw_only=True)
class Unused:
    """The answers, by the number of a rule in `rules`."""

    rules: StateRules
    lives: RuleLives
    window: JudgedWindow
    judgement: Judgement
    removable: Bools
    """The ACLs that can be removed together: no decision of the window changes, by the ACLs of its time or of now."""
    silences: Sequence[Silence]
    unread: UnreadAccesses
    by_presence: bool
    """Whether the mere presence of an ACL can decide."""

    @cached_property
    def unread_counts(self) -> Int64s:
        """By ACL that is not judged because of unread accesses: the number of those that may have needed it."""
        counts = np.zeros(len(self.rules), np.int64)
        numbers = np.flatnonzero(self.judgement.unjudged == Unjudged.UNREAD)
        who, denies = self.rules.principals(numbers), self.rules.denies[numbers]
        counts[numbers] = self.unread.counts(who, denies, by_presence=self.by_presence)
        return counts

    @classmethod
    def of(cls, rules: StateRules, lives: RuleLives, use: WindowUse, window: JudgedWindow) -> "Unused":
        """Judge the ACLs of a state."""
        silent = list(silences(use.broker_hours, window.start, window.until, gap=window.gap))
        old = lives.older_than(window.start, use.first_access)
        matched, needed = (_of_rules(each, lives) for each in (use.matched, use.needed))
        unread = _concerned(rules, use, needed)
        judgement = Judgement.of(lives, matched=matched, needed=needed, old=old, silent=bool(silent), unread=unread)
        # without an ACL on which it throws, Kafka's authorizer would decide requests that are undecided so far
        may_go = judgement.unused & ~rules.throwing
        may_go[_kept_shut(rules, judgement.is_(Answer.NEVER_NEEDED), young=~old)] = False
        return cls(
            rules=rules,
            lives=lives,
            window=window,
            judgement=judgement,
            removable=_removable(rules, lives, use, old=old, may_go=may_go),
            silences=silent,
            unread=use.unread,
            by_presence=use.allow_everyone,
        )


def _concerned(rules: StateRules, use: WindowUse, needed: Bools) -> Bools:
    """Return which ACLs an unread access may have needed, of those not known to be needed."""
    concerned = np.zeros(len(rules), np.bool_)
    if use.unread and (use.allow_everyone or use.unread.may_be_anybodys):
        concerned = ~needed  # without an object for each of a million rules
    elif use.unread:
        numbers = np.flatnonzero(~needed)
        who, denies = rules.principals(numbers), rules.denies[numbers]
        concerned[numbers] = use.unread.concerned(who, denies, by_presence=use.allow_everyone)
    return concerned


def _removable(rules: StateRules, lives: RuleLives, use: WindowUse, *, old: Bools, may_go: Bools) -> Bools:
    count = len(use.matched)
    present, going = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    present[lives.number[lives.number >= 0]] = True
    going[lives.number[may_go]] = True
    clauses = keep_clauses(use.sets, present=present, may_go=going)
    if use.allow_everyone:
        clauses |= presence_clauses(rules.patterns[old], lives.number[old], may_go[old])
    named = np.array(sorted({number for clause in clauses for number in clause.members}), np.int64)
    worth = dict(zip(named.tolist(), use.worth(named).tolist(), strict=True)) if len(named) else {}
    keep = fewest_kept(clauses, lambda number: worth.get(number, 0))
    going[list(keep)] = False
    return may_go & _of_rules(going, lives)


def _kept_shut(rules: StateRules, never_needed: Bools, *, young: Bools) -> Int64s:
    """Return the DENY rules that stay: they may keep a younger ALLOW from granting access, or there are too many."""
    denies = rules.denies
    denying, younger = np.flatnonzero(never_needed & denies), np.flatnonzero(young & ~denies)
    if not len(denying) or not len(younger):
        return np.zeros(0, np.int64)
    if len(denying) * len(younger) > MOST_PAIRS:
        return denying
    opened = may_open([rules.rule(at).acl for at in denying.tolist()], (rules.rule(at).acl for at in younger.tolist()))
    return denying[np.array(opened, np.bool_)]


def _of_rules(by_life: Bools, lives: RuleLives) -> Bools:
    """Return a column of lives by ACL; False for an ACL without a life."""
    return _values_at(by_life, lives.number) & (lives.number >= 0)


def _values_at(values: NDArray[_Item], at: Int64s) -> NDArray[_Item]:
    """Return the value at each position; any value for -1."""
    return values[at] if len(values) else np.zeros(len(at), values.dtype)
