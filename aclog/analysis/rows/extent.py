"""The extent of a rule: the requests that it is about."""

from attrs import frozen

from aclog.analysis.regions.hosts import EVERYWHERE, Hosts
from aclog.analysis.regions.names import ANY_NAME, Literal, NamePart, Names, Subtree
from aclog.analysis.regions.operations import REQUESTED
from aclog.analysis.regions.principals import EVERYONE, Principals, only
from aclog.analysis.regions.region import Region
from aclog.authorizer.acl import (
    CLUSTER_NAME,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclPermissionType,
    PatternType,
    ResourceType,
    StandardAcl,
)
from aclog.authorizer.cidr import is_cidr
from aclog.authorizer.index.masks import ALL_OPERATIONS, rule_mask
from aclog.authorizer.settings import Settings

WILDCARD_NAMES: Names = (Subtree(prefix="", except_prefixes=(WILDCARD,)), Literal(name=WILDCARD))
"""What LITERAL `*` covers in Kafka 4.3.1."""


@frozen(kw_only=True)
class Extent:
    """The requests that a rule is about; `names` is empty if that is none."""

    resource_type: ResourceType
    operations: int
    """A mask (aclog.analysis.regions.operations); what an ALLOW implies is in it."""
    principals: Principals
    hosts: Hosts
    names: Names

    def region(self) -> Region:
        """Return the extent as a region."""
        return Region(
            resource_type=self.resource_type,
            operations=self.operations,
            principals=self.principals,
            hosts=self.hosts,
            names=self.names,
        )

    def meets(self, region: Region, names: Names | None = None) -> bool:
        """Return whether the extent and a region have requests in common; ranges of addresses are not compared.

        `names`: some of the region's, to look at no others.
        """
        return (
            self.resource_type == region.resource_type
            and bool(self.operations & region.operations)
            and principals_meet(self.principals, region.principals)
            and hosts_meet(self.hosts, region.hosts)
            and names_meet(self.names, region.names if names is None else names)
        )

    def spans(self, region: Region) -> bool:
        """Return whether the extent is about all principals, hosts and operations of a region."""
        return (
            not region.operations & ~self.operations
            and self.principals in (EVERYONE, region.principals)
            and self.hosts in (EVERYWHERE, region.hosts)
        )


def extent_of(rule: StandardAcl, settings: Settings) -> Extent:
    """Return the extent of a rule of a known resource type under some settings."""
    names, throws = pattern_names(rule, settings), ":" not in rule.principal
    mask = ALL_OPERATIONS if throws else rule_mask(rule.operation, rule.permission_type)
    return Extent(
        resource_type=ResourceType(rule.resource_type),
        operations=(mask | mask >> 16) & ALL_OPERATIONS & REQUESTED,
        principals=EVERYONE if throws or rule.principal == WILDCARD_PRINCIPAL else only(rule.principal),
        hosts=EVERYWHERE if throws else _hosts(rule.host, settings),
        names=names,
    )


def is_allow(rule: StandardAcl) -> bool:
    """Return whether a rule allows; one whose principal has no colon denies everything, since Kafka throws on it."""
    return rule.permission_type == AclPermissionType.ALLOW and ":" in rule.principal


def pattern_names(rule: StandardAcl, settings: Settings) -> Names:
    """Return the names that the pattern of a rule covers."""
    name, literal = rule.resource_name, rule.pattern_type == PatternType.LITERAL
    star = literal and name == WILDCARD
    if rule.resource_type == ResourceType.CLUSTER:
        covers = star or (name == CLUSTER_NAME if literal else CLUSTER_NAME.startswith(name))
        return (Literal(name=CLUSTER_NAME),) if covers else ()
    if star:
        return ANY_NAME if settings.documented else WILDCARD_NAMES
    if literal:
        return (Literal(name=name),) if name else ()
    return (Subtree(prefix=name),)


def _hosts(host: str, settings: Settings) -> Hosts:
    if host == WILDCARD:
        return EVERYWHERE
    return Hosts(entries=(host,)) if "/" not in host or (settings.cidr and is_cidr(host)) else Hosts()


def principals_meet(one: Principals, other: Principals) -> bool:
    """Return whether two sets of principals have one in common."""
    if one.complement and other.complement:
        return True
    if one.complement:
        one, other = other, one
    return any(name in other for name in one.named)


def hosts_meet(one: Hosts, other: Hosts) -> bool:
    """Return whether two sets of addresses have one in common; two with ranges are said to."""
    if one.complement and other.complement:
        return True
    if one.complement:
        one, other = other, one
    if any(entry in other for entry in one.entries if "/" not in entry):
        return True
    if other.complement:
        return one.entries != other.entries and any("/" in entry for entry in one.entries)
    if any(entry in one for entry in other.entries if "/" not in entry):
        return True
    return all(any("/" in entry for entry in each.entries) for each in (one, other))


def names_meet(some: Names, others: Names) -> bool:
    """Return whether two unions of names have one in common."""
    return any(_parts_meet(part, other) for part in some for other in others)


def _parts_meet(one: NamePart, other: NamePart) -> bool:
    if isinstance(one, Literal):
        return one.name in other
    if isinstance(other, Literal):
        return other.name in one
    outer, inner = sorted((one, other), key=lambda part: len(part.prefix))
    return inner.prefix.startswith(outer.prefix) and not inner.prefix.startswith(outer.except_prefixes)
