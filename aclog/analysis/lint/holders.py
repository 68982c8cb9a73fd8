"""Lints that compare names of ACLs with names that exist, of what one principal holds.

Of names that several hold.
"""

import re
from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np
from attrs import define, evolve, field, frozen

from aclog.analysis.lint.finding import (
    BY_ID,
    Consequence,
    Finding,
    finding,
    findings,
    groups_of,
    is_allow,
    noun,
    one_of,
    texts_among,
    texts_matching,
    types_of,
    verb,
    what,
    who,
)
from aclog.analysis.lint.rule_table import SEPARATORS, LintContext, NamePlaces, RuleTable
from aclog.analysis.policy import Policy
from aclog.analysis.regions import LONGEST, REQUESTED, ExistingNames, Request, Subtree
from aclog.authorizer.acl import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    PatternType,
    ResourceType,
    StandardAcl,
    StandardAclWithId,
    code_name,
)
from aclog.authorizer.acls_image import AclsImage, RuleChange
from aclog.authorizer.index.acl_index import AclIndex, Resource
from aclog.authorizer.index.layout import distinct, known_type, rule_mask
from aclog.authorizer.index.queries import rules_of
from aclog.authorizer.interface import InvalidRequestError
from aclog.metalog.vectors import Bools, Int64s

# Lints of names that several principals hold: groups and transactional ids.


_HOLDER_LIMIT = 10
"""A finding names no more rules than this, and says how many there are."""


def shared_group(table: RuleTable, _context: LintContext) -> Iterator[Finding]:
    """Yield the group names that several principals may join (19)."""
    return _shared("19", table, ResourceType.GROUP, AclOperation.READ)


def shared_transactional_id(table: RuleTable, _context: LintContext) -> Iterator[Finding]:
    """Yield the transactional ids that several principals may use (20)."""
    return _shared("20", table, ResourceType.TRANSACTIONAL_ID, AclOperation.WRITE)


def _shared(lint: str, table: RuleTable, kind: ResourceType, operation: AclOperation) -> Iterator[Finding]:
    star = texts_among(table.names, (WILDCARD,))
    one = texts_matching(table.principals, ":") & ~texts_among(table.principals, (WILDCARD_PRINCIPAL,))
    rows = table.allows & (table.type_of == kind) & (table.operation_of == operation)
    rows &= one[table.principal_of] & ~star[table.resource_of]
    if not rows.any():
        return
    for numbers, others in _Holdings.of(table, rows).shared():
        rules = [table.rule(row) for row in numbers]
        names = sorted({rule.principal for rule in rules})
        which = "the" if table.literal_resource[table.resource_of[numbers[0]]] else "names that begin with the"
        more = f" ({others:,} more rules)" if others else ""
        what = f"{which} {noun(kind)} {rules[0].resource_name!r}"
        yield finding(lint, rules, Consequence(f"{', '.join(names)}{more} share {what}"))


@frozen(eq=False, kw_only=True)
class _Holdings:
    """Rows by the place of their pattern."""

    rows: Int64s
    places: Int64s
    """Ascending."""
    ends: Int64s
    """By row: where the names that the pattern covers end."""
    principals: Int64s
    other_at: Int64s
    """By row: the next one of another principal."""

    @classmethod
    def of(cls, table: RuleTable, rows: Bools) -> "_Holdings":
        """Return the chosen rows by place; without those on patterns that cover no name."""
        intervals = NamePlaces.of(table)
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
        """Yield for each pattern that several principals hold, all or in part, some of their rows and how many more."""
        if not len(self.rows):  # all are on patterns that cover no name, such as LITERAL ""
            return
        first = np.flatnonzero(np.append(True, np.diff(self.places) != 0))
        ends = np.searchsorted(self.places, self.ends[first])
        for low, high in zip(first.tolist(), ends.tolist(), strict=True):
            if self.other_at[low] < high:
                sample = list(self._some(low, high))
                yield self.rows[sample].tolist(), high - low - len(sample)

    def _some(self, low: int, high: int) -> Iterator[int]:
        """Yield the first holder of a pattern and the first of others, each once in a row."""
        at = low
        for _ in range(_HOLDER_LIMIT):
            yield at
            at = int(self.other_at[at])
            if at >= high:
                return


