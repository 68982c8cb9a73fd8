"""Lints of ACLs beside others: redundant and ineffective ones, incomplete grants, shared names, closed resources."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import ClassVar

import numpy as np
from attrs import evolve, field

from aclog.analysis.comparison import differences
from aclog.analysis.lint.effect import Verdict, verdicts
from aclog.analysis.lint.finding import (
    Consequence,
    Facts,
    Finding,
    Lint,
    LintContext,
    NamePlaces,
    Responsible,
    RuleTable,
    Severity,
    brief,
    groups_of,
    is_allow,
    noun,
    texts_among,
    texts_matching,
    texts_where,
    types_of,
    useless,
    verb,
    what,
    who,
)
from aclog.analysis.lint.single import wide_rows, without_wide
from aclog.analysis.policy import Policy
from aclog.analysis.regions import Request, Subtree
from aclog.authorizer.acl import StandardAcl, acl_text, code_name
from aclog.authorizer.acls_image import AclsImage, RuleChange, changed_acls
from aclog.authorizer.codes import WILDCARD, WILDCARD_PRINCIPAL, AclOperation, PatternType, ResourceType
from aclog.authorizer.index.acl_index import AclIndex, ResourceKey, key_of
from aclog.authorizer.index.layout import distinct, rule_mask
from aclog.authorizer.interface import InvalidRequestError
from aclog.metalog.columns import Bools, Int64s
from aclog.metalog.values import define, frozen

# Rules without an effect (08 to 11): the policy without such a rule decides every request the same.


_EXPLAINED = 10_000
"""So many findings of a lint name the rule that causes them: the search for it takes longer than everything else."""
_SUSPECTS = 2
"""A finding names no more broad rules than this."""
_SUSPECT_ADVICE = "Keep it, and narrow the broad rule for everyone: without that rule, this one is needed."


class _Ineffective(Lint):
    """A lint of the rules with one verdict: their removal changes no decision."""

    exact = True
    verdict: ClassVar[Verdict]

    def find(self, table: RuleTable, _context: LintContext) -> Iterator[Finding]:
        """Yield a finding for each rule with the verdict, with its removal as the fix."""
        for number, row in enumerate(np.flatnonzero(self.rows(table)).tolist()):
            rule = table.rule(row)
            lost = f"redundant: every request is decided the same without {brief(rule)}"
            if number < _EXPLAINED:
                lost = self.impact(rule, table)
            yield self.finding((rule,), Consequence(lost, (RuleChange(added=False, acl=rule),)), neutral=True)

    def rows(self, table: RuleTable) -> Bools:
        """Return the rows with the verdict."""
        rows: Bools = table.derived(verdicts) == self.verdict
        return rows

    def impact(self, rule: StandardAcl, table: RuleTable) -> str:
        """Return why a rule has no effect."""
        raise NotImplementedError


class Shadowed(_Ineffective):
    """An ALLOW whose operations other rules allow wherever no rule denies them."""

    id = "08"
    name = "shadowed"
    title = "other rules already allow everything that this ALLOW allows"
    severity = Severity.WARNING
    verdict = Verdict.COVERED
    rationale = (
        "It grants nothing, and removing it revokes nothing. If it is redundant only because of a broad rule for "
        "everyone, that rule is the likely mistake: keep this one."
    )
    details = (
        "An ALLOW for a super user (`super.users`) is also redundant. A broad rule for everyone is a finding of 16, 17 "
        "or 27: `ALLOW READ topic * to User:*` makes every other READ redundant. If the others were removed, and later "
        "the broad rule, every principal would lose READ. So the finding names the broad rule, and `--fix` keeps the "
        "redundant one."
    )
    example = "`ALLOW READ topic team.a to User:a` beside `ALLOW READ topic team.* to User:a`."
    fix = "Remove the rule."

    def find(self, table: RuleTable, context: LintContext) -> Iterator[Finding]:
        """Yield these ALLOWs, without a fix where a broad rule for everyone is the likely mistake."""
        for each in super().find(table, context):
            yield self._with_suspect(each, table) if each.rules[0] in table.derived(_leaning) else each

    def rows(self, table: RuleTable) -> Bools:
        """Return the rows with the verdict that are no findings of 11."""
        return super().rows(table) & ~table.derived(_implied)

    def impact(self, rule: StandardAcl, table: RuleTable) -> str:
        """Return why a rule has no effect."""
        if rule.principal in table.settings.super_users:
            return f"redundant: {rule.principal} is a super user"
        other = table.derived(Responsible.of).covering(rule, allows=True)
        by = "other rules together" if other is None else acl_text(other)
        return f"redundant: {who(rule)} already has {verb(rule)} on {what(rule)}, by {by}"

    @staticmethod
    def _with_suspect(original: Finding, table: RuleTable) -> Finding:
        """Return a finding that names the broad rules for everyone: without them a removed rule would be missing."""
        (rule,) = original.rules
        wide = table.derived(_wide)
        suspects = " and ".join(map(brief, islice(table.derived(Responsible.of).sharing(rule, wide), _SUSPECTS)))
        lost = (
            f"nothing today; the suspect is {suspects or 'a broad rule for everyone'}: without it this rule is needed"
        )
        return evolve(original, lost=lost, fix=(), advice=_SUSPECT_ADVICE, neutral=False)


class Implied(_Ineffective):
    """A shadowed ALLOW that another one on the same pattern implies."""

    id = "11"
    name = "implied"
    title = "another ALLOW on the same resource implies this one"
    severity = Severity.WARNING
    verdict = Verdict.COVERED
    rationale = "READ, WRITE, DELETE and ALTER imply DESCRIBE, and ALTER_CONFIGS implies DESCRIBE_CONFIGS."
    example = "`ALLOW DESCRIBE topic a to User:a` beside `ALLOW READ topic a to User:a`."
    fix = "Remove the rule."

    def rows(self, table: RuleTable) -> Bools:
        """Return the implied rows."""
        return table.derived(_implied)

    def impact(self, rule: StandardAcl, table: RuleTable) -> str:
        """Return why a rule has no effect."""
        implying = table.derived(Responsible.of).implying(rule)
        by = "another operation" if implying is None else verb(implying)
        return f"redundant: {by} on {what(rule)} implies {verb(rule)} for {who(rule)}"


class OverriddenAllow(_Ineffective):
    """An ALLOW that allows nothing in the end."""

    id = "09"
    name = "overridden-allow"
    title = "the ALLOW grants nothing: DENY rules override everything it allows"
    severity = Severity.ERROR
    verdict = Verdict.OVERRIDDEN
    rationale = "Any DENY that matches takes precedence, even with a shorter prefix: the access is denied."
    details = "An ALLOW of an operation that no request has, or on a name that no resource has, is also a finding."
    example = "`ALLOW READ topic pii.card to User:a` beside `DENY ALL topic pii.* to User:*`."
    fix = "Narrow the DENY, or remove the ALLOW."

    def impact(self, rule: StandardAcl, table: RuleTable) -> str:
        """Return why a rule has no effect."""
        responsible = table.derived(Responsible.of)
        other = responsible.covering(rule, allows=False)
        if other is not None:
            return f"{who(rule)} may not {verb(rule)} {what(rule)}: {brief(other)} takes precedence"
        if not rule_mask(rule.operation, rule.permission_type) & responsible.requestable:
            return f"no request has the operation {verb(rule)}: {useless(rule)}"
        return f"the rule is on {what(rule)}, and no {noun(rule.resource_type)} can have such a name: {useless(rule)}"


class DeadDeny(_Ineffective):
    """A DENY that denies nothing which is allowed otherwise."""

    id = "10"
    name = "dead-deny"
    title = "the DENY blocks nothing that would otherwise be allowed"
    severity = Severity.WARNING
    verdict = Verdict.DEAD
    rationale = "Anything not allowed is denied by default: the rule only looks like protection."
    details = (
        "Without the DENY every request is decided the same. `--fix` removes a DENY only where another DENY covers it."
    )
    example = "`DENY WRITE topic a to User:a`, where no rule allows it."
    fix = "If the rule guards against future ALLOW rules, keep it. Otherwise remove it."

    def impact(self, rule: StandardAcl, table: RuleTable) -> str:
        """Return why a rule has no effect."""
        if rule.principal in table.settings.super_users:
            return f"nothing is denied: {rule.principal} is a super user"
        other = table.derived(Responsible.of).covering(rule, allows=False)
        if other is not None:
            return f"nothing more is denied: {brief(other)} denies it as well"
        return f"every request is decided the same without it: {verb(rule)} on {what(rule)} for {who(rule)}"

    def not_judged(self, table: RuleTable) -> str | None:
        """Return the number of DENY rules without a verdict; None if all have one."""
        undecided = int((table.derived(verdicts) == Verdict.UNDECIDED).sum())
        return f"DENY rules not judged, since it would take too long: {undecided:,}" if undecided else None


def _wide(table: RuleTable) -> frozenset[StandardAcl]:
    """Return the broad rules for everyone."""
    return frozenset(map(table.rule, np.flatnonzero(table.derived(wide_rows)).tolist()))


def _leaning(table: RuleTable) -> frozenset[StandardAcl]:
    """Return the shadowed rules that are needed without the broad rules for everyone."""
    narrow = without_wide(table)
    covered = np.flatnonzero(table.derived(verdicts) == Verdict.COVERED).tolist() if narrow is not None else []
    if narrow is None or not covered:
        return frozenset()
    rest = RuleTable.of(narrow)
    redundant = {rest.rule(row) for row in np.flatnonzero(verdicts(rest) == Verdict.COVERED).tolist()}
    return frozenset(map(table.rule, covered)) - redundant - table.derived(_wide)


def _implied(table: RuleTable) -> Bools:
    """Return which rows are shadowed, with another rule on the pattern that implies them."""
    implied: Bools = (table.derived(verdicts) == Verdict.COVERED) & np.isin(
        table.operation_of, (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
    )
    for row in np.flatnonzero(implied).tolist():
        implied[row] = table.derived(Responsible.of).implying(table.rule(row)) is not None
    return implied


# A fix that changes no decision: redundant rules that can be removed together.


def neutral_fix(
    policy: Policy, findings: Iterable[Finding], among: Collection[StandardAcl] | None = None
) -> tuple[RuleChange, ...]:
    """Return removals that together change no decision: of rules that findings report as redundant.

    Of rules that make each other redundant the broader ones stay, and a rule that only a broad rule for everyone makes
    redundant stays as well, since that one may be the mistake. A DENY is removed only if another DENY covers it: one
    without an effect may guard against future ALLOW rules. The exact difference proves each step. `among`: the rules
    that may be removed; None for all.
    """
    redundant = dict.fromkeys(
        rule for each in findings if each.neutral for rule in each.rules if among is None or rule in among
    )
    candidates = dict.fromkeys(_unguarding(policy, redundant))
    removed: list[StandardAcl] = []
    now = _Sides.of(policy)
    while candidates:
        step = _together(now, candidates)
        now, batch = _removed(now, step)
        if not batch:
            break
        removed += batch
        for rule in batch:
            del candidates[rule]
    return tuple(RuleChange(added=False, acl=rule) for rule in removed)


def neutral_fix_of_each(policies: Iterable[Policy], findings: Iterable[Finding]) -> tuple[RuleChange, ...]:
    """Return the same where any of these policies may decide: removals that change no decision of any."""
    each, all_findings = list(policies), list(findings)
    changes = neutral_fix(each[0], all_findings)
    while True:
        before = changes
        for policy in each if len(each) > 1 else ():
            changes = neutral_fix(policy, all_findings, {change.acl for change in changes})
        if len(changes) == len(before):
            return changes


@frozen(eq=False, kw_only=True)
class _Sides:
    """A policy, and the same without its broad rules for everyone: a rule is redundant if it is so in both."""

    policy: Policy
    narrow: Policy | None = None
    """None if no rule is broad."""
    wide: frozenset[StandardAcl] = frozenset()

    @classmethod
    def of(cls, policy: Policy) -> "_Sides":
        table = RuleTable.of(policy)
        wide = frozenset(map(table.rule, np.flatnonzero(wide_rows(table)).tolist()))
        return cls(policy=policy, narrow=without_wide(table), wide=wide)

    def redundant(self) -> frozenset[StandardAcl]:
        """Return the redundant rules, each judged alone."""
        rules = _redundant(self.policy)
        return rules if self.narrow is None else rules & (_redundant(self.narrow) | self.wide)

    def without(self, rules: Sequence[StandardAcl]) -> "_Sides | None":
        """Return both policies without some rules; None if that changes a decision of either."""
        policy, narrow = _without(self.policy, rules), self.narrow
        if policy is not None and narrow is not None:
            narrow = _without(narrow, [rule for rule in rules if rule not in self.wide])
        if policy is None or (narrow is None and self.narrow is not None):
            return None
        return _Sides(policy=policy, narrow=narrow, wide=self.wide)


def _redundant(policy: Policy) -> frozenset[StandardAcl]:
    table = RuleTable.of(policy)
    rows = np.flatnonzero(np.isin(verdicts(table), (Verdict.COVERED, Verdict.OVERRIDDEN, Verdict.DEAD)))
    return frozenset(map(table.rule, rows.tolist()))


def _without(policy: Policy, rules: Sequence[StandardAcl]) -> Policy | None:
    changes = [RuleChange(added=False, acl=rule) for rule in rules]
    without = Policy(changed_acls(policy.acls, changes), policy.settings)
    return without if next(differences(policy, without, changed=rules), None) is None else None


def _unguarding(policy: Policy, rules: Iterable[StandardAcl]) -> Iterable[StandardAcl]:
    """Yield the rules except the DENYs that no other DENY covers."""
    responsible = Responsible.of(RuleTable.of(policy))
    for rule in rules:
        if is_allow(rule) or responsible.covering(rule, allows=False) is not None:
            yield rule


def _together(now: _Sides, candidates: Iterable[StandardAcl]) -> list[StandardAcl]:
    """Return those of the candidates that are redundant now, one of each cell: the one with the fewest operations.

    A rule that makes another one redundant has a broader pattern, principal or host, unless both are of one cell. So
    only rules of one cell can make each other redundant.
    """
    redundant = now.redundant()
    narrowest: dict[object, StandardAcl] = {}
    for rule in candidates:
        cell = (*key_of(rule), rule.principal, rule.host)
        if rule in redundant and (cell not in narrowest or _operation_count(rule) < _operation_count(narrowest[cell])):
            narrowest[cell] = rule
    rules = list(narrowest.values())
    return _all_but_one(now.policy, rules) if now.policy.settings.allow_everyone else rules


def _all_but_one(policy: Policy, rules: Sequence[StandardAcl]) -> list[StandardAcl]:
    """Return the rules without the last one on each pattern that would have no rule without it, unless it is alone.

    With allow.everyone.if.no.acl.found each of two rules on a pattern keeps it closed.
    """
    of_pattern: dict[ResourceKey, list[StandardAcl]] = defaultdict(list)
    for rule in rules:
        of_pattern[key_of(rule)].append(rule)
    removable: list[StandardAcl] = []
    for (kind, name, literal), some in of_pattern.items():
        resource = policy.acls.index.named(kind, name)[0 if literal else 1]
        count = policy.acls.index.count(resource)
        removable += some[:-1] if len(some) == count > 1 else some
    return removable


def _operation_count(rule: StandardAcl) -> int:
    """Return the number of operations of a rule."""
    return rule_mask(rule.operation, rule.permission_type).bit_count()


def _removed(now: _Sides, rules: Sequence[StandardAcl]) -> tuple[_Sides, list[StandardAcl]]:
    """Return both policies without the rules, and the rules; fewer of them if all together change a decision."""
    if not rules:
        return now, []
    without = now.without(rules)
    if without is not None:
        return without, list(rules)
    if len(rules) == 1:
        return now, []
    middle = len(rules) // 2
    half, removed = _removed(now, rules[:middle])
    rest, more = _removed(half, rules[middle:])
    return rest, [*removed, *more]


# What one principal has: a part of what it needs, more than it needs, or the same thing many times.


_UNNAMED = "Unnamed:principal"
"""A principal without rules of its own."""
_MANY = 10
"""So many literal names with a common prefix suggest a PREFIXED rule."""
_NEWEST_WITHOUT = (2, 8)
"""From this Kafka on IDEMPOTENT_WRITE on the cluster needs no rule (KIP-679)."""


class ConsumerWithoutGroup(Lint):
    """The rules of a principal that reads topics and is allowed in no group."""

    id = "13"
    name = "consumer-without-group"
    title = "a principal has READ on topics, but on no consumer group"
    severity = Severity.WARNING
    exact = False
    rationale = "A consumer that subscribes needs READ on its group as well: it fails with GROUP_AUTHORIZATION_FAILED."
    details = "Super users are excluded."
    example = "`ALLOW READ topic a to User:a`, and no rule on groups."
    fix = "Add READ on the group, unless the client assigns its partitions manually."

    def find(self, table: RuleTable, context: LintContext) -> Iterator[Finding]:
        """Yield for each such principal its rules to read topics."""
        reads = _rows(table, ResourceType.TOPIC, AclOperation.READ)
        grouped = _holders(table, _rows(table, ResourceType.GROUP, AclOperation.READ, AclOperation.ALL))
        rows = reads & ~grouped[table.principal_of] & _clients(table, context)[table.principal_of]
        for numbers in groups_of(table.principal_of, rows):
            rules = [table.rule(row) for row in numbers]
            lost = f"{rules[0].principal} may READ {_some(rules)}, but cannot join a consumer group"
            yield self.finding(rules, Consequence(lost))


class TransactionWithoutWrite(Lint):
    """The rules of a principal with a transactional id and less than a transaction needs."""

    id = "14"
    name = "transaction-without-write"
    title = "a principal may use a transactional id but lacks what a transaction needs"
    severity = Severity.WARNING
    exact = False
    rationale = "A transactional producer needs WRITE on its transactional id and on the topics it writes to."
    details = (
        "A finding has DESCRIBE on a transactional id without WRITE on any id, or WRITE on an id without WRITE on any "
        "topic."
    )
    example = "`ALLOW WRITE transactional id tx to User:a`, and no WRITE on topics."
    fix = "Add WRITE on the transactional id and on the topics."

    def find(self, table: RuleTable, context: LintContext) -> Iterator[Finding]:
        """Yield for each such principal its rules on transactional ids."""
        clients = _clients(table, context)[table.principal_of]
        describes = _rows(table, ResourceType.TRANSACTIONAL_ID, AclOperation.DESCRIBE)
        writes = _rows(table, ResourceType.TRANSACTIONAL_ID, AclOperation.WRITE)
        starts = _holders(table, _rows(table, ResourceType.TRANSACTIONAL_ID, AclOperation.WRITE, AclOperation.ALL))
        produces = _holders(table, _rows(table, ResourceType.TOPIC, AclOperation.WRITE, AclOperation.ALL))
        for rows, lacks in (
            (describes & ~starts[table.principal_of], "no WRITE on any id: it cannot start a transaction"),
            (writes & ~produces[table.principal_of], "no WRITE on topics: its transactions are empty"),
        ):
            for numbers in groups_of(table.principal_of, rows & clients):
                rules = [table.rule(row) for row in numbers]
                lost = f"{rules[0].principal} has {verb(rules[0])} on {_some(rules)}, but {lacks}"
                yield self.finding(rules, Consequence(lost))


class IdempotentWrite(Lint):
    """A rule that allows idempotent writes to a principal with WRITE on a topic."""

    id = "15"
    name = "idempotent-write"
    title = "IDEMPOTENT_WRITE on the cluster beside WRITE on a topic"
    severity = Severity.WARNING
    exact = True
    rationale = "Since Kafka 2.8, WRITE on any topic includes idempotent writes (KIP-679): the rule is a leftover."
    details = "With a `--broker-version` below 2.8 the rule is not a finding."
    example = "`ALLOW IDEMPOTENT_WRITE cluster` beside `ALLOW WRITE topic a`, both for User:a."
    fix = "Once no broker is older than 2.8, remove the rule."

    def find(self, table: RuleTable, context: LintContext) -> Iterator[Finding]:
        """Yield these rules."""
        if context.broker_version is not None and context.broker_version < _NEWEST_WITHOUT:
            return
        rows = _rows(table, ResourceType.CLUSTER, AclOperation.IDEMPOTENT_WRITE)
        writes = _rows(table, ResourceType.TOPIC, AclOperation.WRITE, AclOperation.ALL)
        rows &= _holders(table, writes)[table.principal_of]
        acls = AclsImage(AclIndex(table.base), documented=table.settings.documented, cidr=table.settings.cidr)
        for row in np.flatnonzero(rows).tolist():
            rule = table.rule(row)
            if _writes_somewhere(acls, rule):
                lost = f"redundant: {rule.principal} has WRITE on a topic, which includes idempotent writes"
                yield self.finding((rule,), Consequence(lost, (RuleChange(added=False, acl=rule),)))


def _writes_somewhere(acls: AclsImage, rule: StandardAcl) -> bool:
    """Return whether the principal of a rule may WRITE to some topic: all that an idempotent producer needs."""
    principal = _UNNAMED if rule.principal == WILDCARD_PRINCIPAL else rule.principal
    try:
        # The host `*` of a request matches only rules for any host.
        return acls.by_resource_type(principal, rule.host, AclOperation.WRITE, ResourceType.TOPIC)
    except InvalidRequestError:  # Kafka's authorizer throws on a finding of 05: judge as if it were fixed
        return True


class ManyLiterals(Lint):
    """Many LITERAL rules on topics of one principal with a common prefix."""

    id = "25"
    name = "many-literals"
    title = "many LITERAL rules of one principal that one PREFIXED rule would replace"
    severity = Severity.WARNING
    exact = False
    rationale = "Each new topic needs another rule, and a missing one is hard to see."
    details = "A finding is ten or more rules on topics that differ only in the last part of the name."
    example = "WRITE on `big.n0` to `big.n39`."
    fix = "Use one PREFIXED rule, if all names with the prefix belong together."
    fix_details = "PREFIXED `big.` is broader, so `--fix` does not write it."

    def find(self, table: RuleTable, context: LintContext) -> Iterator[Finding]:
        """Yield these rules, a finding for each prefix."""
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
        for numbers in groups_of(pair_and_operation, rows, head_of, least=_MANY):
            head = _head(names[int(table.resource_of[numbers[0]])], context.separators)
            if head:
                rules = [table.rule(row) for row in numbers]
                yield self.finding(rules, _as_prefix(rules, head, context))


def _head(name: str, separators: str) -> str:
    """Return a name without its last part, up to the separator before that."""
    body = name.rstrip(separators)
    return body[: 1 + max(map(body.rfind, separators))]


def _as_prefix(rules: list[StandardAcl], head: str, context: LintContext) -> Consequence:
    one = evolve(rules[0], resource_name=head, pattern_type=PatternType.PREFIXED)
    lost = f"{len(rules):,} rules grant {one.principal} {verb(one)} on topics {head}*, one for each topic"
    if context.topics is not None:
        covered = context.topics.among((Subtree(prefix=head),))
        others = len(covered - {rule.resource_name for rule in rules})
        lost += f"; a prefix covers {others:,} more existing topic{'' if others == 1 else 's'}" if others else ""
    removed = (RuleChange(added=False, acl=rule) for rule in rules)
    return Consequence(lost, (RuleChange(added=True, acl=one), *removed))


def _rows(table: RuleTable, kind: ResourceType, *operations: AclOperation) -> Bools:
    """Return the rows that allow one of these operations on a type."""
    matches: Bools = table.allows & (table.type_of == kind) & np.isin(table.operation_of, operations)
    return matches


def _holders(table: RuleTable, rows: Bools) -> Bools:
    """Return which principals have such a row, or all if everyone has."""
    holders = np.zeros(len(table.principals), np.bool_)
    holders[table.principal_of[rows]] = True
    everyone = texts_among(table.principals, (WILDCARD_PRINCIPAL,))
    return holders | bool((holders & everyone).any())


def _clients(table: RuleTable, context: LintContext) -> Bools:
    """Return which principals are single clients and no super users."""
    eligible = texts_among(types_of(table.principals), context.principal_types) & texts_matching(table.principals, ":")
    return eligible & ~texts_among(table.principals, (WILDCARD_PRINCIPAL, *table.settings.super_users))


def _some(rules: list[StandardAcl]) -> str:
    """Return the resources of the first rule, and the number of the other rules."""
    return what(rules[0]) if len(rules) == 1 else f"{what(rules[0])} and {len(rules) - 1:,} more"


# Names that several principals may use: groups and transactional ids.


_HOLDER_LIMIT = 10
"""A finding has no more rules than this, and gives the number of the others."""


class _SharedName(Lint):
    """A lint of the names on which several principals have an operation that only one of them should have."""

    severity = Severity.WARNING
    exact = False
    resource_type: ClassVar[ResourceType]
    operation: ClassVar[AclOperation]

    def find(self, table: RuleTable, _context: LintContext) -> Iterator[Finding]:
        """Yield for each pattern that several principals have, completely or in part, some of their rules."""
        star = texts_among(table.names, (WILDCARD,))
        one = texts_matching(table.principals, ":") & ~texts_among(table.principals, (WILDCARD_PRINCIPAL,))
        rows = table.allows & (table.type_of == self.resource_type) & (table.operation_of == self.operation)
        rows &= one[table.principal_of] & ~star[table.resource_of]
        if not rows.any():
            return
        for numbers, others in _Holdings.of(table, rows).shared():
            rules = [table.rule(row) for row in numbers]
            if not others and self.is_of_workers(table, {int(table.principal_of[row]) for row in numbers}):
                continue
            names = sorted({rule.principal for rule in rules})
            more = f" ({others:,} more rule{'' if others == 1 else 's'})" if others else ""
            is_literal = table.literal_resource[table.resource_of[numbers[0]]]
            which = f"the {noun(self.resource_type)}" if is_literal else f"{noun(self.resource_type)}s that start with"
            yield self.finding(rules, Consequence(f"{', '.join(names)}{more} share {which} {rules[0].resource_name!r}"))

    def is_of_workers(self, _table: RuleTable, _principals: AbstractSet[int]) -> bool:
        """Return whether some principals, by number, are workers of one application, which share such names."""
        return False


class SharedGroup(_SharedName):
    """A group that several principals may join."""

    id = "19"
    name = "shared-group"
    title = "several principals may join one consumer group"
    resource_type = ResourceType.GROUP
    operation = AclOperation.READ
    rationale = "Members of a group share its partitions: one application takes messages from the other."
    details = (
        "The principals have READ on the group, by LITERAL rules on its name or by a PREFIXED rule. A finding has ten "
        "rules at most, and the number of further rules. Workers of one Kafka Connect cluster and instances of one "
        "Schema Registry share a group by design: principals that may all write to the cluster's topics for "
        "configuration, offsets and status, or to `_schemas`, are not a finding."
    )
    example = "READ on the group `g` for User:a and User:b."
    fix = "Use one group per application."

    def is_of_workers(self, table: RuleTable, principals: AbstractSet[int]) -> bool:
        """Return whether all may write the topics of one Kafka Connect cluster or Schema Registry."""
        return any(principals <= writers for writers in table.derived(_writers_of_workers))


_OF_WORKERS = re.compile(r"_?schemas|.*-(?:configs?|offsets?|status(?:es)?)|(?=.*connect).*(?:config|offset|status).*")
"""The topics in which Schema Registry and the workers of Kafka Connect keep their state, by their usual names."""


def _writers_of_workers(table: RuleTable) -> list[frozenset[int]]:
    """Return for each such topic the principals, by number, with an ALLOW to write on its very name or a prefix."""
    of_workers = texts_where(table.names, lambda name: _OF_WORKERS.fullmatch(name) is not None)[table.resource_of]
    rows = _rows(table, ResourceType.TOPIC, AclOperation.WRITE, AclOperation.ALL) & of_workers
    of_topic: dict[str, set[int]] = defaultdict(set)
    for row in np.flatnonzero(rows).tolist():
        of_topic[table.names[table.resource_of[row]]].add(int(table.principal_of[row]))
    return [frozenset(principals) for principals in of_topic.values()]


class SharedTransactionalId(_SharedName):
    """A transactional id that several principals may use."""

    id = "20"
    name = "shared-transactional-id"
    title = "several principals may use one transactional id"
    resource_type = ResourceType.TRANSACTIONAL_ID
    operation = AclOperation.WRITE
    rationale = "A producer fences every other one with its id: two applications keep fencing each other."
    details = "The principals have WRITE on the transactional id, by LITERAL rules on its name or by a PREFIXED rule."
    example = "WRITE on the transactional id `tx` for User:a and on `t*` for User:b."
    fix = "Use one transactional id, or one prefix, per application."


@frozen(eq=False, kw_only=True)
class _Holdings:
    """Rules by the place of their pattern."""

    rows: Int64s
    places: Int64s
    """Ascending."""
    ends: Int64s
    """By row: the end of the names that the pattern covers."""
    principals: Int64s
    other_at: Int64s
    """By row: the next one of another principal."""

    @classmethod
    def of(cls, table: RuleTable, rows: Bools) -> "_Holdings":
        """Return the selected rows by place; without those on patterns that cover no name."""
        intervals = table.derived(NamePlaces.of)
        start_of, end_of = (np.full(len(table.names), -1, np.int64) for _ in range(2))
        start_of[intervals.resource_of[::-1]], end_of[intervals.resource_of[::-1]] = (
            intervals.starts[::-1],
            intervals.ends[::-1],
        )
        selection = np.flatnonzero(rows)
        selection = selection[start_of[table.resource_of[selection]] >= 0]
        places, principals = start_of[table.resource_of[selection]], table.principal_of[selection].astype(np.int64)
        order = np.lexsort((principals, places))
        selection, principals = selection[order], principals[order]
        changes = np.append(np.flatnonzero(np.diff(principals)) + 1, len(selection))
        return cls(
            rows=selection,
            places=places[order],
            ends=end_of[table.resource_of[selection]],
            principals=principals,
            other_at=changes[np.searchsorted(changes, np.arange(len(selection)), side="right")],
        )

    def shared(self) -> Iterator[tuple[list[int], int]]:
        """Yield for each pattern that several principals have some of their rows, and the number of the others."""
        if not len(self.rows):  # all are on patterns that cover no name, such as LITERAL ""
            return
        first = np.flatnonzero(np.append(True, np.diff(self.places) != 0))
        ends = np.searchsorted(self.places, self.ends[first])
        for low, high in zip(first.tolist(), ends.tolist(), strict=True):
            if self.other_at[low] < high:
                sample = list(self._some(low, high))
                yield self.rows[sample].tolist(), high - low - len(sample)

    def _some(self, low: int, high: int) -> Iterator[int]:
        """Yield the first row of a pattern and the first rows of other principals, at most _HOLDER_LIMIT."""
        at = low
        for _ in range(_HOLDER_LIMIT):
            yield at
            at = int(self.other_at[at])
            if at >= high:
                return


# Rules that close a resource which was open to everyone (allow.everyone.if.no.acl.found).


_CLOSED_SHOWN = 20
"""A finding has no more rules than this."""


class ClosesOpenResource(Lint):
    """The rules on a resource that a principal used and none of them names."""

    id = "22"
    name = "closes-open-resource"
    title = "rules close a resource to principals that used it when it had no rules"
    severity = Severity.ERROR
    exact = False
    rationale = (
        "With allow.everyone.if.no.acl.found, the first rule on a resource ends the access of every other principal."
    )
    details = (
        "The lint also needs `--allow-everyone-if-no-acl-found`. Super users are excluded. A finding has twenty rules "
        "at most."
    )
    example = "The first rule on topic `a` is for User:b; User:a, which wrote to it, is denied."
    fix = "Add rules for all principals that use the resource, before or together with the first one."
    needs = "--accesses"

    def is_ready(self, facts: Facts) -> bool:
        """Return whether there are accesses, or no resource is open without rules."""
        return bool(facts.context.accesses) or not facts.allow_everyone

    def find(self, table: RuleTable, context: LintContext) -> Iterator[Finding]:
        """Yield for each such resource its rules."""
        settings = table.settings
        if not settings.allow_everyone:
            return
        acls = AclsImage(AclIndex(table.base), documented=settings.documented, cidr=settings.cidr)
        resources: dict[tuple[int, str], _Resource] = {}
        for access in context.accesses:
            if access.principal not in settings.super_users:
                key = access.resource_type, access.resource_name
                if key not in resources:
                    resources[key] = _Resource.of(acls, *key)
                resources[key].add(access)
        for resource in resources.values():
            if resource.refused:
                yield self.finding(resource.rules, Consequence(_refused_text(resource.refused)))


@define(eq=False, kw_only=True)
class _Resource:
    """A resource with accesses, and those of them that are denied now."""

    rules: Sequence[StandardAcl]
    """Some that cover it."""
    _principals: frozenset[str]
    """Those of all rules that cover it."""
    refused: dict[Request, None] = field(factory=dict, init=False)

    @classmethod
    def of(cls, acls: AclsImage, kind: int, name: str) -> "_Resource":
        """Return a resource with the rules that cover it."""
        principals: set[str] = set()
        covering = acls.candidates(kind, name)
        rules = []
        for rule in islice(covering, _CLOSED_SHOWN):
            rules.append(rule.acl)
            principals.add(rule.acl.principal)
        principals.update(rule.acl.principal for rule in covering)
        return cls(rules=rules, principals=frozenset(principals))

    def add(self, access: Request) -> None:
        """Add an access: it is denied if rules cover the resource, and none is for its principal."""
        if self.rules and self._principals.isdisjoint((access.principal, WILDCARD_PRINCIPAL)):
            self.refused[access] = None


def _refused_text(refused: dict[Request, None]) -> str:
    first = next(iter(refused))
    operation = code_name(AclOperation, first.operation)
    used = f"used the {noun(first.resource_type)} {first.resource_name!r} ({operation})"
    others = len({access.principal for access in refused}) - 1
    if not others:
        return f"{first.principal} {used} and is denied now"
    return f"{first.principal} and {others:,} other principal{'' if others == 1 else 's'} {used} and are denied now"
