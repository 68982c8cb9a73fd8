"""What a policy allows, by looking at every rule that covers a name: slow, plain, and apart from the engine.

Only values of the product are used (`StandardAcl`, `Policy`), none of its indexes, masks or range readers.
"""

from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import NamedTuple, TypeAlias

from aclog.analysis.policy import Policy
from aclog.analysis.regions import Request
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType

Network: TypeAlias = IPv4Network | IPv6Network

EVERY_OPERATION = sum(1 << operation for operation in AclOperation if operation > AclOperation.ALL)
IMPLIED = {
    AclOperation.READ: AclOperation.DESCRIBE,
    AclOperation.WRITE: AclOperation.DESCRIBE,
    AclOperation.DELETE: AclOperation.DESCRIBE,
    AclOperation.ALTER: AclOperation.DESCRIBE,
    AclOperation.ALTER_CONFIGS: AclOperation.DESCRIBE_CONFIGS,
}
"""What an ALLOW of an operation allows besides it."""


class _Rule(NamedTuple):
    principal: str
    host: str
    network: Network | None
    allows: int
    denies: int


class PolicyModel:
    """Answers for single cells: a principal, a host and a name, all operations at once."""

    def __init__(self, policy: Policy) -> None:
        self.settings = policy.settings
        self._on: dict[tuple[int, str, bool], list[_Rule]] = {}
        for entry in policy.acls:
            acl = entry.acl
            literal = acl.pattern_type == PatternType.LITERAL
            self._on.setdefault((acl.resource_type, acl.resource_name, literal), []).append(self._rule(acl))
        self._covering: dict[tuple[int, str], list[_Rule]] = {}

    def _rule(self, acl: StandardAcl) -> _Rule:
        network = network_of(acl.host) if self.settings.cidr else None
        if ":" not in acl.principal:  # Kafka throws when it meets this rule, so nobody is allowed
            return _Rule("User:*", "*", None, 0, EVERY_OPERATION)
        mask = EVERY_OPERATION if acl.operation == AclOperation.ALL else 1 << acl.operation & EVERY_OPERATION
        if acl.permission_type != AclPermissionType.ALLOW:
            return _Rule(acl.principal, acl.host, network, 0, mask)
        if acl.operation in IMPLIED:
            mask |= 1 << IMPLIED[AclOperation(acl.operation)]
        return _Rule(acl.principal, acl.host, network, mask, 0)

    def covering(self, resource_type: int, name: str) -> list[_Rule]:
        """The rules whose pattern covers a name, whomever they are for."""
        rules = self._covering.get((resource_type, name))
        if rules is None:
            rules = list(self._on.get((resource_type, name, True), ()))
            for end in range(len(name) + 1):
                rules += self._on.get((resource_type, name[:end], False), ())
            if name != "*" and (self.settings.documented or not name.startswith("*")):
                rules += self._on.get((resource_type, "*", True), ())
            self._covering[resource_type, name] = rules
        return rules

    def allowed(self, principal: str, host: str, resource_type: int, name: str) -> int:
        """The operations that are allowed, as a mask over the 13 that can be asked."""
        if principal in self.settings.super_users:
            return EVERY_OPERATION
        rules = self.covering(resource_type, name)
        if not rules:
            return EVERY_OPERATION if self.settings.allow_everyone else 0
        allows = denies = 0
        for rule in rules:
            if rule.principal in (principal, "User:*") and _is_from(rule, host):
                allows |= rule.allows
                denies |= rule.denies
        return allows & ~denies

    def allows(self, request: Request) -> bool:
        """Whether one request is allowed."""
        mask = self.allowed(request.principal, request.host, request.resource_type, request.resource_name)
        return bool(mask >> request.operation & 1)


def _is_from(rule: _Rule, host: str) -> bool:
    return rule.host in ("*", host) or (rule.network is not None and in_network(rule.network, host))


def network_of(host: str) -> Network | None:
    """A range as rules may hold it (KIP-1276); None for any other text."""
    base, slash, _ = host.partition("/")
    if not slash:
        return None
    try:
        network = ip_network(host, strict=False)
    except ValueError:
        return None
    mapped = network.version == 6 and getattr(ip_address(base), "ipv4_mapped", None) is not None
    return None if mapped else network


def in_network(network: Network, host: str) -> bool:
    """Whether a range contains a client's address: its scope does not count, and 0.0.0.0 is in no range."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return address in network and host != "0.0.0.0"