# Lints of what one principal holds: half of what it needs, more than it needs, or the same thing many times.


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
    for numbers in groups_of(table.principal_of, rows):
        rules = [table.rule(row) for row in numbers]
        topics = _some(rules)
        yield finding("13", rules, Consequence(f"{rules[0].principal} may READ {topics}, and join no consumer group"))


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
        for numbers in groups_of(table.principal_of, rows & clients):
            rules = [table.rule(row) for row in numbers]
            names = f"{rules[0].principal} holds {_some(rules)}"
            yield finding("14", rules, Consequence(f"{names}, and {lacks}"))


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
        yield finding("15", (rule,), Consequence(lost, (RuleChange(added=False, acl=rule),)))


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
    for numbers in groups_of(pair_and_operation, rows, head_of, least=_MANY):
        head = _head(names[int(table.resource_of[numbers[0]])], context.separators)
        if head:
            yield finding("25", *_folded([table.rule(row) for row in numbers], head, context))


def _head(name: str, separators: str) -> str:
    """Return a name without its last part, up to the separator before that."""
    body = name.rstrip(separators)
    return body[: 1 + max(map(body.rfind, separators))]


def _folded(rules: list[StandardAcl], head: str, context: LintContext) -> tuple[list[StandardAcl], Consequence]:
    one = evolve(rules[0], resource_name=head, pattern_type=PatternType.PREFIXED)
    lost = f"{len(rules):,} rules let {one.principal} {AclOperation(one.operation).name} topics {head}*, one by one"
    if context.topics is not None:
        covered = context.topics.among((Subtree(prefix=head),))
        others = len(covered - {rule.resource_name for rule in rules})
        lost += f"; a prefix covers {others:,} more that exist" if others else ""
    removed = (RuleChange(added=False, acl=rule) for rule in rules)
    return rules, Consequence(lost, (RuleChange(added=True, acl=one), *removed))


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
    """Return which principals are single clients that the rules decide about."""
    eligible = texts_among(types_of(table.principals), context.principal_types) & texts_matching(table.principals, ":")
    return eligible & ~texts_among(table.principals, (WILDCARD_PRINCIPAL, *table.settings.super_users))


def _some(rules: list[StandardAcl]) -> str:
    """Return what a rule covers, and how many others there are."""
    return what(rules[0]) if len(rules) == 1 else f"{what(rules[0])} and {len(rules) - 1:,} more"


# The rules because of which another one is not needed: named in findings, where a single rule suffices.


@frozen(eq=False, kw_only=True)
class Responsible:
    """Finds rules that cover another one: its names, its principal, its host and its operation."""

    index: AclIndex
    documented: bool
    requestable: int = REQUESTED
    """The operations that requests ask for, as a mask."""

    @classmethod
    def of(cls, table: RuleTable) -> "Responsible":
        """Return the finder for the rules of a table."""
        return cls(index=AclIndex(table.base), documented=table.settings.documented)

    def covering(self, rule: StandardAcl, *, allows: bool) -> StandardAcl | None:
        """Return a rule that alone allows, or denies, all that another one names; None if there is none."""
        bits = rule_mask(rule.operation, rule.permission_type)
        operations = (bits | bits >> 16) & self.requestable
        for resource in self._around(rule):
            for other in self._on(resource, rule):
                mask = rule_mask(other.operation, other.permission_type)
                mask = mask if allows else mask >> 16
                if other != rule and is_allow(other) is allows and operations and not operations & ~mask:
                    return other
        return None

    def sharing(self, rule: StandardAcl, among: Container[StandardAcl]) -> Iterator[StandardAcl]:
        """Yield those of some ALLOWs that allow a part of what another one allows, on all its names."""
        bits = rule_mask(rule.operation, rule.permission_type) & self.requestable
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


# Lints that compare names of rules with names that exist.


_SHOWN_NAMES = 5
"""Owners that a finding names."""
_LEGAL = rf"^[a-zA-Z0-9._-]{{0,{LONGEST}}}\Z"


def no_such_name(table: RuleTable, context: LintContext) -> Iterator[Finding]:
    """Yield the rules that cover none of the topics, or of the groups, that exist (18)."""
    for kind, existing in (ResourceType.TOPIC, context.topics), (ResourceType.GROUP, context.groups):
        if existing is None:
            continue
        relevant = (table.type_of_resource == kind) & ~texts_among(table.names, (WILDCARD,))
        if kind == ResourceType.TOPIC:
            relevant &= _legal(table)  # lint 24 says enough about the others
        rows = (relevant & ~_covers_one(table, existing, relevant))[table.resource_of]
        # Whoever may create a topic needs the rule before there is one.
        rows &= ~(table.allows & (table.operation_of == AclOperation.CREATE))
        yield from findings("18", table, rows, _tell_absent)


