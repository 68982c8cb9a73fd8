"""What a rule gives or denies, in words for findings."""

from aclog.authorizer.acl import AclOperation, AclPermissionType, ResourceType, StandardAcl, code_name

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
    return f"it keeps {who(acl)} from {verb(acl)} on no {kind}"
