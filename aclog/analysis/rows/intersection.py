"""Requests that two regions have in common."""

from collections.abc import Iterator

from attrs import evolve

from aclog.analysis.regions.hosts import Hosts
from aclog.analysis.regions.name_sets import common
from aclog.analysis.regions.principals import Principals, everyone_but, only
from aclog.analysis.regions.region import Region, Request
from aclog.analysis.regions.witness import witness


def common_request(one: Region, other: Region) -> Request | None:
    """Return a request of both regions, on a legal topic name if there is one; None if none is found.

    None is missed, unless ranges of addresses overlap without their first addresses, or with exceptions.
    """
    operations, principals = one.operations & other.operations, _principals(one.principals, other.principals)
    names = common(one.names, other.names)
    if one.resource_type != other.resource_type or not operations or not names:
        return None
    if not principals.named and not principals.complement:
        return None
    for hosts in _hosts(one.hosts, other.hosts):
        request = witness(evolve(one, operations=operations, principals=principals, names=names, hosts=hosts))
        if request in one and request in other:
            return request
    return None


def _principals(one: Principals, other: Principals) -> Principals:
    if one.complement and other.complement:
        return everyone_but(*one.named, *other.named)
    if one.complement:
        one, other = other, one
    return only(*(name for name in one.named if name in other))


def _hosts(one: Hosts, other: Hosts) -> Iterator[Hosts]:
    """Yield sets of addresses, one of which has an address of both."""
    yield one
    yield other
    for each in (one, other):
        if not each.complement:
            yield from (evolve(each, entries=(entry,)) for entry in each.entries)