def prefix_without_separator(table: RuleTable, context: LintContext) -> Iterator[Finding]:
    """Yield the rules whose prefix ends inside of a word, and covers several owners' topics or only others' (21)."""
    topics, separators = context.topics, context.separators
    if topics is None or not separators:
        return
    suspects = (table.type_of_resource == ResourceType.TOPIC) & ~table.literal_resource
    suspects &= texts_matching(table.names, f"[^{one_of(separators)}]\\Z")
    owners, covered = _Owners.of(topics, separators), dict[str, list[str]]()
    for number in np.flatnonzero(suspects).tolist():
        prefix: str = table.names[number]
        owner_names = covered[prefix] = owners.below(prefix)
        suspects[number] = _is_cut(prefix, owner_names)

    def _tell(rule: StandardAcl) -> Consequence:
        owner_names = covered[rule.resource_name]
        names = ", ".join(owner_names[:_SHOWN_NAMES]) + (", ..." if len(owner_names) > _SHOWN_NAMES else "")
        verdict = "may" if is_allow(rule) else "may not"
        return Consequence(f"{who(rule)} {verdict} {verb(rule)} topics of {names} by {rule.resource_name!r}")

    yield from findings("21", table, suspects[table.resource_of], _tell)


def _is_cut(prefix: str, owners: Sequence[str]) -> bool:
    """Return whether a prefix covers topics of several owners, or only of such as go on inside of a word."""
    if len(owners) != 1:
        return len(owners) > 1
    return owners[0] != prefix and not prefix.startswith(owners[0])


@frozen(eq=False, kw_only=True)
class _Owners:
    """The owners of topics: by convention the first parts of their names."""

    _names: list[str]
    """Of topics, sorted."""
    _owners: list[str]
    """By topic."""
    _next: list[int]
    """By topic: the next one of another owner."""

    @classmethod
    def of(cls, topics: ExistingNames, separators: str) -> "_Owners":
        """Return the owners of topics."""
        names = list(topics)
        owners = [_first_part(name, separators) for name in names]
        following = list(range(1, len(names) + 1))
        for at in range(len(names) - 2, -1, -1):
            if owners[at] == owners[at + 1]:
                following[at] = following[at + 1]
        return cls(names=names, owners=owners, next=following)

    def below(self, prefix: str) -> list[str]:
        """Return some owners of the topics that begin with a prefix: all, or enough to show."""
        at, owners = bisect_left(self._names, prefix), dict[str, None]()
        while at < len(self._names) and len(owners) <= _SHOWN_NAMES and self._names[at].startswith(prefix):
            owners[self._owners[at]] = None
            at = self._next[at]
        return sorted(owners)


def _first_part(name: str, separators: str) -> str:
    ends = [at for at in map(name.find, separators) if at >= 0]
    return name[: min(ends)] if ends else name


def _tell_absent(rule: StandardAcl) -> Consequence:
    kind = noun(rule.resource_type)
    how = "is named" if rule.pattern_type == PatternType.LITERAL else "has a name that begins with"
    effect = "may do nothing" if is_allow(rule) else "is kept from nothing"
    return Consequence(f"no {kind} {how} {rule.resource_name!r}: {who(rule)} {effect} by it today")


def _legal(table: RuleTable) -> Bools:
    legal = texts_matching(table.names, _LEGAL)
    return legal & ~(table.literal_resource & texts_among(table.names, (".", "..", "")))


def _covers_one(table: RuleTable, existing: ExistingNames, relevant: Bools) -> Bools:
    """Return which of the patterns that are asked about cover a name that exists."""
    names = list(existing)
    covers = texts_among(table.names, names)
    for number in np.flatnonzero(relevant & ~covers & ~table.literal_resource).tolist():
        prefix: str = table.names[number]
        at = bisect_left(names, prefix)
        covers[number] = at < len(names) and names[at].startswith(prefix)
    return covers


# The lint of rules that close a resource which was open to all (allow.everyone.if.no.acl.found).


_CLOSED_SHOWN = 20
"""A finding names no more rules than this."""


def closes_open_resource(table: RuleTable, context: LintContext) -> Iterator[Finding]:
    """Yield for each resource whose rules are all for others than somebody who used it these rules (22)."""
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
            yield finding("22", resource.rules, Consequence(_lost(resource.refused)))


@define(eq=False, kw_only=True)
class _Resource:
    """A resource that was used, and who is refused there now."""

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
        """Add an access: it is refused if rules cover the resource, and none is for its principal."""
        if self.rules and self._principals.isdisjoint((access.principal, WILDCARD_PRINCIPAL)):
            self.refused[access] = None


def _lost(refused: dict[Request, None]) -> str:
    first = next(iter(refused))
    operation = code_name(AclOperation, first.operation)
    kind = noun(first.resource_type)
    others = len({access.principal for access in refused}) - 1
    more = f", and {others:,} other principals" if others else ""
    return f"{first.principal}{more} used the {kind} {first.resource_name!r} ({operation}), and is refused now"


# Lint 26: patterns that cover other topics than when they were added; only a history of rules and topics can tell.


