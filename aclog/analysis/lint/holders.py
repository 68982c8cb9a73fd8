"""Lints of what one principal holds: half of what it needs, more than it needs, or the same thing many times."""

from collections.abc import Iterator

import numpy as np
from attrs import evolve

from aclog.analysis.lint.context import LintContext
from aclog.analysis.lint.finding import Finding
from aclog.analysis.lint.found import Told, finding, texts_among, texts_matching, types_of
from aclog.analysis.lint.groups import groups_of
from aclog.analysis.lint.rule_table import RuleTable
from aclog.analysis.lint.texts import what
from aclog.analysis.regions.names import Subtree
from aclog.authorizer.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    PatternType,
    ResourceType,
    StandardAcl,
)
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.errors import InvalidRequestError
from aclog.authorizer.index.acl_index import AclIndex
from aclog.authorizer.index.arrays import distinct
from aclog.authorizer.rule_change import RuleChange
from aclog.metalog.vectors import Bools

_STRANGER = "Somebody:else"
"""A principal for whom there are no rules of its own."""
_MANY = 10
"""So many literal names below one prefix look like a prefix."""
_NEWEST_WITHOUT = (2, 8)
"""From this Kafka on IDEMPOTENT_WRITE on the cluster needs no rule (KIP-679)."""


def consumer_without_group(table: RuleTable, context: LintContext) -> Iterator[Finding]:
    """Yield for each principal that reads topics as no member of any group its rules to read (13)."""
    reads = _rows(table, ResourceType.TOPIC, AclOperation.READ)
    grouped = _holders(table, _rows(table, ResourceType.GROUP, AclOperation.READ, AclOperation.ALL))
    rows = reads & ~grouped[table.principal_of] & _clients(table, context)[table.principal_of]
    for chosen in groups_of(table.principal_of, rows):
        rules = [table.rule(row) for row in chosen]
        topics = _some(rules)
        yield finding("13", rules, Told(f"{rules[0].principal} may READ {topics}, and join no consumer group"))


def transaction_without_write(table: RuleTable, context: LintContext) -> Iterator[Finding]:
    """Yield for each principal with a transactional id and less than a transaction needs its rules (14)."""
    clients = _clients(table, context)[table.principal_of]
    describes = _rows(table, ResourceType.TRANSACTIONAL_ID, AclOperation.DESCRIBE)
    writes = _rows(table, ResourceType.TRANSACTIONAL_ID, AclOperation.WRITE)
    starts = _holders(table, _rows(table, ResourceType.TRANSACTIONAL_ID, AclOperation.WRITE, AclOperation.ALL))
    produces = _holders(table, _rows(table, ResourceType.TOPIC, AclOperation.WRITE, AclOperation.ALL))
    for rows, lacks in (
        (describes & ~starts[table.principal_of], "WRITE on none: it starts no transaction"),
        (writes & ~produces[table.principal_of], "WRITE on no topic: its transactions are empty"),
    ):
        for chosen in groups_of(table.principal_of, rows & clients):
            rules = [table.rule(row) for row in chosen]
            names = f"{rules[0].principal} holds {_some(rules)}"
            yield finding("14", rules, Told(f"{names}, and {lacks}"))


def idempotent_write(table: RuleTable, context: LintContext) -> Iterator[Finding]:
    """Yield the rules that allow idempotent writes to whoever may write to a topic anyway (15)."""
    if context.broker_version is not None and context.broker_version < _NEWEST_WITHOUT:
        return
    rows = _rows(table, ResourceType.CLUSTER, AclOperation.IDEMPOTENT_WRITE)
    writes = _rows(table, ResourceType.TOPIC, AclOperation.WRITE, AclOperation.ALL)
    rows &= _holders(table, writes)[table.principal_of]
    acls = AclsImage(AclIndex(table.base), documented=table.settings.documented, cidr=table.settings.cidr)
    for row in np.flatnonzero(rows).tolist():
        rule = table.rule(row)
        if not _writes_somewhere(acls, rule):
            continue
        lost = f"nothing: {rule.principal} may write to a topic, and so idempotently"
        yield finding("15", (rule,), Told(lost, (RuleChange(added=False, acl=rule),)))


