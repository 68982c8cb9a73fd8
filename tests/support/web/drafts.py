"""Drafts, and plans for a place that nobody opens."""

from collections.abc import Iterable

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.settings import Settings
from aclog.planning.plan import Batching, Origin, PlaceAddress, PlaceKind, PlaceState, Plan, PlanPlace
from aclog.planning.planner import Circumstances, PlannedChange, make_plan
from tests.support.analysis.policies import image_of


def plan_of(*, added: Iterable[StandardAcl], removed: Iterable[StandardAcl]) -> Plan:
    """A plan for a log that has what is to be removed."""
    removals = tuple(removed)
    circumstances = Circumstances(
        place=PlanPlace(address=PlaceAddress(kind=PlaceKind.LOG, value="/d"), identity="id", batching=Batching.ALL),
        state=PlaceState.of_image(image_of(removals)),
        settings=Settings(),
        settings_known=True,
        settings_by_place=False,
        origin=Origin(at="2026-01-01T00:00:00Z", who="me"),
        journal=None,
    )
    return make_plan(PlannedChange(added=tuple(added), removed=removals), circumstances)
