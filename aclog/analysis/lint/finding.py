"""What lints read and what they return: ACLs in columns, the facts beside them, findings, and the base of all lints."""

import re
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from attrs import field

from aclog.analysis.policy import Policy
from aclog.analysis.regions import REQUESTED, ExistingNames, Request
from aclog.authorizer.acl import StandardAcl, code_name
from aclog.authorizer.acls_image import RuleChange
from aclog.authorizer.codes import (
    CLUSTER_NAME,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from aclog.authorizer.index.acl_index import AclIndex, Resource
from aclog.authorizer.index.base import Base, row_keys
from aclog.authorizer.index.layout import OPERATIONS, TYPES, ByteStrings, Int32s, known_type, prefix_range, rule_mask
from aclog.authorizer.index.queries import rules_of
from aclog.authorizer.index.scan_order import name_ranks, tables_of
from aclog.authorizer.settings import Settings
from aclog.authorizer.symbols import is_symbol, known_beginning
from aclog.metalog.columns import Bools, Bytes, Int64s, unsigned_varints
from aclog.metalog.values import define, frozen

_T = TypeVar("_T")

# The rules of a policy in columns: a million rules without an object for each.


@define(eq=False, slots=False)
class RuleTable:
    """Rules by row, and their distinct texts by number. Immutable by convention, except for the cache of `derived`."""

    base: Base
    settings: Settings
    _derived: dict[Callable[["RuleTable"], Any], Any] = field(factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, policy: Policy) -> "RuleTable":
        """Return the table of a policy; changes since the base of its image was built are merged into it first."""
        acls = policy.acls
        return cls((acls.merged() if acls.overlay_size else acls).index.base, policy.settings)

    def __len__(self) -> int:
        return len(self.base)

    def derived(self, compute: Callable[["RuleTable"], _T]) -> _T:
        """Return what a function computes from the table, computed once for all lints that need it."""
        if compute not in self._derived:
            self._derived[compute] = compute(self)
        value: _T = self._derived[compute]
        return value

    def rule(self, row: int) -> StandardAcl:
        """Return the rule of a row."""
        return self.base.rule(row).acl

    @cached_property
    def _keys(self) -> tuple[Int32s, Int32s]:
        return row_keys(self.base)

    @property
    def resource_of(self) -> Int32s:
        """By row: the resource pattern."""
        return self._keys[0]

    @property
    def pair_of(self) -> Int32s:
        """By row: the pair of principal and host."""
        return self._keys[1]

    @cached_property
    def principal_of(self) -> Int32s:
        """By row: the principal."""
        return tables_of(self.base).principal_of[self.pair_of]

    @cached_property
    def host_of(self) -> Int32s:
        """By row: the host."""
        return tables_of(self.base).host_of[self.pair_of]

    @cached_property
    def operation_of(self) -> Bytes:
        """By row: the operation as Kafka reads it."""
        codes = np.frombuffer(self.base.operations, np.uint8)
        return np.where(codes < OPERATIONS, codes, 0).astype(np.uint8)

    @cached_property
    def allows(self) -> Bools:
        """By row: whether it is an ALLOW; every other permission acts as DENY."""
        rows: Bools = np.frombuffer(self.base.permissions, np.uint8) == AclPermissionType.ALLOW
        return rows

    @cached_property
    def _resource_data(self) -> tuple[Int64s, Bytes]:
        keys = self.base.resources
        return np.asarray(keys.offsets).astype(np.int64), np.frombuffer(keys.data, np.uint8)

    @cached_property
    def type_of_resource(self) -> Bytes:
        """By resource: its type, 0..7."""
        offsets, data = self._resource_data
        return data[offsets[:-1]]

    @cached_property
    def type_of(self) -> Bytes:
        """By row: the type of the resource."""
        return self.type_of_resource[self.resource_of]

    @cached_property
    def literal_resource(self) -> Bools:
        """By resource: whether the pattern is LITERAL; every other one acts as PREFIXED."""
        offsets, data = self._resource_data
        literal: Bools = data[offsets[1:] - 1] == PatternType.LITERAL
        return literal

    @cached_property
    def names(self) -> list[str]:
        """By resource: its name."""
        offsets, data = self._resource_data
        _, starts, _ = unsigned_varints(data, offsets[:-1] + 1)
        return _texts(data, starts, offsets[1:] - 1)

    @cached_property
    def principals(self) -> list[str]:
        """By number: the principal."""
        return _plain(tables_of(self.base).principals)

    @cached_property
    def hosts(self) -> list[str]:
        """By number: the host."""
        return _plain(tables_of(self.base).hosts)


def _plain(compact: ByteStrings) -> list[str]:
    """Return compact strings as texts."""
    _, starts, _ = unsigned_varints(compact.data, compact.starts)
    return _texts(compact.data, starts, compact.ends)


def _texts(data: Bytes, starts: Int64s, ends: Int64s) -> list[str]:
    whole = data.tobytes()
    return [whole[start:end].decode() for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


# Resource patterns as intervals in the order of names: two intervals overlap if the patterns cover a common name.
#
# The patterns of a type are sorted by name, so the names that start with a prefix directly follow it. A place is a
# class of names: those that start with a pattern's name and with no longer one, or the one name of a LITERAL pattern.
# A pattern covers the places of its interval; LITERAL `*` has several, since it stops at longer names that start with
# `*`.


_GAP = 4
"""The distance between places: it leaves room for the places that every type has."""
_BETWEEN_TYPES = 2
"""Gaps between types, for the places after the last name."""


class Span(NamedTuple):
    """The places that every type has, with or without rules."""

    top: int
    """Names that start with no pattern's name, nor with `*`."""
    star: int
    """Longer names that start with `*`, and with no longer pattern's name."""
    star_itself: int
    """The name `*`."""
    behind_star: int
    """The first place after all names that start with `*`."""
    end: int
    """The end of the last place."""


@frozen(eq=False, kw_only=True)
class NamePlaces:
    """The intervals of all resource patterns of a table, and the places that represent their names."""

    resource_of: Int64s
    starts: Int64s
    ends: Int64s
    """Intervals [start, end), sorted by start, the wider one first; most patterns have one."""
    top_resource_of: Int64s
    tops: Int64s
    """Places that represent a pattern: a pattern that covers all of them covers all its names.

    One for most patterns, sorted by resource; where two patterns overlap, a top of one of them is a place of both.
    """

    @classmethod
    def of(cls, table: RuleTable) -> "NamePlaces":
        """Return the places of the patterns of a table; a pattern that no resource can have (CLUSTER `x`) has none."""
        ranks = name_ranks(table.base).of_resource
        order = np.lexsort((table.literal_resource, ranks, table.type_of_resource))
        names = table.names
        ordered = [names[resource] for resource in order.tolist()]
        literal = table.literal_resource[order]
        kinds = table.type_of_resource[order]
        shifts = kinds.astype(np.int64) * _BETWEEN_TYPES
        places = (np.arange(len(order)) + shifts + 1) * _GAP
        ends = (_ends(ordered, literal, kinds.tolist()) + shifts) * _GAP + 1
        bounds = np.searchsorted(kinds, np.arange(TYPES + 1)).tolist()
        intervals = _Intervals(order=order, starts=places, ends=np.where(literal, places + 1, ends))
        for kind in ResourceType:
            low, high = bounds[kind], bounds[kind + 1]
            if kind <= ResourceType.ANY or low == high:
                intervals.drop(range(low, high))
            elif kind == ResourceType.CLUSTER:
                intervals.keep_cluster(range(low, high), ordered, literal)
            else:
                span = _span(range(low, high), ordered, kind * _BETWEEN_TYPES)
                intervals.special(range(low, high), ordered, literal, span, documented=table.settings.documented)
        return intervals.done()


@define(eq=False, kw_only=True)
class _Intervals:
    """Builder of NamePlaces, by position in the order of names."""

    _order: Int64s
    _starts: Int64s
    _ends: Int64s
    _dropped: Bools = field(init=False)
    _pieces: list[tuple[int, int, int]] = field(factory=list, init=False)
    _tops: list[tuple[int, int]] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self._dropped = np.zeros(len(self._order), np.bool_)

    def drop(self, positions: Sequence[int]) -> None:
        """Drop patterns that cover no name."""
        self._dropped[list(positions)] = True

    def keep_cluster(self, positions: range, names: Sequence[str], literal: Bools) -> None:
        """Map all patterns that cover the cluster to one place: it is the only resource of its type."""
        place = self._starts[positions.start]
        for at in positions:
            name = names[at]
            covers = name in (CLUSTER_NAME, WILDCARD) if literal[at] else CLUSTER_NAME.startswith(name)
            self._dropped[at] = not covers
            self._starts[at], self._ends[at] = place, place + 1

    def special(self, positions: range, names: Sequence[str], literal: Bools, span: Span, *, documented: bool) -> None:
        """Set the intervals and tops of the patterns on `*` and on the empty name."""
        for at in range(positions.start, min(positions.start + 2, positions.stop)):
            if names[at] == "":
                self._dropped[at] = True
                if not literal[at]:
                    self._put(at, [(span.top, span.end)], (span.top, span.star))
        for at in _positions_of(WILDCARD, positions, names):
            self._dropped[at] = True
            if not literal[at]:
                self._put(at, [(span.star, span.behind_star)], (span.star, span.star_itself))
            elif documented:
                self._put(at, [(span.top, span.end)], (span.top, span.star_itself))
            else:
                pieces = [
                    (span.top, span.star),
                    (span.star_itself, span.star_itself + 1),
                    (span.behind_star, span.end),
                ]
                self._put(at, pieces, (span.top, span.star_itself))

    def _put(self, at: int, pieces: Sequence[tuple[int, int]], tops: Sequence[int]) -> None:
        resource = int(self._order[at])
        self._pieces += [(resource, start, end) for start, end in pieces if start < end]
        self._tops += [(resource, top) for top in tops]

    def done(self) -> NamePlaces:
        """Return the places."""
        remaining = ~self._dropped
        pieces = np.array(self._pieces, np.int64).reshape(-1, 3)
        resources = np.concatenate((self._order[remaining], pieces[:, 0]))
        starts = np.concatenate((self._starts[remaining], pieces[:, 1]))
        ends = np.concatenate((self._ends[remaining], pieces[:, 2]))
        sequence = np.lexsort((-ends, starts))
        special = np.array(self._tops, np.int64).reshape(-1, 2)
        top_resources = np.concatenate((self._order[remaining], special[:, 0]))
        tops = np.concatenate((self._starts[remaining], special[:, 1]))
        by_resource = np.argsort(top_resources, kind="stable")
        return NamePlaces(
            resource_of=resources[sequence],
            starts=starts[sequence],
            ends=ends[sequence],
            top_resource_of=top_resources[by_resource],
            tops=tops[by_resource],
        )


def _span(positions: range, names: Sequence[str], shift: int) -> Span:
    low, high = prefix_range(names, WILDCARD, low=positions.start, high=positions.stop)
    star = (low + shift) * _GAP + 2
    # An empty interval of names that start with `*` still has the place of `*` itself.
    behind = max((high + shift) * _GAP + 1, star + 2)
    return Span(
        top=(positions.start + shift) * _GAP + 1,
        star=star,
        star_itself=star + 1,
        behind_star=behind,
        end=max((positions.stop + shift) * _GAP + 1, behind),
    )


def _positions_of(name: str, positions: range, names: Sequence[str]) -> list[int]:
    low, high = prefix_range(names, name, low=positions.start, high=positions.stop)
    return [at for at in range(low, min(low + 2, high)) if names[at] == name]


def _ends(names: Sequence[str], literal: Bools, kinds: Sequence[int]) -> Int64s:
    """Return for each prefix the number of names before it and below it, in the order of names."""
    ends = np.arange(1, len(names) + 1, dtype=np.int64)
    is_literal = literal.tolist()
    stack: list[tuple[str, int]] = []
    kind = -1
    for at, name in enumerate(names):
        if kinds[at] != kind:
            for _, opened in stack:
                ends[opened] = at
            stack.clear()
            kind = kinds[at]
        while stack and not name.startswith(stack[-1][0]):
            ends[stack.pop()[1]] = at
        if not is_literal[at]:
            stack.append((name, at))
    for _, opened in stack:
        ends[opened] = len(names)
    return ends


# Facts beside the rules: existing names, active principals, accesses, conventions of the cluster.


SEPARATORS = ".-_"
"""The default separators between the parts of names."""


@frozen(eq=False, kw_only=True)
class DeclaredTopics:
    """The topics that files declare; others may exist."""

    names: ExistingNames
    beginnings: tuple[str, ...] = ()
    """How names begin whose rest is not known."""
    is_whole: bool = True
    """Whether all files were read."""

    @staticmethod
    def of(names: Iterable[str], *, is_whole: bool) -> "DeclaredTopics":
        """Return those of these names, of which some may be symbols."""
        names = list(names)
        return DeclaredTopics(
            names=ExistingNames.of(each for each in names if not is_symbol(each)),
            beginnings=tuple(sorted({known_beginning(each) for each in names if is_symbol(each)})),
            is_whole=is_whole,
        )

    def may_cover(self, name: str, *, is_literal: bool) -> bool:
        """Return whether a pattern may cover a declared topic whose name is not known."""
        return any(name.startswith(each) or (not is_literal and each.startswith(name)) for each in self.beginnings)


@frozen(eq=False, kw_only=True)
class LintContext:
    """Facts that lints use. A lint whose facts are missing (None, or empty) finds nothing."""

    topics: ExistingNames | None = None
    """The topics that exist."""
    groups: ExistingNames | None = None
    """The consumer groups that exist."""
    declared: DeclaredTopics | None = None
    """The topics that the files of the rules declare; None if they declare none."""
    seen_principals: frozenset[str] = frozenset()
    """Principals that make requests; those of the accesses count as well."""
    accesses: Collection[Request] = ()
    """Past requests, allowed or denied; hosts in the form of `host_address`."""
    broker_version: tuple[int, ...] | None = None
    """The oldest Kafka among the brokers, such as (3, 9, 1); None: a current one."""
    broker_principals: frozenset[str] = frozenset()
    """The principals of brokers, which need cluster rights."""
    separators: str = SEPARATORS
    """The characters that separate the parts of names."""
    principal_types: frozenset[str] = frozenset(("User",))
    """The types of principals that the cluster's principal builder makes."""
    states_principal_types: bool = False
    """Whether these types are stated, and no default."""

    def active_principals(self) -> frozenset[str]:
        """Return every principal that makes requests."""
        return self.seen_principals | {access.principal for access in self.accesses}


# A finding: the ACLs that a lint reports, their impact, and the fix.


class Severity(StrEnum):
    """How much a finding matters: by default an error fails a pull request, and information fails nothing."""

    ERROR = "error"
    """The rule is ineffective, or grants access that was probably unintended."""
    WARNING = "warning"
    INFO = "info"
    """The rule is redundant, as the tool of its file writes or documents such rules."""


@frozen(kw_only=True)
class Finding:
    """A lint's report on one rule, or on several together."""

    lint: str
    """The id of the lint, such as `08`."""
    severity: Severity
    rules: tuple[StandardAcl, ...]
    """The rules concerned, at least one; the one to fix first, if they differ."""
    lost: str
    """The impact, in one clause: the access that is granted, denied or ineffective."""
    fix: tuple[RuleChange, ...] = ()
    """Changes that fix it, in this order; empty if the intention is needed for a fix."""
    advice: str
    """The fix in words."""
    neutral: bool = False
    """Whether the fix alone changes no decision: on the same rules without any other change.

    Several such fixes need not be neutral together: two rules may each be redundant because of the other. See
    aclog.analysis.lint.related.neutral_fix.
    """


class Consequence(NamedTuple):
    """The consequence of a rule: the impact, and the fix if changes can express it."""

    lost: str
    fix: tuple[RuleChange, ...] = ()


class Facts(NamedTuple):
    """The facts available to a run, besides the rules."""

    context: LintContext
    allow_everyone: bool
    """Whether allow.everyone.if.no.acl.found is true."""
    history: bool
    """Whether the source has a history of rules and topics."""


class Lint:
    """A lint: what it finds, why that matters, the fix, and the finder.

    A lint is a subclass with these texts and a `find`, defined in one of the modules that
    aclog.analysis.lint_report.LINTS collects; a leading underscore marks a base of several lints. The texts are
    Markdown. `aclog lint --list` and `--explain`, SARIF and docs/lint.md print them.
    """

    id: ClassVar[str]
    """Two digits; never reused for another lint."""
    name: ClassVar[str]
    """In kebab case, for people and SARIF."""
    title: ClassVar[str]
    """The problem, in one clause, about one rule or several."""
    severity: ClassVar[Severity]
    """Of its findings; those of 07, 11 and 27 may be less severe."""
    exact: ClassVar[bool]
    """Whether a finding is a fact; else it is a guess at the intention, from names and conventions."""
    rationale: ClassVar[str]
    """Why it matters, in sentences."""
    details: ClassVar[str] = ""
    """More facts for docs/lint.md: exceptions, limits. Paragraphs and lists."""
    example: ClassVar[str]
    """A rule that it finds, for docs/lint.md."""
    fix: ClassVar[str]
    """What to do: the advice of its findings, in sentences."""
    fix_details: ClassVar[str] = ""
    """More about the fix for docs/lint.md."""
    needs: ClassVar[str] = ""
    """The facts that it needs besides the rules, as flags of `aclog lint`; empty if the rules suffice."""
    judges: ClassVar[str] = ""
    """The field of a rule whose text it judges, if it does: of a symbol only parts of the text are known."""
    of_history: ClassVar[bool] = False
    """Whether its findings come from a history of rules and topics; then it has no `find`."""

    def find(self, table: RuleTable, context: LintContext) -> Iterator[Finding]:
        """Yield the findings on the rules of a table, in the order of the index."""
        raise NotImplementedError

    def is_ready(self, _facts: Facts) -> bool:
        """Return whether the facts in `needs` are available: without them, no findings is no result."""
        return True

    def not_judged(self, _table: RuleTable) -> str | None:
        """Return which rules `find` skipped and why; None if it skipped none."""
        return None

    def finding(self, rules: Sequence[StandardAcl], consequence: Consequence, *, neutral: bool = False) -> Finding:
        """Return a finding on some rules, with the severity and the advice of the lint."""
        return Finding(
            lint=self.id,
            severity=self.severity,
            rules=tuple(rules),
            lost=consequence.lost,
            fix=consequence.fix,
            advice=self.fix,
            neutral=neutral,
        )

    def findings(
        self, table: RuleTable, rows: Bools, consequence: Callable[[StandardAcl], Consequence]
    ) -> Iterator[Finding]:
        """Yield a finding for each of the selected rows."""
        for row in np.flatnonzero(rows).tolist():
            rule = table.rule(row)
            yield self.finding((rule,), consequence(rule))


# Helpers of finders.


def replaced(rule: StandardAcl, *by: StandardAcl) -> tuple[RuleChange, ...]:
    """Return the changes that replace a rule: additions come before the removal, so that no DENY is missing."""
    added = tuple(RuleChange(added=True, acl=each) for each in by if each != rule)
    return (*added, RuleChange(added=False, acl=rule))


def texts_matching(texts: Sequence[str], pattern: str) -> Bools:
    """Return which texts contain a match of a regular expression."""
    search = re.compile(pattern).search
    return np.fromiter(map(search, texts), np.bool_, len(texts))  # a match is true, None is not


def texts_where(texts: Sequence[str], holds: Callable[[str], bool]) -> Bools:
    """Return for which texts something holds."""
    return np.fromiter(map(holds, texts), np.bool_, len(texts))


def texts_among(texts: Sequence[str], members: Iterable[str]) -> Bools:
    """Return which texts are among these."""
    return texts_where(texts, frozenset(members).__contains__)


def one_of(characters: str) -> str:
    """Return these characters escaped for a character class of a regular expression."""
    return "".join(f"\\U{ord(each):08x}" for each in characters)


def types_of(principals: Iterable[str]) -> list[str]:
    """Return the type of each principal: the part before the first colon."""
    return [principal.partition(":")[0] for principal in principals]


# Rules in words, for findings.


_BYTE = r"(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
PLAIN_HOST = rf"^(\*|{_BYTE}(\.{_BYTE}){{3}})\Z"
"""A regular expression for `*` and IPv4 addresses: nearly all hosts, all of them valid."""

_NOUNS: dict[int, str] = {
    ResourceType.TOPIC: "topic",
    ResourceType.GROUP: "group",
    ResourceType.CLUSTER: "cluster",
    ResourceType.TRANSACTIONAL_ID: "transactional id",
    ResourceType.DELEGATION_TOKEN: "delegation token",
    ResourceType.USER: "user",
}


def noun(resource_type: int) -> str:
    """Return the noun for resources of a type: `topic`."""
    return _NOUNS.get(resource_type, "resource")


def who(acl: StandardAcl) -> str:
    """Return the principal of a rule, and the host unless it is `*`: `User:a from 10.0.0.1`."""
    return acl.principal if acl.host == "*" else f"{acl.principal} from {acl.host}"


def what(acl: StandardAcl) -> str:
    """Return the resources of a rule: `topic 'a'`, `every topic` for LITERAL `*`.

    For a prefix, return `topics whose names start with 'a'`.
    """
    kind = noun(acl.resource_type)
    if acl.pattern_type != PatternType.LITERAL:
        return f"{kind}s whose names start with {acl.resource_name!r}"
    return f"every {kind}" if acl.resource_name == "*" else f"{kind} {acl.resource_name!r}"


def brief(acl: StandardAcl) -> str:
    """Return a rule in short: `ALLOW User:a READ on topic 'a'`."""
    return f"{'ALLOW' if is_allow(acl) else 'DENY'} {who(acl)} {verb(acl)} on {what(acl)}"


def verb(acl: StandardAcl) -> str:
    """Return the operation: `READ`."""
    return code_name(AclOperation, acl.operation)


def is_allow(acl: StandardAcl) -> bool:
    """Return whether a rule allows; every permission except ALLOW denies."""
    return acl.permission_type == AclPermissionType.ALLOW


def effect_verb(acl: StandardAcl) -> str:
    """Return `grants` or `denies`."""
    return "grants" if is_allow(acl) else "denies"


def useless(acl: StandardAcl) -> str:
    """Return the clause on a rule that matches nothing: `the rule grants nothing`, or `denies nothing`."""
    return f"the rule {effect_verb(acl)} nothing"


# Rows grouped by equal numbers.


def groups_of(
    keys: Int32s | Int64s, rows: Bools, more_keys: Int64s | None = None, *, least: int = 1
) -> Iterator[list[int]]:
    """Yield the selected rows in groups with equal keys, of `least` rows or more, ascending by key."""
    selection = np.flatnonzero(rows)
    if not len(selection):
        return
    first = keys[selection]
    second = first if more_keys is None else more_keys[selection]
    order = np.lexsort((selection, second, first))
    differs = (np.diff(first[order]) != 0) | (np.diff(second[order]) != 0)
    starts = np.concatenate(([0], np.flatnonzero(differs) + 1))
    ends = np.append(starts[1:], len(selection))
    large = ends - starts >= least
    for start, end in zip(starts[large].tolist(), ends[large].tolist(), strict=True):
        yield selection[order[start:end]].tolist()


# The rules that make another one redundant: a finding names one if a single rule suffices.


@frozen(eq=False, kw_only=True)
class Responsible:
    """Finds the rules that cover another one: its names, its principal, its host and its operation."""

    index: AclIndex
    documented: bool
    requestable: int = REQUESTED
    """The operations that requests can have, as a mask."""

    @classmethod
    def of(cls, table: RuleTable) -> "Responsible":
        """Return the finder for the rules of a table."""
        return cls(index=AclIndex(table.base), documented=table.settings.documented)

    def covering(self, rule: StandardAcl, *, allows: bool) -> StandardAcl | None:
        """Return a single rule that allows, or denies, everything that another one names; None without such a rule."""
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
        """Yield those of some ALLOWs that allow an operation of another one on all its names."""
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
        # No prefix but the empty one covers LITERAL `*`.
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
