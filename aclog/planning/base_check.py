"""Whether a place is still what a plan was made from."""

from collections.abc import Set as AbstractSet

from attrs import frozen

from aclog.authorizer.acl import acl_text
from aclog.authorizer.rule_content import content_of
from aclog.planning.errors import RefusedError
from aclog.planning.journal.sent import Sent
from aclog.planning.place import PlaceState
from aclog.planning.plan import Plan
from aclog.planning.step import Step
from aclog.planning.touched import TouchedRegion, touched

_MAX_SHRINK = 0.2
"""Of what there was when the plan was made: an answer that lost more is hardly whole."""

_AGAIN = "nothing was changed; make the plan again"


@frozen(kw_only=True)
class Remaining:
    """The steps of a plan that are still to be made, in order, and how many are made already."""

    steps: tuple[Step, ...]
    made: int


def check_base(plan: Plan, state: PlaceState, name: str, sent: Sent) -> Remaining:
    """Check that a place is what the plan was made from; return the steps that are to be made.

    `sent` is how far an apply of this plan has come: what it made does not count as a change, and of the steps of which
    it is unsure those are made that look so.

    Raises:
        RefusedError: what the plan's steps touch has changed, or the place lost much of what it had.

    """
    looks_made = {number for number, step in enumerate(plan.steps) if _looks_made(step, state)}
    made = sorted(sent.made | (sent.unsure & looks_made))
    before = _without([plan.steps[number] for number in made if number in looks_made], state.contents)
    _check_whole(plan, before, state, name)
    changed = min(looks_made.symmetric_difference(made), default=None)
    if changed is not None:
        step = plan.steps[changed]
        what = "is there" if step.adds is (changed in looks_made) else "is gone"
        since = "an apply of the plan had made it" if changed in sent.made else "the plan was made"
        raise RefusedError(f"{name}: changed since {since}: {acl_text(step.acl)} {what}: {_AGAIN}")
    now = touched(region_of(plan).among(before))
    if now != plan.base.touched:
        raise RefusedError(
            f"{name}: rules in the region that the plan touches have changed since it was made: there are "
            f"{now.rules:,} now, and were {plan.base.touched.rules:,}: {_AGAIN}"
        )
    left = tuple(step for number, step in enumerate(plan.steps) if number not in looks_made)
    return Remaining(steps=left, made=len(made))


def _looks_made(step: Step, state: PlaceState) -> bool:
    return (content_of(step.acl) in state.contents) is step.adds


def _check_whole(plan: Plan, before: AbstractSet[bytes], state: PlaceState, name: str) -> None:
    """Refuse an answer that is hardly whole, or of an older copy; `before` is without what the plan made."""
    base = plan.base
    if not state.contents and len(before) < base.rules:  # equal: the plan removed all there was
        raise RefusedError(
            f"{name}: answers that it has no rules at all, and had {base.rules:,} when the plan was made: it may not "
            f"be ready, or not the same place: {_AGAIN}"
        )
    if len(before) < base.rules * (1 - _MAX_SHRINK):
        raise RefusedError(
            f"{name}: has {len(before):,} rules, and had {base.rules:,} when the plan was made: more than "
            f"{_MAX_SHRINK:.0%} are gone: {_AGAIN}"
        )
    if base.end_offset is not None and state.end_offset is not None and state.end_offset < base.end_offset:
        raise RefusedError(
            f"{name}: ends at offset {state.end_offset}, and ended at {base.end_offset} when the plan was made: an "
            f"older copy: {_AGAIN}"
        )


def region_of(plan: Plan) -> TouchedRegion:
    """Return the region that the steps of a plan touch, and what it adopts and releases."""
    acls = (*(step.acl for step in plan.steps), *plan.adopt, *plan.release)
    return TouchedRegion.of(acls, allow_everyone=plan.settings.allow_everyone)


def _without(made: list[Step], contents: AbstractSet[bytes]) -> AbstractSet[bytes]:
    """Return the contents before these steps."""
    if not made:
        return contents
    before = set(contents)
    for step in made:
        if step.adds:
            before.discard(content_of(step.acl))
        else:
            before.add(content_of(step.acl))
    return before
