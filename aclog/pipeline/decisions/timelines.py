"""How the code on one access changes over time, as rules come and go."""

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from attrs import define, field

from aclog.authorizer.index.scan_rank import EMPTY, NAMED, STAR
from aclog.pipeline.decisions.decision_codes import UNRESOLVED, DecisionCode


class MatchingInterval(NamedTuple):
    """A rule that matches an access, from one version of the rules to before another.

    `rank` and `level` are its place in the order of visits (authorizer.index.scan_rank). `matches` is false for a rule
    that is on the resource but for somebody else.
    """

    start: int
    end: int
    rank: int
    level: int
    denies: bool
    ordinal: int
    matches: bool = True


def timeline(
    intervals: Iterable[MatchingInterval], *, below_star: bool, is_star: bool, allow_everyone: bool
) -> Iterator[tuple[int, int]]:
    """(Version, code) wherever a rule comes or goes, the first at version 0.

    `below_star`: the name sorts below `*`; `is_star`: it is `*`. `allow_everyone` needs all intervals on the resource,
    including those that match nobody who asks.
    """
    starts = sorted(intervals)
    times = sorted({0} | {interval.start for interval in starts} | {interval.end for interval in starts})
    force = _InForce(below_star=below_star, is_star=is_star, allow_everyone=allow_everyone)
    at = 0
    for time in times:
        while at < len(starts) and starts[at].start <= time:
            force.add(starts[at])
            at += 1
        force.drop(time)
        yield time, force.decision()


@define(kw_only=True)
class _InForce:
    """The intervals in force at one version; owned by the one sweep that moves it on."""

    below_star: bool
    is_star: bool
    allow_everyone: bool
    _denying: list[tuple[int, int, int, int]] = field(factory=list, init=False)
    _allowing: list[tuple[int, int, int, int]] = field(factory=list, init=False)
    """(Rank, from the first to be named on; end; level; ordinal), the first to be named at the top."""
    _ends: list[tuple[int, bool, int, bool]] = field(factory=list, init=False)
    _counts: dict[tuple[bool, int], int] = field(factory=dict, init=False)
    """How many match, by whether they deny, and level."""
    _present: int = field(default=0, init=False)

    def add(self, interval: MatchingInterval) -> None:
        """A rule came."""
        if interval.end <= interval.start:
            return
        heappush(self._ends, (interval.end, interval.denies, interval.level, interval.matches))
        self._present += 1
        if interval.matches:
            heap, rank = (self._denying, interval.rank) if interval.denies else (self._allowing, -interval.rank)
            heappush(heap, (rank, interval.end, interval.level, interval.ordinal))
            key = interval.denies, interval.level
            self._counts[key] = self._counts.get(key, 0) + 1

    def drop(self, time: int) -> None:
        """Those that end by now went."""
        while self._ends and self._ends[0][0] <= time:
            _, denies, level, matches = heappop(self._ends)
            self._present -= 1
            if matches:
                self._counts[denies, level] -= 1
        for heap in (self._denying, self._allowing):
            while heap and heap[0][1] <= time:
                heappop(heap)

    def decision(self) -> int:
        """What becomes of the access."""
        if self._denying:
            return UNRESOLVED if self._is_order_ambiguous(denies=True) else self._denying[0][3]
        if self._allowing:
            return UNRESOLVED if self._is_order_ambiguous(denies=False) else self._allowing[0][3]
        if self.allow_everyone and not self._present:
            return DecisionCode.DEFAULT_ALLOW
        return DecisionCode.DEFAULT_DENY

    def _is_order_ambiguous(self, *, denies: bool) -> bool:
        has = {level for level in (NAMED, STAR, EMPTY) if self._counts.get((denies, level))}
        return is_order_ambiguous(has, denies=denies, below_star=self.below_star, is_star=self.is_star)


def is_order_ambiguous(levels: set[int], *, denies: bool, below_star: bool, is_star: bool) -> bool:
    """Whether the order of visits may not tell which rule is named, where rules on these levels match.

    It does not where LITERAL `*` is one of them and may be visited earlier or later
    (authorizer.index.kafka_scan_order).
    """
    if STAR not in levels or levels == {STAR}:
        return False
    if is_star and NAMED in levels:
        return True
    if denies:
        return NAMED not in levels
    return EMPTY not in levels and below_star
