"""A row: one line of a report on a change, which says what some principals gained or lost."""

from enum import Enum

from attrs import frozen

from aclog.analysis.regions.hosts import Hosts
from aclog.analysis.regions.names import Names, contains
from aclog.analysis.regions.principals import Principals
from aclog.analysis.regions.region import Direction, Request
from aclog.authorizer.acl import ResourceType, StandardAcl


@frozen(kw_only=True)
class Clause:
    """Operations on names of one type: a part of what a row says."""

    resource_type: ResourceType
    operations: int
    """A mask (aclog.analysis.regions.operations)."""
    names: Names


class Setting(Enum):
    """A setting whose change has effects of its own."""

    SUPER_USERS = "super.users"
    ALLOW_EVERYONE = "allow.everyone.if.no.acl.found"
    SEMANTICS = "what LITERAL * covers"


class Bound(Enum):
    """Of what a row may claim more than changed."""

    NONE = ""
    """Nothing: every request of the row changed."""
    WHO = "who and hosts"
    """Each operation of a clause changed on each of its names: for some of the principals, from some of the hosts."""
    NAMES = "who, names and hosts"
    """Each operation of a clause changed: on some of its names, for some of the principals, from some of the hosts."""
    ALL = "who, operations, names and hosts"
    """Some of it changed: ranges of addresses overlap in ways that are not looked into."""


@frozen(kw_only=True)
class Cause:
    """Why a summary's requests changed: rules that were added or removed, all with one permission, or a setting."""

    is_added: bool
    """Whether the rules came, or the setting was turned on (super.users: principals came)."""
    rules: tuple[StandardAcl, ...] = ()
    setting: Setting | None = None


@frozen(kw_only=True)
class Summary:
    """What a summary counts, exactly, and how far it goes beyond what changed."""

    cause: Cause
    bound: Bound
    principals: int
    """How many principals that rules or settings name gained or lost something."""
    everyone_else: bool
    """Whether those that nothing names did, too."""
    rules: int
    """How many ALLOW rules are about some of the row's requests: of the policy before if the row tells of losses, of
    the one after if only of gains. 0 if the cause is a setting."""


@frozen(kw_only=True)
class Row:
    """What some principals gained or lost from some hosts.

    Without `summary` the row is exact: one direction, and every request by one of the principals, from one of the
    hosts, for what a clause says changed in it. With `summary` no others changed for that cause, and its `bound` says
    of what the row may claim too much; a summary may have both directions.
    """

    directions: tuple[Direction, ...]
    principals: Principals
    hosts: Hosts
    clauses: tuple[Clause, ...]
    """By resource type and name; never empty."""
    witness: Request
    """A request that changed."""
    before: StandardAcl | str | None
    """The rule that decided the witness, or `SuperUser`, `DefaultAllow` or `DefaultDeny`; None if Kafka throws."""
    after: StandardAcl | str | None
    legal: bool
    """Whether a legal name (of a topic, if it is one) fits the row."""
    summary: Summary | None = None

    @property
    def bound(self) -> Bound:
        """Of what the row may claim more than changed."""
        return Bound.NONE if self.summary is None else self.summary.bound

    def __contains__(self, request: Request) -> bool:
        """Return whether the row is about a request; in a summary it need not have changed."""
        return (
            request.principal in self.principals
            and request.host in self.hosts
            and any(
                clause.resource_type == request.resource_type
                and clause.operations >> request.operation & 1
                and contains(clause.names, request.resource_name)
                for clause in self.clauses
            )
        )
