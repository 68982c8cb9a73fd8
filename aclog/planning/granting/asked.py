"""What is to be granted or revoked, and the rules for it."""

from attrs import field, frozen

from aclog.analysis.answers.intents import Need
from aclog.analysis.regions.operations import operations_of
from aclog.analysis.regions.principals import EVERYONE, Principals, only
from aclog.analysis.regions.query import Query
from aclog.authorizer.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermissionType,
    PatternType,
    StandardAcl,
)
from aclog.authorizer.index.masks import ALL_OPERATIONS, rule_mask
from aclog.authorizer.unmatched import host_problem
from aclog.planning.granting.patterns import all_names


@frozen(kw_only=True)
class Asked:
    """What a principal is to be allowed, or no longer."""

    principal: str
    """`User:*` is everyone."""
    needs: tuple[Need, ...]
    """Each on one pattern, as a rule has it, and on all of its names; one need a pattern."""
    hosts: tuple[str, ...] = field(default=())
    """Of rules; none: `*` when granting, all hosts when revoking."""

    @property
    def principals(self) -> Principals:
        """Whose requests are asked about."""
        return EVERYONE if self.principal == WILDCARD_PRINCIPAL else only(self.principal)

    def query(self, need: Need, operations: int) -> Query:
        """Return the query for some operations on all names of a need."""
        return Query(resources=tuple(map(all_names, need.patterns)), operations=operations, principals=self.principals)

    def rules(self) -> tuple[StandardAcl, ...]:
        """Return the rules that allow all that is asked, and no more; those on the widest patterns first."""
        found = (
            StandardAcl(
                resource_type=pattern.resource_type,
                resource_name=pattern.name,
                pattern_type=pattern.pattern_type,
                principal=self.principal,
                host=host,
                operation=operation,
                permission_type=AclPermissionType.ALLOW,
            )
            for need in self.needs
            for pattern in need.patterns
            for operation in least_operations(need.operations)
            for host in self.hosts or (WILDCARD,)
        )
        return tuple(sorted(dict.fromkeys(found), key=wide_first))


def least_operations(mask: int) -> tuple[AclOperation, ...]:
    """Return the fewest operations of a mask whose ALLOWs imply the rest of it."""
    found = tuple(operations_of(mask))
    return tuple(each for each in found if not any(each != other and gives(other) >> each & 1 for other in found))


def gives(operation: int) -> int:
    """Return all operations that an ALLOW of one allows, as a mask."""
    return rule_mask(operation, AclPermissionType.ALLOW) & ALL_OPERATIONS


def wide_first(acl: StandardAcl) -> tuple[object, ...]:
    """Return what sorts a rule before those that it covers."""
    is_prefix = acl.pattern_type == PatternType.PREFIXED
    is_all = not is_prefix and acl.resource_name == WILDCARD
    where = (acl.resource_type, not is_all, not is_prefix, len(acl.resource_name), acl.resource_name)
    return (*where, acl.host != WILDCARD, acl.host, acl.operation)


def one_address(host: str) -> str | None:
    """Return the host of a rule if it is an address of clients; None for `*`, a range, and what no client can have."""
    return None if host == WILDCARD or "/" in host or host_problem(host, cidr=True) else host
