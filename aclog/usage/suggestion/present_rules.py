"""The present set of rules, as objects by ordinal."""

from typing import Any, Self

import numpy as np
import pyarrow as pa
from attrs import define, field, frozen

from aclog.authorizer.acl import (
    WILDCARD,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
    StandardAcl,
)
from aclog.usage.arrow.acl_structs import ACL_FIELDS
from aclog.usage.decisions.rules import Rules

IMPLYING = {
    AclOperation.DESCRIBE: frozenset({AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}),
    AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.ALTER_CONFIGS}),
}
"""The operations of which an ALLOW allows another one as well (StandardAuthorizerData.IMPLIES_DESCRIBE)."""


def allows(operation: int, asked: int) -> bool:
    """Return whether an ALLOW of an operation allows another one."""
    return operation in (asked, AclOperation.ALL) or operation in IMPLYING.get(AclOperation(asked), ())


@define(eq=False)
class PresentRules:
    """Rules by ordinal; objects are made on demand, since few of a million matter."""

    table: pa.Table
    """RULE_COLUMNS."""
    _known: dict[int, StandardAcl] = field(factory=dict, init=False)

    @classmethod
    def of(cls, rules: Rules) -> Self:
        """Take the rules of a set."""
        return cls(rules.table.select(ACL_FIELDS).combine_chunks())

    def __getitem__(self, ordinal: int) -> StandardAcl:
        """Return a rule."""
        rule = self._known.get(ordinal)
        if rule is None:
            row: dict[str, Any] = self.table.slice(ordinal, 1).to_pylist()[0]
            rule = self._known[ordinal] = _rule(row)
        return rule

    def denies(self) -> list[int]:
        """Return the ordinals of all DENY rules."""
        denying: list[int] = np.flatnonzero(np.asarray(self.table.column("permissionType")) == "DENY").tolist()
        return denying

    def principals(self) -> frozenset[str]:
        """Return the principals that rules name."""
        return frozenset(text for text in self.table.column("principal").unique().to_pylist() if text is not None)


def _rule(row: dict[str, Any]) -> StandardAcl:
    return StandardAcl(
        resource_type=_code(ResourceType, row["resourceType"]),
        resource_name=row["resourceName"],
        pattern_type=_code(PatternType, row["patternType"]),
        principal=row["principal"],
        host=row["host"],
        operation=_code(AclOperation, row["operation"]),
        permission_type=_code(AclPermissionType, row["permissionType"]),
    )


def _code(kind: Any, name: str) -> Any:
    return kind.__members__.get(name, kind.UNKNOWN)


@frozen
class Names:
    """A set of names as a pattern has it."""

    pattern_type: PatternType
    name: str

    @property
    def prefix(self) -> str | None:
        """The prefix of all of them, "" for every name; None if it is one name only."""
        if self.pattern_type is PatternType.PREFIXED:
            return self.name
        return "" if self.name == WILDCARD else None

    def has(self, other: "Names") -> bool:
        """Return whether it has all names of another set."""
        prefix, within = self.prefix, other.prefix
        if prefix is None:
            return within is None and self.name == other.name
        return (other.name if within is None else within).startswith(prefix)

    def meets(self, other: "Names") -> bool:
        """Return whether both have a name in common."""
        return self.has(other) or other.has(self)


def names_of(rule: StandardAcl) -> Names:
    """Return the names that a rule is about."""
    return Names(PatternType(rule.pattern_type), rule.resource_name)
