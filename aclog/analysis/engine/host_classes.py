"""Equivalence classes of client addresses by the hosts of ACLs."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, reduce
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, summarize_address_range
from itertools import pairwise
from operator import itemgetter, or_
from typing import NamedTuple, Protocol, TypeAlias

from attrs import field

from aclog.analysis.regions import EVERYWHERE, Hosts
from aclog.authorizer.acl import address_number, cidr_range, host_address, in_cidr
from aclog.authorizer.codes import WILDCARD
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import define, frozen

# Classes of client addresses: two addresses are in one class if they match the same ACLs.


Runs: TypeAlias = tuple[tuple[int, int], ...]
"""A set of classes as runs of consecutive numbers, sorted: the first number of each, and the number after its last."""

_ELSEWHERE = 0
"""The class of all addresses that no ACL names; a partition always has this class."""


def runs_of(classes: int) -> Runs:
    """Return the runs of a mask with bit n for class n."""
    return tuple(match.span() for match in _ONES.finditer(f"{classes:b}"[::-1]))


def mask_of(runs: Runs) -> int:
    """Return the mask with bit n for each class n of the runs."""
    return reduce(or_, ((1 << end) - (1 << first) for first, end in runs), 0)


_ONES = re.compile("1+")


class HostClasses(Protocol):
    """Classes by number, from 0."""

    @property
    def count(self) -> int:
        """The number of classes."""
        ...

    def matched_runs(self, host: str, *, cidr: bool) -> Runs:
        """Return the classes that the host of an ACL matches; `cidr`: it may be a range."""
        ...

    def hosts_of(self, runs: Runs) -> list[Hosts]:
        """Return the addresses of some classes, in as few disjoint sets as possible."""
        ...


@frozen(eq=False)
class OneHost:
    """The single class of one address, for questions about one client."""

    host: str
    count: int = 1

    def matched_runs(self, host: str, *, cidr: bool) -> Runs:
        """Return the class if the host of an ACL matches the address."""
        matches = host in (WILDCARD, self.host) or (cidr and "/" in host and in_cidr(host, self.host))
        return ((0, 1),) if matches else ()

    def hosts_of(self, runs: Runs) -> list[Hosts]:
        """Return the address."""
        return [Hosts(entries=(self.host,))] if runs else []


_ZERO = "0.0.0.0"  # noqa: S104  # an address in a set, not to listen on


class Interval(NamedTuple):
    """The addresses from `first` to `last`, both included, with any scope."""

    version: int
    first: int
    last: int


class _Text(NamedTuple):
    """An IPv6 address: its class, and the class of all others of the same number.

    An ACL on an address matches its text, while a range matches any scope (`%1`) of its numbers, so such an address
    cannot be cut out of an interval.
    """

    own: int
    others: int


@frozen(eq=False, kw_only=True, slots=False)
class Partition:
    """All addresses, partitioned by the hosts of some ACLs: single addresses, and ranges if they are enabled.

    Each method takes time proportional to the classes that it is about, except where masks are converted.
    """

    count: int
    _matched: Mapping[str, Runs]
    """By address or range."""
    _intervals: tuple[tuple[Interval, ...], ...]
    """By class; none for class 0 and for a single IPv6 address."""
    _texts: Mapping[str, _Text]
    _text_of: Mapping[int, str]
    """By class: its only IPv6 address."""
    _beside: Mapping[int, tuple[str, ...]]
    """By class: the IPv6 addresses of other classes that have a number of this one."""

    def matched_runs(self, host: str, *, cidr: bool) -> Runs:
        """Return the classes that the host of an ACL matches."""
        if host == WILDCARD:
            return ((0, self.count),)
        return self._matched.get(host, ()) if cidr or "/" not in host else ()

    def matched(self, host: str, *, cidr: bool) -> int:
        """Return the classes that the host of an ACL matches, as a mask with bit n for class n."""
        return mask_of(self.matched_runs(host, cidr=cidr))

    def classes_of(self, hosts: Hosts) -> int:
        """Return the classes of a set of addresses, whose texts must all be in the partition, as a mask."""
        classes = reduce(or_, (mask_of(self._matched.get(entry, ())) for entry in hosts.entries), 0)
        if hosts.complement:
            classes = ((1 << self.count) - 1) & ~classes
        excepted = (mask_of(self._matched.get(address, ())) for address in hosts.except_addresses)
        return classes & ~reduce(or_, excepted, 0)

    def hosts(self, classes: int) -> list[Hosts]:
        """Return the addresses of some classes, given as a mask, in as few disjoint sets as possible."""
        return self.hosts_of(runs_of(classes))

    def hosts_of(self, runs: Runs) -> list[Hosts]:
        """Return the addresses of some classes, in as few disjoint sets as possible."""
        if runs == ((0, self.count),):
            return [EVERYWHERE]
        if not runs:
            return []
        return self._all_but(self._others(runs)) if runs[0][0] == _ELSEWHERE else self._exactly(runs)

    def classes_in(self, coarser: "Partition") -> list[int]:
        """Return for each class the one that contains it in a partition by some of the same hosts."""
        classes = [0] * self.count
        for number, intervals in enumerate(self._intervals):
            if intervals:
                classes[number] = coarser._class_at(intervals[0])
        for text, (own, others) in self._texts.items():
            memo = coarser._texts.get(text)
            classes[own] = classes[others] if memo is None else memo.own
        return classes

    def _class_at(self, interval: Interval) -> int:
        """Return the class of an interval that lies in one class."""
        at = bisect_right(self._sorted, interval[:2], key=lambda each: each[0][:2]) - 1
        if at < 0:
            return _ELSEWHERE
        near, number = self._sorted[at]
        return number if near.version == interval.version and near.last >= interval.first else _ELSEWHERE

    @cached_property
    def _sorted(self) -> list[tuple[Interval, int]]:
        """The intervals of all classes except class 0, with their class."""
        return sorted((each, number) for number, intervals in enumerate(self._intervals) for each in intervals)

    def _others(self, runs: Runs) -> Runs:
        ends = (0, *(each for run in runs for each in run), self.count)
        return tuple((first, end) for first, end in zip(ends[::2], ends[1::2], strict=True) if first < end)

    def _all_but(self, runs: Runs) -> list[Hosts]:
        out, included = self._texts_against(runs)
        entries = {*_entries(self._intervals_of(runs)), *out}
        parts = [Hosts(entries=tuple(sorted(entries)), complement=True)]
        # An omitted range would take along addresses that belong to the result.
        return [*parts, Hosts(entries=included)] if included else parts

    def _exactly(self, runs: Runs) -> list[Hosts]:
        intervals = list(self._intervals_of(runs))
        texts, out = self._texts_against(runs)
        if not out:
            return [Hosts(entries=tuple(sorted({*_entries(intervals), *texts})))]
        if any((each.version, each.first) == (4, 0) for each in intervals):
            texts = (_ZERO, *texts)
        ranges = Hosts(entries=tuple(sorted(_entries(intervals, as_ranges=True))), except_addresses=out)
        return [ranges, Hosts(entries=texts)] if texts else [ranges]

    def _texts_against(self, runs: Runs) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the IPv6 addresses of some classes outside their ranges, and those of other classes inside."""
        if not self._texts:
            return (), ()
        alone: list[str] = []
        inside: list[str] = []
        for number in _numbers(runs):
            text = self._text_of.get(number)
            if text is not None and not _has(runs, self._texts[text].others):
                alone.append(text)
            inside += (text for text in self._beside.get(number, ()) if not _has(runs, self._texts[text].own))
        return tuple(sorted(alone)), tuple(sorted(inside))

    def _intervals_of(self, runs: Runs) -> Iterator[Interval]:
        for number in _numbers(runs):
            yield from self._intervals[number]


