"""Applies a plan to its place, and says what was done."""

import secrets
from collections.abc import Callable

from aclog.cli.flags.apply import ApplyFlags
from aclog.metalog.printable import printable
from aclog.metalog.uuids import random_uuid, uuid_text
from aclog.places.origin import origin_now
from aclog.places.plan_apply import PlanApply, counted_rules, told_outcome
from aclog.planning.applying import ApplyOptions
from aclog.planning.base_check import Remaining
from aclog.planning.errors import RefusedError
from aclog.planning.plan import PlaceAddress, Plan
from aclog.terminal.confirmation import confirms_on_terminal
from aclog.terminal.notices import note
from aclog.terminal.output import say
from aclog.terminal.progress import progress


def apply_to_place(plan: Plan, address: PlaceAddress, flags: ApplyFlags, tell: Callable[[str], None] = say) -> None:
    """Apply a plan to the place at an address; what was done is told. Raises as PlanApply.run."""
    origin = origin_now()
    options = ApplyOptions(
        apply=uuid_text(random_uuid(secrets.token_bytes)),
        at=origin.at,
        who=origin.who,
        accept_transient=flags.accept_transient,
        resume=flags.resume,
    )
    applied = PlanApply(
        plan=plan,
        address=address,
        options=options,
        notify=note,
        journal=flags.journal,
        other_journals=flags.other_journals,
        force=flags.force,
    )

    def confirm(name: str, remaining: Remaining) -> None:
        """Ask whether it is meant."""
        _confirm(plan, name, remaining)

    name, outcome = applied.run(None if flags.yes else confirm, lambda place: progress(f"applying to {place}", "steps"))
    (note if outcome.was_done else tell)(printable(told_outcome(plan, outcome, name)))


def _confirm(plan: Plan, name: str, remaining: Remaining) -> None:
    adds = sum(step.adds for step in remaining.steps)
    what = f"{counted_rules(adds)} to add, {len(remaining.steps) - adds:,} to delete"
    owned = f", {len(plan.adopt):,} to adopt" if plan.adopt else ""
    if not confirms_on_terminal(f"{name}: {what}{owned}. Apply? (y/n)", "stdin is no terminal to ask: expected --yes"):
        raise RefusedError(f"{name}: not confirmed: nothing was changed")
