"""Lints of resource names: `*` as a prefix, globs, names that trip Kafka, names that no topic can have."""

import re
from collections.abc import Iterator, Sequence

import numpy as np
from attrs import evolve

from aclog.analysis.lint.context import LintContext
from aclog.analysis.lint.finding import Finding
from aclog.analysis.lint.found import Told, findings, replaced, texts_among, texts_matching
from aclog.analysis.lint.rule_table import RuleTable
from aclog.analysis.lint.texts import noun, useless, verb, who
from aclog.analysis.regions.topic_names import LONGEST
from aclog.authorizer.acl import WILDCARD, PatternType, ResourceType, StandardAcl
from aclog.metalog.vectors import Int64s

_GLOB = r"[*?\[\]^$|\\]|^/.*/\Z"
_TRAILING_STAR = re.compile(r"[^*?\[\]^$|\\]+\*")
_BELOW_STAR = r"^[\x00-\x29]"
_NOT_OF_TOPICS = r"[^a-zA-Z0-9._-]"


def prefixed_star(table: RuleTable, _context: LintContext) -> Iterator[Finding]:
    """Yield the rules on PREFIXED `*` (01)."""
    star = texts_among(table.names, (WILDCARD,)) & ~table.literal_resource

    def _tell(rule: StandardAcl) -> Told:
        kind = noun(rule.resource_type)
        lost = f"covers only {kind}s whose name begins with '*': {useless(rule)}"
        return Told(lost, replaced(rule, evolve(rule, pattern_type=PatternType.LITERAL)))

    return findings("01", table, star[table.resource_of], _tell)


def glob_in_name(table: RuleTable, _context: LintContext) -> Iterator[Finding]:
    """Yield the rules whose name is a glob or a regular expression for people, and a plain text for Kafka (02)."""
    glob = texts_matching(table.names, _GLOB) & ~texts_among(table.names, (WILDCARD,))

    def _tell(rule: StandardAcl) -> Told:
        name, kind = rule.resource_name, noun(rule.resource_type)
        if rule.pattern_type == PatternType.LITERAL:
            lost = f"matches only the {kind} literally named {name!r}: {who(rule)}: {verb(rule)} on no other {kind}"
        else:
            lost = f"covers only {kind}s whose name literally begins with {name!r}: {useless(rule)}"
        if not _TRAILING_STAR.fullmatch(name):
            return Told(lost)
        meant = evolve(rule, resource_name=name[:-1], pattern_type=PatternType.PREFIXED)
        return Told(lost, replaced(rule, meant))

    return findings("02", table, glob[table.resource_of], _tell)


def name_below_star(table: RuleTable, _context: LintContext) -> Iterator[Finding]:
    """Yield the rules whose name leads Kafka 4.3.1 astray (23): PREFIXED ones do as well as LITERAL ones."""
    below = texts_matching(table.names, _BELOW_STAR) & (table.type_of_resource != ResourceType.CLUSTER)

    def _tell(rule: StandardAcl) -> Told:
        name, kind = rule.resource_name, noun(rule.resource_type)
        other = repr(f"{name[0]}...")
        return Told(f"whoever asks for another {kind} named {other} holds up a broker's request thread, or fails")

    return findings("23", table, below[table.resource_of], _tell)


def illegal_topic_name(table: RuleTable, _context: LintContext) -> Iterator[Finding]:
    """Yield the rules on names that no topic has, or begins with (24)."""
    literal, lengths = table.literal_resource, _lengths(table.names)
    illegal = texts_matching(table.names, _NOT_OF_TOPICS) | (lengths > LONGEST)
    illegal |= literal & texts_among(table.names, (".", "..", ""))
    illegal &= ~(literal & texts_among(table.names, (WILDCARD,))) & (table.type_of_resource == ResourceType.TOPIC)

    def _tell(rule: StandardAcl) -> Told:
        begins = "has the name" if rule.pattern_type == PatternType.LITERAL else "has a name that begins with"
        return Told(f"no topic {begins} {rule.resource_name[: LONGEST + 1]!r}: {useless(rule)}")

    return findings("24", table, illegal[table.resource_of], _tell)


def _lengths(texts: Sequence[str]) -> Int64s:
    """Return the number of characters of each text."""
    return np.fromiter(map(len, texts), np.int64, len(texts))
