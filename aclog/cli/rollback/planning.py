"""Makes a plan back to before an apply, prints it and writes it."""

from aclog.cli.flags.accesses import given_accesses
from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.place import place_address
from aclog.cli.flags.plan import PlanOutputFlags
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
from aclog.cli.rollback.flags import RollbackFlags
from aclog.places.found_place import find_place
from aclog.places.origin import origin_now
from aclog.planning.delete_limit import DeleteLimit
from aclog.planning.errors import JournalError
from aclog.planning.making import make_plan
from aclog.planning.rollback import change_back
from aclog.terminal.notices import note


def print_way_back(
    target: TargetFlags, authorizer: AuthorizerFlags, flags: RollbackFlags, output: PlanOutputFlags
) -> int:
    """Make the plan, print it, and write it if it changes anything; return the exit code.

    Raises:
        RefusedError: it deletes too much, or adds again what cannot be created.
        JournalError: there is no such journal, or no such apply.
        MetadataError, OSError: the place or a file cannot be read.

    """
    how = output.choose()
    check_accesses(given_accesses(output), how)
    take_plan_file(output.out)
    limit = DeleteLimit.parse(flags.max_deletes)
    journal, others = flags.journals()
    found = find_place(place_address(target), told_settings(authorizer), journal, note, others)
    if found.settled is None or found.settled.is_new:
        raise JournalError(f"{journal}: no such journal: expected the one that the apply was made with")
    change = change_back(found.settled, found.held, flags.apply)
    plan = make_plan(change, found.circumstances(origin_now()))
    print_unless_refused(
        lambda: found.check_plan(change, plan.steps, limit),
        lambda: print_plan(plan, change, found, how, full=output.full, accesses=given_accesses(output)),
        how,
    )
    if plan.is_empty:
        return NOTHING
    if output.out is not None:
        write_plan(plan, output.out)
    return CHANGES
