"""Decisions on accesses by all ACLs that were ever in force: one for all versions, or one per version."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from attrs import frozen

from aclog.authorizer.acl import WILDCARD
from aclog.authorizer.index.arrays import Int32s
from aclog.authorizer.index.keys import utf16
from aclog.authorizer.index.scan_rank import NAMED, ODD, STAR
from aclog.metalog.vectors import Bools, Int64s
from aclog.usage.decisions.accesses import ParsedAccess
from aclog.usage.decisions.decision_codes import UNRESOLVED, DecisionCode
from aclog.usage.decisions.decision_steps import Steps
from aclog.usage.decisions.interval_index import IntervalIndex, IntervalMatches
from aclog.usage.decisions.timelines import LEVELS, MatchingInterval, is_order_ambiguous, timeline

_UNSURE = np.uint8(1 << STAR | 1 << ODD)
"""The levels that Kafka may visit earlier or later than their rank says, as bits."""


@frozen(eq=False, kw_only=True)
class AccessDecisions:
    """Decision codes of some accesses, in their order; `changing` has the steps of those that change over time.

    For UNRESOLVED the image of the version has to be asked (AclsImage.rule).
    """

    codes: Int32s
    changing: dict[int, Steps]


def decide_accesses(index: IntervalIndex, accesses: list[ParsedAccess], *, allow_everyone: bool) -> AccessDecisions:
    """Decide accesses, none of whose principals is a super user, `User:*` or without a colon."""
    batch = _Batch(
        index=index,
        accesses=accesses,
        matches=index.matches(accesses),
        below_star=_below_star(accesses),
        allow_everyone=allow_everyone,
    )
    return batch.decide()


def _below_star(accesses: list[ParsedAccess]) -> Bools:
    star = utf16(WILDCARD)
    return np.fromiter((utf16(a.resource_name[:1]) < star for a in accesses), np.bool_, len(accesses))


@frozen(eq=False, kw_only=True)
class _Batch:
    """Accesses that are decided together, and what matches them."""

    index: IntervalIndex
    accesses: list[ParsedAccess]
    matches: IntervalMatches
    below_star: Bools
    """By access: whether the resource's name sorts below `*`, as Kafka's scan compares names."""
    allow_everyone: bool

    def decide(self) -> AccessDecisions:
        """Decide all of them."""
        matches = self.matches
        always = (matches.start == 0) & (matches.end == self.index.versions.end) & ~matches.unsure
        changing, unsure = np.zeros((2, len(self.accesses)), np.bool_)
        changing[matches.access[~always]] = True
        unsure[matches.access[matches.unsure]] = True
        # decided for all as if every match were permanent: a few array operations, and right for nearly all
        codes = self._decide_permanent()
        if self.allow_everyone:
            self._allow_without_acls(codes, changing)
        throws = self._may_throw()
        codes[throws] = UNRESOLVED
        timelines = dict(self._timelines(np.flatnonzero(changing & (~throws | unsure))))
        for at in np.flatnonzero(throws & unsure).tolist():
            timelines[at] = [(version, _unless_unsure(code)) for version, code in timelines[at]]
        return AccessDecisions(codes=codes, changing=timelines)

    def _decide_permanent(self) -> Int32s:
        """Return the codes if all ACLs that match are in force at all versions."""
        index, matches = self.index, self.matches
        count, total = len(self.accesses), len(index.ranks)
        ranks, denies = index.ranks[matches.row], index.denies(matches.row)
        first_deny, last_allow = np.full(count, total, np.int32), np.full(count, -1, np.int32)
        np.minimum.at(first_deny, matches.access[denies], ranks[denies])
        np.maximum.at(last_allow, matches.access[~denies], ranks[~denies])
        is_denied = first_deny < total
        determining = np.where(is_denied, first_deny, last_allow)
        ordinals = np.full(total + 1, DecisionCode.DEFAULT_DENY, np.int32)  # the last entry is for rank -1: no match
        ordinals[ranks] = matches.ordinal
        codes = ordinals[determining].astype(np.int32)
        levels = np.zeros(count, np.uint8)  # a bit for each level of the ACLs that could be named
        decides = denies == is_denied[matches.access]
        bits = np.left_shift(1, index.levels[matches.row[decides]]).astype(np.uint8)
        np.bitwise_or.at(levels, matches.access[decides], bits)
        several = (levels & (levels - 1)) != 0
        for at in np.flatnonzero(several & (levels & _UNSURE != 0)).tolist():
            present = {level for level in LEVELS if levels[at] >> level & 1}
            is_star = self.accesses[at].resource_name == WILDCARD
            below_star, is_deny = bool(self.below_star[at]), bool(is_denied[at])
            if is_order_ambiguous(present, denies=is_deny, below_star=below_star, is_star=is_star):
                codes[at] = UNRESOLVED
        return codes

    def _allow_without_acls(self, codes: Int32s, changing: Bools) -> None:
        """Set DEFAULT_ALLOW if the resource never has an ACL; mark as changing if it has one at some versions only."""
        for at in np.flatnonzero((codes == DecisionCode.DEFAULT_DENY) & ~changing).tolist():
            resources = self.matches.resources(at)
            if not resources:
                codes[at] = DecisionCode.DEFAULT_ALLOW
            elif not any(self._is_permanent(resource) for resource in resources):
                changing[at] = True

    def _is_permanent(self, resource: int) -> bool:
        return bool(self.index.versions.permanent[self.index.intervals_of_resource(resource)].any())

    def _may_throw(self) -> Bools:
        """Return where an ACL on the resource has a principal without a colon.

        Kafka throws when its scan reaches that ACL, unless an ACL that denies comes first: the image has to be asked.
        """
        throws = np.zeros(len(self.accesses), np.bool_)
        throwing = self.index.image.index.base.colonless_resources
        if throwing:
            access, resource = self.matches.places.of_requests(self.matches.place_of)
            throws[access[np.isin(resource, list(throwing))]] = True
        return throws

    def _timelines(self, changing: Int64s) -> Iterator[tuple[int, Steps]]:
        """Yield the steps of each of these accesses."""
        matches, versions = self.matches, self.index.versions
        low = np.searchsorted(matches.access, changing, "left")
        high = np.searchsorted(matches.access, changing, "right")
        denies = self.index.denies(matches.row)
        for at, first, last in zip(changing.tolist(), low.tolist(), high.tolist(), strict=True):
            rows, ordinals = matches.row[first:last], matches.ordinal[first:last]
            # in the order of MatchingInterval's fields
            columns: list[Any] = [matches.start[first:last], matches.end[first:last], self.index.ranks[rows]]
            columns += [self.index.levels[rows], denies[first:last], ordinals]
            columns += [np.ones(last - first, np.bool_), matches.unsure[first:last]]
            intervals = list(map(MatchingInterval, *(column.tolist() for column in columns)))
            if self.allow_everyone:
                intervals += self._others(at)
            is_star, below_star = self.accesses[at].resource_name == WILDCARD, bool(self.below_star[at])
            steps = timeline(intervals, below_star=below_star, is_star=is_star, allow_everyone=self.allow_everyone)
            yield at, [step for step in steps if step[0] < versions.end]

    def _others(self, access: int) -> Iterator[MatchingInterval]:
        """Yield the intervals of all ACLs on an access's resource, whether or not they match."""
        versions = self.index.versions
        for resource in self.matches.resources(access):
            ordinals = self.index.intervals_of_resource(resource)
            # which ACL it is does not matter: equal intervals count once
            for start, end in set(
                zip(versions.starts[ordinals].tolist(), versions.ends[ordinals].tolist(), strict=True)
            ):
                yield MatchingInterval(start, end, 0, NAMED, denies=False, ordinal=-1, matches=False)


def _unless_unsure(code: int) -> int:
    return code if code == DecisionCode.UNKNOWN_KAFKA else UNRESOLVED
