"""Lints of principals: no type, a type that nobody has, and names that are nearly those of somebody."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator

import numpy as np
from attrs import define, evolve

from aclog.analysis.lint.context import LintContext
from aclog.analysis.lint.finding import Finding
from aclog.analysis.lint.found import Told, findings, replaced, texts_among, texts_matching, types_of
from aclog.analysis.lint.rule_table import RuleTable
from aclog.analysis.lint.texts import noun, useless, verb
from aclog.authorizer.acl import WILDCARD_PRINCIPAL, StandardAcl
from aclog.metalog.vectors import Bools

_BLANKS = re.compile(r"\s+")
_BLANK_EDGE = r"(?a:^\s|\s\Z|^[^:]*:\s)"


def principal_without_type(table: RuleTable, _context: LintContext) -> Iterator[Finding]:
    """Yield the rules whose principal has no colon (05)."""
    rows = ~texts_matching(table.principals, ":")[table.principal_of]

    def _tell(rule: StandardAcl) -> Told:
        kind = noun(rule.resource_type)
        lost = f"{verb(rule)} and all else on the {kind}s that it covers fails for everyone: Kafka's authorizer throws"
        return Told(lost, replaced(rule, evolve(rule, principal=f"User:{rule.principal}")))

    return findings("05", table, rows, _tell)


def unknown_principal_type(table: RuleTable, context: LintContext) -> Iterator[Finding]:
    """Yield the rules for principals of types that nobody has (07)."""
    rows = ~_of_known_type(table, context)[table.principal_of]
    types = ", ".join(sorted(context.principal_types))

    def _tell(rule: StandardAcl) -> Told:
        kind = rule.principal.partition(":")[0]
        return Told(f"clients are of type {types}, none of type {kind!r}: {useless(rule)}")

    return findings("07", table, rows, _tell)


def near_miss_principal(table: RuleTable, context: LintContext) -> Iterator[Finding]:
    """Yield the rules for principals that were never seen, and differ little from one that was (06)."""
    seen = context.seen()
    texts = table.principals
    blank = texts_matching(texts, _BLANK_EDGE)
    asked = _of_known_type(table, context) & ~texts_among(texts, (WILDCARD_PRINCIPAL, *seen))
    asked &= texts_matching(texts, ":")
    near = _NearPrincipals.of(seen)
    found: dict[str, str | None] = {}
    if not seen:
        asked &= blank
    for number in np.flatnonzero(asked).tolist():
        principal: str = texts[number]
        meant = near.of_principal(principal)
        asked[number] = meant is not None or blank[number]
        if asked[number]:
            found[principal] = meant

    def _tell(rule: StandardAcl) -> Told:
        meant = found[rule.principal]
        if meant is None:
            return Told(f"no client is {rule.principal!r}, with a blank at an edge: {useless(rule)}")
        lost = f"no client is {rule.principal!r}, and {meant!r} is not meant by it: {useless(rule)}"
        return Told(lost, replaced(rule, evolve(rule, principal=meant)))

    return findings("06", table, asked[table.principal_of], _tell)


def _of_known_type(table: RuleTable, context: LintContext) -> Bools:
    """Return which principals have a type that clients have, or have no type."""
    texts = table.principals
    types = context.principal_types | {each.partition(":")[0] for each in context.seen()}
    return ~texts_matching(texts, ":") | texts_among(types_of(texts), types) | texts_among(texts, (WILDCARD_PRINCIPAL,))


@define(eq=False, kw_only=True)
class _NearPrincipals:
    """Principals that were seen, found by a text that nearly is one."""

    _by_folded: dict[str, list[str]]
    """By the text in lower case, without blanks."""
    _names: list[tuple[str, str]]
    """Distinguished names: in lower case, and as they are; sorted."""

    @classmethod
    def of(cls, seen: Collection[str]) -> "_NearPrincipals":
        """Index principals that were seen."""
        by_folded: dict[str, list[str]] = defaultdict(list)
        for principal in sorted(seen):
            by_folded[_folded(principal)].append(principal)
        return cls(by_folded=by_folded, names=sorted((each.lower(), each) for each in seen if "=" in each))

    def of_principal(self, principal: str) -> str | None:
        """Return a principal that was seen and may be meant by one that was not."""
        alike = self._by_folded.get(_folded(principal))
        if alike:
            return alike[0]
        if "=" not in principal:
            return None
        text = principal.lower()
        # A distinguished name that lacks its last parts, or has more than the one that was seen.
        at = bisect_left(self._names, (f"{text},",))
        if at < len(self._names) and self._names[at][0].startswith(f"{text},"):
            return self._names[at][1]
        for comma in (found.start() for found in re.finditer(",", text)):
            at = bisect_left(self._names, (text[:comma],))
            if at < len(self._names) and self._names[at][0] == text[:comma]:
                return self._names[at][1]
        return None


def _folded(principal: str) -> str:
    return _BLANKS.sub("", principal).lower()
