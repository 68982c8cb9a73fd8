"""ACLs of a resource as JSON, version 1 (kafka.security.authorizer.AclEntry)."""

import re
from collections.abc import Iterable
from enum import IntEnum

from attrs import frozen

from aclog.authorizer.acl import AclOperation, AclPermissionType, ResourcePattern, StandardAcl, code_name
from aclog.authorizer.principals import no_colon
from aclog.metalog.errors import DecodeError
from aclog.zkstore.znodes.json_fields import brief_json, check_version, compact_json, json_object

VERSION = 1

_SURROGATE = re.compile(r"[\ud800-\udfff]")


@frozen(kw_only=True, order=True)
class AclEntry:
    """One ACL without its resource, which is the znode's path (AccessControlEntry)."""

    principal: str
    permission_type: int
    host: str
    operation: int

    def on(self, pattern: ResourcePattern) -> StandardAcl:
        """Return the ACL of this entry on a resource."""
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
    """Return an ACL without its resource."""
    return AclEntry(
        principal=acl.principal, permission_type=acl.permission_type, host=acl.host, operation=acl.operation
    )


def _names(kind: type[IntEnum]) -> dict[int, str]:
    """Return the names of an enum as Kafka writes them in znodes: AlterConfigs for ALTER_CONFIGS."""
    return {
        code: "".join(word.capitalize() for word in code.name.split("_"))
        for code in kind
        if code.name not in {"UNKNOWN", "ANY"}
    }


_OPERATIONS, _PERMISSIONS = _names(AclOperation), _names(AclPermissionType)
# New in Kafka 4.0. A 3.9 broker reads the name as UNKNOWN, which matches no request: a DENY would be without effect.
del _OPERATIONS[AclOperation.TWO_PHASE_COMMIT]

# Lower case, because Kafka accepts the names in any case (SecurityUtils.operation, permissionType).
OPERATION_CODES = {name.lower(): code for code, name in _OPERATIONS.items()}
PERMISSION_CODES = {name.lower(): code for code, name in _PERMISSIONS.items()}


def encode_acls(entries: Iterable[AclEntry]) -> bytes:
    """Encode the ACLs of a resource, with the keys in Kafka's order and the entries sorted (Kafka's are unordered)."""
    acls = [
        {
            "principal": entry.principal,
            "permissionType": _PERMISSIONS[entry.permission_type],
            "host": entry.host,
            "operation": _OPERATIONS[entry.operation],
        }
        for entry in sorted(entries)
    ]
    return compact_json({"acls": acls, "version": VERSION})


def entry_problem(entry: AclEntry) -> str | None:
    """Return why an ACL cannot be stored in a znode; None if it can."""
    if entry.permission_type not in _PERMISSIONS:
        return f"Invalid permissionType {code_name(AclPermissionType, entry.permission_type)}: expected ALLOW or DENY"
    if entry.operation not in _OPERATIONS:
        operation = code_name(AclOperation, entry.operation)
        return f"Invalid operation {operation}: expected one that Kafka 3.9 supports: {', '.join(_OPERATIONS.values())}"
    if ":" not in entry.principal:
        return no_colon(entry.principal)
    for text in (entry.principal, entry.host):
        if _SURROGATE.search(text):
            return f"{text!r}: expected no unpaired surrogate"
    return None


def decode_acls(data: bytes, *, path: str) -> frozenset[AclEntry]:
    """Decode the ACLs of a resource; an empty znode has none. Unknown keys are ignored, as by Kafka.

    An unknown operation or permission is an error, whereas Kafka keeps an ACL that never matches: a DENY would be lost
    silently.

    Raises:
        DecodeError: not JSON, an unsupported version, an incomplete entry, or an operation or permission that Kafka
            does not have; with the znode's path and the entry's index.

    """
    if not data:
        return frozenset()
    whole = json_object(data, path=path)
    check_version(whole, VERSION, path=path)
    acls = whole.get("acls")
    if not isinstance(acls, list):
        raise DecodeError(f"acls is {brief_json(acls)}: expected an array", path=path)
    return frozenset(_entry(entry, number, path) for number, entry in enumerate(acls))


def _entry(entry: object, number: int, path: str) -> AclEntry:
    if not isinstance(entry, dict):
        raise DecodeError(f"acls[{number}] is {brief_json(entry)}: expected an object", path=path)
    texts: dict[str, str] = {}
    for key in ("principal", "permissionType", "host", "operation"):
        value = entry.get(key)
        if not isinstance(value, str):
            raise DecodeError(f"acls[{number}].{key} is {brief_json(value)}: expected a string", path=path)
        texts[key] = value
    entry = AclEntry(
        principal=texts["principal"],
        permission_type=_code(PERMISSION_CODES, texts["permissionType"], f"acls[{number}].permissionType", path),
        host=texts["host"],
        operation=_code(OPERATION_CODES, texts["operation"], f"acls[{number}].operation", path),
    )
    problem = entry_problem(entry)
    if problem is not None:
        raise DecodeError(f"acls[{number}]: {problem}", path=path)
    return entry


def _code(codes: dict[str, int], name: str, field: str, path: str) -> int:
    code = codes.get(name.lower())
    if code is None:
        names = _OPERATIONS if codes is OPERATION_CODES else _PERMISSIONS
        raise DecodeError(f"{field} {name!r}: expected one of {', '.join(names.values())}", path=path)
    return code