def _writes_somewhere(acls: AclsImage, rule: StandardAcl) -> bool:
    """Return whether whoever a rule is for may WRITE to some topic: all that an idempotent producer needs."""
    principal = _STRANGER if rule.principal == WILDCARD_PRINCIPAL else rule.principal
    try:
        # As the host of a request `*` is matched by rules for any host only.
        return acls.by_resource_type(principal, rule.host, AclOperation.WRITE, ResourceType.TOPIC)
    except (
        InvalidRequestError
    ):  # Kafka's authorizer throws on a rule that another lint finds: judge as if it were mended
        return True


def many_literals(table: RuleTable, context: LintContext) -> Iterator[Finding]:
    """Yield the LITERAL rules on topics of one principal that begin alike, if they are many (25)."""
    star = texts_among(table.names, (WILDCARD,))
    rows = table.allows & (table.type_of == ResourceType.TOPIC) & _clients(table, context)[table.principal_of]
    rows &= (table.literal_resource & ~star)[table.resource_of]
    if not rows.any() or not context.separators:
        return
    names, number_of = table.names, dict[str, int]()
    heads = np.full(len(names), -1, np.int64)
    for resource in distinct(table.resource_of[rows]).tolist():
        heads[resource] = number_of.setdefault(_head(names[resource], context.separators), len(number_of))
    head_of = heads[table.resource_of]
    pair_and_operation = table.pair_of.astype(np.int64) << 8 | table.operation_of
    for chosen in groups_of(pair_and_operation, rows, head_of, least=_MANY):
        head = _head(names[int(table.resource_of[chosen[0]])], context.separators)
        if head:
            yield finding("25", *_folded([table.rule(row) for row in chosen], head, context))


def _head(name: str, separators: str) -> str:
    """Return a name without its last part, up to the separator before that."""
    body = name.rstrip(separators)
    return body[: 1 + max(map(body.rfind, separators))]


def _folded(rules: list[StandardAcl], head: str, context: LintContext) -> tuple[list[StandardAcl], Told]:
    one = evolve(rules[0], resource_name=head, pattern_type=PatternType.PREFIXED)
    lost = f"{len(rules):,} rules let {one.principal} {AclOperation(one.operation).name} topics {head}*, one by one"
    if context.topics is not None:
        covered = context.topics.among((Subtree(prefix=head),))
        others = len(covered - {rule.resource_name for rule in rules})
        lost += f"; a prefix covers {others:,} more that exist" if others else ""
    removed = (RuleChange(added=False, acl=rule) for rule in rules)
    return rules, Told(lost, (RuleChange(added=True, acl=one), *removed))


def _rows(table: RuleTable, kind: ResourceType, *operations: AclOperation) -> Bools:
    """Return the rows that allow one of these operations on a type."""
    found: Bools = table.allows & (table.type_of == kind) & np.isin(table.operation_of, operations)
    return found


def _holders(table: RuleTable, rows: Bools) -> Bools:
    """Return which principals have such a row, or all if everyone has."""
    found = np.zeros(len(table.principals), np.bool_)
    found[table.principal_of[rows]] = True
    everyone = texts_among(table.principals, (WILDCARD_PRINCIPAL,))
    return found | bool((found & everyone).any())


def _clients(table: RuleTable, context: LintContext) -> Bools:
    """Return which principals are single clients that the rules decide about."""
    known = texts_among(types_of(table.principals), context.principal_types) & texts_matching(table.principals, ":")
    return known & ~texts_among(table.principals, (WILDCARD_PRINCIPAL, *table.settings.super_users))


def _some(rules: list[StandardAcl]) -> str:
    """Return what a rule covers, and how many others there are."""
    return what(rules[0]) if len(rules) == 1 else f"{what(rules[0])} and {len(rules) - 1:,} more"