def _numbers(runs: Runs) -> Iterator[int]:
    return (number for first, end in runs for number in range(first, end))


def _has(runs: Runs, number: int) -> bool:
    at = bisect_right(runs, number, key=itemgetter(0)) - 1
    return at >= 0 and number < runs[at][1]


def _entries(intervals: Iterable[Interval], *, as_ranges: bool = False) -> Iterator[str]:
    """Yield the addresses and ranges that cover these intervals; for IPv6 only ranges, which include any scope.

    0.0.0.0 is yielded separately, as no range contains it (aclog.authorizer.acl); with `as_ranges` it is omitted.
    """
    joined: list[Interval] = []
    for each in sorted(intervals):
        if joined and joined[-1].version == each.version and joined[-1].last + 1 == each.first:
            joined[-1] = joined[-1]._replace(last=each.last)
        else:
            joined.append(each)
    for version, first, last in joined:
        if version == 4 and first == last and not as_ranges:
            yield f"{first >> 24}.{first >> 16 & 255}.{first >> 8 & 255}.{first & 255}"
            continue
        if (version, first) == (4, 0) and not as_ranges:
            yield _ZERO
        if (version, last) == (4, 0):
            continue
        for network in _networks(version, first, last):
            single = version == 4 and network.num_addresses == 1 and not as_ranges
            yield str(network.network_address) if single else str(network)


