"""Equivalence classes of client addresses by the hosts of ACLs."""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, reduce
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, summarize_address_range
from itertools import pairwise
from operator import or_
from typing import NamedTuple, Protocol, TypeAlias

from attrs import define, field, frozen

from aclog.analysis.regions import EVERYWHERE, Hosts
from aclog.authorizer.acl import WILDCARD, address_number, cidr_range, host_address, in_cidr
from aclog.metalog.errors import ConfigError

# Classes of client addresses: two addresses are in one class if they match the same ACLs.


ELSEWHERE = 1
"""The bit of the class of all addresses that no ACL names; a partition always has this class."""


class HostClasses(Protocol):
    """Classes by number; sets of them are masks with bit n for class n."""

    @property
    def count(self) -> int:
        """The number of classes."""
        ...

    def matched(self, host: str, *, cidr: bool) -> int:
        """Return the classes that the host of an ACL matches; `cidr`: it may be a range."""
        ...

    def hosts(self, classes: int) -> list[Hosts]:
        """Return the addresses of some classes, in as few disjoint sets as possible."""
        ...


@frozen(eq=False)
class OneHost:
    """The single class of one address, for questions about one client."""

    host: str
    count: int = 1

    def matched(self, host: str, *, cidr: bool) -> int:
        """Return 1 if the host of an ACL matches the address."""
        return int(host in (WILDCARD, self.host) or (cidr and "/" in host and in_cidr(host, self.host)))

    def hosts(self, classes: int) -> list[Hosts]:
        """Return the address."""
        return [Hosts(entries=(self.host,))] if classes else []


_ZERO = "0.0.0.0"  # noqa: S104  # an address in a set, not to listen on


class Interval(NamedTuple):
    """The addresses from `first` to `last`, both included, with any scope."""

    version: int
    first: int
    last: int

    def holds(self, number: int) -> bool:
        """Return whether an address of the same version lies in the interval."""
        return self.first <= number <= self.last


@frozen(eq=False, kw_only=True)
class Partition:
    """All addresses, partitioned by the hosts of some ACLs: single addresses, and ranges if they are enabled."""

    count: int
    _matched: Mapping[str, int]
    """By address or range."""
    _intervals: tuple[tuple[Interval, ...], ...]
    """By class; none for class 0 and for a single IPv6 address."""
    _texts: Mapping[str, tuple[int, int]]
    """By IPv6 address: its class, and the class of all others of the same number, as bits.

    An ACL on an address matches its text, while a range matches any scope (`%1`) of its numbers, so such an address
    cannot be cut out of an interval.
    """

    def matched(self, host: str, *, cidr: bool) -> int:
        """Return the classes that the host of an ACL matches."""
        if host == WILDCARD:
            return (1 << self.count) - 1
        return self._matched.get(host, 0) if cidr or "/" not in host else 0

    def classes_of(self, hosts: Hosts) -> int:
        """Return the classes of a set of addresses, whose texts must all be in the partition."""
        classes = reduce(or_, (self._matched.get(entry, 0) for entry in hosts.entries), 0)
        if hosts.complement:
            classes = ((1 << self.count) - 1) & ~classes
        return classes & ~reduce(or_, (self._matched.get(address, 0) for address in hosts.except_addresses), 0)

    def hosts(self, classes: int) -> list[Hosts]:
        """Return the addresses of some classes, in as few disjoint sets as possible."""
        if classes == (1 << self.count) - 1:
            return [EVERYWHERE]
        if not classes:
            return []
        return self._all_but(classes) if classes & ELSEWHERE else self._exactly(classes)

    def _all_but(self, classes: int) -> list[Hosts]:
        out, included = self._texts_against(~classes)
        entries = {*_entries(self._intervals_of(~classes)), *out}
        parts = [Hosts(entries=tuple(sorted(entries)), complement=True)]
        # An omitted range would take along addresses that belong to the result.
        return [*parts, Hosts(entries=included)] if included else parts

    def _exactly(self, classes: int) -> list[Hosts]:
        intervals = list(self._intervals_of(classes))
        texts, out = self._texts_against(classes)
        if not out:
            return [Hosts(entries=tuple(sorted({*_entries(intervals), *texts})))]
        if any((each.version, each.first) == (4, 0) for each in intervals):
            texts = (_ZERO, *texts)
        ranges = Hosts(entries=tuple(sorted(_entries(intervals, as_ranges=True))), except_addresses=out)
        return [ranges, Hosts(entries=texts)] if texts else [ranges]

    def _texts_against(self, classes: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the IPv6 addresses of some classes outside their ranges, and those of other classes inside."""
        texts = self._texts.items()
        alone = sorted(text for text, (own, others) in texts if own & classes and not others & classes)
        inside = sorted(text for text, (own, others) in texts if others & classes and not own & classes)
        return tuple(alone), tuple(inside)

    def _intervals_of(self, classes: int) -> Iterator[Interval]:
        for number, intervals in enumerate(self._intervals):
            if classes >> number & 1:
                yield from intervals


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
    named = sorted(host for host in hosts if host != WILDCARD)
    addresses = list(filter(is_address, named))
    return _partition(addresses, _ranges(named) if cidr else {})


@lru_cache(1 << 16)
def is_address(host: str) -> bool:
    """Return whether the host of an ACL is an address in the format of Kafka's authorizer; other texts never match."""
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

    matched: dict[str, int] = field(factory=dict)
    """By address and by range: classes, as bits."""
    intervals: list[list[Interval]] = field(factory=lambda: [[]])
    _numbers: dict[tuple[_Around, str], int] = field(factory=lambda: {((), ""): 0})

    def add(self, interval: Interval | None, around: _Around, *, address: str) -> int:
        """Add an interval to the class of its surrounding ranges, or of a single address; return the class as a bit."""
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
        numbers = (n for n, span in enumerate(spans) if number and span.version == 6 and span.holds(number.number))
        around = tuple(numbers)
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
