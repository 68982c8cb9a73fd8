"""Representative cells: a member of each class of principals, hosts and names that rules or regions can tell apart."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address
from itertools import pairwise

from attrs import define, field

from aclog.analysis.policy import Policy
from aclog.analysis.regions import Literal, Region
from aclog.authorizer.acl import host_address
from aclog.metalog.errors import ConfigError
from tests.support.analysis.model import network_of

STRANGERS = ("User:somebody-else", "Robot:somebody-else")
NO_OTHER = "\uf8ff"
"""A character (of a private area) that no name of ours holds; repeated if one does."""
TYPES = range(2, 8)
CLUSTER, CLUSTER_NAME = 4, "kafka-cluster"
_MAPPED = (0xFFFF << 32, (0xFFFF << 32) + (1 << 32) - 1)
_LAST = {4: (1 << 32) - 1, 6: (1 << 128) - 1}


@define
class Cells:
    """What the policies and regions at hand mention, and from that the members of all classes."""

    named_principals: set[str] = field(factory=set)
    """Without `User:*`: as a session's principal it is refused."""
    named_hosts: set[str] = field(factory=set)
    """As written: addresses, ranges, and texts that are neither."""
    named: dict[int, set[str]] = field(factory=dict)
    """By resource type: single names, and prefixes."""

    @classmethod
    def of(cls, *policies: Policy, regions: Iterable[Region] = ()) -> "Cells":
        cells = cls(named={kind: set() for kind in TYPES})
        for policy in policies:
            cells.named_principals |= policy.settings.super_users
            for entry in policy.acls:
                cells.named_principals.add(entry.acl.principal)
                cells.named_hosts.add(entry.acl.host)
                cells.named.setdefault(entry.acl.resource_type, set()).add(entry.acl.resource_name)
        for region in regions:
            cells.add_region(region)
        cells.named_principals = {text for text in cells.named_principals if ":" in text and text != "User:*"}
        return cells

    def add_region(self, region: Region) -> None:
        """Take in what a region mentions: it may be wrong just there."""
        self.named_principals |= set(region.principals.named)
        self.named_hosts |= {*region.hosts.entries, *region.hosts.except_addresses}
        names = self.named[region.resource_type]
        for part in region.names:
            if isinstance(part, Literal):
                names.add(part.name)
            else:
                names |= {part.prefix, *part.except_prefixes, *part.except_literals}

    def principals(self) -> list[str]:
        """Those that are mentioned, and two that are not."""
        return [*sorted(self.named_principals), *STRANGERS]

    def names(self, kind: int) -> list[str]:
        """Every name that is mentioned, and beneath each, and beneath none and `*`, one that is not."""
        if kind == CLUSTER:
            return [CLUSTER_NAME]
        mentioned = sorted(self.named[kind] | {"*", ""})
        return [name for name in mentioned if name] + [_beneath(name, mentioned) for name in mentioned]

    def hosts(self) -> list[str]:
        """The addresses that are mentioned, and one or two of each stretch between the edges of ranges."""
        single = {host for host in self.named_hosts if is_canonical(host)}
        members = set(single)
        if not any(map(network_of, self.named_hosts)):
            return sorted(members | {_unnamed(host, single) for host in ("203.0.113.{}", "2001:db8:0:0:0:0:7:{}%77")})
        for version in (4, 6):
            edges = {0, _LAST[version] + 1}
            if version == 6:
                edges |= {_MAPPED[0], _MAPPED[1] + 1}
            for network in filter(None, map(network_of, self.named_hosts)):
                if network.version == version:
                    edges |= {int(network[0]), int(network[-1]) + 1}
            ordered = sorted(edges)
            for low, high in pairwise(ordered):
                members.update(_members(version, low, high, single))
        return sorted(members)

    def all(self) -> Iterator[tuple[int, str, str, str]]:
        """Every combination: resource type, name, principal, host."""
        principals, hosts = self.principals(), self.hosts()
        for kind in TYPES:
            for name in self.names(kind):
                for principal in principals:
                    for host in hosts:
                        yield kind, name, principal, host


def is_canonical(host: str) -> bool:
    """Whether a text is an address as Java prints it."""
    try:
        return host_address(host) == host
    except ConfigError:
        return False


def _beneath(prefix: str, mentioned: list[str]) -> str:
    """A name that begins with a prefix and with no longer one that is mentioned."""
    name = prefix + NO_OTHER
    while True:
        at = bisect_left(mentioned, name)
        if at == len(mentioned) or not mentioned[at].startswith(name):
            return name
        name += NO_OTHER


def _unnamed(form: str, single: set[str]) -> str:
    return next(host for host in map(form.format, range(1, 256)) if host not in single)


def _members(version: int, low: int, high: int, single: set[str]) -> Iterator[str]:
    """The ends of a stretch, and one inside that no text mentions; of IPv6 one with a scope as well."""
    if version == 6 and low == _MAPPED[0]:
        return  # such clients show up as IPv4
    yield from (_text(version, low), _text(version, high - 1))
    inner = next((n for n in range(low + 1, min(high, low + 100)) if _text(version, n) not in single), None)
    if inner is not None:
        yield _text(version, inner)
        if version == 6:
            yield _text(version, inner) + "%77"


def _text(version: int, number: int) -> str:
    return host_address(str(IPv4Address(number) if version == 4 else IPv6Address(number)))
