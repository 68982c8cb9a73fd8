"""`aclog plan`: what has to change so that a target holds what a source states."""

from collections.abc import Callable, Iterator
from pathlib import Path

from attrs import frozen
from click.exceptions import Exit

from aclog.analysis.review.document import markdown_lines, text_lines
from aclog.authorizer.acl import StandardAcl, is_cidr
from aclog.authorizer.acls_image import ChangedOrigins, RuleChange, content_of, ranges_among
from aclog.authorizer.origin import NO_ORIGINS, Origins, places_text
from aclog.authorizer.settings import parse_super_users
from aclog.cli.extras import need_usage_extra
from aclog.cli.flags.common import AccessesFlags, AuthorizerFlags, Output, given_accesses
from aclog.cli.flags.source import parse_modules
from aclog.cli.flags.target import ChangeFile, OwnershipFlags, PlanOutputFlags, TargetFlags, WantFlags, place_address
from aclog.cli.options import Group
from aclog.cli.transfer.output import is_written_through, open_output
from aclog.metalog.errors import ConfigError, EncodeError
from aclog.planning.plan import PLAN_BEGIN, Plan, RefusedError, plan_lines, step_object
from aclog.planning.planner import DeleteLimit, Holdings, PlannedChange, change_as_asked, change_to_want, make_plan
from aclog.planning.report import PlanReport, RuleUses, document_of
from aclog.sources.acl_lines import NameFile, read_changes
from aclog.sources.formats.format import AclsFormat
from aclog.sources.read_options import ReadOptions
from aclog.sources.rule_files import find_rules
from aclog.targets.opening import FoundPlace, ToldSettings, find_place
from aclog.targets.place_state import origin_now
from aclog.terminal.columns import OutputFormat, json_text
from aclog.terminal.output import emit, note, say
from aclog.terminal.progress import BYTES, progress

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
    """Show what would have to change so that a place holds the rules that are wanted; nothing is written to it.

    What is deleted is what the journal owns and is no longer wanted, never what
    somebody else has put there. A wanted rule that is there already stays as it
    is, and is owned only with --adopt. Exit code 0 if there is nothing to do, 1
    if there are changes, 2 if something is wrong.

    [bold]Examples[/]

      aclog plan --log DIR --want rules.jsonl --journal rules.journal --out PLAN
      aclog plan --bootstrap-server HOST:9092 --want kafka/ --journal prod.journal
      aclog plan --log DIR --change unused.jsonl --journal rules.journal --adopt
      aclog apply PLAN
    """
    raise Exit(print_new_plan(target, (want, change), ownership, authorizer, output))


