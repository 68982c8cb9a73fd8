"""The plan of a grant or a revocation: shown, then written into a file or applied, if that is asked for."""

from collections.abc import Iterable, Sequence

from attrs import frozen

from aclog.analysis.by_generation import marked
from aclog.analysis.regions.region import Direction
from aclog.authorizer.rule_change import RuleChange
from aclog.cli.flags.apply import ApplyFlags
from aclog.cli.flags.granting import DoFlags
from aclog.cli.flags.output import Output
from aclog.cli.planning.applied import apply_to_place
from aclog.cli.planning.plan_output import (
    CHANGES,
    NOTHING,
    print_plan,
    print_unless_refused,
    take_plan_file,
    write_plan,
)
from aclog.metalog.errors import ConfigError
from aclog.metalog.printable import printable
from aclog.places.found_place import FoundPlace
from aclog.places.origin import origin_now
from aclog.planning.delete_limit import DeleteLimit
from aclog.planning.errors import RefusedError
from aclog.planning.granting.side_effects import side_effects
from aclog.planning.making import make_plan
from aclog.planning.planner import change_as_asked
from aclog.terminal.notices import note, warn
from aclog.terminal.output import say
from aclog.terminal.output_format import OutputFormat

_UNKNOWN = "it is not known whether it is"


@frozen(kw_only=True)
class IntentChange:
    """What is to be done for an intent."""

    changes: Sequence[RuleChange]
    aside: Direction
    """In which direction it should move nothing at all."""
    adopt: bool
    """Whether rules may be removed that the journal does not own."""
    limit: DeleteLimit
    nothing: str
    """What is said if there is nothing to do."""
    more: Sequence[str]
    """What is said besides the plan."""


def check_do(do: DoFlags) -> None:
    """Check flags before anything is read. Raises ConfigError: some do not go together; OSError: as take_plan_file."""
    if do.yes and do.out is not None:
        raise ConfigError("--yes and --out: expected one of them: `aclog apply PLAN` applies what --out wrote")
    take_plan_file(do.out)


def finish(found: FoundPlace, wanted: IntentChange, do: DoFlags, output: Output) -> int:
    """Print the plan, write or apply it; return the exit code.

    Raises:
        RefusedError, JournalError: nothing was changed.
        StoppedError: it ended on its way.
        MetadataError, OSError: the place, the journal or the file cannot be written.

    """
    if not wanted.changes:
        _tell([*wanted.more, wanted.nothing], output)
        return NOTHING
    adopt = wanted.adopt or found.journal is None  # without one nobody owns anything
    change = change_as_asked(found.held, wanted.changes, adopt=adopt)
    plan = make_plan(change, found.circumstances(origin_now()))
    effects = _side_effects(found, wanted)

    def check() -> None:
        """Raise RefusedError: too much is deleted, or others are concerned; a PLAN says nothing of that any more."""
        found.check_plan(change, plan.steps, wanted.limit)
        if effects and not do.accept_side_effects and (do.yes or do.out is not None):
            nothing = "nothing was changed" if do.out is None else "no plan was written"
            raise RefusedError(f"{found.name}: {_refusal(wanted.aside, found)}: {nothing}")

    def show() -> None:
        """Print the plan, and what is said besides it."""
        print_plan(plan, change, found, output, full=True)
        if wanted.more:
            _tell(["", *wanted.more] if output.form is not OutputFormat.JSONL else wanted.more, output)
        _warn_of(effects, wanted.aside, found)

    print_unless_refused(check, show, output)
    if do.out is not None:
        write_plan(plan, do.out)
    if not do.yes:
        return CHANGES
    flags = ApplyFlags(yes=True, accept_transient=do.accept_transient, force=do.force)
    apply_to_place(plan, found.address, flags, note if output.form is OutputFormat.JSONL else say)
    return NOTHING


def _side_effects(found: FoundPlace, wanted: IntentChange) -> list[str]:
    """Return what moves that should not, by any generation of Kafka that may decide."""
    each = found.settings.by_generation(found.kafka.generations)
    regions = {
        generation: side_effects(wanted.changes, found.state.contents, settings, wanted.aside)
        for generation, settings in each.items()
    }
    return list(marked(regions))


def _tell(lines: Iterable[str], output: Output) -> None:
    """Say something with the plan; beside JSON lines it is no part of the output."""
    for line in lines:
        if output.form is OutputFormat.JSONL:
            note(printable(line))
        else:
            say(printable(line))


def _warn_of(effects: Sequence[str], aside: Direction, found: FoundPlace) -> None:
    if not effects:
        return
    what = "takes away" if aside is Direction.LOST else "gives"
    sets = f"{len(effects):,} sets of requests" if len(effects) > 1 else "a set of requests"
    first = f"such as {effects[0]}" if len(effects) > 1 else effects[0]
    if found.settings_known:
        warn(printable(f"with allow.everyone.if.no.acl.found this also {what} {sets}: {first}"))
    else:
        warn(printable(f"if allow.everyone.if.no.acl.found is true, and {_UNKNOWN}, this also {what} {sets}: {first}"))


def _refusal(aside: Direction, found: FoundPlace) -> str:
    what = "others would lose access" if aside is Direction.LOST else "what loses its last rule would be open to all"
    if found.settings_known:
        return f"{what}: expected --accept-side-effects if that is meant"
    return (
        f"{what} if allow.everyone.if.no.acl.found is true, and {_UNKNOWN}: expected "
        "--no-allow-everyone-if-no-acl-found if it is false, or --accept-side-effects"
    )
