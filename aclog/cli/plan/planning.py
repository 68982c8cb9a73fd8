"""Makes a plan from what a command line names, prints it and writes it."""

from aclog.cli.flags.accesses import given_accesses
from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.place import place_address
from aclog.cli.flags.plan import OwnershipFlags, PlanOutputFlags, WantFlags
from aclog.cli.flags.target import TargetFlags
from aclog.cli.planning.plan_output import (
    CHANGES,
    NOTHING,
    check_accesses,
    print_plan,
    print_unless_refused,
    take_plan_file,
    write_plan,
)
from aclog.cli.planning.told_settings import told_settings
from aclog.cli.planning.wanted import Wanted, read_wanted
from aclog.places.found_place import FoundPlace, find_place
from aclog.places.origin import origin_now
from aclog.planning.delete_limit import DeleteLimit
from aclog.planning.errors import RefusedError
from aclog.planning.making import make_plan
from aclog.planning.plan import Plan
from aclog.planning.planner import PlannedChange
from aclog.terminal.notices import note


def print_new_plan(
    target: TargetFlags,
    asked: tuple[WantFlags, str | None],
    ownership: OwnershipFlags,
    authorizer: AuthorizerFlags,
    output: PlanOutputFlags,
) -> int:
    """Make a plan, print it, and write it if it changes anything; return the exit code.

    `asked`: what is wanted, or the file of a change.

    Raises:
        RefusedError: it deletes too much, or something cannot be done.
        ConfigError: flags that do not go together, or files that hold something else.
        MetadataError, OSError: the place, a journal or a file cannot be read.

    """
    how = output.choose()
    check_accesses(given_accesses(output), how)
    take_plan_file(output.out)
    address = place_address(target)
    limit = DeleteLimit.parse(ownership.max_deletes)
    wanted = read_wanted(*asked)
    told, hosts = told_settings(authorizer), wanted.ranges()
    found = find_place(address, told, ownership.journal, note, ownership.other_journals, hosts=hosts)
    change = wanted.change_of(found.held, adopt=ownership.adopt)
    plan = make_plan(change, found.circumstances(origin_now(wanted.path)))
    print_unless_refused(
        lambda: _check(change, wanted, limit, plan, found),
        lambda: print_plan(plan, change, found, how, full=output.full, accesses=given_accesses(output)),
        how,
    )
    if plan.is_empty:
        return NOTHING
    if output.out is not None:
        write_plan(plan, output.out)
    return CHANGES


def _check(change: PlannedChange, wanted: Wanted, limit: DeleteLimit, plan: Plan, found: FoundPlace) -> None:
    """Raise RefusedError: a source without rules would delete all; or as FoundPlace.check_plan."""
    if wanted.rules == frozenset() and change.removed and limit == DeleteLimit():  # none was given
        raise RefusedError(
            f"{wanted.path}: has no rules at all, so all {len(change.removed):,} that are owned would be deleted: "
            "expected --max-deletes if that is meant"
        )
    found.check_plan(change, plan.steps, limit, origins=wanted.origins)
