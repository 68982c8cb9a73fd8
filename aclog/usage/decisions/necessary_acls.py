"""Which ACLs decisions depend on: those that match an access, and those whose removal would change its decision.

A DENY is needed if no other ACL denies and some ACL allows; an ALLOW is needed if none denies and no other allows.
With allow.everyone.if.no.acl.found, the mere presence of an ACL on the resource counts as well: if only the ALLOWs that
match are on it, the access is allowed with or without them; if a single other ACL is on it, nothing but that ACL keeps
the access from being allowed by default.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from attrs import evolve, frozen

from aclog.authorizer.index.arrays import Int32s
from aclog.authorizer.settings import Settings
from aclog.metalog.vectors import Bools, Int64s
from aclog.usage.decisions.accesses import ParsedAccess
from aclog.usage.decisions.acl_intervals import ALWAYS, FOREVER, AclIntervals
from aclog.usage.decisions.content_intervals import ContentIntervals
from aclog.usage.decisions.interval_index import IntervalIndex, IntervalMatches
from aclog.usage.decisions.kafka_times import Ranges

MOST_IN_A_GROUP = 64
"""Larger groups are cut to this many ACLs: keeping any one of them is enough, so any subset will do."""


class Pairs(NamedTuple):
    """Pairs of an access (by index) and the ordinal of an ACL, by access."""

    access: Int64s
    ordinal: Int64s


@frozen(eq=False, kw_only=True)
class AclDependencies:
    """The ACLs that the decisions on some accesses depend on, each at its version."""

    matched: Pairs
    needed: Pairs
    """Removing this ACL alone changes the decision."""
    groups: Pairs
    """As long as one ACL of an access's group remains, its decision remains, whatever else is removed.

    A needed ACL is alone in its group. An access without a group is decided the same without any ACLs.
    """


@frozen(eq=False, kw_only=True)
class _Matched:
    """The ACLs that match some accesses at their versions, and how many of them deny and allow each access."""

    matches: IntervalMatches
    versions: Int64s
    pairs: Pairs
    denied: Int64s
    allowed: Int64s


@frozen(eq=False, kw_only=True)
class NecessaryAcls:
    """Finds the ACLs that decisions depend on. Each content is indexed once, however often it was added and removed."""

    index: IntervalIndex
    """Contents as permanent ACLs: their ordinals are the numbers of contents."""
    allow_everyone: bool
    intervals: ContentIntervals
    _throwing: frozenset[int]
    """The resources with an ACL whose principal has no colon."""

    @classmethod
    def of(cls, intervals: AclIntervals, settings: Settings) -> Self:
        """Index the ACLs."""
        contents = len(intervals.record_ends)
        permanent = evolve(
            intervals,
            content_of=np.arange(contents, dtype=np.int32),
            visible_from=np.full(contents, ALWAYS),
            visible_to=np.full(contents, FOREVER),
            kafka=None,
        )
        has_ranges = settings.cidr or intervals.kafka is not None
        index = IntervalIndex.of(permanent, documented=settings.documented, cidr=has_ranges)
        return cls(
            index=index,
            allow_everyone=settings.allow_everyone,
            intervals=ContentIntervals.of(intervals),
            throwing=frozenset(index.image.index.base.colonless_resources),
        )

    @property
    def presence_counts(self) -> bool:
        """Whether decisions may depend on ACLs that do not match."""
        return self.allow_everyone or bool(self._throwing)

    def changes(self, accesses: Sequence[ParsedAccess]) -> dict[int, Int64s]:
        """Return the versions at which the ACLs that a decision depends on change, for accesses with any such change.

        Versions ascend, the first is 0. A decision depends on the ACLs that match, and on all ACLs on the resource if
        their presence counts.
        """
        matches = self.index.matches(list(accesses))
        changing = ~self.intervals.permanent[matches.ordinal]
        contents: dict[int, list[Int64s]] = {}
        for access, content in zip(matches.access[changing].tolist(), matches.ordinal[changing].tolist(), strict=True):
            contents.setdefault(access, []).append(np.array([content]))
        by_range = self._by_range(matches)
        of_resource: dict[int, Int64s] = {}
        for access in self._presence_counts(matches):
            for resource in matches.resources(access):
                if resource not in of_resource:
                    on_resource = self.index.intervals_of_resource(resource)
                    of_resource[resource] = on_resource[~self.intervals.permanent[on_resource]]
                if len(of_resource[resource]):
                    contents.setdefault(access, []).append(of_resource[resource])
        found = {access: self.intervals.changes(np.concatenate(each)) for access, each in contents.items()}
        for access in np.unique(matches.access[by_range]).tolist():
            found[access] = np.union1d(found.get(access, np.zeros(1, np.int64)), self._kafka_changes)
        return found

    def find(self, accesses: Sequence[ParsedAccess], versions: Int64s, codes: Int32s) -> AclDependencies:
        """Return what each access depends on at its version; `codes` are BulkAuthorizer's, without errors.

        If an ACL on the resource makes Kafka throw (its principal has no colon), the ACL that denied before the scan
        reached it counts as needed.
        """
        count, matches = len(accesses), self.index.matches(list(accesses))
        ordinal = self.intervals.in_force(matches.ordinal, versions[matches.access])
        in_force = ordinal >= 0
        by_range, ranges = self._by_range(matches), self.intervals.versions.ranges
        if ranges is not None:
            in_force[by_range] &= ranges[versions[matches.access[by_range]]] == Ranges.YES
        matched = Pairs(matches.access[in_force], ordinal[in_force])
        denies = self.index.denies(matches.row[in_force])
        denied = np.bincount(matched.access[denies], minlength=count)
        allowed = np.bincount(matched.access[~denies], minlength=count)
        # a DENY without an ALLOW changes nothing: the access is denied by default anyway
        decides = denies & (allowed[matched.access] > 0) | ~denies & (denied[matched.access] == 0)
        presence_counts = np.zeros(count, np.bool_)
        presence_counts[self._presence_counts(matches)] = True
        plain = decides & ~presence_counts[matched.access]
        groups = Pairs(matched.access[plain], matched.ordinal[plain])
        if presence_counts.any():
            found = _Matched(matches=matches, versions=versions, pairs=matched, denied=denied, allowed=allowed)
            groups = _joined(groups, self._groups(found, np.flatnonzero(presence_counts), codes))
        sizes = np.bincount(groups.access, minlength=count)
        alone = sizes[groups.access] == 1
        needed = Pairs(groups.access[alone], groups.ordinal[alone])
        return AclDependencies(matched=matched, needed=needed, groups=groups)

    def _by_range(self, matches: IntervalMatches) -> Int64s:
        """Return the matches through a range, if which Kafka decided changes."""
        if self.intervals.versions.ranges is None:
            return np.zeros(0, np.int64)
        return np.flatnonzero(self.index.range_rows[matches.row])

    @cached_property
    def _kafka_changes(self) -> Int64s:
        """The versions at which ranges begin or cease to match."""
        ranges = self.intervals.versions.ranges
        return np.zeros(0, np.int64) if ranges is None else np.flatnonzero(np.diff(ranges)) + 1

    def _presence_counts(self, matches: IntervalMatches) -> list[int]:
        """Return the accesses whose decision depends on ACLs on the resource that do not match."""
        if self.allow_everyone:
            return list(range(len(matches.place_of)))
        if not self._throwing:
            return []
        access, resource = matches.places.of_requests(matches.place_of)
        return sorted(set(access[np.isin(resource, list(self._throwing))].tolist()))

    def _groups(self, found: _Matched, accesses: Int64s, codes: Int32s) -> Pairs:
        """Return the groups of accesses whose decision depends on ACLs that do not match."""
        matched = found.pairs
        low, high = (np.searchsorted(matched.access, accesses, side) for side in ("left", "right"))
        is_denying = self.denying()
        on_place: dict[tuple[int, int], Int64s] = {}  # many accesses are on few names, and all ACLs may be on one
        owners, ordinals = [], []
        for access, first, last in zip(accesses.tolist(), low.tolist(), high.tolist(), strict=True):
            own, resources = matched.ordinal[first:last], found.matches.resources(access)
            if not self._throwing.isdisjoint(resources):
                group = np.array([codes[access]], np.int64) if codes[access] >= 0 else own[:0]
            elif found.denied[access] and found.allowed[access]:
                group = own[is_denying[own]]
            else:
                place = int(found.matches.place_of[access]), int(found.versions[access])
                if place not in on_place:
                    on_place[place] = self._on(resources, place[1])
                present = on_place[place]
                # with nothing but matching ALLOWs on the resource, or nothing at all, it is allowed without them too
                free = not found.denied[access] and found.allowed[access] == len(present)
                group = own[:0] if free else own if found.allowed[access] else present
            owners.append(np.full(len(group[:MOST_IN_A_GROUP]), access, np.int64))
            ordinals.append(group[:MOST_IN_A_GROUP])
        return Pairs(np.concatenate(owners), np.concatenate(ordinals))

    def _on(self, resources: Sequence[int], version: int) -> Int64s:
        """Return the ordinals of the ACLs on these resources at a version."""
        contents = np.concatenate([np.zeros(0, np.int64), *map(self.index.intervals_of_resource, resources)])
        ordinals = self.intervals.in_force(contents, np.full(len(contents), version))
        return ordinals[ordinals >= 0]

    def denying(self) -> Bools:
        """Return by ordinal whether the ACL denies."""
        of_content = np.zeros(max(len(self.index.columns), 1), np.bool_)
        of_content[self.index.content_of_row] = self.index.denies(np.arange(len(self.index.content_of_row)))
        denying: Bools = of_content[self.intervals.content_of]
        return denying


def _joined(one: Pairs, other: Pairs) -> Pairs:
    access = np.concatenate((one.access, other.access))
    order = np.argsort(access, kind="stable")
    return Pairs(access[order], np.concatenate((one.ordinal, other.ordinal))[order])
