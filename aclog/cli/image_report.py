"""Reports on an image: a one-line summary, and a warning about hosts that Kafka never matches."""

from collections.abc import Iterable, Iterator

from aclog.authorizer.acl import AclPermissionType, StandardAcl, StandardAclWithId
from aclog.authorizer.cidr import looks_like_cidr
from aclog.authorizer.origin import NO_ORIGINS, Origins, places_text
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


class CidrWatch:
    """Counts ACLs whose host is a CIDR range, and warns about them once, on stderr.

    Kafka 4.3.1 compares hosts literally, so such an ACL never matches and a DENY fails open.
    """

    def __init__(self, origins: Origins = NO_ORIGINS) -> None:
        """`origins` tells where the ACLs stand."""
        self._origins = origins
        self._count = 0
        self._denying = 0
        self._example: StandardAcl | None = None

    def watch(self, rules: Iterable[StandardAclWithId]) -> Iterator[StandardAclWithId]:
        """Yield the same ACLs, counting those with a range."""
        for rule in rules:
            if "/" in rule.acl.host and looks_like_cidr(rule.acl.host):
                self._count += 1
                self._denying += rule.acl.permission_type == AclPermissionType.DENY
                self._example = self._example or rule.acl
            yield rule

    def watch_all(self, rules: Iterable[StandardAclWithId]) -> None:
        """Count the ACLs that have a range."""
        for _ in self.watch(rules):
            pass

    def report(self) -> None:
        """Print the warning, if there is anything to warn about."""
        if self._example is not None:
            warn(
                f"{self._count} ACL(s), {self._denying} of them DENY, have a CIDR range as host, which Kafka 4.3.1 "
                f"never matches: such a DENY does not deny. The first: "
                f"{self._example}{places_text(self._example, self._origins)}"
            )
