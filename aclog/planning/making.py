"""Making a plan of a change: its order, what it touches, and what it denies for a moment."""

from attrs import frozen

from aclog.analysis.regions.region_json import region_object
from aclog.authorizer.settings import Settings
from aclog.planning.ordering import ordered
from aclog.planning.place import PlaceState
from aclog.planning.plan import Base, JournalMark, Origin, Plan, PlanPlace
from aclog.planning.planner import PlannedChange
from aclog.planning.touched import TouchedRegion, touched
from aclog.planning.transients import transient_denials


@frozen(kw_only=True)
class Circumstances:
    """All that a plan says besides its change."""

    place: PlanPlace
    state: PlaceState
    settings: Settings
    settings_known: bool
    settings_by_place: bool
    origin: Origin
    journal: JournalMark | None
    others: tuple[JournalMark, ...] = ()
    """The journals of other sources."""


def make_plan(change: PlannedChange, found: Circumstances) -> Plan:
    """Return the plan that makes a change."""
    steps = ordered(change.changes, found.place.batching)
    meant = (*(step.acl for step in steps), *change.adopted, *change.released)
    region = TouchedRegion.of(meant, allow_everyone=found.settings.allow_everyone)
    near = region.among(found.state.contents)
    transient = transient_denials(steps, near, found.settings)
    return Plan(
        place=found.place,
        base=Base(
            rules=len(found.state.contents),
            end_offset=found.state.end_offset,
            exists=found.state.exists,
            touched=touched(near),
        ),
        settings=found.settings,
        settings_known=found.settings_known,
        settings_by_place=found.settings_by_place,
        origin=found.origin,
        steps=steps,
        journal=found.journal,
        others=found.others,
        adopt=change.adopted,
        release=change.released,
        unowned=change.unowned,
        transient=tuple({**region_object(region), "text": str(region)} for region in transient),
    )
