"""Lints of operations: those that a type does not have, and those that are too much."""

from collections.abc import Iterator

import numpy as np

from aclog.analysis.lint.context import LintContext
from aclog.analysis.lint.dead_hosts import from_nowhere
from aclog.analysis.lint.finding import Finding
from aclog.analysis.lint.found import Told, findings, texts_among
from aclog.analysis.lint.rule_table import RuleTable
from aclog.analysis.lint.texts import noun, verb, who
from aclog.authorizer.acl import (
    CLUSTER_NAME,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    ResourceType,
    StandardAcl,
)
from aclog.authorizer.index.masks import OPERATIONS, TYPES
from aclog.authorizer.supported_operations import SUPPORTED_OPERATIONS
from aclog.metalog.vectors import Bools


def unsupported_operation(table: RuleTable, _context: LintContext) -> Iterator[Finding]:
    """Yield the rules whose operation no request can ask of their type (12)."""

    def _tell(rule: StandardAcl) -> Told:
        supported = SUPPORTED_OPERATIONS[ResourceType(rule.resource_type)]
        names = ", ".join(operation.name for operation in supported)
        kind = noun(rule.resource_type)
        return Told(f"no client asks {verb(rule)} of a {kind} ({names}): {who(rule)} fares as without the rule")

    return findings("12", table, _unsupported(table), _tell)


def everyone_may_write(table: RuleTable, _context: LintContext) -> Iterator[Finding]:
    """Yield the rules that let everyone write to everything of a type (16)."""
    star = texts_among(table.names, (WILDCARD,)) & table.literal_resource
    rows = table.allows & star[table.resource_of] & _of(table, AclOperation.WRITE, AclOperation.ALL)
    rows &= texts_among(table.principals, (WILDCARD_PRINCIPAL,))[table.principal_of]
    rows &= ~from_nowhere(table) & ~_unsupported(table)

    def _tell(rule: StandardAcl) -> Told:
        kind = noun(rule.resource_type)
        where = "" if rule.host == WILDCARD else f" from {rule.host}"
        return Told(f"every client{where}, of whatever principal, may {verb(rule)} on every {kind}")

    return findings("16", table, rows, _tell)


def cluster_rights(table: RuleTable, context: LintContext) -> Iterator[Finding]:
    """Yield the rules that give rights over the cluster to others than brokers and super users (17)."""
    prefixes = texts_among(table.names, [CLUSTER_NAME[:end] for end in range(len(CLUSTER_NAME) + 1)])
    literal = texts_among(table.names, (CLUSTER_NAME, WILDCARD))
    covers = np.where(table.literal_resource, literal, prefixes) & (table.type_of_resource == ResourceType.CLUSTER)
    rows = table.allows & covers[table.resource_of]
    supers = texts_among(table.principals, table.settings.super_users)
    brokers = supers | texts_among(table.principals, context.broker_principals)
    alters = _of(table, AclOperation.ALTER, AclOperation.ALL) & ~supers[table.principal_of]
    acts = _of(table, AclOperation.CLUSTER_ACTION) & ~brokers[table.principal_of]
    rows &= (alters | acts) & ~from_nowhere(table)

    def _tell(rule: StandardAcl) -> Told:
        if rule.operation == AclOperation.CLUSTER_ACTION:
            return Told(f"{who(rule)} may fetch every topic as a replica, and change the state of replicas")
        return Told(f"{who(rule)} may add and remove ACLs, and so give itself every right")

    return findings("17", table, rows, _tell)


def _unsupported(table: RuleTable) -> Bools:
    """Return which rows have an operation that no request can ask of their type."""
    unsupported = np.zeros((TYPES, OPERATIONS), np.bool_)
    for kind, operations in SUPPORTED_OPERATIONS.items():
        unsupported[kind] = True
        unsupported[kind, [AclOperation.ALL, *operations]] = False
    found: Bools = unsupported[table.type_of, table.operation_of]
    return found


def _of(table: RuleTable, *operations: AclOperation) -> Bools:
    """Return which rows have one of these operations."""
    return np.isin(table.operation_of, operations)