GROWN_REACH = "26"
MANY_TIMES, MANY_MORE = 10, 20
"""A pattern has grown notably if it covers this many times as many topics as at first, and this many more."""
_NAMED = 3

Spans = Mapping[str, Sequence[tuple[int, int | None]]]
"""For each name of a topic the intervals of end offsets in which it existed; without an end if it does now."""


def judged_rules(policy: Policy) -> Iterator[StandardAclWithId]:
    """Yield the rules that the lint is about: each ALLOW on a prefix of topics. `*` never meant less than all."""
    table = RuleTable.of(policy)
    rows = table.allows & (table.type_of == ResourceType.TOPIC) & ~table.literal_resource[table.resource_of]
    return (table.base.rule(row) for row in np.flatnonzero(rows).tolist())


@frozen
class TopicTimes:
    """The topics of a log, sorted by name, and when they existed."""

    _spans: Spans
    _names: list[str] = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_names", sorted(self._spans))

    def below(self, prefix: str) -> list[str]:
        """Return the names that begin so, also those that are gone."""
        first = bisect_left(self._names, prefix)
        last = next(
            (at for at in range(first, len(self._names)) if not self._names[at].startswith(prefix)), len(self._names)
        )
        return self._names[first:last]

    def among(self, names: Iterable[str], end_offset: int | None) -> set[str]:
        """Return those that existed in the state at an end offset; None: those that exist now."""
        return {name for name in names if any(_holds(span, end_offset) for span in self._spans[name])}

    def first_after(self, names: Iterable[str], end_offset: int) -> int | None:
        """Return when the first of some names came into being after a state; None if none did."""
        return min((begin for name in names for begin, _ in self._spans[name] if begin > end_offset), default=None)


def grown_reach(
    rules: Iterable[tuple[StandardAcl, int]], topics: TopicTimes, *, separators: str = SEPARATORS
) -> Iterator[Finding]:
    """Yield a finding for each rule that covers topics of other owners than at first, or notably more topics.

    A rule (of judged_rules) comes with the end offset of the state that it was first part of. At first is then, or, if
    the pattern covered no topic then, when it covered the first one. The owner of a topic is its name up to the first
    separator.
    """
    for acl, added in rules:
        growth = _judge(acl, added, topics, separators)
        if growth is not None:
            yield growth


def _judge(acl: StandardAcl, added: int, topics: TopicTimes, separators: str) -> Finding | None:
    names = topics.below(acl.resource_name)
    first, now = topics.among(names, added), topics.among(names, None)
    if not first:
        begun = topics.first_after(names, added)
        first = set() if begun is None else topics.among(names, begun)
    owners = {_owner(name, separators) for name in first}
    others = sorted(name for name in now - first if _owner(name, separators) not in owners)
    grown = len(now) >= MANY_TIMES * len(first) and len(now) - len(first) >= MANY_MORE
    if not first or not (others or grown):
        return None
    lint = BY_ID[GROWN_REACH]
    return Finding(
        lint=lint.id,
        severity=lint.severity,
        rules=(acl,),
        lost=_lost_by_growth(acl, len(first), len(now), others),
        fix=_narrowed(acl, sorted(first), separators) if others else (),
        advice=lint.mend,
    )


def _lost_by_growth(acl: StandardAcl, first: int, now: int, others: Sequence[str]) -> str:
    reach = f"{who(acl)} has {code_name(AclOperation, acl.operation)} on {_topics(now)} by it, on {first:,} at first"
    if not others:
        return reach
    more = f" and {len(others) - _NAMED:,} more" if len(others) > _NAMED else ""
    return f"{reach}; of other owners: {', '.join(others[:_NAMED])}{more}"


def _topics(count: int) -> str:
    return f"{count:,} topic{'' if count == 1 else 's'}"


def _narrowed(acl: StandardAcl, first: Sequence[str], separators: str) -> tuple[RuleChange, ...]:
    """Return the changes that leave the owners of the first topics only: their prefixes with the separator."""
    replacements: dict[StandardAcl, None] = {}
    for name in first:
        owner = _owner(name, separators)
        if owner == name:
            replacements[evolve(acl, resource_name=name, pattern_type=int(PatternType.LITERAL))] = None
        else:
            replacements[evolve(acl, resource_name=name[: len(owner) + 1])] = None
    return (*(RuleChange(added=True, acl=each) for each in replacements), RuleChange(added=False, acl=acl))


def _owner(name: str, separators: str) -> str:
    return re.split(f"[{re.escape(separators)}]", name, maxsplit=1)[0] if separators else name


def _holds(span: tuple[int, int | None], end_offset: int | None) -> bool:
    begin, end = span
    return end is None if end_offset is None else begin <= end_offset and (end is None or end_offset < end)
