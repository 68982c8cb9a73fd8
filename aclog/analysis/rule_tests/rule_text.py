"""The short form of a deciding rule: `READ prefixed bill.`, `DENY ALL literal pii.card for User:* from 10.0.0.1`."""

import json
import re

from attrs import frozen

from aclog.authorizer.acl import (
    AclOperation,
    AclPermissionType,
    PatternType,
    StandardAcl,
    code_name,
    parse_name,
)
from aclog.authorizer.decision import Basis
from aclog.metalog.errors import ConfigError

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_FORM = re.compile(
    rf"(?:(?P<permission>(?ai:ALLOW|DENY))\s+)?(?P<operation>[A-Za-z_-]+)\s+(?P<pattern>(?ai:literal|prefixed))\s+"
    rf"(?P<name>{_QUOTED}|\S+)(?:\s+(?ai:for)\s+(?P<principal>{_QUOTED}|\S+))?"
    rf"(?:\s+(?ai:from)\s+(?P<host>{_QUOTED}|\S+))?"
)
_BASES = {basis.value.lower(): basis.value for basis in Basis if basis is not Basis.MATCHING_ACL}
_OPERATIONS = tuple(operation for operation in AclOperation if operation > AclOperation.ANY)
EXPECTED = (
    "[ALLOW|DENY] OPERATION literal|prefixed NAME [for PRINCIPAL] [from HOST], or SuperUser, DefaultAllow, DefaultDeny"
)
_PLAIN = re.compile(r'[^\s"]\S*')


@frozen(kw_only=True)
class RuleText:
    """What is said of a deciding rule; what is not said may be anything, and a rule allows unless DENY is said."""

    basis: str | None = None
    """`SuperUser`, `DefaultAllow` or `DefaultDeny`: then nothing else is said."""
    permission: AclPermissionType = AclPermissionType.ALLOW
    operation: AclOperation = AclOperation.ALL
    pattern: PatternType = PatternType.LITERAL
    name: str = ""
    principal: str | None = None
    host: str | None = None

    def is_of(self, rule: StandardAcl | str | None) -> bool:
        """Return whether this is said of what decides a request (aclog.analysis.deciding)."""
        if not isinstance(rule, StandardAcl):
            return rule is not None and rule == self.basis
        literal = self.pattern is PatternType.LITERAL
        return (
            self.basis is None
            and (rule.permission_type == AclPermissionType.ALLOW) is (self.permission is AclPermissionType.ALLOW)
            and rule.operation == self.operation
            and (rule.pattern_type == PatternType.LITERAL) is literal
            and rule.resource_name == self.name
            and self.principal in (None, rule.principal)
            and self.host in (None, rule.host)
        )

    def __str__(self) -> str:
        if self.basis is not None:
            return self.basis
        who = "" if self.principal is None else f" for {_word(self.principal)}"
        host = "" if self.host is None else f" from {_word(self.host)}"
        deny = "" if self.permission is AclPermissionType.ALLOW else "DENY "
        return f"{deny}{self.operation.name} {self.pattern.name.lower()} {_word(self.name)}{who}{host}"


def parse_rule_text(text: str) -> RuleText:
    """Return what a text says of a rule.

    Raises:
        ConfigError: it is not in the short form, or has no known operation.

    """
    basis = _BASES.get(text.strip().lower())
    if basis is not None:
        return RuleText(basis=basis)
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise ConfigError(f"{text[:80]!r} is no rule: expected {EXPECTED}")
    denies = (found["permission"] or "").upper() == "DENY"
    return RuleText(
        permission=AclPermissionType.DENY if denies else AclPermissionType.ALLOW,
        operation=parse_name(_OPERATIONS, found["operation"]),
        pattern=PatternType[found["pattern"].upper()],
        name=_unquoted(found["name"]) or "",
        principal=_unquoted(found["principal"]),
        host=_unquoted(found["host"]),
    )


def rule_text(rule: StandardAcl | str | None) -> str:
    """Return what decides a request in the short form, whole."""
    if not isinstance(rule, StandardAcl):
        return "nothing (Kafka's authorizer throws)" if rule is None else rule
    deny = "" if rule.permission_type == AclPermissionType.ALLOW else "DENY "
    pattern = "literal" if rule.pattern_type == PatternType.LITERAL else "prefixed"
    operation = code_name(AclOperation, rule.operation)
    return (
        f"{deny}{operation} {pattern} {_word(rule.resource_name)} for {_word(rule.principal)} from {_word(rule.host)}"
    )


def _word(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _unquoted(text: str | None) -> str | None:
    if text is None or not text.startswith('"'):
        return text
    try:
        return str(json.loads(text))
    except ValueError as error:
        raise ConfigError(f"{text[:80]} is no JSON string") from error
