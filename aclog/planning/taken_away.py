"""What the deletion of one ACL takes away, seen from the end of its plan."""

from enum import StrEnum
from hashlib import blake2b
from uuid import UUID

from attrs import frozen

from aclog.analysis.difference import differences
from aclog.analysis.engine.host_partition import is_address
from aclog.analysis.lint.responsible import Responsible
from aclog.analysis.policy import Policy
from aclog.analysis.regions.query import RESOURCE_TYPES
from aclog.analysis.regions.region import Difference
from aclog.analysis.rows.extent import extent_of, is_allow
from aclog.authorizer.acl import StandardAcl, acl_text
from aclog.authorizer.acl_records import record_of


class Nothing(StrEnum):
    """Why the deletion of an ACL changes no decision."""

    ALLOWED = "still allowed by"
    """Another ALLOW says all that it said."""
    DENIED = "still denied by"
    """A DENY says all that it said: of an ALLOW, it gave nothing."""
    SUPER_USER = "its principal is a super user"
    UNUSABLE = "no request is about it"
    NEVER_ALLOWED = "what it denied is not allowed otherwise"
    TOGETHER = "every request is decided the same without it"


@frozen(eq=False, kw_only=True)
class TakenAway:
    """What one ACL still did: the requests that are decided otherwise without it."""

    acl: StandardAcl
    differences: tuple[Difference, ...]
    nothing: Nothing | None = None
    """Why there are none."""
    other: StandardAcl | None = None
    """With ALLOWED and DENIED: the ACL that says the same."""

    def text(self) -> str:
        """Return why it takes nothing away."""
        if self.nothing is None:
            return ""
        return self.nothing.value if self.other is None else f"{self.nothing.value} {acl_text(self.other)}"


def taken_away(end: Policy, acl: StandardAcl) -> TakenAway:
    """Return what an ACL that the end of a plan no longer has would have changed there.

    Raises:
        ReplayError: the end has it.

    """
    # On top of the end's index: to make a new one for each deletion would take as long as all else together.
    more = Policy(end.acls.apply((record_of(acl, _any_id(acl)),)), end.settings)
    found = tuple(differences(more, end, changed=[acl]))
    if found:
        return TakenAway(acl=acl, differences=found)
    nothing, other = _why(end, acl)
    return TakenAway(acl=acl, differences=(), nothing=nothing, other=other)


def _why(end: Policy, acl: StandardAcl) -> tuple[Nothing, StandardAcl | None]:
    if not _is_usable(end, acl):
        return Nothing.UNUSABLE, None
    if acl.principal in end.settings.super_users:
        return Nothing.SUPER_USER, None
    rules = Responsible(index=end.acls.index, documented=end.settings.documented)
    deny = rules.covering(acl, allows=False)
    if deny is not None:
        return Nothing.DENIED, deny
    if not is_allow(acl):  # or its principal has no colon: then it denies everything, as Kafka throws on it
        return Nothing.NEVER_ALLOWED, None
    allow = rules.covering(acl, allows=True)
    return (Nothing.TOGETHER, None) if allow is None else (Nothing.ALLOWED, allow)


def _is_usable(end: Policy, acl: StandardAcl) -> bool:
    """Return whether there is a request that an ACL is about."""
    if acl.resource_type not in RESOURCE_TYPES:
        return False
    extent = extent_of(acl, end.settings)
    hosts = extent.hosts
    some_host = hosts.complement or any("/" in entry or is_address(entry) for entry in hosts.entries)
    return bool(extent.names and extent.operations and some_host)


def _any_id(acl: StandardAcl) -> UUID:
    return UUID(bytes=blake2b(repr(acl).encode("utf-8", "surrogatepass"), digest_size=16).digest())
