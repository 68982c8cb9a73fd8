"""Making a plan of a change: its order, what it touches, and what it denies for a moment."""

from collections.abc import Iterable

from attrs import evolve, frozen

from aclog.analysis.by_generation import generation_object, merged, only_on
from aclog.analysis.regions.region import Region
from aclog.analysis.regions.region_json import JsonObject, region_object
from aclog.authorizer.generation import Generation
from aclog.authorizer.rule_content import content_of, ranges_among
from aclog.authorizer.settings import Settings
from aclog.planning.ordering import ordered
from aclog.planning.place import PlaceState
from aclog.planning.plan import Base, JournalMark, Origin, Plan, PlanPlace
from aclog.planning.planner import PlannedChange
from aclog.planning.touched import TouchedRegion, touched
from aclog.planning.transients import transient_denials
from aclog.snapshots.deciding_kafka import DecidingKafka


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
    kafka: DecidingKafka | None = None
    """What may decide, as the place states; None: who makes the plan names it, and `settings` has it."""


def make_plan(change: PlannedChange, found: Circumstances) -> Plan:
    """Return the plan that makes a change."""
    steps = ordered(change.changes, found.place.batching)
    meant = (*(step.acl for step in steps), *change.adopted, *change.released)
    region = TouchedRegion.of(meant, allow_everyone=found.settings.allow_everyone)
    near = region.among(found.state.contents)
    plan = Plan(
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
        generations=_generations(found.kafka, (*near, *(content_of(step.acl) for step in steps))),
    )
    denied = {each: transient_denials(steps, near, settings) for each, settings in plan.each_settings.items()}
    return evolve(plan, transient=tuple(_object(*each) for each in merged(denied)))


def _generations(kafka: DecidingKafka | None, contents: Iterable[bytes]) -> tuple[Generation, ...] | None:
    """Return the generations of Kafka that may decide on a change of these ACLs; None: all that may decide alike."""
    if kafka is None or next(ranges_among(contents), None) is None:
        return None
    return kafka.generations


def _object(region: Region, only: Generation | None) -> JsonObject:
    return {**region_object(region), "text": f"{region}{only_on(only)}", **generation_object(only)}