def _networks(version: int, first: int, last: int) -> Iterator[IPv4Network | IPv6Network]:
    if version == 4:
        networks = list(summarize_address_range(IPv4Address(first), IPv4Address(last)))
        if first == 1:
            # A range that begins at 0.0.0.0 does not contain it. 0.0.0.0/0 is all other addresses: 32 ranges otherwise.
            from_zero = list(summarize_address_range(IPv4Address(0), IPv4Address(last)))
            networks = min(networks, from_zero, key=len)
        yield from networks
        return
    for network in summarize_address_range(IPv6Address(first), IPv6Address(last)):
        if network.network_address.ipv4_mapped is None:  # such clients appear as IPv4
            yield network


# The partition of all client addresses by the hosts of some ACLs.


_Around: TypeAlias = tuple[int, ...]
"""The ranges that contain an address, by number, the innermost last: ranges in CIDR notation never overlap in part."""


def partition(hosts: Iterable[str], *, cidr: bool) -> Partition:
    """Return the partition by the hosts of ACLs; texts that match no client are ignored.

    `cidr`: the host of an ACL may be a range.
    """
    named = sorted({host for host in hosts if host != WILDCARD})
    addresses = list(filter(is_address, named))
    return _partition(addresses, _ranges(named) if cidr else {})


_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4 = re.compile(rf"{_OCTET}(?:\.{_OCTET}){{3}}")


@lru_cache(1 << 16)
def is_address(host: str) -> bool:
    """Return whether the host of an ACL is an address in the format of Kafka's authorizer; other texts never match."""
    if _IPV4.fullmatch(host):  # parsing takes ten times as long
        return True
    try:
        return host_address(host) == host
    except ConfigError:
        return False


def _ranges(hosts: Iterable[str]) -> dict[str, Interval]:
    ranges = {}
    for host in hosts:
        parsed = cidr_range(host)
        if parsed is not None:
            ranges[host] = Interval(parsed.version, parsed.first, parsed.last)
    return ranges


@define
class _Classes:
    """Classes under construction: each has the addresses inside the same ranges, or a single address."""

    intervals: list[list[Interval]] = field(factory=lambda: [[]])
    _numbers: dict[tuple[_Around, str], int] = field(factory=lambda: {((), ""): _ELSEWHERE})

    def add(self, interval: Interval | None, around: _Around, *, address: str) -> int:
        """Add an interval to the class of its surrounding ranges, or of a single address; return its number."""
        number = self._numbers.setdefault((around, address), len(self._numbers))
        if number == len(self.intervals):
            self.intervals.append([])
        if number and interval is not None:
            self.intervals[number].append(interval)
        return number


