"""`aclog lint`: ACLs that do not do what they seem to do."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any

from attrs import evolve, field
from click.exceptions import Exit

from aclog.analysis.comparison import differences
from aclog.analysis.lint.finding import Lint
from aclog.analysis.lint.related import neutral_fix_of_each
from aclog.analysis.lint_report import BY_ID, LINTS, LocatedFinding, json_lines, markdown_lines, parse_lints, text_lines
from aclog.analysis.policy import Policy
from aclog.analysis.rows.report import cluster_title, markdown_text
from aclog.authorizer.acl import object_of_rule
from aclog.authorizer.acls_image import Action, RuleChange, changed_acls
from aclog.cli.answers import rules_text
from aclog.cli.flags.common import Columns, NoPager, Output, OutputFlags, check_one_stdin, format_option, stdin_among
from aclog.cli.flags.repository import RepositoryFlags, rules_of
from aclog.cli.flags.source import SourceFlags
from aclog.cli.options import Group, Option
from aclog.cli.transfer.output import safe_order, write_change_file
from aclog.metalog.errors import ConfigError, plural, printable
from aclog.metalog.text_forms import comma_parts
from aclog.metalog.values import frozen
from aclog.ops.lint import Linted, has_streams, lint_objects, lint_source, merged_logs
from aclog.ops.policies import refuse_unless_known
from aclog.sources.accesses import SeenAccesses, is_stream, read_seen_accesses
from aclog.sources.acl_lines import NameFile, change_line
from aclog.sources.cluster_parts import cluster_parts
from aclog.sources.forks import each_part
from aclog.sources.formats.unread import unread_text
from aclog.sources.repository import RepositorySettings, parse_fail_on
from aclog.terminal.columns import ROW_FORMATS, Column, OutputFormat, Row, json_text
from aclog.terminal.output import emit, note, say, warn

# Ids of lints on the command line: lists of them, and their completion.


def complete_ids(incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield the completions of the last id or name of a list, with what each finds."""
    before, comma, last = incomplete.rpartition(",")
    ids = set(comma_parts(before))
    for word, title in complete_one(last):
        if word not in ids:
            yield f"{before}{comma}{word}", title


