"""ACLs as JSON objects: a line of `acls list --format jsonl`, a rule in a plan, in a journal, in a change."""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Any
from uuid import UUID

from aclog.authorizer.acl import (
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    StandardAcl,
    StandardAclWithId,
    code_name,
)
from aclog.metalog.errors import ConfigError
from aclog.metalog.json_object import text_field
from aclog.metalog.uuids import parse_uuid


def rule_of_object(value: dict[str, object]) -> StandardAclWithId:
    """Return the ACL in a JSON object; `id` may be missing or null.

    Raises:
        ConfigError: a key is missing, an enum name is unknown, or the id is not a UUID in Kafka's base64 form.

    """
    return StandardAclWithId(id=_id(value), acl=_plain_acl(value) or _checked_acl(value))


def object_of_rule(acl: StandardAcl) -> dict[str, str]:
    """Return the JSON object of an ACL without an id, with the keys of `acls list --format jsonl`."""
    return {
        "resourceType": code_name(ResourceType, acl.resource_type),
        "resourceName": acl.resource_name,
        "patternType": code_name(PatternType, acl.pattern_type),
        "principal": acl.principal,
        "host": acl.host,
        "operation": code_name(AclOperation, acl.operation),
        "permissionType": code_name(AclPermissionType, acl.permission_type),
    }


def _plain_acl(value: Mapping[str, Any]) -> StandardAcl | None:
    """Return the ACL in an object, None unless all of it is as nearly always: ASCII texts and known names."""
    try:
        name, principal, host = value["resourceName"], value["principal"], value["host"]
        if not (name.isascii() and principal.isascii() and host.isascii()):
            return None
        return StandardAcl(
            resource_type=_RESOURCE_TYPES[value["resourceType"]],
            resource_name=name,
            pattern_type=_PATTERN_TYPES[value["patternType"]],
            principal=principal,
            host=host,
            operation=_OPERATIONS[value["operation"]],
            permission_type=_PERMISSION_TYPES[value["permissionType"]],
        )
    except (KeyError, AttributeError, TypeError):  # a missing or unknown one, a number, a list
        return None


def _checked_acl(value: dict[str, object]) -> StandardAcl:
    return StandardAcl(
        resource_type=enum_field(value, "resourceType", ResourceType),
        resource_name=text_field(value, "resourceName"),
        pattern_type=enum_field(value, "patternType", PatternType),
        principal=text_field(value, "principal"),
        host=text_field(value, "host"),
        operation=enum_field(value, "operation", AclOperation),
        permission_type=enum_field(value, "permissionType", AclPermissionType),
    )


def enum_field(value: dict[str, object], key: str, kind: type[IntEnum]) -> int:
    """Return the code of a field that holds an upper-case enum name.

    Raises:
        ConfigError: the key is missing, or its value is not one of the names.

    """
    name = text_field(value, key)
    code = kind.__members__.get(name)
    if code is None:
        raise ConfigError(f"{key} {name[:40]!r} is not one of {', '.join(kind.__members__)}")
    return int(code)


def _id(value: dict[str, object]) -> UUID | None:
    return None if value.get("id") is None else parse_uuid(text_field(value, "id"))


def _codes(kind: type[IntEnum]) -> Mapping[str, int]:
    """Return the codes by name: plain numbers, as a million lines ask four times each."""
    return MappingProxyType({name: int(member) for name, member in kind.__members__.items()})


_RESOURCE_TYPES, _PATTERN_TYPES = _codes(ResourceType), _codes(PatternType)
_OPERATIONS, _PERMISSION_TYPES = _codes(AclOperation), _codes(AclPermissionType)
CODES = (_RESOURCE_TYPES, _PATTERN_TYPES, _OPERATIONS, _PERMISSION_TYPES)
"""The codes by name of resource types, pattern types, operations and permission types."""
