"""A rule as text: its name in a directory, and as JSON."""

import json
from uuid import UUID

from authorizer.acl import (
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    StandardAclWithId,
    code_name,
)
from authorizer.explanation_text import acl_text
from metalog.errors import ConfigError
from metalog.uuids import parse_uuid, uuid_text


def rule_name(rule: StandardAclWithId) -> str:
    """The name of a rule's file: its id, or where the source has no ids, what it says."""
    return uuid_text(rule.id) if rule.id is not None else acl_text(rule.acl)


def rule_id(name: str) -> UUID | None:
    """The id that a file's name stands for, or None."""
    try:
        return parse_uuid(name)
    except ConfigError:
        return None


def rule_json(rule: StandardAclWithId) -> str:
    """The rule as a JSON object in one line (KIP-801), with the keys that `aclog acls list --format jsonl` has."""
    acl = rule.acl
    return json_text(
        {
            "resourceType": code_name(ResourceType, acl.resource_type),
            "resourceName": acl.resource_name,
            "patternType": code_name(PatternType, acl.pattern_type),
            "principal": acl.principal,
            "host": acl.host,
            "operation": code_name(AclOperation, acl.operation),
            "permissionType": code_name(AclPermissionType, acl.permission_type),
            "id": None if rule.id is None else uuid_text(rule.id),
        }
    )


def json_text(value: dict[str, object]) -> str:
    """A JSON object in one line; control characters are escaped, other characters stand as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
