"""Command lines that add or remove one ACL: kafka-acls.sh for a cluster, `aclog acls` for a log."""

from aclog.authorizer.acl import (
    CLUSTER_NAME,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    StandardAcl,
)
from aclog.authorizer.change_place import ChangePlace
from aclog.authorizer.shell_word import shell_word
from aclog.authorizer.supported_operations import SUPPORTED_OPERATIONS

_RESOURCE_FLAGS: dict[int, str] = {
    ResourceType.TOPIC: "--topic",
    ResourceType.GROUP: "--group",
    ResourceType.TRANSACTIONAL_ID: "--transactional-id",
    ResourceType.DELEGATION_TOKEN: "--delegation-token",
    ResourceType.USER: "--user-principal",
}


def acl_command(acl: StandardAcl, *, add: bool, place: ChangePlace) -> str | None:
    """Return the command that adds or removes the ACL, quoted for a shell.

    None if no flags can express the ACL. Both commands ask before they remove: `--force` is left out, which for aclog
    would also allow writing to a log that belongs to a Kafka node.
    """
    flags, command = acl_flags(acl), place.command("add" if add else "remove")
    return None if flags is None or command is None else f"{command} {flags}"


def acl_flags(acl: StandardAcl) -> str | None:
    """Return the flags, quoted for a shell; None if no flags can express the ACL, such as one with a blank name."""
    who = _WHO.get(acl.permission_type)
    principal, host, resource = _word(acl.principal), _word(acl.host), _resource_flags(acl)
    if who is None or principal is None or host is None or resource is None:
        return None
    if ":" not in acl.principal or not _accepts(acl.resource_type, acl.operation):
        return None
    return f"--{who}-principal {principal} --{who}-host {host} --operation {_OPERATIONS[acl.operation]} {resource}"


def _accepts(resource_type: int, operation: int) -> bool:
    """Return whether the commands accept the operation: servers store others, which no request asks for."""
    supported = SUPPORTED_OPERATIONS.get(ResourceType(resource_type), ())
    return operation == AclOperation.ALL or operation in supported


def _resource_flags(acl: StandardAcl) -> str | None:
    if acl.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        return None
    pattern = "" if acl.pattern_type == PatternType.LITERAL else " --resource-pattern-type prefixed"
    if acl.resource_type == ResourceType.CLUSTER:
        return None if pattern or acl.resource_name != CLUSTER_NAME else "--cluster"
    flag, name = _RESOURCE_FLAGS.get(acl.resource_type), _word(acl.resource_name)
    return None if flag is None or name is None else f"{flag} {name}{pattern}"


def _word(text: str) -> str | None:
    """Return a value as a word; None if it is empty, or begins or ends with what the commands cut off."""
    # kafka-acls.sh trims as Java's String.trim, which takes all of C0; aclog takes blanks of all of Unicode.
    cut = not text or text != text.strip() or text[0] <= " " or text[-1] <= " "
    return None if cut else shell_word(text)


_WHO: dict[int, str] = {AclPermissionType.ALLOW: "allow", AclPermissionType.DENY: "deny"}

_OPERATIONS: dict[int, str] = {
    operation: "".join(word.capitalize() for word in operation.name.split("_"))
    for operation in AclOperation
    if operation > AclOperation.ANY
}
"""READ as Read, ALTER_CONFIGS as AlterConfigs: the only spelling that kafka-acls.sh accepts."""
