"""A rule as text: its fields, its name in a directory, and as JSON."""

import json
from uuid import UUID

from aclog.authorizer.acl import (
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    StandardAclWithId,
)
from aclog.authorizer.explanation_text import acl_text
from aclog.metalog.errors import ConfigError
from aclog.metalog.uuids import parse_uuid, uuid_text

KEYS = ("resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType", "id")
"""The keys of a rule as JSON, in their order."""

_UNKNOWN = "UNKNOWN"
# Tables, since a listing of a million rules asks for four names each.
_TYPES = {int(each): each.name for each in ResourceType}
_PATTERNS = {int(each): each.name for each in PatternType}
_OPERATIONS = {int(each): each.name for each in AclOperation}
_PERMISSIONS = {int(each): each.name for each in AclPermissionType}
_quoted = json.encoder.encode_basestring


def rule_fields(rule: StandardAclWithId) -> tuple[str, str, str, str, str, str, str]:
    """What a rule says, as text, in the order of KEYS without the id: the order in which rules are listed, too.

    A code that this Kafka does not know is UNKNOWN.
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


def rule_object(rule: StandardAclWithId) -> dict[str, str | None]:
    """The rule as a JSON object with KEYS."""
    return dict(zip(KEYS, (*rule_fields(rule), None if rule.id is None else uuid_text(rule.id)), strict=True))


def rule_json(rule: StandardAclWithId) -> str:
    """The same in one line (KIP-801): what `aclog acls list --format jsonl` prints of a rule."""
    kind, name, pattern, principal, host, operation, permission = rule_fields(rule)
    text_id = "null" if rule.id is None else f'"{uuid_text(rule.id)}"'
    return (
        f'{{"resourceType":"{kind}","resourceName":{_quoted(name)},"patternType":"{pattern}",'
        f'"principal":{_quoted(principal)},"host":{_quoted(host)},"operation":"{operation}",'
        f'"permissionType":"{permission}","id":{text_id}}}'
    )


def rule_name(rule: StandardAclWithId) -> str:
    """The name of a rule's file: its id, or where the source has no ids, what it says."""
    return uuid_text(rule.id) if rule.id is not None else acl_text(rule.acl)


def rule_id(name: str) -> UUID | None:
    """The id that a file's name stands for, or None."""
    try:
        return parse_uuid(name)
    except ConfigError:
        return None


def json_text(value: dict[str, object]) -> str:
    """A JSON object in one line; control characters are escaped, other characters stand as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
