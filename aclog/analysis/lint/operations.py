"""Lints of operations: those that a type does not have, and those that are too much."""

from collections.abc import Iterator

import numpy as np
from attrs import evolve

from aclog.analysis.lint.context import LintContext
from aclog.analysis.lint.dead_hosts import from_nowhere
from aclog.analysis.lint.finding import Finding, Severity
from aclog.analysis.lint.found import Told, finding, findings, texts_among
from aclog.analysis.lint.responsible import Responsible
from aclog.analysis.lint.rule_table import RuleTable
from aclog.analysis.lint.texts import noun, verb, what, who
from aclog.analysis.lint.unsupported import unsupported
from aclog.analysis.lint.wide_rules import covering_cluster, internal_topics, wide_rows
from aclog.authorizer.acl import (
    ANONYMOUS_PRINCIPAL,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    PatternType,
    ResourceType,
    StandardAcl,
)
from aclog.authorizer.cidr import cidr_range
from aclog.authorizer.supported_operations import SUPPORTED_OPERATIONS
from aclog.metalog.vectors import Bools

_LESSER = (
    AclOperation.DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.DESCRIBE_TOKENS,
    AclOperation.IDEMPOTENT_WRITE,  # since Kafka 2.8 whoever may write to a topic needs no such rule
)
"""Operations that read no records and change nothing: a finding about them is a warning."""


def unsupported_operation(table: RuleTable, _context: LintContext) -> Iterator[Finding]:
    """Yield the rules whose operation no request can ask of their type (12)."""

    def _tell(rule: StandardAcl) -> Told:
        supported = SUPPORTED_OPERATIONS[ResourceType(rule.resource_type)]
        names = ", ".join(operation.name for operation in supported)
        kind = noun(rule.resource_type)
        return Told(f"no client asks {verb(rule)} of a {kind} ({names}): {who(rule)} fares as without the rule")

    return findings("12", table, unsupported(table), _tell)


def everyone_may_write(table: RuleTable, _context: LintContext) -> Iterator[Finding]:
    """Yield the rules that let everyone write to everything of a type (16)."""

    def _tell(rule: StandardAcl) -> Told:
        kind = noun(rule.resource_type)
        where = "" if rule.host == WILDCARD else f" from {rule.host}"
        return Told(f"every client{where}, of whatever principal, may {verb(rule)} on every {kind}")

    return findings("16", table, _writing_everything(table), _tell)


def cluster_rights(table: RuleTable, context: LintContext) -> Iterator[Finding]:
    """Yield the rules that give rights over the cluster to others than brokers and super users (17)."""

    def _tell(rule: StandardAcl) -> Told:
        if rule.operation == AclOperation.CLUSTER_ACTION:
            return Told(f"{who(rule)} may fetch every topic as a replica, and change the state of replicas")
        return Told(f"{who(rule)} may add and remove ACLs, and so give itself every right")

    return findings("17", table, _over_cluster(table, context), _tell)


def everyone_reaches_far(table: RuleTable, context: LintContext) -> Iterator[Finding]:
    """Yield the rules that give everyone a right that reaches far (27), but for those of 16 and 17."""
    rows = wide_rows(table)
    if not rows.any():
        return
    brokers = texts_among(table.principals, context.broker_principals)[table.principal_of]
    rows &= ~(brokers & (table.type_of == ResourceType.CLUSTER))
    rows &= ~_writing_everything(table) & ~_over_cluster(table, context)
    chosen = np.flatnonzero(rows).tolist()
    responsible, denied = Responsible.of(table), set(table.type_of[~table.allows].tolist())
    for row in chosen:
        rule = table.rule(row)
        if responsible.covering(rule, allows=False) is not None:  # 09 says that it allows nothing
            continue
        found = finding("27", (rule,), Told(_reach_text(rule, is_denied=rule.resource_type in denied)))
        is_less = rule.operation in _LESSER or not _is_any_host(rule.host)
        yield evolve(found, severity=Severity.WARNING) if is_less else found


def _is_any_host(host: str) -> bool:
    """Return whether a host is `*`, or the range of all IPv4 or all IPv6 addresses."""
    found = cidr_range(host)
    if found is None:
        return host == WILDCARD
    return found.last - found.first == (1 << (32 if found.version == 4 else 128)) - 1


def _reach_text(rule: StandardAcl, *, is_denied: bool) -> str:
    """Return what everyone may do by a rule; `is_denied`: some DENY rules are about the same type."""
    client = "every client"
    if rule.principal == ANONYMOUS_PRINCIPAL:
        client = "every client that does not log in"
    where = "" if rule.host == WILDCARD else f" from {rule.host}"
    does = "do everything on" if rule.operation == AclOperation.ALL else verb(rule)
    but = ", but for what DENY rules deny" if is_denied else ""
    return f"{client}{where} may {does} {_reached(rule)}{but}"


def _reached(rule: StandardAcl) -> str:
    if rule.resource_type == ResourceType.CLUSTER:
        return "the cluster"
    is_literal = rule.pattern_type == PatternType.LITERAL
    if rule.resource_name == (WILDCARD if is_literal else ""):
        also = ", the internal ones too" if rule.resource_type == ResourceType.TOPIC else ""
        return f"every {noun(rule.resource_type)}{also}"
    names = internal_topics(rule)
    if not names:
        return what(rule)
    return f"the internal topic {names[0]!r}" if is_literal else f"{what(rule)}, {', '.join(names)} among them"


def _writing_everything(table: RuleTable) -> Bools:
    """Return which rows let everyone write to everything of a type."""
    star = texts_among(table.names, (WILDCARD,)) & table.literal_resource
    rows = table.allows & star[table.resource_of] & _of(table, AclOperation.WRITE, AclOperation.ALL)
    rows &= texts_among(table.principals, (WILDCARD_PRINCIPAL,))[table.principal_of]
    return rows & ~from_nowhere(table) & ~unsupported(table)


def _over_cluster(table: RuleTable, context: LintContext) -> Bools:
    """Return which rows give rights over the cluster to others than brokers and super users."""
    covers = covering_cluster(table) & (table.type_of_resource == ResourceType.CLUSTER)
    rows: Bools = table.allows & covers[table.resource_of]
    supers = texts_among(table.principals, table.settings.super_users)
    brokers = supers | texts_among(table.principals, context.broker_principals)
    alters = _of(table, AclOperation.ALTER, AclOperation.ALL) & ~supers[table.principal_of]
    acts = _of(table, AclOperation.CLUSTER_ACTION) & ~brokers[table.principal_of]
    rows &= (alters | acts) & ~from_nowhere(table)
    return rows


def _of(table: RuleTable, *operations: AclOperation) -> Bools:
    """Return which rows have one of these operations."""
    return np.isin(table.operation_of, operations)