def _partition(addresses: Iterable[str], ranges: Mapping[str, Interval]) -> Partition:
    spans = sorted(set(ranges.values()), key=lambda span: (span.version, span.first, -span.last))
    points = {_number(each): each for each in addresses if ":" not in each}
    inside: list[list[tuple[int, int]]] = [[] for _ in spans]
    classes = _Classes()
    matched: dict[str, Runs] = {}
    for interval, around in _stretches(spans, points):
        single = interval.version == 4 and interval.first == interval.last
        address = points.get(interval.first, "") if single else ""
        number = classes.add(interval, around, address=address)
        if address:
            matched[address] = ((number, number + 1),)
        for span in around:
            _include(inside[span], number)
    texts: dict[str, _Text] = {}
    beside: dict[int, list[str]] = {}
    enclosing = _Enclosing.of(spans)
    for text in (each for each in addresses if ":" in each):
        around = enclosing.around(text)
        others = classes.add(None, around, address="")
        own = classes.add(None, around, address=text)
        matched[text] = ((own, own + 1),)
        for span in around:
            _include(inside[span], own)
        texts[text] = _Text(own, others)
        beside.setdefault(others, []).append(text)
    at = {span: number for number, span in enumerate(spans)}
    return Partition(
        count=len(classes.intervals),
        matched=matched | {text: tuple(inside[at[span]]) for text, span in ranges.items()},
        intervals=tuple(map(tuple, classes.intervals)),
        texts=texts,
        text_of={each.own: text for text, each in texts.items()},
        beside={number: tuple(each) for number, each in beside.items()},
    )


def _number(address: str) -> int:
    """Return an IPv4 address as a number; IPv4Address takes five times as long."""
    first, second, third, fourth = map(int, address.split("."))
    return first << 24 | second << 16 | third << 8 | fourth


def _include(runs: list[tuple[int, int]], number: int) -> None:
    """Add a class to the runs of a range.

    The classes inside a range have consecutive numbers, in the order of addresses, and IPv6 addresses follow them all:
    a class that is in the runs already is in the last one.
    """
    if runs and runs[-1][0] <= number <= runs[-1][1]:
        runs[-1] = runs[-1][0], max(runs[-1][1], number + 1)
    else:
        runs.append((number, number + 1))


@frozen
class _Enclosing:
    """The range that directly encloses each range, and each IPv6 address."""

    spans: Sequence[Interval]
    above: Sequence[int]
    """By range; -1 for an outermost one."""

    @staticmethod
    def of(spans: Sequence[Interval]) -> "_Enclosing":
        """Return the enclosing ranges of sorted ranges."""
        above: list[int] = []
        opened: list[int] = []
        for number, span in enumerate(spans):
            while opened and (spans[opened[-1]].version, spans[opened[-1]].last) < (span.version, span.first):
                opened.pop()
            above.append(opened[-1] if opened else -1)
            opened.append(number)
        return _Enclosing(spans, above)

    def around(self, text: str) -> _Around:
        """Return the ranges that contain an IPv6 address, by number."""
        address = address_number(text)
        if address is None:
            return ()
        around: list[int] = []
        at = bisect_right(self.spans, (6, address.number), key=lambda span: span[:2]) - 1
        while at >= 0 and self.spans[at].version == 6:
            if self.spans[at].last >= address.number:
                around.append(at)
            at = self.above[at]
        return tuple(reversed(around))


def _stretches(spans: list[Interval], points: Iterable[int]) -> Iterator[tuple[Interval, _Around]]:
    """Yield the intervals between the ends of ranges and IPv4 addresses, with the ranges around each."""
    cuts = {(span.version, at) for span in spans for at in (span.first, span.last + 1)}
    cuts.update((4, point + step) for point in points for step in (0, 1))
    if any(span.version == 4 for span in spans):
        cuts.update(((4, 0), (4, 1)))  # no range contains 0.0.0.0 (aclog.authorizer.acl)
    opened: list[int] = []
    following = 0
    for (version, first), (next_version, after) in pairwise(sorted(cuts)):
        opened = [each for each in opened if spans[each].version == version and spans[each].last >= first]
        while following < len(spans) and spans[following][:2] == (version, first):
            opened.append(following)
            following += 1
        if next_version == version:
            yield Interval(version, first, after - 1), () if (version, first) == (4, 0) else tuple(opened)
