"""The hosts of a table as a tree: `*` above ranges, ranges above narrower ones and addresses."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from attrs import frozen

from aclog.analysis.engine.host_partition import is_address
from aclog.analysis.lint.found import texts_among, texts_matching
from aclog.analysis.lint.rule_table import RuleTable
from aclog.analysis.lint.texts import PLAIN_HOST
from aclog.authorizer.acl import WILDCARD
from aclog.authorizer.cidr import address_number, cidr_range
from aclog.metalog.vectors import Bools, Int64s

_MAPPED = (0xFFFF << 32, (0x10000 << 32) - 1)
"""IPv6 addresses of clients that show up as IPv4: no client has one."""


class _Range(NamedTuple):
    version: int
    first: int
    last: int


@frozen(eq=False, kw_only=True)
class HostTree:
    """Hosts by number, those of the table first. Two texts of one range are one host."""

    of_text: Int64s
    """By host of the table: its number here; -1 for a text that matches no client."""
    parents: Int64s
    """By number: the narrowest host that contains it; -1 for `*`."""
    anywhere: int
    """The number of `*`."""
    parts: dict[int, tuple[int, ...]]
    """Ranges all of whose addresses are in narrower hosts, and those hosts; each of them has an address of its own."""
    inner: Bools
    """By number: whether another host lies inside of it."""

    @classmethod
    def of(cls, table: RuleTable) -> "HostTree":
        """Return the tree of the hosts of a table; ranges count if the settings say so."""
        count = len(table.hosts)
        of_text = np.arange(count, dtype=np.int64)
        parents = np.full(count + 1, count, np.int64)
        parents[count] = -1
        ranges: dict[_Range, int] = {}
        for number in np.flatnonzero(~texts_matching(table.hosts, PLAIN_HOST)).tolist():
            text = table.hosts[number]
            found = cidr_range(text) if table.settings.cidr else None
            if found is not None and (found.version, found.last) != (4, 0):
                key = _Range(found.version, found.first, found.last)
                of_text[number] = ranges.setdefault(key, number)
            elif not is_address(text):
                of_text[number] = -1
        for number in np.flatnonzero(texts_among(table.hosts, (WILDCARD,))).tolist():
            of_text[number] = count
        parts: dict[int, tuple[int, ...]] = {}
        if ranges:
            _nest(table, of_text, parents, ranges)
            parts = _parts(ranges, parents, _addresses(table, of_text, ranges))
        inner = np.zeros(count + 1, np.bool_)
        inner[parents[of_text[of_text >= 0]]] = True
        inner[count] = True
        return cls(of_text=of_text, parents=parents, anywhere=count, parts=parts, inner=inner)

    def chain(self, hosts: Int64s) -> Iterator[Int64s]:
        """Yield the hosts themselves, then those around them, until `*`; -1 where there is no more."""
        while (hosts >= 0).any():
            yield hosts
            hosts = np.where(hosts >= 0, self.parents[hosts], -1)

    def around(self, outer: Int64s, inner: Int64s) -> Bools:
        """Return where the first host contains the second, or is it."""
        found = np.zeros(len(outer), np.bool_)
        for hosts in self.chain(inner):
            found |= hosts == outer
        return found


def _addresses(table: RuleTable, of_text: Int64s, ranges: dict[_Range, int]) -> dict[int, _Range]:
    """Return the addresses by number; the range of each has one member."""
    of_ranges = set(ranges.values())
    found = {}
    for number in np.flatnonzero(of_text == np.arange(len(of_text))).tolist():
        text = table.hosts[number]
        if number not in of_ranges and text != WILDCARD:
            address = address_number(text)
            if address is not None:
                found[number] = _Range(address.version, address.number, address.number)
    return found


def _nest(table: RuleTable, of_text: Int64s, parents: Int64s, ranges: dict[_Range, int]) -> None:
    """Hang ranges and addresses below the narrowest range around them."""
    entries = [(span.version, span.first, -span.last, 0, number) for span, number in ranges.items()]
    for number, span in _addresses(table, of_text, ranges).items():
        if span != (4, 0, 0):  # no range contains it
            entries.append((span.version, span.first, -span.last, 1, number))
    stack: list[tuple[int, int, int]] = []
    for version, first, negative, is_address_, number in sorted(entries):
        while stack and (stack[-1][0] != version or stack[-1][1] < first):
            stack.pop()
        if stack:
            parents[number] = stack[-1][2]
        if not is_address_:
            stack.append((version, -negative, number))


def _parts(ranges: dict[_Range, int], parents: Int64s, addresses: dict[int, _Range]) -> dict[int, tuple[int, ...]]:
    children: dict[int, list[tuple[int, _Range]]] = {}
    for number, span in (*((n, s) for s, n in ranges.items()), *addresses.items()):
        children.setdefault(int(parents[number]), []).append((number, span))
    found: dict[int, tuple[int, ...]] = {}
    narrowest_first = sorted(ranges.items(), key=lambda item: item[0].last - item[0].first)
    for span, number in narrowest_first:
        inside = children.get(number, [])
        if _members(span) == sum(_members(each) for n, each in inside if _counts(n, each, addresses)):
            found[number] = tuple(_flat(inside, found))
    return found


def _counts(number: int, span: _Range, addresses: dict[int, _Range]) -> bool:
    """Return whether a host takes all addresses of its span: a rule on an IPv6 address leaves out other scopes."""
    return span.version == 4 or number not in addresses


def _flat(inside: Sequence[tuple[int, _Range]], parts: dict[int, tuple[int, ...]]) -> Iterator[int]:
    for number, _ in inside:
        yield from parts.get(number, (number,))


def _members(span: _Range) -> int:
    """Return how many addresses that clients may have are in a span."""
    size = span.last - span.first + 1
    if span.version == 4:
        return size - (span.first == 0)
    return size - max(0, min(span.last, _MAPPED[1]) - max(span.first, _MAPPED[0]) + 1)
