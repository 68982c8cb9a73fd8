"""The rules because of which another one is not needed: named in findings, where a single rule suffices."""

from collections.abc import Container, Iterator

from attrs import frozen

from aclog.analysis.lint.rule_table import RuleTable
from aclog.analysis.lint.texts import is_allow
from aclog.analysis.regions.operations import REQUESTED
from aclog.authorizer.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    PatternType,
    StandardAcl,
)
from aclog.authorizer.index.acl_index import AclIndex, Resource
from aclog.authorizer.index.masks import known_type, rule_mask
from aclog.authorizer.index.rules import rules_of


@frozen(eq=False, kw_only=True)
class Responsible:
    """Finds rules that cover another one: its names, its principal, its host and its operation."""

    index: AclIndex
    documented: bool
    asked: int = REQUESTED
    """The operations that requests ask for, as a mask."""

    @classmethod
    def of(cls, table: RuleTable) -> "Responsible":
        """Return the finder for the rules of a table."""
        return cls(index=AclIndex(table.base), documented=table.settings.documented)

    def covering(self, rule: StandardAcl, *, allows: bool) -> StandardAcl | None:
        """Return a rule that alone allows, or denies, all that another one names; None if there is none."""
        bits = rule_mask(rule.operation, rule.permission_type)
        wanted = (bits | bits >> 16) & self.asked
        for resource in self._around(rule):
            for other in self._on(resource, rule):
                mask = rule_mask(other.operation, other.permission_type)
                mask = mask if allows else mask >> 16
                if other != rule and is_allow(other) is allows and wanted and not wanted & ~mask:
                    return other
        return None

    def sharing(self, rule: StandardAcl, among: Container[StandardAcl]) -> Iterator[StandardAcl]:
        """Yield those of some ALLOWs that allow a part of what another one allows, on all its names."""
        bits = rule_mask(rule.operation, rule.permission_type) & self.asked
        for resource in self._around(rule):
            for other in self._on(resource, rule):
                if other in among and other != rule and bits & rule_mask(other.operation, other.permission_type):
                    yield other

    def implying(self, rule: StandardAcl) -> StandardAcl | None:
        """Return an ALLOW of another operation, for the same principal on the same pattern, that implies an ALLOW."""
        literal, prefixed = self.index.named(known_type(rule.resource_type), rule.resource_name)
        resource = literal if rule.pattern_type == PatternType.LITERAL else prefixed
        bits = rule_mask(rule.operation, rule.permission_type)
        for other in self._on(resource, rule):
            of_same = other.principal == rule.principal and other.operation not in (rule.operation, AclOperation.ALL)
            if of_same and is_allow(other) and rule_mask(other.operation, other.permission_type) & bits == bits:
                return other
        return None

    def _around(self, rule: StandardAcl) -> Iterator[Resource]:
        """Yield the patterns that cover all names of a rule's pattern."""
        kind, name = known_type(rule.resource_type), rule.resource_name
        literal = rule.pattern_type == PatternType.LITERAL
        if literal:
            yield self.index.literal(kind, name)
        # LITERAL `*` lies below no prefix but the empty one.
        star = literal and name == WILDCARD
        yield from self.index.prefixes(kind, "" if star else name)
        hidden = name.startswith(WILDCARD) and not self.documented
        if not star and not hidden and (name or literal):
            yield self.index.literal(kind, WILDCARD)

    def _on(self, resource: Resource, rule: StandardAcl) -> Iterator[StandardAcl]:
        hosts = dict.fromkeys((rule.host, WILDCARD))
        keys = [(who, host) for who in dict.fromkeys((rule.principal, WILDCARD_PRINCIPAL)) for host in hosts]
        subject = self.index.base.subject(keys)
        return (each.acl for each in rules_of(self.index, resource, subject))
