"""The steps of a plan in order; each delete with what it takes away, and when it was last used."""

from collections.abc import Iterator

from aclog.analysis.by_generation import marked
from aclog.analysis.review.document import Item
from aclog.authorizer.acl import StandardAcl, acl_text
from aclog.authorizer.config import ALLOW_EVERYONE_CONFIG
from aclog.planning.batching import Batching
from aclog.planning.report.plan_report import PlanEffect, PlanReport
from aclog.planning.taken_away import TakenAway, taken_away

_REGIONS = 3
"""Regions that a delete is told to take away."""

_TITLES = {
    Batching.ALL: "Steps, in order; all become visible at once",
    Batching.RESOURCE: "Steps, in order; those of one number become visible together",
    Batching.RULE: "Steps, in order; they become visible one by one",
}


def steps_title(batching: Batching) -> str:
    """Return what stands above the steps in a place that shows so much at once."""
    return _TITLES[batching]


def step_items(report: PlanReport, shown: int | None) -> Iterator[Item]:
    """Yield the steps in order, so many adds and so many deletes (None: all); what is left out is counted in place.

    Deletes come last, and matter most: many adds before them do not hide them.
    """
    room = {True: shown, False: shown}
    hidden, hidden_adds = 0, True
    for step in report.plan.steps:
        left = room[step.adds]
        if left == 0:
            if hidden and hidden_adds is not step.adds:
                yield _hidden(hidden, adds=hidden_adds)
                hidden = 0
            hidden, hidden_adds = hidden + 1, step.adds
            continue
        if hidden:
            yield _hidden(hidden, adds=hidden_adds)
            hidden = 0
        if left is not None:
            room[step.adds] = left - 1
        number = f"{step.batch + 1:,}: " if report.plan.place.batching is Batching.RESOURCE else ""
        if step.adds:
            yield Item(text=f"{number}+ {acl_text(step.acl)}")
        else:
            yield Item(text=f"{number}- {acl_text(step.acl)}", details=tuple(_details(report, step.acl)))
    if hidden:
        yield _hidden(hidden, adds=hidden_adds)


def _takes_nothing(report: PlanReport, effect: PlanEffect, found: TakenAway) -> Iterator[str]:
    """Yield that a delete takes nothing away, and what it does if what is unknown decides otherwise."""
    unknown = report.premises.turning(allowed=True)
    if ALLOW_EVERYONE_CONFIG in unknown.names:  # names without ACLs count as open
        closed = taken_away(effect.closed_end, found.acl)
        if closed.differences:
            yield f"takes nothing away if names without ACLs are open: {found.text()}; if they are not:"
            yield from map(str, closed.differences[:_REGIONS])
            return
        unknown = unknown.without({ALLOW_EVERYONE_CONFIG})
    yield f"{unknown.decided('takes nothing away')}: {found.text()}"


def _hidden(count: int, *, adds: bool) -> Item:
    return Item(text=f"and {count:,} more to {'add' if adds else 'delete'}: --full shows all")


def _details(report: PlanReport, acl: StandardAcl) -> Iterator[str]:
    taken = {each: _taken(report, effect, acl) for each, effect in report.effects.items()}
    yield from marked(taken)
    if report.uses is not None:
        yield report.uses.text(acl)


def _taken(report: PlanReport, effect: PlanEffect, acl: StandardAcl) -> Iterator[str]:
    found = taken_away(effect.end, acl)
    if found.nothing is not None:
        yield from _takes_nothing(report, effect, found)
    yield from map(str, found.differences[:_REGIONS])
    if len(found.differences) > _REGIONS:
        yield f"and {len(found.differences) - _REGIONS:,} more sets of requests"
