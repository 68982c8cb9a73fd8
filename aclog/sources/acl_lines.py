"""ACLs as JSON lines: the output of `acls list --format jsonl`, the input of `--acls FILE`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
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
)
from aclog.metalog.errors import ConfigError
from aclog.metalog.uuids import parse_uuid
from aclog.sources.json_object import parse_object, text_field
from aclog.sources.text_lines import display_name, numbered


def accept(acl: StandardAcl) -> None:
    """Accept every ACL, those that Kafka would refuse to create as well: a log can contain them."""


def read_acls(path: str, check: Callable[[StandardAcl], None] = accept) -> Iterator[StandardAclWithId]:
    """Yield the ACLs of a file of JSON lines (`-` is stdin, gzip is detected); `id` may be missing or null.

    `check` raises ConfigError on an ACL that the command refuses.

    Raises:
        ConfigError: a line that is not an ACL, or refused, with its number; or a damaged file.
        OSError: the file cannot be read.

    """
    return (rule for _, rule in parse_acls(numbered(path), display_name(path), check))


def parse_acls(
    lines: Iterable[tuple[int, bytes]], name: str, check: Callable[[StandardAcl], None] = accept
) -> Iterator[tuple[int, StandardAclWithId]]:
    """Yield the number and the ACL of each line. Raises as read_acls; `name` is that of the file, for errors."""
    for number, line in lines:
        try:
            rule = parse_acl(line)
            check(rule.acl)
        except ConfigError as error:
            raise ConfigError(f"{name}: line {number}: {error}") from error
        yield number, rule


def parse_acl(line: bytes) -> StandardAclWithId:
    """Return the ACL in one line.

    Raises:
        ConfigError: a key is missing, an enum name is unknown, or the id is not a UUID in Kafka's base64 form.

    """
    return rule_of_object(parse_object(line))


def rule_of_object(value: dict[str, object]) -> StandardAclWithId:
    """Return the ACL in a JSON object. Raises as parse_acl."""
    return StandardAclWithId(id=_id(value), acl=_plain_acl(value) or _checked_acl(value))


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
