"""How the decision on one access changes over time, as ACLs are added and removed."""

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from attrs import define, field

from aclog.authorizer.index.scan_rank import EMPTY, NAMED, ODD, STAR
from aclog.usage.decisions.decision_codes import UNRESOLVED, DecisionCode

LEVELS = (NAMED, STAR, EMPTY, ODD)


class MatchingInterval(NamedTuple):
    """An ACL that matches an access, from version `start` until before version `end`.

    `rank` and `level` are its place in the order of Kafka's scan (authorizer.index.scan_rank). `matches` is false for
    an ACL on the resource that is for another principal, host or operation; `unsure`: whether it matches is not known.
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
    """The number of ACLs of which it is not known whether they match."""

    def add(self, interval: MatchingInterval) -> None:
        """Take in an ACL that was added."""
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
    """Return whether the scan rank may not tell which ACL Kafka names, given the levels of those that could be named.

    That is so if LITERAL `*` or an odd pattern type on the empty name is among them and Kafka may visit it earlier or
    later than the rank says (authorizer.index.kafka_scan_order).
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
