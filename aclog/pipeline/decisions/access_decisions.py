"""Decides accesses by all rules that ever were: one code where nothing ever changed, else one for each version."""

from collections.abc import Iterator

import numpy as np
from attrs import frozen

from aclog.authorizer.acl import WILDCARD
from aclog.authorizer.index.arrays import Int32s
from aclog.authorizer.index.keys import utf16
from aclog.authorizer.index.scan_rank import EMPTY, NAMED, STAR
from aclog.metalog.vectors import Bools, Int64s
from aclog.pipeline.decisions.accesses import ParsedAccess
from aclog.pipeline.decisions.decision_codes import UNRESOLVED, DecisionCode
from aclog.pipeline.decisions.decision_steps import Steps
from aclog.pipeline.decisions.interval_index import IntervalIndex, Parts
from aclog.pipeline.decisions.timelines import MatchingInterval, is_order_ambiguous, timeline

_LEVELS = (NAMED, STAR, EMPTY)


@frozen(eq=False, kw_only=True)
class AccessDecisions:
    """Verdicts on some accesses, in their order; those that change over time have steps of their own in `moving`.

    UNRESOLVED stands where a rule has to be looked for in the image of the version (AclsImage.rule).
    """

    codes: Int32s
    moving: dict[int, Steps]


def decide_accesses(index: IntervalIndex, parsed: list[ParsedAccess], *, allow_everyone: bool) -> AccessDecisions:
    """Decide these; no principal is a super user, `User:*` or without a colon."""
    parts = index.parts(parsed)
    below = _below_star(parsed)
    still = (index.starts[parts.ordinal] == 0) & (index.ends[parts.ordinal] == index.end)
    moves = np.zeros(len(parsed), np.bool_)
    moves[parts.access[~still]] = True
    codes = _lasting(index, parsed, parts, below)
    if allow_everyone:
        _without_rules(index, parts, codes, moves)
    thrown = _throwing(index, parts, len(parsed))
    codes[thrown] = UNRESOLVED
    moving = dict(_moving(index, parsed, parts, np.flatnonzero(moves & ~thrown), below, allow_everyone=allow_everyone))
    return AccessDecisions(codes=codes, moving=moving)


def _below_star(parsed: list[ParsedAccess]) -> Bools:
    star = utf16(WILDCARD)
    return np.fromiter((utf16(a.resource_name[:1]) < star for a in parsed), np.bool_, len(parsed))


def _lasting(index: IntervalIndex, parsed: list[ParsedAccess], parts: Parts, below: Bools) -> Int32s:
    """The codes if all rules that match stood at all times."""
    count, total = len(parsed), len(index.ranks)
    ranks, denies = index.ranks[parts.row], index.denies(parts.row)
    first_deny, last_allow = np.full(count, total, np.int32), np.full(count, -1, np.int32)
    np.minimum.at(first_deny, parts.access[denies], ranks[denies])
    np.maximum.at(last_allow, parts.access[~denies], ranks[~denies])
    is_denied = first_deny < total
    named = np.where(is_denied, first_deny, last_allow)
    ordinals = np.full(total + 1, DecisionCode.DEFAULT_DENY, np.int32)  # and one for -1
    ordinals[ranks] = parts.ordinal
    codes = ordinals[named].astype(np.int32)
    levels = np.zeros(count, np.uint8)
    decides = denies == is_denied[parts.access]
    np.bitwise_or.at(levels, parts.access[decides], np.left_shift(1, index.levels[parts.row[decides]]).astype(np.uint8))
    several = (levels & (levels - 1)) != 0
    for at in np.flatnonzero(several & ((levels >> STAR & 1) != 0)).tolist():
        has = {level for level in _LEVELS if levels[at] >> level & 1}
        is_star = parsed[at].resource_name == WILDCARD
        if is_order_ambiguous(has, denies=bool(is_denied[at]), below_star=bool(below[at]), is_star=is_star):
            codes[at] = UNRESOLVED
    return codes


def _without_rules(index: IntervalIndex, parts: Parts, codes: Int32s, moves: Bools) -> None:
    """DEFAULT_ALLOW where no rule is on the resource; what is on it may come and go."""
    starts = parts.places.starts
    for at in np.flatnonzero((codes == DecisionCode.DEFAULT_DENY) & ~moves).tolist():
        place = parts.place_of[at]
        on_it = parts.places.resources[starts[place] : starts[place + 1]].tolist()
        if not on_it:
            codes[at] = DecisionCode.DEFAULT_ALLOW
        elif not any(_always(index, resource) for resource in on_it):
            moves[at] = True


def _always(index: IntervalIndex, resource: int) -> bool:
    intervals = index.intervals_of_resource(resource)
    return bool(((index.starts[intervals] == 0) & (index.ends[intervals] == index.end)).any())


def _throwing(index: IntervalIndex, parts: Parts, count: int) -> Bools:
    """Where a rule on the resource has no colon in its principal: it depends on the order what comes of that."""
    thrown = np.zeros(count, np.bool_)
    throwing = index.image.state.base.throwing
    if throwing:
        access, resource = parts.places.of_requests(parts.place_of)
        thrown[access[np.isin(resource, list(throwing))]] = True
    return thrown


def _moving(
    index: IntervalIndex,
    parsed: list[ParsedAccess],
    parts: Parts,
    moving: Int64s,
    below: Bools,
    *,
    allow_everyone: bool,
) -> Iterator[tuple[int, Steps]]:
    """The steps of each of these accesses."""
    low = np.searchsorted(parts.access, moving, "left")
    high = np.searchsorted(parts.access, moving, "right")
    denies = index.denies(parts.row)
    for at, first, last in zip(moving.tolist(), low.tolist(), high.tolist(), strict=True):
        rows, ordinals = parts.row[first:last], parts.ordinal[first:last]
        intervals = list(
            map(
                MatchingInterval,
                index.starts[ordinals].tolist(),
                index.ends[ordinals].tolist(),
                index.ranks[rows].tolist(),
                index.levels[rows].tolist(),
                denies[first:last].tolist(),
                ordinals.tolist(),
            )
        )
        if allow_everyone:
            intervals += _others(index, parts, at)
        is_star = parsed[at].resource_name == WILDCARD
        steps = timeline(intervals, below_star=bool(below[at]), is_star=is_star, allow_everyone=allow_everyone)
        yield at, [step for step in steps if step[0] < index.end]


def _others(index: IntervalIndex, parts: Parts, access: int) -> Iterator[MatchingInterval]:
    """When anything at all stands on the resource, for whomever it is."""
    starts, place = parts.places.starts, parts.place_of[access]
    for resource in parts.places.resources[starts[place] : starts[place + 1]].tolist():
        intervals = index.intervals_of_resource(resource)
        for start, end in set(zip(index.starts[intervals].tolist(), index.ends[intervals].tolist(), strict=True)):
            yield MatchingInterval(start, end, 0, NAMED, denies=False, ordinal=-1, matches=False)
