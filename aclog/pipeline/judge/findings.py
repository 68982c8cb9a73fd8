"""Decides accesses by all rules that ever were: one verdict where nothing ever changed, else one for each version."""

from collections.abc import Iterator

import numpy as np
from attrs import frozen

from aclog.authorizer.acl import WILDCARD
from aclog.authorizer.index.arrays import Int32s
from aclog.authorizer.index.keys import utf16
from aclog.authorizer.index.scan_rank import EMPTY, NAMED, STAR
from aclog.metalog.vectors import Bools, Int64s
from aclog.pipeline.judge.accesses import Asking
from aclog.pipeline.judge.span_index import Parts, SpanIndex
from aclog.pipeline.judge.timelines import Span, strays, timeline
from aclog.pipeline.judge.verdict_steps import Steps
from aclog.pipeline.judge.verdicts import UNRESOLVED, Verdict

_LEVELS = (NAMED, STAR, EMPTY)


@frozen(eq=False, kw_only=True)
class Findings:
    """Verdicts on some accesses, in their order; those that change over time have steps of their own in `moving`.

    UNRESOLVED stands where a rule has to be looked for in the image of the version (AclsImage.rule).
    """

    verdicts: Int32s
    moving: dict[int, Steps]


def find(index: SpanIndex, askings: list[Asking], *, allow_everyone: bool) -> Findings:
    """Decide these; no principal is a super user, `User:*` or without a colon."""
    parts = index.parts(askings)
    below = _below_star(askings)
    still = (index.starts[parts.ordinal] == 0) & (index.ends[parts.ordinal] == index.end)
    moves = np.zeros(len(askings), np.bool_)
    moves[parts.access[~still]] = True
    verdicts = _lasting(index, askings, parts, below)
    if allow_everyone:
        _without_rules(index, parts, verdicts, moves)
    thrown = _throwing(index, parts, len(askings))
    verdicts[thrown] = UNRESOLVED
    moving = dict(_moving(index, askings, parts, np.flatnonzero(moves & ~thrown), below, allow_everyone=allow_everyone))
    return Findings(verdicts=verdicts, moving=moving)


def _below_star(askings: list[Asking]) -> Bools:
    star = utf16(WILDCARD)
    return np.fromiter((utf16(a.resource_name[:1]) < star for a in askings), np.bool_, len(askings))


def _lasting(index: SpanIndex, askings: list[Asking], parts: Parts, below: Bools) -> Int32s:
    """The verdicts if all rules that match stood at all times."""
    count, total = len(askings), len(index.ranks)
    ranks, denies = index.ranks[parts.row], index.denies(parts.row)
    first_deny, last_allow = np.full(count, total, np.int32), np.full(count, -1, np.int32)
    np.minimum.at(first_deny, parts.access[denies], ranks[denies])
    np.maximum.at(last_allow, parts.access[~denies], ranks[~denies])
    is_denied = first_deny < total
    named = np.where(is_denied, first_deny, last_allow)
    ordinals = np.full(total + 1, Verdict.DEFAULT_DENY, np.int32)  # and one for -1
    ordinals[ranks] = parts.ordinal
    verdicts = ordinals[named].astype(np.int32)
    levels = np.zeros(count, np.uint8)
    decides = denies == is_denied[parts.access]
    np.bitwise_or.at(levels, parts.access[decides], np.left_shift(1, index.levels[parts.row[decides]]).astype(np.uint8))
    several = (levels & (levels - 1)) != 0
    for at in np.flatnonzero(several & ((levels >> STAR & 1) != 0)).tolist():
        has = {level for level in _LEVELS if levels[at] >> level & 1}
        is_star = askings[at].resource_name == WILDCARD
        if strays(has, denies=bool(is_denied[at]), below_star=bool(below[at]), is_star=is_star):
            verdicts[at] = UNRESOLVED
    return verdicts


def _without_rules(index: SpanIndex, parts: Parts, verdicts: Int32s, moves: Bools) -> None:
    """DEFAULT_ALLOW where no rule is on the resource; what is on it may come and go."""
    starts = parts.places.starts
    for at in np.flatnonzero((verdicts == Verdict.DEFAULT_DENY) & ~moves).tolist():
        place = parts.place_of[at]
        on_it = parts.places.resources[starts[place] : starts[place + 1]].tolist()
        if not on_it:
            verdicts[at] = Verdict.DEFAULT_ALLOW
        elif not any(_always(index, resource) for resource in on_it):
            moves[at] = True


def _always(index: SpanIndex, resource: int) -> bool:
    spans = index.spans_of_resource(resource)
    return bool(((index.starts[spans] == 0) & (index.ends[spans] == index.end)).any())


def _throwing(index: SpanIndex, parts: Parts, count: int) -> Bools:
    """Where a rule on the resource has no colon in its principal: it depends on the order what comes of that."""
    thrown = np.zeros(count, np.bool_)
    throwing = index.image.state.base.throwing
    if throwing:
        access, resource = parts.places.of_requests(parts.place_of)
        thrown[access[np.isin(resource, list(throwing))]] = True
    return thrown


def _moving(
    index: SpanIndex, askings: list[Asking], parts: Parts, moving: Int64s, below: Bools, *, allow_everyone: bool
) -> Iterator[tuple[int, Steps]]:
    """The steps of each of these accesses."""
    low = np.searchsorted(parts.access, moving, "left")
    high = np.searchsorted(parts.access, moving, "right")
    denies = index.denies(parts.row)
    for at, first, last in zip(moving.tolist(), low.tolist(), high.tolist(), strict=True):
        rows, ordinals = parts.row[first:last], parts.ordinal[first:last]
        spans = list(
            map(
                Span,
                index.starts[ordinals].tolist(),
                index.ends[ordinals].tolist(),
                index.ranks[rows].tolist(),
                index.levels[rows].tolist(),
                denies[first:last].tolist(),
                ordinals.tolist(),
            )
        )
        if allow_everyone:
            spans += _others(index, parts, at)
        is_star = askings[at].resource_name == WILDCARD
        steps = timeline(spans, below_star=bool(below[at]), is_star=is_star, allow_everyone=allow_everyone)
        yield at, [step for step in steps if step[0] < index.end]


def _others(index: SpanIndex, parts: Parts, access: int) -> Iterator[Span]:
    """When anything at all stands on the resource, for whomever it is."""
    starts, place = parts.places.starts, parts.place_of[access]
    for resource in parts.places.resources[starts[place] : starts[place + 1]].tolist():
        spans = index.spans_of_resource(resource)
        for start, end in set(zip(index.starts[spans].tolist(), index.ends[spans].tolist(), strict=True)):
            yield Span(start, end, 0, NAMED, denies=False, ordinal=-1, matches=False)
