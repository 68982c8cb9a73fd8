"""Lints a source, and prints what was found."""

from collections.abc import Iterable
from importlib.metadata import version

from attrs import evolve

from aclog.analysis.lint_report.json_report import json_lines
from aclog.analysis.lint_report.lint_report import LintReport
from aclog.analysis.lint_report.markdown_report import markdown_lines
from aclog.analysis.lint_report.sarif_report import sarif_log
from aclog.analysis.lint_report.text_report import text_lines
from aclog.authorizer.change_place import ChangePlace
from aclog.cli.existing_topics import existing_topics
from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.output import Output
from aclog.cli.flags.repository import authorizer_flags, rules_of
from aclog.cli.flags.source import SourceFlags
from aclog.cli.flags.stdin import check_one_stdin
from aclog.cli.lint.fix import write_fix
from aclog.cli.lint.flags import FailOn, LintFlags
from aclog.cli.linting import lint_inputs, not_judged, run_lint
from aclog.cli.policies import policies_of, policy_of
from aclog.cli.premises import read_premises, refuse_unless_known
from aclog.cli.region_columns import rules_text
from aclog.cli.repository_files import repository_path
from aclog.metalog.printable import printable
from aclog.sources.repository.settings import RepositorySettings
from aclog.terminal.columns import Column
from aclog.terminal.json_text import json_text
from aclog.terminal.notices import note, warn
from aclog.terminal.output import emit, say
from aclog.terminal.output_format import OutputFormat

LINT_COLUMNS = (
    Column(key="severity"),
    Column(key="lint"),
    Column(key="rules", cut=True, text=rules_text),
    Column(key="lost", cut=True, spare=True),
    Column(key="fix", flows=True),
)
"""Of a finding."""

CLEAN, FOUND = 0, 1
"""Exit codes."""


def print_lint(source: SourceFlags, flags: LintFlags, settings: RepositorySettings) -> int:
    """Print the findings on a source; return the exit code.

    Raises:
        ConfigError: flags or settings that are not valid, or malformed input.
        MetadataError, OSError: the source is damaged or cannot be read.

    """
    output = flags.output()
    given, settings = rules_of(source, settings)
    known = settings.source
    check_one_stdin({**given.files(), "--groups": known.groups, "--accesses": known.accesses})
    names = given.topics()
    chosen = given.choose(topics=names)
    image = chosen.image()
    inputs = lint_inputs(settings, existing_topics(names, [image], [chosen]), ignore=flags.ignore)
    decided_by = _authorizer(settings)
    if flags.fix is None:
        policies = policies_of(image, decided_by)
        policy, *_ = policies.values()
    else:  # what is removed must be of no use to any Kafka
        policy = policy_of(image, decided_by)
        policies = {}
    premises = read_premises(chosen, decided_by.given())
    report = run_lint(chosen, image, policy, inputs, policies=policies, premises=premises)
    if flags.fix is not None:
        refuse_unless_known(premises, f"--fix {flags.fix}: no removal can be proved to change no decision")
        write_fix(flags.fix, policy, report.findings)
    _print(report, output, chosen.source.change_place)
    for text in report.notes():
        warn(text)
    lacking = not_judged(inputs, history=chosen.source.log is not None)
    if lacking is not None:
        note(lacking)
    return FOUND if report.fails(settings.lint.fail_on or FailOn.ERROR) else CLEAN


def _authorizer(settings: RepositorySettings) -> AuthorizerFlags:
    """Return the flags of the authorizer; `--broker-version` names the Kafka that decides, if nothing else does."""
    flags, version = authorizer_flags(settings), settings.lint.broker_version
    if flags.generation is not None or version is None:
        return flags
    return evolve(flags, kafka_version=version.strip().removeprefix("v"))


def _print(report: LintReport, output: Output, place: ChangePlace) -> None:
    """Print the findings; Markdown is a report for people, unless columns are chosen."""
    if output.form is OutputFormat.SARIF:
        emit(json_text(sarif_log(report, place, version=version("aclog"), uri_of=repository_path)))
        return
    if output.form is OutputFormat.MARKDOWN and not output.columns:
        lines: Iterable[str] = markdown_lines(report)
    elif output.is_rows:
        output.print_rows(LINT_COLUMNS, json_lines(report, place))
        return
    else:
        lines = text_lines(report, place)
    for text in lines:
        say(printable(text))
