"""Decisions as numbers, texts and step functions of the version.

Also which generation of Kafka decided when.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from heapq import heappop, heappush
from typing import NamedTuple, Protocol, Self, TypeAlias

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from aclog.authorizer.audit import Basis
from aclog.authorizer.index.layout import Int32s
from aclog.authorizer.index.scan_order import EMPTY, NAMED, ODD, STAR
from aclog.authorizer.settings import Generation
from aclog.metalog.vectors import Int64s

# Decisions as one number each: the ordinal of the determining ACL, or a negative code without one.


class DecisionCode(IntEnum):
    """Decisions without a determining ACL; a code >= 0 is the ordinal of the ACL, whose permission type decides."""

    DEFAULT_DENY = -1
    DEFAULT_ALLOW = -2
    SUPER_USER = -3
    # everything below is an error: code that compares with DEFAULT_ALLOW or SUPER_USER relies on the order
    MISSING = -4
    NO_OPERATION = -5
    NO_RESOURCE_TYPE = -6
    NO_HOST = -7
    NO_PRINCIPAL = -8
    WILDCARD_PRINCIPAL = -9
    RULE_WITHOUT_COLON = -10
    NO_TIME = -11
    BEFORE_THE_LOG = -12
    UNKNOWN_KAFKA = -13


UNRESOLVED = -14
"""Internal to this package: the scan rank does not determine which ACL Kafka names, or whether it throws."""

ALLOWED = frozenset({DecisionCode.DEFAULT_ALLOW, DecisionCode.SUPER_USER})
"""The negative codes that allow."""

BASES = {
    DecisionCode.DEFAULT_DENY: Basis.DEFAULT_DENY.value,
    DecisionCode.DEFAULT_ALLOW: Basis.DEFAULT_ALLOW.value,
    DecisionCode.SUPER_USER: Basis.SUPER_USER.value,
}
"""The text of the audit log in place of an ACL."""

ERRORS = {
    DecisionCode.MISSING: "principal, host, operation, resourceType or resourceName is missing",
    DecisionCode.NO_OPERATION: "not an operation of Kafka",
    DecisionCode.NO_RESOURCE_TYPE: "not a resource type of Kafka",
    DecisionCode.NO_HOST: "the host is not an IPv4 or IPv6 address",
    DecisionCode.NO_PRINCIPAL: "the principal has no colon: expected Type:name",
    DecisionCode.WILDCARD_PRINCIPAL: "User:* is not a principal: in ACLs it matches all users",
    DecisionCode.RULE_WITHOUT_COLON: "an ACL on the resource has a principal with no colon: Kafka's authorizer throws",
    DecisionCode.NO_TIME: "the access has no timestamp, as of which to decide it",
    DecisionCode.BEFORE_THE_LOG: "the log does not reach back to the time of the access",
    DecisionCode.UNKNOWN_KAFKA: "Kafka 4.3 and 4.4 decide it by different ACLs, and which of them decided is not known",
}
"""The reason why there is no decision."""


# Decisions on many accesses as step functions of the version, in columns for fast lookups by row.


Steps: TypeAlias = Sequence[tuple[int, int]]
"""The (version, decision code) pairs of one access, ascending: the decision from that version on. The first is 0."""

_FIRST_SIZE = 1 << 12


@define(eq=False)
class DecisionSteps:
    """The steps of accesses 0, 1, ... one after another in each column. Columns only grow, by doubling."""

    _stride: int
    """More than the highest version."""
    _count: int = field(default=0, init=False)
    _size: int = field(default=0, init=False)
    """The number of steps in use; columns are longer."""
    _first: Int64s = field(factory=lambda: np.zeros(_FIRST_SIZE, np.int64), init=False)
    """By access: the position of its first step; one more entry than accesses."""
    _keys: Int64s = field(factory=lambda: np.zeros(_FIRST_SIZE, np.int64), init=False)
    """access * stride + version of each step: ascending over all accesses, so that one bisection serves a batch."""
    _codes: Int32s = field(factory=lambda: np.zeros(_FIRST_SIZE, np.int32), init=False)

    def __len__(self) -> int:
        return self._count

    def append(self, codes: Int32s, changing: Mapping[int, Steps]) -> None:
        """Append accesses: each with one decision code for all versions, or with the steps in `changing` by index."""
        counts = np.ones(len(codes), np.int64)
        for at, steps in changing.items():
            counts[at] = len(steps)
        starts = np.concatenate(([0], np.cumsum(counts)))
        owner = np.repeat(np.arange(len(codes)), counts)
        keys, values = (owner + self._count) * self._stride, codes[owner]
        for at, steps in changing.items():
            place = slice(starts[at], starts[at + 1])
            keys[place] += [version for version, _ in steps]
            values[place] = [code for _, code in steps]
        self._first = _grown(self._first, self._count + len(codes) + 1)
        self._keys, self._codes = (_grown(column, self._size + len(keys)) for column in (self._keys, self._codes))
        self._first[self._count : self._count + len(starts)] = starts + self._size
        self._keys[self._size : self._size + len(keys)] = keys
        self._codes[self._size : self._size + len(keys)] = values
        self._count += len(codes)
        self._size += len(keys)

    def steps(self, access_of: Int64s, version: Int64s | int) -> Int64s:
        """Return the index of each row's step, for its access at its version."""
        step = self._first[access_of]
        # most accesses have a single step: bisect only for the rows of others
        rows = np.flatnonzero(self._first[access_of + 1] - step > 1)
        if len(rows):
            at = version if isinstance(version, int) else version[rows]
            keys = access_of[rows] * self._stride + at
            step[rows] = np.searchsorted(self._keys[: self._size], keys, "right") - 1
        return step

    def codes(self, steps: Int64s) -> Int32s:
        """Return the decision code of each step."""
        return self._codes[steps]

    def versions(self, steps: Int64s) -> Int64s:
        """Return the version at which each step begins."""
        return self._keys[steps] % self._stride


