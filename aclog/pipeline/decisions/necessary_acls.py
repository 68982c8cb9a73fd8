"""What a decision hangs on: the rules that match an access, and those without which it would be decided otherwise.

A DENY is needed where nothing else denies and something allows; an ALLOW where nothing denies and nothing else allows.
Where everybody is allowed what no rule is about (allow.everyone.if.no.acl.found), the last rule on a resource is needed
for its being there: without an ALLOW the access would be allowed all the same, without any other rule it would be, too.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from attrs import evolve, frozen

from aclog.authorizer.index.arrays import Int32s
from aclog.metalog.vectors import Bools, Int64s
from aclog.pipeline.decisions.accesses import ParsedAccess
from aclog.pipeline.decisions.acl_intervals import ALWAYS, FOREVER, AclIntervals
from aclog.pipeline.decisions.bulk_authorizer import Settings
from aclog.pipeline.decisions.content_intervals import ContentIntervals
from aclog.pipeline.decisions.interval_index import IntervalIndex, Parts

MOST_IN_A_GROUP = 64
"""Of more rules that cover for one another this many are told: one of these is kept, which is enough."""


class Pairs(NamedTuple):
    """Pairs of an access (its place among those asked about) and a rule's ordinal, by access."""

    access: Int64s
    ordinal: Int64s


@frozen(eq=False, kw_only=True)
class AclDependencies:
    """What some accesses hang on, each at its version of the rules."""

    matched: Pairs
    needed: Pairs
    """With only one of these rules away the decision is another."""
    groups: Pairs
    """As long as one of an access's rules here stays, its decision stays, whatever else goes; no rule, no such thing.

    A needed rule is alone in its group.
    """


