"""Reports on an image: a one-line summary, and a warning about hosts that not every Kafka matches."""

from collections.abc import Iterable, Iterator
from enum import Enum

from attrs import define

from aclog.authorizer.acl import AclPermissionType, StandardAcl, StandardAclWithId
from aclog.authorizer.cidr import is_cidr, looks_like_cidr
from aclog.authorizer.generation import Generation
from aclog.authorizer.origin import NO_ORIGINS, Origins, places_text
from aclog.snapshots.deciding_kafka import DecidingKafka
from aclog.snapshots.image import Image
from aclog.terminal.columns import Column
from aclog.terminal.notices import warn


def summary(image: Image) -> str:
    """Return the number of entries of each kind in the image."""
    brokers = f"{len(image.cluster)} broker{'' if len(image.cluster) == 1 else 's'}"
    return (
        f"{len(image.acls)} ACLs, {len(image.scram)} SCRAM credentials, {len(image.tokens)} delegation tokens, "
        f"{len(image.features)} features, {brokers}, {len(image.opaque)} other records"
    )


COUNT_COLUMNS = (
    Column(key="acls", title="ACLS"),
    Column(key="scramCredentials", title="SCRAM", spare=True),
    Column(key="delegationTokens", title="TOKENS", spare=True),
    Column(key="features", spare=True),
    Column(key="brokers", spare=True),
    Column(key="otherRecords", title="OTHERS", spare=True),
)
"""Of `counts`."""


def counts(image: Image) -> dict[str, int]:
    """Return the number of entries of each kind in the image, for JSON."""
    return {
        "acls": len(image.acls),
        "scramCredentials": len(image.scram),
        "delegationTokens": len(image.tokens),
        "features": len(image.features),
        "brokers": len(image.cluster),
        "otherRecords": len(image.opaque),
    }


class RangeWatch:
    """Counts ACLs whose host is a range of addresses, or looks like one, and warns about them once, on stderr.

    Kafka up to 4.3 compares hosts as texts, so such an ACL never matches and a DENY fails open. Kafka 4.4 matches those
    whose host is a range.
    """

    def __init__(self, origins: Origins = NO_ORIGINS) -> None:
        """`origins` tells where the ACLs stand."""
        self._origins = origins
        self._tallies: dict[_Warning, _Tally] = {}

    def watch(self, rules: Iterable[StandardAclWithId], kafka: DecidingKafka) -> Iterator[StandardAclWithId]:
        """Yield the same ACLs, counting those with a range; `kafka` is what decides on them."""
        for rule in rules:
            if "/" in rule.acl.host and looks_like_cidr(rule.acl.host):
                kind = _kind(rule.acl, kafka)
                if kind is not None:
                    self._tallies.setdefault(kind, _Tally(rule.acl, kafka.reason())).add(rule.acl)
            yield rule

    def watch_all(self, rules: Iterable[StandardAclWithId], kafka: DecidingKafka) -> None:
        """Count the ACLs that have a range."""
        for _ in self.watch(rules, kafka):
            pass

    def report(self) -> None:
        """Print a warning of each kind that there is."""
        for kind, found in self._tallies.items():
            place = places_text(found.first, self._origins)
            why = f" ({found.reason})" if kind is _Warning.BY_GENERATION and found.reason else ""
            number = f"{found.count} ACL(s), {found.denying} of them DENY"
            warn(f"{number}, {kind.value}{why}. The first: {found.first}{place}")


class _Warning(Enum):
    """What is wrong with the host of an ACL."""

    NEVER = "have a CIDR range as host, which Kafka 4.3.1 never matches: such a DENY does not deny"
    BY_GENERATION = (
        "have a CIDR range as host, which Kafka 4.4 matches and Kafka 4.3 does not: there such a DENY does not deny"
    )
    NO_RANGE = "have a host that looks like a CIDR range and is none: it matches nobody, so such a DENY does not deny"


@define(eq=False)
class _Tally:
    first: StandardAcl
    reason: str
    """Why several generations may decide."""
    count: int = 0
    denying: int = 0

    def add(self, acl: StandardAcl) -> None:
        """Count an ACL."""
        self.count += 1
        self.denying += acl.permission_type == AclPermissionType.DENY


def _kind(acl: StandardAcl, kafka: DecidingKafka) -> _Warning | None:
    """Return what to warn of; None if all that decide match the ACL."""
    if kafka.stated is Generation.V4_3:
        return _Warning.NEVER
    if not is_cidr(acl.host):
        return _Warning.NO_RANGE
    return None if kafka.stated is Generation.V4_4 else _Warning.BY_GENERATION
