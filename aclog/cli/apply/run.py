"""Applies the plan in a file."""

from pathlib import Path

from attrs import evolve

from aclog.cli.flags.apply import ApplyFlags
from aclog.cli.flags.place import given_address
from aclog.cli.flags.target import TargetFlags
from aclog.cli.planning.applied import apply_to_place
from aclog.planning.plan import PlaceAddress, Plan
from aclog.planning.plan_file import parse_plan


def apply_plan(path: Path, flags: ApplyFlags, elsewhere: TargetFlags) -> None:
    """Apply a plan, and say what was done.

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
    given = given_address(evolve(elsewhere, command_config=None))
    found = planned if given is None else evolve(given, command_config=planned.command_config)
    return found if config is None else evolve(found, command_config=str(config.absolute()))
