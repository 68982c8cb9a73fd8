"""Command lines that add or remove one ACL: kafka-acls.sh for a cluster, `aclog acls` for a log."""

from shlex import quote

from aclog.authorizer.acl import AclOperation, AclPermissionType, PatternType, ResourceType, StandardAcl

_RESOURCE_FLAGS: dict[int, str] = {
    ResourceType.TOPIC: "--topic",
    ResourceType.GROUP: "--group",
    ResourceType.TRANSACTIONAL_ID: "--transactional-id",
    ResourceType.DELEGATION_TOKEN: "--delegation-token",
    ResourceType.USER: "--user-principal",
}


def acl_command(acl: StandardAcl, *, add: bool, log: str | None = None) -> str | None:
    """Return the command, quoted for a shell, for the log in the directory `log` or for a running cluster.

    None if no flags can express the ACL. Both commands ask before they remove: `--force` is left out, which for aclog
    would also allow writing to a log that belongs to a Kafka node.
    """
    flags = acl_flags(acl)
    if flags is None:
        return None
    what = "add" if add else "remove"
    if log is None:
        return f"kafka-acls.sh --bootstrap-server HOST:PORT --{what} {flags}"
    return f"aclog acls {what} --log {quote(log)} {flags}"


def acl_flags(acl: StandardAcl) -> str | None:
    """Return the flags, quoted for a shell; None if no flags can express the ACL (an unknown code, a blank name).

    None also for a name with unprintable characters: a terminal would show another name than the command contains.
    """
    flags = _flags(acl)
    return flags if flags is not None and flags.isprintable() else None


def _flags(acl: StandardAcl) -> str | None:
    who = _WHO.get(acl.permission_type)
    resource = _resource_flags(acl)
    if who is None or resource is None or acl.operation not in _OPERATIONS or ":" not in acl.principal:
        return None
    operation = _OPERATIONS[acl.operation]
    return f"--{who}-principal {quote(acl.principal)} --{who}-host {quote(acl.host)} --operation {operation} {resource}"


def _resource_flags(acl: StandardAcl) -> str | None:
    if acl.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        return None
    pattern = "" if acl.pattern_type == PatternType.LITERAL else " --resource-pattern-type prefixed"
    if acl.resource_type == ResourceType.CLUSTER:
        return None if pattern else "--cluster"
    flag = _RESOURCE_FLAGS.get(acl.resource_type)
    # kafka-acls.sh trims names and rejects empty ones.
    if flag is None or not acl.resource_name or acl.resource_name != acl.resource_name.strip():
        return None
    return f"{flag} {quote(acl.resource_name)}{pattern}"


_WHO: dict[int, str] = {AclPermissionType.ALLOW: "allow", AclPermissionType.DENY: "deny"}

_OPERATIONS: dict[int, str] = {
    operation: "".join(word.capitalize() for word in operation.name.split("_"))
    for operation in AclOperation
    if operation > AclOperation.ANY
}
"""READ as Read, ALTER_CONFIGS as AlterConfigs: the only spelling that kafka-acls.sh accepts."""
