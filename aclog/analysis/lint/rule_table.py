"""The ACLs of a policy in columns, as lints read them."""

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from attrs import define, field, frozen

from aclog.analysis.policy import Policy
from aclog.analysis.regions import ExistingNames, Request
from aclog.authorizer.acl import CLUSTER_NAME, WILDCARD, AclPermissionType, PatternType, ResourceType, StandardAcl
from aclog.authorizer.index.base import Base, row_keys
from aclog.authorizer.index.layout import OPERATIONS, TYPES, ByteStrings, Int32s
from aclog.authorizer.index.names import prefix_range
from aclog.authorizer.index.scan_order import name_ranks
from aclog.authorizer.index.tables import tables_of
from aclog.authorizer.settings import Settings
from aclog.metalog.vectors import Bools, Bytes, Int64s, unsigned_varints

# The rules of a policy in columns, as lints read them: a million rules without an object for each.


@define(eq=False, slots=False)
class RuleTable:
    """Rules by row, and the distinct texts that they hold by number. Immutable by convention."""

    base: Base
    settings: Settings

    @classmethod
    def of(cls, policy: Policy) -> "RuleTable":
        """Return the table of a policy; changes since the base of its image was built are merged into it first."""
        acls = policy.acls
        return cls((acls.merged() if acls.overlay_size else acls).index.base, policy.settings)

    def __len__(self) -> int:
        return len(self.base)

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


# Where resource patterns stand among all names: as intervals, which overlap if the patterns cover a common name.
#
# The patterns of a type are sorted by name, so what begins with a prefix stands right behind it. A place is a class
# of names: those that begin with a pattern's name and with no longer one, or the one name of a LITERAL pattern. A
# pattern covers the places of its interval; LITERAL `*` has several, since it stops at longer names that begin with
# `*`.


_GAP = 4
"""Places are this far apart: between two there is room for places that every type has."""
_BETWEEN_TYPES = 2
"""Gaps between types, for those behind the last name."""


class Span(NamedTuple):
    """The places that every type has, whether rules stand there or not."""

    top: int
    """Names that begin with no pattern's name, nor with `*`."""
    star: int
    """Longer names that begin with `*`, and with no longer pattern's name."""
    star_itself: int
    """The name `*`."""
    behind_star: int
    """The first place behind all names that begin with `*`."""
    end: int
    """Behind the last place."""


@frozen(eq=False, kw_only=True)
class NamePlaces:
    """The intervals of all resource patterns of a table, and the places that stand for their names."""

    resource_of: Int64s
    starts: Int64s
    ends: Int64s
    """Intervals [start, end), sorted by start, the wider one first; most patterns have one."""
    top_resource_of: Int64s
    tops: Int64s
    """Places at which everything that covers a pattern can be seen: what covers all of them covers all its names.

    One for most patterns, sorted by resource; and wherever two patterns meet, a top of one of them is a place of both.
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
    """Intervals in the making, by position in the order of names."""

    _order: Int64s
    _starts: Int64s
    _ends: Int64s
    _dropped: Bools = field(init=False)
    _pieces: list[tuple[int, int, int]] = field(factory=list, init=False)
    _tops: list[tuple[int, int]] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self._dropped = np.zeros(len(self._order), np.bool_)

    def drop(self, positions: Sequence[int]) -> None:
        """Leave patterns out that cover no name."""
        self._dropped[list(positions)] = True

    def keep_cluster(self, positions: range, names: Sequence[str], literal: Bools) -> None:
        """Give all patterns that cover the cluster one place: it is the only resource of its type."""
        place = self._starts[positions.start]
        for at in positions:
            name = names[at]
            covers = name in (CLUSTER_NAME, WILDCARD) if literal[at] else CLUSTER_NAME.startswith(name)
            self._dropped[at] = not covers
            self._starts[at], self._ends[at] = place, place + 1

    def special(self, positions: range, names: Sequence[str], literal: Bools, span: Span, *, documented: bool) -> None:
        """Give the patterns on `*` and on the empty name their intervals and tops."""
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
    # An empty interval of names that begin with `*` still has the place of `*` itself.
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
    """Return for each prefix how many names stand before or below it, in the order of names."""
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


# What is known beside the rules: names that exist, principals that were seen, accesses, habits of the cluster.


SEPARATORS = ".-_"
"""What separates the parts of names unless told otherwise."""


@frozen(eq=False, kw_only=True)
class LintContext:
    """Facts that lints use. What is not known (None, or empty) silences the lints that need it."""

    topics: ExistingNames | None = None
    """The topics that exist."""
    groups: ExistingNames | None = None
    """The consumer groups that exist."""
    seen_principals: frozenset[str] = frozenset()
    """Principals that are known to make requests; those of the accesses count as well."""
    accesses: Collection[Request] = ()
    """Requests that were made, whatever the answer was; hosts in the form of `host_address`."""
    broker_version: tuple[int, ...] | None = None
    """The oldest Kafka among the brokers, such as (3, 9, 1); None: a current one."""
    broker_principals: frozenset[str] = frozenset()
    """The principals of brokers: cluster rights are theirs."""
    separators: str = SEPARATORS
    """The characters that separate the parts of names."""
    principal_types: frozenset[str] = frozenset(("User",))
    """The types of principals that the cluster's principal builder makes."""

    def active_principals(self) -> frozenset[str]:
        """Return every principal that is known to make requests."""
        return self.seen_principals | {access.principal for access in self.accesses}
