"""`aclog plan`: what has to change so that a target holds what a source states."""

from collections.abc import Callable
from pathlib import Path

from click.exceptions import Exit

from aclog.analysis.review.review import markdown_lines, text_lines
from aclog.authorizer.acl import shell_word
from aclog.cli.flags.accesses import AccessesFlags, given_accesses
from aclog.cli.flags.common import AuthorizerFlags, Output, check_one_stdin, stdin_among
from aclog.cli.flags.plans import ChangeFile, OwnershipFlags, PlanOutputFlags, WantFlags
from aclog.cli.flags.source import module_inputs, parse_modules
from aclog.cli.flags.target import TargetFlags, place_address
from aclog.cli.options import Group
from aclog.cli.transfer.output import is_written_through, open_output
from aclog.metalog.errors import ConfigError, printable
from aclog.ops.extras import need_usage_extra
from aclog.ops.plan import DesiredRules, Ownership, PlanGoal, new_plan, read_changes_goal, read_goal, report_of
from aclog.planning.plan import PLAN_BEGIN, Plan, RefusedError, plan_lines, step_object
from aclog.planning.planner import DeleteLimit, PlannedChange
from aclog.planning.report import RuleUses, document_of
from aclog.sources.choice import parse_accepted
from aclog.sources.formats.format import AclsFormat
from aclog.targets.opening import FoundPlace
from aclog.terminal.columns import OutputFormat, json_text
from aclog.terminal.notices import progress
from aclog.terminal.output import emit, note, say

# `aclog plan`: what has to change so that a place holds what a source of rules wants.


app = Group()


@app.command()
def plan(
    target: TargetFlags,
    want: WantFlags,
    ownership: OwnershipFlags,
    authorizer: AuthorizerFlags,
    output: PlanOutputFlags,
    change: ChangeFile = None,
) -> None:
    """Show the changes that would give a target the desired ACLs; nothing is written to it.

    Deletes managed rules that are no longer desired, and never rules of other
    owners. A desired rule that exists already stays unmanaged, unless --adopt is
    given. Exit code 0 if there is nothing to do, 1 if there are changes, 2 for an
    error.

    [bold]Examples[/]

      aclog plan --log DIR --want rules.jsonl --journal rules.journal --out PLAN
      aclog plan --bootstrap-server HOST:9092 --want kafka/ --journal prod.journal
      aclog plan --log DIR --change unused.jsonl --journal rules.journal --adopt
      aclog apply PLAN
    """
    raise Exit(print_new_plan(target, (want, change), ownership, authorizer, output))


# The output of a command about the plan that it made, and the file of the plan.


NOTHING, CHANGES = 0, 1
"""Exit codes."""


def print_plan(
    plan: Plan,
    change: PlannedChange,
    place: FoundPlace,
    output: Output,
    *,
    full: bool = False,
    accesses: AccessesFlags | None = None,
) -> None:
    """Print a plan for people, `full` however long it is; as JSON lines only its steps.

    `accesses`: which show when the ACLs that it deletes were last used.

    Raises:
        ConfigError, OSError: the accesses cannot be read.

    """
    if output.form is OutputFormat.JSONL:
        for step in plan.steps:
            emit(json_text(step_object(step)))
        return
    uses = None if accesses is None or not change.removed else _uses(accesses, place, change)
    report = report_of(plan, change, place, uses)
    with progress("comparing"):
        document = document_of(report, full=full)
    for line in markdown_lines(document) if output.form is OutputFormat.MARKDOWN else text_lines(document):
        say(line)


def print_unless_refused(check: Callable[[], None], show: Callable[[], None], output: Output) -> None:
    """Check a plan and print it; a refused one is also printed, but not as JSON lines. Raises as `check`."""
    try:
        check()
    except RefusedError:
        if output.form is not OutputFormat.JSONL:  # people look at what is refused, programs would do it
            show()
        raise
    show()


def check_accesses(accesses: AccessesFlags | None, output: Output) -> None:
    """Check the flags of accesses, before anything is read.

    Raises:
        ConfigError: the extra that reads them is missing, or the output would not have them.

    """
    if accesses is None:
        return
    if output.form is OutputFormat.JSONL:
        raise ConfigError("--accesses: the steps as JSON lines have no last use: expected --format text or markdown")
    need_usage_extra()