def _grown(column: "np.ndarray[tuple[int], np.dtype[np.generic]]", size: int) -> "np.ndarray":
    if size <= len(column):
        return column
    return np.concatenate((column, np.zeros(max(size - len(column), len(column)), column.dtype)))


# How the decision on one access changes over time, as ACLs are added and removed.


LEVELS = (NAMED, STAR, EMPTY, ODD)


class MatchingInterval(NamedTuple):
    """An ACL that matches an access, from version `start` until before version `end`.

    `rank` and `level` are its position in the order of Kafka's scan (authorizer.index.scan_order). `matches` is False
    for an ACL on the resource for another principal, host or operation; `unsure`: whether it matches is unknown.
    """

    start: int
    end: int
    rank: int
    level: int
    denies: bool
    ordinal: int
    matches: bool = True
    unsure: bool = False


def timeline(
    intervals: Iterable[MatchingInterval], *, below_star: bool, is_star: bool, allow_everyone: bool
) -> Iterator[tuple[int, int]]:
    """Yield (version, decision code) at every version at which an ACL is added or removed; the first is version 0.

    `below_star`: the resource's name sorts below `*`; `is_star`: it is `*`. With `allow_everyone`, `intervals` must
    include the ACLs on the resource that do not match.
    """
    starts = sorted(intervals)
    versions = sorted({0} | {interval.start for interval in starts} | {interval.end for interval in starts})
    sweep = _Sweep(below_star=below_star, is_star=is_star, allow_everyone=allow_everyone)
    at = 0
    for version in versions:
        while at < len(starts) and starts[at].start <= version:
            sweep.add(starts[at])
            at += 1
        sweep.drop(version)
        yield version, sweep.decision()


@define(kw_only=True)
class _Sweep:
    """The intervals in force at one version, which only moves forward.

    Heaps keep an ACL that is added and removed n times at O(n log n): its timeline has 2n steps.
    """

    below_star: bool
    is_star: bool
    allow_everyone: bool
    _denying: list[tuple[int, int, int, int]] = field(factory=list, init=False)
    _allowing: list[tuple[int, int, int, int]] = field(factory=list, init=False)
    """Heaps of (rank, end, level, ordinal) with the determining ACL on top: Kafka names the first ACL that denies, or
    else the last that allows, so the ranks of ALLOWs are negated."""
    _ends: list[tuple[int, bool, int, bool, bool]] = field(factory=list, init=False)
    _counts: dict[tuple[bool, int], int] = field(factory=dict, init=False)
    """The number of matching ACLs by (denies, level)."""
    _present: int = field(default=0, init=False)
    """The number of ACLs on the resource, matching or not."""
    _unsure: int = field(default=0, init=False)
    """The number of ACLs whose match is unknown."""

    def add(self, interval: MatchingInterval) -> None:
        """Add an ACL that was added."""
        if interval.end <= interval.start:
            return
        matches = interval.matches and not interval.unsure
        heappush(self._ends, (interval.end, interval.denies, interval.level, matches, interval.unsure))
        self._present += 1
        self._unsure += interval.unsure
        if matches:
            heap, rank = (self._denying, interval.rank) if interval.denies else (self._allowing, -interval.rank)
            heappush(heap, (rank, interval.end, interval.level, interval.ordinal))
            key = interval.denies, interval.level
            self._counts[key] = self._counts.get(key, 0) + 1

    def drop(self, version: int) -> None:
        """Drop the ACLs that are removed at or before this version."""
        while self._ends and self._ends[0][0] <= version:
            _, denies, level, matches, unsure = heappop(self._ends)
            self._present -= 1
            self._unsure -= unsure
            if matches:
                self._counts[denies, level] -= 1
        # an ended interval below the top stays in its heap: it is dropped when it surfaces
        for heap in (self._denying, self._allowing):
            while heap and heap[0][1] <= version:
                heappop(heap)

    def decision(self) -> int:
        """Return the decision code at this version."""
        if self._unsure:
            return DecisionCode.UNKNOWN_KAFKA
        if self._denying:
            return UNRESOLVED if self._is_order_ambiguous(denies=True) else self._denying[0][3]
        if self._allowing:
            return UNRESOLVED if self._is_order_ambiguous(denies=False) else self._allowing[0][3]
        if self.allow_everyone and not self._present:
            return DecisionCode.DEFAULT_ALLOW
        return DecisionCode.DEFAULT_DENY

    def _is_order_ambiguous(self, *, denies: bool) -> bool:
        levels = {level for level in LEVELS if self._counts.get((denies, level))}
        return is_order_ambiguous(levels, denies=denies, below_star=self.below_star, is_star=self.is_star)


