"""What a resource's node holds: its rules as JSON, version 1 (kafka.security.authorizer.AclEntry). Pure."""

import json
import re
from collections.abc import Iterable
from enum import IntEnum
from typing import Any

from attrs import frozen

from aclog.authorizer.acl import AclOperation, AclPermissionType, ResourcePattern, StandardAcl, code_name
from aclog.authorizer.principals import no_colon
from aclog.metalog.errors import DecodeError

VERSION = 1

_SURROGATE = re.compile(r"[\ud800-\udfff]")


@frozen(kw_only=True, order=True)
class AclEntry:
    """One rule of a resource (AccessControlEntry): who, from where, what, and whether it is allowed."""

    principal: str
    permission_type: int
    host: str
    operation: int

    def on(self, pattern: ResourcePattern) -> StandardAcl:
        """The rule with the resource that it is about."""
        return StandardAcl(
            resource_type=pattern.resource_type,
            resource_name=pattern.name,
            pattern_type=pattern.pattern_type,
            principal=self.principal,
            host=self.host,
            operation=self.operation,
            permission_type=self.permission_type,
        )


def entry_of(acl: StandardAcl) -> AclEntry:
    """The rule without its resource."""
    return AclEntry(
        principal=acl.principal, permission_type=acl.permission_type, host=acl.host, operation=acl.operation
    )


def _names(kind: type[IntEnum]) -> dict[int, str]:
    """AlterConfigs for ALTER_CONFIGS: how Kafka writes an enum's names in a node."""
    return {
        code: "".join(word.capitalize() for word in code.name.split("_"))
        for code in kind
        if code.name not in {"UNKNOWN", "ANY"}
    }


_OPERATIONS, _PERMISSIONS = _names(AclOperation), _names(AclPermissionType)
del _OPERATIONS[AclOperation.TWO_PHASE_COMMIT]  # of Kafka 4.0: 3.9 takes its name for UNKNOWN, and never matches it

OPERATION_CODES = {name.lower(): code for code, name in _OPERATIONS.items()}
PERMISSION_CODES = {name.lower(): code for code, name in _PERMISSIONS.items()}
"""In lower case: Kafka reads READ and read as it reads Read (SecurityUtils)."""


def encode_acls(entries: Iterable[AclEntry]) -> bytes:
    """The node's bytes, keys in the order in which Kafka writes them; rules sorted, where Kafka's are in no order."""
    acls = [
        {
            "principal": entry.principal,
            "permissionType": _PERMISSIONS[entry.permission_type],
            "host": entry.host,
            "operation": _OPERATIONS[entry.operation],
        }
        for entry in sorted(entries)
    ]
    return json.dumps({"acls": acls, "version": VERSION}, ensure_ascii=False, separators=(",", ":")).encode()


def entry_problem(entry: AclEntry) -> str | None:
    """Why a node cannot hold a rule; None where it can."""
    if entry.permission_type not in _PERMISSIONS:
        return f"Invalid permissionType {code_name(AclPermissionType, entry.permission_type)}: expected ALLOW or DENY"
    if entry.operation not in _OPERATIONS:
        operation = code_name(AclOperation, entry.operation)
        return f"Invalid operation {operation}: expected one that Kafka 3.9 knows: {', '.join(_OPERATIONS.values())}"
    if ":" not in entry.principal:
        return no_colon(entry.principal)
    for text in (entry.principal, entry.host):
        if _SURROGATE.search(text):
            return f"{text!r}: expected no half of a character (a surrogate alone)"
    return None


def decode_acls(data: bytes, *, path: str) -> frozenset[AclEntry]:
    """The rules in a node; none where it is empty. Keys beyond those of version 1 are passed over, as Kafka does.

    An operation or a permission is read in any case, as Kafka does; one that Kafka does not know is refused, where
    Kafka keeps a rule that never matches: a DENY would be lost without a word.

    Raises:
        DecodeError: no JSON, another version, an entry that is not whole, or a name of an operation or a permission
            that Kafka does not know; with the node's path and the entry's number.

    """
    if not data:
        return frozenset()
    whole = json_object(data, path=path)
    version = whole.get("version")
    if type(version) is not int or version != VERSION:
        raise DecodeError(f"version {version!r}: expected {VERSION}", path=path)
    acls = whole.get("acls")
    if not isinstance(acls, list):
        raise DecodeError(f"acls is {_shown(acls)}: expected an array", path=path)
    return frozenset(_entry(entry, number, path) for number, entry in enumerate(acls))


def json_object(data: bytes, *, path: str) -> dict[str, Any]:
    """The JSON object that a node holds.

    Raises:
        DecodeError: no UTF-8, no JSON, or another kind of value; with the position where it is known.

    """
    try:
        whole = json.loads(data.decode())
    except UnicodeDecodeError as e:
        raise DecodeError("expected UTF-8", position=e.start, path=path) from e
    except json.JSONDecodeError as e:
        position = len(e.doc[: e.pos].encode())
        raise DecodeError(f"expected JSON: {e.msg}", position=position, path=path) from e
    except (ValueError, RecursionError) as e:
        raise DecodeError(f"expected JSON: {e}", path=path) from e
    if not isinstance(whole, dict):
        raise DecodeError(f"{_shown(whole)}: expected a JSON object", path=path)
    return whole


def _entry(entry: object, number: int, path: str) -> AclEntry:
    if not isinstance(entry, dict):
        raise DecodeError(f"acls[{number}] is {_shown(entry)}: expected an object", path=path)
    texts: dict[str, str] = {}
    for key in ("principal", "permissionType", "host", "operation"):
        value = entry.get(key)
        if not isinstance(value, str):
            raise DecodeError(f"acls[{number}].{key} is {_shown(value)}: expected a string", path=path)
        texts[key] = value
    entry = AclEntry(
        principal=texts["principal"],
        permission_type=_code(_PERMISSIONS, PERMISSION_CODES, texts["permissionType"], number, path),
        host=texts["host"],
        operation=_code(_OPERATIONS, OPERATION_CODES, texts["operation"], number, path),
    )
    problem = entry_problem(entry)
    if problem is not None:
        raise DecodeError(f"acls[{number}]: {problem}", path=path)
    return entry


def _code(names: dict[int, str], codes: dict[str, int], name: str, number: int, path: str) -> int:
    code = codes.get(name.lower())
    if code is None:
        key = "operation" if names is _OPERATIONS else "permissionType"
        raise DecodeError(f"acls[{number}].{key} {name!r}: expected one of {', '.join(names.values())}", path=path)
    return code


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
