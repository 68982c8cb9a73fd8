"""ACLs as text: fields, JSON, and file names in the tree."""

from uuid import UUID

from aclog.authorizer.acl import (
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    StandardAclWithId,
    acl_text,
)
from aclog.authorizer.origin import Origins, place_object
from aclog.metalog.errors import ConfigError
from aclog.metalog.uuids import parse_uuid, uuid_text
from aclog.terminal.json_text import json_string, json_text

_UNKNOWN = "UNKNOWN"
# Plain dicts: a listing of a million ACLs looks up four names for each.
_TYPES = {int(each): each.name for each in ResourceType}
_PATTERNS = {int(each): each.name for each in PatternType}
_OPERATIONS = {int(each): each.name for each in AclOperation}
_PERMISSIONS = {int(each): each.name for each in AclPermissionType}


def rule_fields(rule: StandardAclWithId) -> tuple[str, str, str, str, str, str, str]:
    """Return the fields of an ACL as text, in the order of its JSON without the id; also the sort key of listings.

    A code that Kafka 4.3.1 does not know is UNKNOWN.
    """
    acl = rule.acl
    return (
        _TYPES.get(acl.resource_type, _UNKNOWN),
        acl.resource_name,
        _PATTERNS.get(acl.pattern_type, _UNKNOWN),
        acl.principal,
        acl.host,
        _OPERATIONS.get(acl.operation, _UNKNOWN),
        _PERMISSIONS.get(acl.permission_type, _UNKNOWN),
    )


def rule_json(rule: StandardAclWithId) -> str:
    """Return the ACL as one line of JSON (KIP-801), as `aclog acls list --format jsonl` prints it."""
    kind, name, pattern, principal, host, operation, permission = rule_fields(rule)
    text_id = "null" if rule.id is None else f'"{uuid_text(rule.id)}"'
    return (
        f'{{"resourceType":"{kind}","resourceName":{json_string(name)},"patternType":"{pattern}",'
        f'"principal":{json_string(principal)},"host":{json_string(host)},"operation":"{operation}",'
        f'"permissionType":"{permission}","id":{text_id}}}'
    )


def located_json(rule: StandardAclWithId, origins: Origins) -> str:
    """Return the same, and after it the file and line of the ACL, if they are known."""
    place = place_object(rule.acl, origins)
    return json_text({**rule.to_dict(), **place}) if place else rule_json(rule)


def rule_name(rule: StandardAclWithId) -> str:
    """Return the name of an ACL's file: its id, or its text if the source has no ids."""
    return uuid_text(rule.id) if rule.id is not None else acl_text(rule.acl)


def rule_id(name: str) -> UUID | None:
    """Return the id in the name of a file, or None."""
    try:
        return parse_uuid(name)
    except ConfigError:
        return None
