"""Roles of one's own: their ACLs, with the fields of those who have them put in (JulieRoles, BuildBindingsForRole)."""

import re
from collections.abc import Iterator, Sequence

from aclog.authorizer.acl import WILDCARD, AclOperation, PatternType, ResourceType
from aclog.sources.formats.enum_names import concrete
from aclog.sources.formats.named_value import named_value
from aclog.sources.formats.node import Node
from aclog.sources.formats.plain_text import plain_text
from aclog.sources.formats.statement import Statement

_HOLDER = ("principal", "metadata", "transactionId", "idempotence", "group", "topic", "subject", "connector")
_FIELDS = {"topic": "", "subject": "", "connector": "", "group": WILDCARD, "transactionId": ""}
"""What an ACL may name, and its value where the holder of the role has none."""
_ACL = ("resourceType", "resourceName", "patternType", "host", "operation", "role", "permissionType")
_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_TYPES = concrete(ResourceType)
_PATTERNS = concrete(PatternType)
_OPERATIONS = concrete(AclOperation)


def read_roles(documents: Sequence[Node]) -> dict[str, tuple[Node, ...]]:
    """Return the ACLs of each role.

    Raises:
        ConfigError: a second file of roles, or a role without a name or that stands twice.

    """
    if len(documents) > 1:
        raise documents[1].error(f"a second file of roles: {documents[0].file} is the first, and JulieOps takes one")
    roles: dict[str, tuple[Node, ...]] = {}
    for role in documents[0].members("roles") if documents else ():
        role.check_keys(("name", "acls"), "the role")
        name = plain_text(role.required("name", "the role"), "name")
        if name in roles:
            raise role.error(f"the role {name[:60]!r} stands twice")
        roles[name] = role.required("acls", f"the role {name}").items("acls")
    return roles


def role_statements(holder: Node, acls: Sequence[Node]) -> Iterator[Statement]:
    """Yield the statements of one who has a role. Raises ConfigError: an ACL of the role is not understood."""
    holder.check_keys(_HOLDER, "the holder of the role")
    values = dict(_FIELDS)
    for key in _FIELDS:
        value = holder.get(key)
        if value is not None:
            values[key] = plain_text(value, key)
            if "{" in values[key]:
                raise value.error(f"{key} holds a brace, which JulieOps may take for a template")
    for acl in acls:
        yield _statement(holder, acl, values)


def _statement(holder: Node, acl: Node, values: dict[str, str]) -> Statement:
    acl.check_keys(_ACL, "an ACL of the role")
    permission = acl.get("permissionType")
    if permission is not None and permission.text("permissionType").upper() == "DENY":
        raise permission.error("permissionType is DENY, of which JulieOps makes an ALLOW: state the rule elsewhere")
    operation = acl.get("operation") or acl.required("role", "an ACL of the role")
    return Statement(
        where=holder,
        resource_type=named_value(
            acl.required("resourceType", "an ACL of the role"), "resourceType", _TYPES, any_case=True
        ),
        name=_filled(acl.required("resourceName", "an ACL of the role"), values),
        pattern_type=named_value(
            acl.required("patternType", "an ACL of the role"), "patternType", _PATTERNS, any_case=True
        ),
        operation=named_value(operation, "operation", _OPERATIONS, any_case=True),
        host=plain_text(acl.required("host", "an ACL of the role"), "host"),
    )


def _filled(node: Node, values: dict[str, str]) -> str:
    """Return the name of a resource with the fields of the holder put in."""
    template = plain_text(node, "resourceName")
    for variable in _VARIABLE.findall(template):
        if variable not in values:
            raise node.error(f"resourceName names {variable[:60]!r}: expected one of {', '.join(values)}")
    if "{" in _VARIABLE.sub("", template):
        raise node.error(f"resourceName is {template[:60]!r}: of templates, only {{{{field}}}} is understood")
    return _VARIABLE.sub(lambda found: values[found[1]], template)
