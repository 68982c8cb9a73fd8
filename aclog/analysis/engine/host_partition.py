"""The partition of all client addresses by the hosts of some rules."""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from ipaddress import IPv4Address
from itertools import pairwise
from typing import TypeAlias

from attrs import define, field

from aclog.analysis.engine.host_classes import Interval, Partition
from aclog.authorizer.acl import WILDCARD
from aclog.authorizer.cidr import address_number, cidr_range
from aclog.authorizer.hosts import host_address
from aclog.metalog.errors import ConfigError

_Around: TypeAlias = tuple[int, ...]
"""The ranges that contain an address, by number, the innermost last: ranges in CIDR notation never overlap in part."""


def partition(hosts: Iterable[str], *, cidr: bool) -> Partition:
    """Return the partition by the hosts of rules; texts that can match no client are left out.

    `cidr`: the host of a rule may be a range.
    """
    named = sorted(host for host in hosts if host != WILDCARD)
    addresses = list(filter(is_address, named))
    return _partition(addresses, _ranges(named) if cidr else {})


@lru_cache(1 << 16)
def is_address(host: str) -> bool:
    """Return whether the host of a rule is an address as Kafka's authorizer sees it; any other text matches nobody."""
    try:
        return host_address(host) == host
    except ConfigError:
        return False


def _ranges(hosts: Iterable[str]) -> dict[str, Interval]:
    found = {}
    for host in hosts:
        parsed = cidr_range(host)
        if parsed is not None:
            found[host] = Interval(parsed.version, parsed.first, parsed.last)
    return found


@define
class _Classes:
    """Classes in the making: each is the addresses inside of the same ranges, or a single address."""

    matched: dict[str, int] = field(factory=dict)
    """By address and by range: classes, as bits."""
    intervals: list[list[Interval]] = field(factory=lambda: [[]])
    _numbers: dict[tuple[_Around, str], int] = field(factory=lambda: {((), ""): 0})

    def add(self, interval: Interval | None, around: _Around, *, address: str) -> int:
        """Add an interval to the class of all addresses there, or of a single one; return the class as a bit."""
        number = self._numbers.setdefault((around, address), len(self._numbers))
        if number == len(self.intervals):
            self.intervals.append([])
        if number and interval is not None:
            self.intervals[number].append(interval)
        if address:
            self.matched[address] = 1 << number
        return 1 << number


def _partition(addresses: Iterable[str], ranges: Mapping[str, Interval]) -> Partition:
    spans = sorted(set(ranges.values()), key=lambda span: (span.version, span.first, -span.last))
    points = {int(IPv4Address(each)): each for each in addresses if ":" not in each}
    inside = [0] * len(spans)
    classes = _Classes()
    for interval, around in _stretches(spans, points):
        single = interval.version == 4 and interval.first == interval.last
        bit = classes.add(interval, around, address=points.get(interval.first, "") if single else "")
        for span in around:
            inside[span] |= bit
    texts = {}
    for text in (each for each in addresses if ":" in each):
        number = address_number(text)
        held = (n for n, span in enumerate(spans) if number and span.version == 6 and span.holds(number.number))
        around = tuple(held)
        others = classes.add(None, around, address="")
        own = classes.add(None, around, address=text)
        for span in around:
            inside[span] |= own
        texts[text] = own, others
    at = {span: number for number, span in enumerate(spans)}
    return Partition(
        count=len(classes.intervals),
        matched=classes.matched | {text: inside[at[span]] for text, span in ranges.items()},
        intervals=tuple(map(tuple, classes.intervals)),
        texts=texts,
    )


def _stretches(spans: list[Interval], points: Iterable[int]) -> Iterator[tuple[Interval, _Around]]:
    """Yield the stretches between the ends of ranges and IPv4 addresses, with the ranges around each."""
    cuts = {(span.version, at) for span in spans for at in (span.first, span.last + 1)}
    cuts.update((4, point + step) for point in points for step in (0, 1))
    if any(span.version == 4 for span in spans):
        cuts.update(((4, 0), (4, 1)))  # no range contains 0.0.0.0 (aclog.authorizer.cidr)
    opened: list[int] = []
    following = 0
    for (version, first), (next_version, after) in pairwise(sorted(cuts)):
        opened = [each for each in opened if spans[each].version == version and spans[each].last >= first]
        while following < len(spans) and spans[following][:2] == (version, first):
            opened.append(following)
            following += 1
        if next_version == version:
            yield Interval(version, first, after - 1), () if (version, first) == (4, 0) else tuple(opened)
