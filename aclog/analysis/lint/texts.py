"""What a rule gives or denies, in words for findings."""

from aclog.authorizer.acl import AclOperation, AclPermissionType, PatternType, ResourceType, StandardAcl, code_name

_BYTE = r"(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
PLAIN_HOST = rf"^(\*|{_BYTE}(\.{_BYTE}){{3}})\Z"
"""A regular expression for `*` and IPv4 addresses: nearly all hosts, and no question."""

_NOUNS: dict[int, str] = {
    ResourceType.TOPIC: "topic",
    ResourceType.GROUP: "group",
    ResourceType.CLUSTER: "cluster",
    ResourceType.TRANSACTIONAL_ID: "transactional id",
    ResourceType.DELEGATION_TOKEN: "delegation token",
    ResourceType.USER: "user",
}


def noun(resource_type: int) -> str:
    """Return what resources of a type are called: `topic`."""
    return _NOUNS.get(resource_type, "resource")


def who(acl: StandardAcl) -> str:
    """Return for whom a rule is, and from where if not from everywhere: `User:a from 10.0.0.1`."""
    return acl.principal if acl.host == "*" else f"{acl.principal} from {acl.host}"


def what(acl: StandardAcl) -> str:
    """Return what a rule is about: `topic 'a'`, `topics 'a'*` for a prefix, `every topic` for LITERAL `*`."""
    kind = noun(acl.resource_type)
    if acl.pattern_type != PatternType.LITERAL:
        return f"{kind}s {acl.resource_name!r}*"
    return f"every {kind}" if acl.resource_name == "*" else f"{kind} {acl.resource_name!r}"


def brief(acl: StandardAcl) -> str:
    """Return a rule in short: `ALLOW READ topics 'a'* to User:a`."""
    if is_allow(acl):
        return f"ALLOW {verb(acl)} {what(acl)} to {who(acl)}"
    return f"DENY {verb(acl)} {what(acl)} to {who(acl)}"


def verb(acl: StandardAcl) -> str:
    """Return the operation: `READ`."""
    return code_name(AclOperation, acl.operation)


def is_allow(acl: StandardAcl) -> bool:
    """Return whether a rule allows; every permission but ALLOW denies."""
    return acl.permission_type == AclPermissionType.ALLOW


def useless(acl: StandardAcl) -> str:
    """Return what a rule that matches nothing fails to do."""
    kind = noun(acl.resource_type)
    if is_allow(acl):
        return f"{who(acl)} gets no {verb(acl)} on any {kind} by it"
    return f"{who(acl)} is denied no {verb(acl)} on any {kind} by it"
