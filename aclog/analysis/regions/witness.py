"""A request of a region, as an example that anybody can check."""

from collections import deque
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from itertools import chain, count

from aclog.analysis.regions.hosts import Hosts
from aclog.analysis.regions.names import Literal, NamePart, Names, Subtree
from aclog.analysis.regions.operations import operations_of
from aclog.analysis.regions.principals import Principals
from aclog.analysis.regions.region import Region, Request
from aclog.analysis.regions.topic_names import LEGAL_CHARACTERS, LONGEST, is_legal_topic
from aclog.authorizer.acl import ResourceType
from aclog.authorizer.cidr import parse_cidr
from aclog.authorizer.hosts import host_address

_LEGAL_CHARACTERS = frozenset(LEGAL_CHARACTERS)
_USUAL_HOSTS = ("127.0.0.1", *(f"203.0.113.{n}" for n in range(1, 255)))
_UNUSUAL_HOSTS = ("0:0:0:0:0:0:0:1", "2001:db8:0:0:0:0:0:1", "0.0.0.0")  # noqa: S104  # of a request, not to listen on


def witness(region: Region) -> Request:
    """Return a request of a region, on a legal topic name if it has one."""
    return Request(
        principal=_principal(region.principals),
        host=_host(region.hosts),
        operation=next(operations_of(region.operations)),
        resource_type=region.resource_type,
        resource_name=_name(region.resource_type, region.names),
    )


def has_legal_name(region: Region) -> bool:
    """Return whether a resource can have one of the region's names; only topic names are restricted."""
    if region.resource_type != ResourceType.TOPIC:
        return True
    return any(_legal_topic(part) is not None for part in region.names)


def _principal(principals: Principals) -> str:
    if not principals.complement:
        return principals.named[0]
    candidates = chain(("User:anyone",), (f"User:anyone-{n}" for n in count(2)))
    return next(name for name in candidates if name in principals)


def _host(hosts: Hosts) -> str:
    if hosts.complement:
        candidates = chain(_USUAL_HOSTS, _beside(hosts), _UNUSUAL_HOSTS)
    else:
        first = [_first_address(entry) for entry in hosts.entries]
        # All that a range of one IPv6 address still holds may be clients of other scopes.
        scoped = (f"{address}%{scope}" for scope in count(1) for address in first if ":" in address)
        candidates = chain(("127.0.0.1",), first, scoped)
    return next(host for host in candidates if host in hosts)


def _first_address(entry: str) -> str:
    if "/" not in entry:
        return entry
    found = parse_cidr(entry)
    return _address(found.version, found.first)


def _beside(hosts: Hosts) -> Iterator[str]:
    """Yield the addresses right before and after each range."""
    for entry in hosts.entries:
        if "/" in entry:
            found = parse_cidr(entry)
            for number in found.first - 1, found.last + 1:
                if 0 <= number < 1 << (32 if found.version == 4 else 128):
                    yield _address(found.version, number)


def _address(version: int, number: int) -> str:
    return host_address(str(IPv4Address(number) if version == 4 else IPv6Address(number)))


def _name(kind: ResourceType, names: Names) -> str:
    if kind == ResourceType.TOPIC:
        for part in names:
            legal = _legal_topic(part)
            if legal is not None:
                return legal
    first = names[0]
    return first.name if isinstance(first, Literal) else next(chain(_members(first), _unusual_members(first)))


def _legal_topic(part: NamePart) -> str | None:
    """Return a name of a part that a topic can have; None if there is none."""
    if isinstance(part, Literal):
        return part.name if is_legal_topic(part.name) else None
    if not set(part.prefix) <= _LEGAL_CHARACTERS:
        return None
    return next(filter(is_legal_topic, _members(part)), None)


def _members(part: Subtree) -> Iterator[str]:
    """Yield names of a subtree; a legal topic name among them if it has one, unless its prefix is none."""
    if part.prefix in part:
        yield part.prefix
    below = deque([part.prefix])
    while below:
        name = below.popleft()
        for longer in (name + character for character in LEGAL_CHARACTERS if len(name) < LONGEST):
            if longer in part:
                yield longer
            # All names below a member are as good as it is, but below these two, which are no legal topics.
            if longer in (".", "..") or (longer not in part and not longer.startswith(part.except_prefixes)):
                below.append(longer)


def _unusual_members(part: Subtree) -> Iterator[str]:
    """Yield names that go on with any other character."""
    return filter(part.__contains__, (part.prefix + chr(code) for code in range(0x21, 0xD800)))
