"""Writes Terraform: a kafka_acl of the provider Mongey/kafka for each rule."""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from aclog.authorizer.acl import AclOperation, AclPermissionType, PatternType, ResourceType, StandardAcl
from aclog.sources.formats.writers.grouping import digest, sort_key
from aclog.sources.formats.writers.names import camel_name

_TYPES = {
    ResourceType.TOPIC: "Topic",
    ResourceType.GROUP: "Group",
    ResourceType.CLUSTER: "Cluster",
    ResourceType.TRANSACTIONAL_ID: "TransactionalID",
    ResourceType.DELEGATION_TOKEN: "DelegationToken",
}
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_TEMPLATE = re.compile(r"([$%]+)\{")
_LONGEST_SLUG = 60


def unfit(rule: StandardAcl) -> str | None:
    """Return why the provider or the language cannot hold a rule; None if they can."""
    if rule.resource_type not in _TYPES:
        return f"the provider has no resource_type {ResourceType(rule.resource_type).name}"
    if rule.operation > AclOperation.IDEMPOTENT_WRITE:
        return f"the provider has no acl_operation {AclOperation(rule.operation).name}"
    texts = (rule.resource_name, rule.principal, rule.host)
    if any(unicodedata.normalize("NFC", text) != text for text in texts):
        return "Terraform composes the characters of its name (Unicode NFC)"
    return None


def lines(rules: Sequence[StandardAcl]) -> Iterator[str]:
    """Yield a resource for each rule; its label depends on nothing but the rule."""
    for rule in sorted(rules, key=sort_key):
        yield f'resource "kafka_acl" "{_label(rule)}" {{'
        yield f"  resource_name                = {_quoted(rule.resource_name)}"
        yield f'  resource_type                = "{_TYPES[ResourceType(rule.resource_type)]}"'
        yield f'  resource_pattern_type_filter = "{camel_name(PatternType(rule.pattern_type))}"'
        yield f"  acl_principal                = {_quoted(rule.principal)}"
        yield f"  acl_host                     = {_quoted(rule.host)}"
        yield f'  acl_operation                = "{camel_name(AclOperation(rule.operation))}"'
        yield f'  acl_permission_type          = "{camel_name(AclPermissionType(rule.permission_type))}"'
        yield "}"
        yield ""


def _label(rule: StandardAcl) -> str:
    words = (
        AclPermissionType(rule.permission_type).name,
        rule.principal.removeprefix("User:"),
        AclOperation(rule.operation).name,
        ResourceType(rule.resource_type).name,
        rule.resource_name,
    )
    slug = re.sub(r"[^a-z0-9]+", "_", " ".join(words).lower())[:_LONGEST_SLUG].strip("_")
    return f"{slug}_{digest(rule)}"


def _quoted(text: str) -> str:
    """Return a string of HCL that is no template, and holds no character that a screen does not show."""
    escaped = "".join(
        character if character.isprintable() and character not in _SHORT else _escape(character) for character in text
    )
    return f'"{_TEMPLATE.sub(_plain_sign, escaped)}"'


def _plain_sign(found: re.Match[str]) -> str:
    signs = found[1]
    if len(signs) == 1:
        return f"{signs}{signs}{{"
    return "".join(f"\\u{ord(sign):04x}" for sign in signs) + "{"  # `$${` itself has no escape


def _escape(character: str) -> str:
    short = _SHORT.get(character)
    if short is not None:
        return short
    code = ord(character)
    return f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}"