def complete_one(incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield ids that begin so, or names if no id does, with what each finds."""
    from aclog.analysis.lint_report import LINTS

    by_id = [(lint.id, f"{lint.name}: {lint.title}") for lint in LINTS if lint.id.startswith(incomplete)]
    yield from by_id or ((lint.name, lint.title) for lint in LINTS if lint.name.startswith(incomplete))


# The flags of `aclog lint` besides the source and the authorizer.


_CLUSTER_PANEL = "Data from the cluster"


class FailOn(StrEnum):
    """From which severity on a finding makes the command fail."""

    ERROR = "error"
    WARNING = "warning"
    NEVER = "never"


@frozen(kw_only=True)
class ClusterFlags:
    """What is known of the cluster besides its rules; each wins over aclog.toml if it is given."""

    groups: Annotated[
        str | None,
        Option(
            "--groups", metavar="FILE", help="Existing consumer groups, one per line.", rich_help_panel=_CLUSTER_PANEL
        ),
    ] = None
    accesses: Annotated[
        list[str],
        Option(
            "--accesses",
            metavar="PATH",
            help="An access log with recent accesses (formats: see [cyan]aclog accesses usage[/]; lines with only a "
            "principal are accepted); can be repeated.",
            show_default=False,
            rich_help_panel=_CLUSTER_PANEL,
        ),
    ] = field(factory=list)
    broker_version: Annotated[
        str | None,
        Option(
            "--broker-version",
            metavar="V",
            help="The oldest broker's Kafka, such as 3.9.1; or [cyan]redpanda[/], whose principals may be roles.",
            rich_help_panel=_CLUSTER_PANEL,
        ),
    ] = None
    broker_principals: Annotated[
        str | None,
        Option(
            "--broker-principals",
            metavar="P;P",
            help="The principals of brokers, which need cluster permissions.",
            rich_help_panel=_CLUSTER_PANEL,
        ),
    ] = None
    separators: Annotated[
        str | None,
        Option(
            "--separators",
            metavar="CHARS",
            help="The characters that separate the parts of names. [dim]Default: .-_[/]",
            rich_help_panel=_CLUSTER_PANEL,
        ),
    ] = None
    principal_types: Annotated[
        str | None,
        Option(
            "--principal-types",
            metavar="TYPE,...",
            help="The types of principals that clients have. [dim]Default: User[/]",
            rich_help_panel=_CLUSTER_PANEL,
        ),
    ] = None

    def over(self, settings: "RepositorySettings") -> "RepositorySettings":
        """Return the settings with what the flags give instead."""
        source: dict[str, Any] = {} if self.groups is None else {"groups": self.groups}
        split = None if self.principal_types is None else tuple(map(str.strip, self.principal_types.split(",")))
        values = {
            "broker_version": self.broker_version,
            "broker_principals": None if self.broker_principals is None else (self.broker_principals,),
            "separators": self.separators,
            "principal_types": split,
        }
        lint: dict[str, Any] = {key: value for key, value in values.items() if value is not None}
        return evolve(settings, source=evolve(settings.source, **source), lint=evolve(settings.lint, **lint))


@frozen(kw_only=True)
class LintFlags:
    """Which lints, what is suppressed, what fails, and how it is printed."""

    select: Annotated[
        str | None,
        Option(
            "--select",
            metavar="IDS",
            help="Only these lints, by id or name, separated by commas. [dim]Default: all[/]",
            autocompletion=complete_ids,
        ),
    ] = None
    ignore: Annotated[
        Path | None,
        Option("--ignore", metavar="FILE", help="Suppressions, as TOML: [cyan]\\[\\[ignore]][/] tables."),
    ] = None
    fix: Annotated[
        Path | None,
        Option(
            "--fix",
            metavar="FILE",
            help="Write a change (for [cyan]--change[/]) with all fixes that change no decision.",
        ),
    ] = None
    fail_on: Annotated[
        str | None,
        Option(
            "--fail-on",
            metavar="SEVERITY,unread",
            help="What makes the exit code 1: the lowest severity of a finding ([cyan]error[/], [cyan]warning[/] or "
            "[cyan]never[/]), and [cyan]unread[/] content, separated by commas.",
            show_default="error",
        ),
    ] = None
    format: Annotated[
        OutputFormat | None,
        format_option(
            OutputFormat.TEXT,
            *ROW_FORMATS,
            OutputFormat.SARIF,
            default="text",
            help="text or table for people, json, jsonl or csv for programs, markdown for a merge request, sarif for "
            "code scanning.",
        ),
    ] = None
    columns: Columns = None
    no_pager: NoPager = False
    list_all: Annotated[bool, Option("--list", metavar="", help="List all lints, and exit.")] = False
    explain: Annotated[
        list[str],
        Option("--explain", metavar="ID", help="Explain a lint, and exit.", autocompletion=complete_one),
    ] = field(factory=list)

    def output(self) -> Output:
        """Return how to print. Raises as OutputFlags.choose."""
        flags = OutputFlags(columns=self.columns, no_pager=self.no_pager)
        return flags.choose(self.format, pipe=OutputFormat.TEXT)

    def over(self, settings: "RepositorySettings") -> "RepositorySettings":
        """Return the settings with what the flags give instead."""
        lint = settings.lint
        if self.select is not None:
            lint = evolve(lint, select=comma_parts(self.select))
        if self.fail_on is not None:
            severity, unread = parse_fail_on(comma_parts(self.fail_on))
            lint = evolve(lint, fail_on=severity, fail_on_unread=unread)
        return evolve(settings, lint=lint)


# `aclog lint`: rules that do not do what they seem to do, or that do nothing.


app = Group()


@app.command()
def lint(source: SourceFlags, cluster: ClusterFlags, flags: LintFlags, repository: RepositoryFlags) -> None:
    """Find ACLs that are ineffective, redundant, or broader than intended.

    Each finding names the rules, with file and line or offset and time, the
    access that is lost or opened, and the fix. Settings and suppressions may
    be in the repository's aclog.toml. Exit code 1 if there is a finding of the
    severity of --fail-on, 0 if not, 2 for bad input.

    [bold]Examples[/]

      aclog lint --acls kafka/ --topics topics.txt
      aclog lint --bootstrap-server HOST:9092 --accesses accesses.parquet
      aclog lint --acls kafka/ --format sarif --fail-on never
      aclog lint --log DIR --select 08,11 --fix change.jsonl
      aclog lint --explain 08
    """
    if flags.list_all or flags.explain:
        _tell(flags)
        return

    settings = flags.over(cluster.over(repository.load()))
    raise Exit(print_lint(source, flags, settings, cluster.accesses))


def _tell(flags: LintFlags) -> None:
    from aclog.metalog.errors import ConfigError, printable
    from aclog.terminal.output import say

    output = flags.output()
    ids = None if flags.list_all else [part for each in flags.explain for part in comma_parts(each)]
    if output.is_rows:
        output.print_rows(CATALOGUE_COLUMNS, catalogue_rows(ids))
        return
    if output.form is OutputFormat.SARIF:
        raise ConfigError("--format sarif: expected no --list and no --explain")
    for line in list_lines() if ids is None else explain_lines(ids):
        say(printable(line))


# The catalogue of lints for people: `--list` and `--explain`.


_WIDTH = 100


CATALOGUE_COLUMNS = (
    Column(key="lint"),
    Column(key="severity"),
    Column(key="name"),
    Column(key="exact", spare=True),
    Column(key="title", cut=True),
    Column(key="harm", spare=True),
    Column(key="mend", spare=True),
    Column(key="needs", spare=True, flows=True),
)
"""Of a lint."""


def catalogue_rows(texts: Iterable[str] | None) -> Iterator[Row]:
    """Yield all that is to be known of some lints, of all without. Raises ConfigError: there is no such lint."""
    lints = LINTS if texts is None else [BY_ID[number] for number in sorted(parse_lints(texts))]
    for lint in lints:
        yield {
            "lint": lint.id,
            "severity": lint.severity.value,
            "name": lint.name,
            "exact": lint.exact,
            "title": lint.title,
            "harm": lint.rationale,
            "mend": lint.fix,
            "needs": lint.needs,
        }


def list_lines() -> Iterator[str]:
    """Yield a line for each lint: id, severity, name, what it finds."""
    width = max(len(lint.name) for lint in LINTS)
    for lint in LINTS:
        yield f"{lint.id}  {lint.severity.value:<7}  {lint.name:<{width}}  {lint.title}"


def explain_lines(texts: Iterable[str]) -> Iterator[str]:
    """Yield what is to be known of some lints. Raises ConfigError: there is no such lint."""
    for place, number in enumerate(sorted(parse_lints(texts))):
        if place:
            yield ""
        yield from _explained(BY_ID[number])


def _explained(lint: Lint) -> Iterator[str]:
    kind = "certain" if lint.exact else "likely, but not certain: they are inferred from names and conventions"
    yield f"{lint.id} {lint.name} ({lint.severity.value}; findings are {kind})"
    yield from _paragraph("", lint.title)
    yield from _paragraph("", lint.rationale)
    yield from _paragraph("Fix: ", lint.fix)
    if lint.needs:
        yield f"  Needs {lint.needs}."


def _paragraph(head: str, text: str) -> Iterator[str]:
    yield from wrap(f"{head}{text}", _WIDTH, initial_indent="  ", subsequent_indent="  ")


# `--fix`: a change that fixes findings and changes no decision, proved before it is written.


def write_fix(path: Path, policies: Sequence[Policy], findings: Sequence[LocatedFinding]) -> None:
    """Write the fixes that change no decision of any policy, as a change for `--change`, and report their number.

    `policies`: one for each generation of Kafka that may decide.

    Raises:
        ConfigError: the file exists with other content, or the change is not neutral after all.
        OSError: it cannot be written.

    """
    changes = sorted(
        neutral_fix_of_each(policies, (each.finding for each in findings)),
        key=lambda change: safe_order(change.acl, added=change.added),
    )
    # Once more, as one change, and without a hint of the location for the proof.
    for policy in policies:
        after = Policy(changed_acls(policy.acls, changes), policy.settings)
        if next(differences(policy, after), None) is not None:
            raise ConfigError(f"{path}: not written: the fixes together would change a decision; please report this")
    state = write_change_file(path, map(_line, changes), "--fix")
    written = set(changes)
    fixed = sum(bool(each.finding.fix) and written.issuperset(each.finding.fix) for each in findings)
    remaining = len(findings) - fixed
    rest = f"; {plural(remaining, 'finding')} left, whose fix changes a decision or needs a person" if remaining else ""
    what = f"{plural(len(changes), 'change')} for {plural(fixed, 'finding')}, proved to change no decision"
    note(f"{path}: {state}: {what}{rest}")


def _line(change: RuleChange) -> str:
    return change_line(Action.ADD if change.added else Action.REMOVE, object_of_rule(change.acl))


# Lints a source, and prints what was found.


LINT_COLUMNS = (
    Column(key="severity"),
    Column(key="lint"),
    Column(key="rules", cut=True, text=rules_text),
    Column(key="lost", cut=True, spare=True),
    Column(key="fix", flows=True),
)
"""Of a finding."""

CLEAN, FINDINGS = 0, 1
"""Exit codes."""


def print_lint(
    source: SourceFlags, flags: LintFlags, settings: RepositorySettings, accesses: Sequence[str] = ()
) -> int:
    """Print the findings on a source; return the exit code. `accesses`: as lint_source.

    Raises:
        ConfigError: flags or settings that are not valid, or malformed input.
        MetadataError, OSError: the source is damaged or cannot be read.

    """
    output = flags.output()
    clusters = {"": settings} if source.is_given() else settings.by_cluster()
    if "" not in clusters and flags.fix is not None:
        raise ConfigError("--fix: expected --acls PATH with the rules of one of the clusters of aclog.toml")
    linted: dict[str, Linted] = {}
    # Once for all clusters: a stream has no second time.
    read, name_file = cache(read_seen_accesses), cache(NameFile)
    # One stream, or the threads that read Parquet, are not for several processes.
    is_shared = (
        bool(accesses)
        or any(map(is_stream, filter(None, source.files().values())))
        or any(each.source.accesses or has_streams(each.source) for each in clusters.values())
    )

    def lint_one(name: str) -> dict[str, Linted]:
        """Lint a cluster."""
        return _lint(source, flags, clusters[name], name, accesses, read, name_file, processes)

    processes = 1 if is_shared else None
    for name, parts in each_part(list(clusters), lint_one, processes=processes):
        linted |= {inner or name: part for inner, part in parts.items()}
    _print(linted, output)
    fails = False
    suppressed = [each.suppressed_by for part in linted.values() for each in part.report.suppressed]
    used = {each.where for each in suppressed if each is not None}
    of_all = {part.not_judged for part in linted.values()} if len(clusters) < len(linted) else set()
    for text in of_all if len(of_all) == 1 else ():
        _note_skipped(text, "")
    for name, part in linted.items():
        cluster = printable(f"cluster {name}: ") if name else ""
        for text in part.report.notes(used):
            warn(f"{cluster}{text}")
        if len(of_all) != 1:
            _note_skipped(part.not_judged, cluster)
        fails |= part.report.fails(settings.lint.fail_on or FailOn.ERROR)
        fails |= settings.lint.fail_on_unread and bool(part.unread)
    return FINDINGS if fails else CLEAN


def _note_skipped(not_judged: str | None, cluster: str) -> None:
    if not_judged is not None:
        note(f"{cluster}{not_judged}")


def _lint(
    source: SourceFlags,
    flags: LintFlags,
    settings: RepositorySettings,
    cluster: str,
    accesses: Sequence[str],
    read: Callable[..., SeenAccesses],
    name_file: Callable[[str, str], NameFile],
    processes: int | None,
) -> dict[str, Linted]:
    """Lint one source, and write its fixes; return what was found by cluster, of an empty name if there is one.

    `cluster`: the name of a table of aclog.toml, whose files are of one cluster; empty without one.
    `read` reads accesses, and `name_file` topics and groups. `processes`: as each_part.
    """
    rules, settings = rules_of(source, settings)
    files = settings.source
    check_one_stdin({**rules.files(), "--groups": files.groups, **stdin_among(accesses or [str(files.accesses)])})
    names = None if rules.topics_file is None else name_file(rules.topics_file, "a topic")
    choice = rules.choose(topics=names, notes_clusters=False)
    parts = None if cluster else cluster_parts([choice])
    if parts is not None:
        if flags.fix is not None:
            raise ConfigError(f"--fix: expected the files of one cluster, and there is {parts.note}")
        note(printable(f"{choice.source.name}: {parts.note}"))
    choices = {"": choice} if parts is None else {name: each for name, (each,) in parts.by_name.items() if each}

    def lint_part(name: str) -> Linted:
        """Lint a section."""
        linted = lint_source(
            choices[name],
            settings,
            topics=names,
            ignore=flags.ignore,
            accesses=accesses,
            read=read,
            name_file=name_file,
        )
        return linted if parts is None else evolve(linted, policies=())  # those are for fixes

    linted = dict(each_part(list(choices), lint_part, what="sections", processes=processes))
    if flags.fix is not None:
        refuse_unless_known(linted[""].premises, f"--fix {flags.fix}: no removal can be proved to change no decision")
        write_fix(flags.fix, linted[""].policies, linted[""].report.findings)
    return linted


def _print(linted: Mapping[str, Linted], output: Output) -> None:
    """Print the findings, by the names of the clusters; one without a name is the only one."""
    if output.form is OutputFormat.SARIF:
        emit(json_text(merged_logs({name: each.sarif(version("aclog")) for name, each in linted.items()})))
    elif output.is_rows and (output.form is not OutputFormat.MARKDOWN or output.columns):
        is_json = output.form in (OutputFormat.JSON, OutputFormat.JSONL) and not output.columns
        output.print_rows(LINT_COLUMNS, lint_objects(linted) if is_json else _findings(linted))
    else:
        for line in _text(linted, is_markdown=output.form is OutputFormat.MARKDOWN):
            say(printable(line))


def _findings(linted: Mapping[str, Linted]) -> Iterator[Row]:
    return chain.from_iterable(json_lines(each.report, each.place) for each in linted.values())


def _text(linted: Mapping[str, Linted], *, is_markdown: bool) -> Iterator[str]:
    """Yield the lines for people, what was not read first; Markdown is a report for a merge request."""
    unread = list(dict.fromkeys(each for part in linted.values() for each in part.unread))
    if unread:
        yield from (f"**{markdown_text(unread_text(unread))}**", "") if is_markdown else (unread_text(unread), "")
    for name, each in linted.items():
        yield from cluster_title(name, is_markdown=is_markdown)
        if not is_markdown:
            yield from text_lines(each.report, each.place)
            continue
        yield from markdown_lines(each.report)
        if each.unread:
            yield from ("", *(f"- {markdown_text(item.text())}" for item in each.unread))