# What a command says of the plan that it made, and the file that it writes it into.


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

    `accesses`: by which to tell when the ACLs that it deletes were last used.

    Raises:
        ConfigError, OSError: the accesses cannot be read.

    """
    if output.form is OutputFormat.JSONL:
        for step in plan.steps:
            emit(json_text(step_object(step)))
        return
    uses = None if accesses is None or not change.removed else _uses(accesses, place, change)
    report = PlanReport(
        name=place.name,
        state=place.state,
        plan=plan,
        change=change,
        uses=uses,
        kafka=place.kafka,
        premises=place.premises,
    )
    with progress("comparing"):
        document = document_of(report, full=full)
    for line in markdown_lines(document) if output.form is OutputFormat.MARKDOWN else text_lines(document):
        say(line)


def print_unless_refused(check: Callable[[], None], show: Callable[[], None], output: Output) -> None:
    """Check a plan and print it; one that is refused is printed, too, but not as JSON lines. Raises as `check`."""
    try:
        check()
    except RefusedError:
        if output.form is not OutputFormat.JSONL:  # people look at what is refused, programs would do it
            show()
        raise
    show()


def check_accesses(accesses: AccessesFlags | None, output: Output) -> None:
    """Check what is given of accesses, before anything is read.

    Raises:
        ConfigError: the extra that reads them is missing, or nothing would tell of them.

    """
    if accesses is None:
        return
    if output.form is OutputFormat.JSONL:
        raise ConfigError("--accesses: the steps as JSON lines do not tell of them: expected --format text or markdown")
    need_usage_extra()


def _uses(accesses: AccessesFlags, place: FoundPlace, change: PlannedChange) -> RuleUses:
    from aclog.cli.rule_uses import read_rule_uses  # here: for access logs alone

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


def write_plan(plan: Plan, path: Path) -> None:
    """Write a PLAN file, whole or not at all, or through a device or a pipe. Raises as open_output."""
    with open_output(path, binary=False) as file:
        for line in plan_lines(plan):
            file.write(f"{line}\n".encode())


# What flags say of what decides in a place.


def told_settings(flags: AuthorizerFlags, *, is_warned: bool = False) -> ToldSettings:
    """Return what flags say; warn of super users that are hardly meant, unless somebody has (`is_warned`).

    Raises:
        ConfigError: a super user without a colon.

    """
    if not is_warned:
        flags.warn_of_super_users()
    is_told = flags.allow_everyone or flags.no_allow_everyone
    return ToldSettings(
        super_users=parse_super_users(flags.super_users) if flags.super_users is not None else None,
        allow_everyone=flags.allow_everyone if is_told else None,
        documented=flags.documented,
        generation=flags.generation,
    )


# What a source of rules wants of a place, and what has to change for it.


@frozen(kw_only=True)
class PlanGoal:
    """All rules of a source, or changes of some; exactly one of the two is not None."""

    path: str
    rules: frozenset[bytes] | None = None
    changes: tuple[RuleChange, ...] | None = None
    origins: Origins = NO_ORIGINS
    """Where the rules stand."""

    def ranges(self) -> Iterator[str]:
        """Yield the hosts that are ranges of addresses."""
        yield from ranges_among(self.rules or ())
        yield from (each.acl.host for each in self.changes or () if is_cidr(each.acl.host))

    def change_of(self, ownership: Holdings, *, adopt: bool) -> PlannedChange:
        """Return what has to change where this is held. Raises RefusedError: as change_as_asked."""
        if self.rules is not None:
            return change_to_want(ownership, self.rules, adopt=adopt)
        return change_as_asked(ownership, self.changes or (), adopt=adopt)


def read_wanted(flags: WantFlags, change: str | None = None) -> PlanGoal:
    """Read what is wanted: --want, or the file of a change.

    Raises:
        ConfigError: not exactly one of them, or what is in the files is none.
        OSError: a file cannot be read.

    """
    if (flags.want is None) is (change is None):
        raise ConfigError("expected either --want PATH, with all rules of this source, or --change FILE")
    if change is not None:
        if flags.want_format is not None:
            raise ConfigError("--want-format: expected --want PATH")
        changes = tuple(read_changes(change))
        return PlanGoal(path=change, changes=changes, origins=ChangedOrigins.of_changes(NO_ORIGINS, changes))
    rules, origins = read_wanted_rules(flags)
    return PlanGoal(path=str(flags.want), rules=rules, origins=origins)


def read_wanted_rules(flags: WantFlags, tell: Callable[[str], None] = note) -> tuple[frozenset[bytes], Origins]:
    """Return the rules of --want, and where they stand; `tell` is called with what was read. Raises as read_wanted."""
    if flags.want is None:
        raise ConfigError("expected --want PATH, with all rules of this source")
    topics = None if flags.topics_file is None else NameFile(flags.topics_file).names
    with progress(f"reading {flags.want}", BYTES) as advance:
        options = ReadOptions(
            form=flags.want_format or AclsFormat.AUTO,
            modules=parse_modules(flags.modules),
            topics=topics,
            advance=advance,
            strict=True,  # a rule that never comes is no less wanted
        )
        source = find_rules(flags.want, options)
        rules = frozenset(_content(rule.acl, source.origins) for rule in source.rules)
    for text in source.notes:
        tell(text)
    return rules, source.origins


def _content(acl: StandardAcl, origins: Origins) -> bytes:
    try:
        return content_of(acl)
    except EncodeError as error:
        raise ConfigError(f"a rule{places_text(acl, origins)}: {error}") from error


# Makes a plan from what a command line names, prints it and writes it.


def print_new_plan(
    target: TargetFlags,
    sources: tuple[WantFlags, str | None],
    ownership: OwnershipFlags,
    authorizer: AuthorizerFlags,
    output: PlanOutputFlags,
) -> int:
    """Make a plan, print it, and write it if it changes anything; return the exit code.

    `sources`: what is wanted, or the file of a change.

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
    goal = read_wanted(*sources)
    settings, hosts = told_settings(authorizer), goal.ranges()
    place = find_place(address, settings, ownership.journal, note, ownership.other_journals, hosts=hosts)
    change = goal.change_of(place.holdings, adopt=ownership.adopt)
    plan = make_plan(change, place.circumstances(origin_now(goal.path)))
    print_unless_refused(
        lambda: _check(change, goal, limit, plan, place),
        lambda: print_plan(plan, change, place, how, full=output.full, accesses=given_accesses(output)),
        how,
    )
    if plan.is_empty:
        return NOTHING
    if output.out is not None:
        write_plan(plan, output.out)
    return CHANGES


def _check(change: PlannedChange, goal: PlanGoal, limit: DeleteLimit, plan: Plan, place: FoundPlace) -> None:
    """Raise RefusedError: a source without rules would delete all; or as FoundPlace.check_plan."""
    if goal.rules == frozenset() and change.removed and limit == DeleteLimit():  # none was given
        raise RefusedError(
            f"{goal.path}: has no rules at all, so all {len(change.removed):,} that are owned would be deleted: "
            "expected --max-deletes if that is meant"
        )
    place.check_plan(change, plan.steps, limit, origins=goal.origins)