def _uses(accesses: AccessesFlags, place: FoundPlace, change: PlannedChange) -> RuleUses:
    from aclog.ops.unused import read_rule_uses  # here: for access logs alone

    return read_rule_uses(accesses, place, change.removed)


def take_plan_file(path: Path | None) -> None:
    """Remove the plan of an earlier run, before anything is planned: a run that writes none leaves none.

    What is written through, such as a device, holds no earlier plan, and stays.

    Raises:
        ConfigError: the file is something else, such as the journal.
        OSError: it cannot be read or removed.

    """
    if path is None or not path.is_file() or is_written_through(path):
        return
    with path.open("rb") as file:
        begin = file.read(len(PLAN_BEGIN))
    if begin not in {b"", PLAN_BEGIN}:
        raise ConfigError(f"--out {path}: a file that is no plan: expected another name")
    path.unlink()


def note_next_step(path: Path | None, output: Output) -> None:
    """Note for people how a plan with changes is applied; `path`: the PLAN file, if it was written."""
    if output.form is not OutputFormat.TEXT or (path is not None and is_written_through(path)):
        return
    word = "PLAN" if path is None else shell_word(str(path)) or str(path)
    first = "--out PLAN writes this plan, and " if path is None else ""
    note(printable(f"nothing was changed: {first}`aclog apply {word}` applies {'it' if path is None else 'this plan'}"))


def write_plan(plan: Plan, path: Path) -> None:
    """Write a PLAN file, whole or not at all, or through a device or a pipe. Raises as open_output."""
    with open_output(path, binary=False) as file:
        for line in plan_lines(plan):
            file.write(f"{line}\n".encode())


# What the flags of a command want of a place.


def wanted_of(flags: WantFlags) -> DesiredRules:
    """Return where the rules of --want are. Raises ConfigError: it is not given, or a module without its directory."""
    if flags.want is None:
        raise ConfigError("expected --want PATH, with all rules of this source")
    return DesiredRules(
        path=flags.want,
        form=flags.want_format or AclsFormat.AUTO,
        modules=parse_modules(flags.modules),
        exclude=tuple(flags.exclude),
        accept_unread=parse_accepted(flags.accept_unread),
        inputs=module_inputs(flags.var_files, flags.variables, flags.workspace),
        topics=flags.topics_file,
    )


def _goal(flags: WantFlags, change: str | None) -> PlanGoal:
    """Read the desired rules: --want, or the file of a change.

    Raises:
        ConfigError: not exactly one of the two, or a file without valid rules.
        OSError: a file cannot be read.

    """
    if (flags.want is None) is (change is None):
        raise ConfigError("expected either --want PATH, with all rules of this source, or --change FILE")
    if change is None:
        return read_goal(wanted_of(flags))
    if flags.want_format is not None:
        raise ConfigError("--want-format: expected --want PATH")
    return read_changes_goal(change)


# Makes a plan from what a command line names, prints it and writes it.


def print_new_plan(
    target: TargetFlags,
    sources: tuple[WantFlags, str | None],
    flags: OwnershipFlags,
    authorizer: AuthorizerFlags,
    output: PlanOutputFlags,
) -> int:
    """Make a plan, print it, and write it if it changes anything; return the exit code.

    `sources`: the desired rules, or the file of a change.

    Raises:
        RefusedError: it deletes too much, or something cannot be done.
        ConfigError: flags that do not go together, or files that hold something else.
        MetadataError, OSError: the place, a journal or a file cannot be read.

    """
    how, (want, change_file) = output.choose(), sources
    files = {"--want": want.want, "--topics": want.topics_file, "--change": change_file}
    check_one_stdin({**files, **stdin_among(output.accesses)})
    check_accesses(given_accesses(output), how)
    take_plan_file(output.out)
    address = place_address(target)
    ownership = Ownership(
        journal=flags.journal,
        others=flags.other_journals,
        adopt=flags.adopt,
        limit=DeleteLimit.parse(flags.max_deletes),
        fail_on_unread=flags.fail_on is not None,
    )
    proposal = new_plan(address, _goal(*sources), ownership, authorizer)
    plan, change, place = proposal.plan, proposal.change, proposal.place
    print_unless_refused(
        proposal.check,
        lambda: print_plan(plan, change, place, how, full=output.full, accesses=given_accesses(output)),
        how,
    )
    if plan.is_empty:
        return NOTHING
    if output.out is not None:
        write_plan(plan, output.out)
    note_next_step(output.out, how)
    return CHANGES