@frozen(eq=False, kw_only=True)
class NecessaryAcls:
    """Finds them. What rules say is indexed once, however often it was added and removed."""

    index: IntervalIndex
    """What rules say, as if all stood at all times: its ordinals are the numbers of contents."""
    allow_everyone: bool
    intervals: ContentIntervals
    _throwing: frozenset[int]
    """Resources with a rule without colon."""

    @classmethod
    def of(cls, intervals: AclIntervals, settings: Settings) -> Self:
        """Index the rules."""
        contents = len(intervals.record_ends)
        at_all_times = evolve(
            intervals,
            content_of=np.arange(contents, dtype=np.int32),
            visible_from=np.full(contents, ALWAYS),
            visible_to=np.full(contents, FOREVER),
        )
        index = IntervalIndex.of(at_all_times, documented=settings.documented)
        return cls(
            index=index,
            allow_everyone=settings.allow_everyone,
            intervals=ContentIntervals.of(intervals),
            throwing=frozenset(index.image.state.base.throwing),
        )

    def changes(self, parsed: Sequence[ParsedAccess]) -> dict[int, Int64s]:
        """Ascending versions, the first 0, at which what takes part in deciding an access changes; only where it does.

        What takes part is what matches, and whatever is on the resource where that counts.
        """
        parts = self.index.parts(list(parsed))
        moves = ~self.intervals.still[parts.ordinal]
        of_access: dict[int, list[Int64s]] = {}
        for access, content in zip(parts.access[moves].tolist(), parts.ordinal[moves].tolist(), strict=True):
            of_access.setdefault(access, []).append(np.array([content]))
        of_resource: dict[int, Int64s] = {}
        for access in self._wide(parts):
            for resource in _on_it(parts, access):
                if resource not in of_resource:
                    contents = self.index.intervals_of_resource(resource)
                    of_resource[resource] = contents[~self.intervals.still[contents]]
                if len(of_resource[resource]):
                    of_access.setdefault(access, []).append(of_resource[resource])
        return {access: self.intervals.changes(np.concatenate(contents)) for access, contents in of_access.items()}

    def find(self, parsed: Sequence[ParsedAccess], versions: Int64s, codes: Int32s) -> AclDependencies:
        """What each access hangs on at its version; `codes` are the judge's, and no errors.

        Where a rule on the resource makes Kafka throw (its principal has no colon), the rule that denied before it came
        to that is taken as needed.
        """
        parts = self.index.parts(list(parsed))
        ordinal = self.intervals.standing(parts.ordinal, versions[parts.access])
        there = ordinal >= 0
        matched = Pairs(parts.access[there], ordinal[there])
        denies = self.index.denies(parts.row[there])
        denied = np.bincount(matched.access[denies], minlength=len(parsed))
        allowed = np.bincount(matched.access[~denies], minlength=len(parsed))
        # the rules that match and lead to the decision, where rules do
        decide = denies & (allowed[matched.access] > 0) | ~denies & (denied[matched.access] == 0)
        wide = np.zeros(len(parsed), np.bool_)
        wide[self._wide(parts)] = True
        plain = decide & ~wide[matched.access]
        groups = Pairs(matched.access[plain], matched.ordinal[plain])
        if wide.any():
            groups = _joined(groups, self._wide_groups(parts, versions, codes, matched, denied, allowed, wide))
        sizes = np.bincount(groups.access, minlength=len(parsed))
        alone = sizes[groups.access] == 1
        return AclDependencies(
            matched=matched, needed=Pairs(groups.access[alone], groups.ordinal[alone]), groups=groups
        )

    def _wide(self, parts: Parts) -> list[int]:
        """The accesses for which it counts what else is on the resource."""
        if self.allow_everyone:
            return list(range(len(parts.place_of)))
        if not self._throwing:
            return []
        access, resource = parts.places.of_requests(parts.place_of)
        return sorted(set(access[np.isin(resource, list(self._throwing))].tolist()))

    def _wide_groups(
        self,
        parts: Parts,
        versions: Int64s,
        codes: Int32s,
        matched: Pairs,
        denied: Int64s,
        allowed: Int64s,
        wide: Bools,
    ) -> Pairs:
        low, high = (np.searchsorted(matched.access, np.arange(len(wide)), side) for side in ("left", "right"))
        is_denying = self._denying()
        on_place: dict[tuple[int, int], Int64s] = {}
        accesses, ordinals = [], []
        for access in np.flatnonzero(wide).tolist():
            own = matched.ordinal[low[access] : high[access]]
            resources = _on_it(parts, access)
            if not self._throwing.isdisjoint(resources):
                group = np.array([codes[access]], np.int64) if codes[access] >= 0 else own[:0]
            elif denied[access] and allowed[access]:
                group = own[is_denying[own]]
            else:
                key = int(parts.place_of[access]), int(versions[access])
                if key not in on_place:
                    on_place[key] = self._on(resources, key[1])
                present = on_place[key]
                # only rules that allow it, or none: without them it is allowed by default
                free = not denied[access] and allowed[access] == len(present)
                group = own[:0] if free else own if allowed[access] else present
            accesses.append(np.full(len(group[:MOST_IN_A_GROUP]), access, np.int64))
            ordinals.append(group[:MOST_IN_A_GROUP])
        return Pairs(np.concatenate(accesses), np.concatenate(ordinals))

    def _on(self, resources: Sequence[int], version: int) -> Int64s:
        """The ordinals of the rules on these resources at a version."""
        contents = np.concatenate([np.zeros(0, np.int64), *map(self.index.intervals_of_resource, resources)])
        found = self.intervals.standing(contents, np.full(len(contents), version))
        return found[found >= 0]

    def _denying(self) -> Bools:
        """By ordinal: whether the rule denies."""
        of_content = np.zeros(max(len(self.index.columns), 1), np.bool_)
        of_content[self.index.content_of_row] = self.index.denies(np.arange(len(self.index.content_of_row)))
        denying: Bools = of_content[self.intervals.content_of]
        return denying


def _on_it(parts: Parts, access: int) -> list[int]:
    """The resources on the name of an access."""
    starts, place = parts.places.starts, parts.place_of[access]
    resources: list[int] = parts.places.resources[starts[place] : starts[place + 1]].tolist()
    return resources


def _joined(one: Pairs, other: Pairs) -> Pairs:
    access = np.concatenate((one.access, other.access))
    order = np.argsort(access, kind="stable")
    return Pairs(access[order], np.concatenate((one.ordinal, other.ordinal))[order])
