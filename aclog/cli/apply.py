"""`aclog apply`: make the changes of a plan."""

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from attrs import evolve

from aclog.cli.app import is_about_contexts
from aclog.cli.flags.plans import ApplyFlags
from aclog.cli.flags.target import TargetFlags, given_address
from aclog.cli.options import Argument, Group
from aclog.metalog.errors import plural, printable
from aclog.metalog.primitives import random_uuid, uuid_text
from aclog.planning.applying import ApplyOptions, Remaining
from aclog.planning.plan import PlaceAddress, Plan, RefusedError, parse_plan
from aclog.targets.applies import origin_now
from aclog.targets.opening import PlanApply, told_outcome
from aclog.terminal.notices import progress
from aclog.terminal.output import confirms_on_terminal, note, say

# `aclog apply`: make the changes of a plan.


app = Group()


@app.command()
@is_about_contexts
def apply(
    plan: Annotated[
        Path,
        Argument(metavar="PLAN", help="The file that [cyan]aclog plan --out[/] wrote.", show_default=False),
    ],
    flags: ApplyFlags,
    elsewhere: TargetFlags,
) -> None:
    """Apply the changes of a plan, if the target still has the state that the plan is based on.

    Writes only after confirmation. Nothing is changed if a rule that the plan
    depends on was changed after the plan was made, if the target returns no rules
    or far fewer than before, or if the queried replica is behind. After a crash,
    a second run completes the first. The plan contains the address of the target;
    the flags of the target replace this address. Exit code 0 if all changes are
    made, 2 if the plan was refused or stopped.

    [bold]Examples[/]

      aclog apply PLAN
      aclog apply PLAN --yes
      aclog apply PLAN --bootstrap-server HOST:9092 --journal prod.journal
    """
    apply_plan(plan, flags, elsewhere)


# Applies a plan to its target, and reports the changes.


def apply_to_place(plan: Plan, address: PlaceAddress, flags: ApplyFlags, tell: Callable[[str], None] = say) -> None:
    """Apply a plan to the target at an address, and report the changes. Raises as PlanApply.run."""
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
        """Confirm the changes."""
        _confirm(plan, name, remaining)

    name, outcome = applied.run(None if flags.yes else confirm, lambda place: progress(f"applying to {place}", "steps"))
    (note if outcome.was_done else tell)(printable(told_outcome(plan, outcome, name)))


def _confirm(plan: Plan, name: str, remaining: Remaining) -> None:
    adds = sum(step.adds for step in remaining.steps)
    what = f"{plural(adds, 'rule')} to add, {len(remaining.steps) - adds:,} to delete"
    owned = f", {len(plan.adopt):,} to adopt" if plan.adopt else ""
    refusal = "stdin is not a terminal, cannot ask for confirmation: expected --yes"
    if not confirms_on_terminal(f"{name}: {what}{owned}. Apply? (y/n)", refusal):
        raise RefusedError(f"{name}: not confirmed: nothing was changed")


# Applies the plan in a file.


def apply_plan(path: Path, flags: ApplyFlags, elsewhere: TargetFlags) -> None:
    """Apply a plan, and report the changes.

    Raises:
        ConfigError: the file is no plan, or was changed.
        RefusedError, JournalError: nothing was changed.
        StoppedError: it ended on its way.
        MetadataError, OSError: the place or the journal cannot be read or written.

    """
    plan = parse_plan(path.read_bytes().splitlines(), str(path))
    apply_to_place(plan, _address(plan, elsewhere), flags)


def _address(plan: Plan, elsewhere: TargetFlags) -> PlaceAddress:
    """Return where the place is found from here."""
    planned, config = plan.place.address, elsewhere.command_config
    override = given_address(evolve(elsewhere, command_config=None))
    address = planned if override is None else evolve(override, command_config=planned.command_config)
    return address if config is None else evolve(address, command_config=str(config.absolute()))