def is_order_ambiguous(levels: set[int], *, denies: bool, below_star: bool, is_star: bool) -> bool:
    """Return whether the scan rank does not determine which ACL Kafka names, given the levels of the candidates.

    That is so if LITERAL `*` or an odd pattern type on the empty name is among them and Kafka may visit it earlier or
    later than its rank (authorizer.index.scan_order).
    """
    if ODD in levels:
        return len(levels) > 1
    if STAR not in levels or levels == {STAR}:
        return False
    if is_star and NAMED in levels:
        return True
    if denies:
        return NAMED not in levels
    return EMPTY not in levels and below_star


# The generations of Kafka that decided, by time: from 4.4 on, an ACL whose host is a range matches (KIP-1276).


class Ranges(IntEnum):
    """Whether ACLs match whose host is a range."""

    NO = 0
    YES = 1
    UNKNOWN = 2
    """Several generations of Kafka may have decided."""


class DecidingGenerations(Protocol):
    """The generations of Kafka that may decide (snapshots.deciding_kafka.DecidingKafka)."""

    @property
    def generations(self) -> tuple[Generation, ...]:
        """All that may."""
        ...

    @property
    def of_brokers(self) -> tuple[Generation, ...]:
        """Those that may decide what no controller decides."""
        ...


@frozen(kw_only=True)
class KafkaTimes:
    """The generation of Kafka that may have decided, from each of some times to the next one."""

    begins: tuple[int, ...]
    """In ms since 1970, ascending; the first entry also applies before its time."""
    ranges: tuple[Ranges, ...]
    """Whether ranges match an access that brokers decide."""
    of_controllers: tuple[Ranges, ...]
    """Whether they match one that controllers may also decide: as above, or unknown. Two neighbours differ in either.
    """

    @classmethod
    def of(cls, parts: Iterable[tuple[int, DecidingGenerations]]) -> Self:
        """Return it for generations that may have decided from some times on, in order; the last wins."""
        steps: list[tuple[int, tuple[Ranges, Ranges]]] = []
        for begin, kafka in parts:
            while steps and steps[-1][0] >= begin:
                steps.pop()
            has_ranges = _ranges_of(kafka.of_brokers), _ranges_of(kafka.generations)
            if not steps or steps[-1][1] != has_ranges:
                steps.append((begin, has_ranges))
        return cls(
            begins=tuple(begin for begin, _ in steps),
            ranges=tuple(of_brokers for _, (of_brokers, _) in steps),
            of_controllers=tuple(of_any for _, (_, of_any) in steps),
        )

    @property
    def only(self) -> Ranges | None:
        """The constant value; None if it changes, or is not the same for all accesses."""
        return self.ranges[0] if len({*self.ranges, *self.of_controllers}) == 1 else None

    @property
    def changes(self) -> tuple[int, ...]:
        """The times of changes, in ms since 1970."""
        return self.begins[1:]

    def at(self, times: Int64s, *, controllers: bool = False) -> NDArray[np.uint8]:
        """Return whether ACLs with ranges match at each of these times, in ms since 1970 (Ranges).

        `controllers`: for accesses that controllers may decide.
        """
        ranges = self.of_controllers if controllers else self.ranges
        return np.array(ranges, np.uint8)[np.searchsorted(np.array(self.changes, np.int64), times, "right")]


def _ranges_of(generations: Sequence[Generation]) -> Ranges:
    if len(generations) > 1:
        return Ranges.UNKNOWN
    return Ranges.YES if generations[0].has_ranges else Ranges.NO
