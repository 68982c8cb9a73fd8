"""Answers which rules of a source nobody needs, and writes the removal of those that can go."""

from pathlib import Path

from aclog.cli.flags.output import Output
from aclog.cli.flags.source import SourceFlags
from aclog.cli.unused.flags import UnusedFlags
from aclog.metalog.errors import ConfigError
from aclog.metalog.printable import printable
from aclog.terminal.moment import take_moment
from aclog.terminal.notices import note
from aclog.terminal.output import say
from aclog.usage.index.usage_index import UsageIndex
from aclog.usage.unused.state_rules import StateRules
from aclog.usage.unused_report import UnusedQuestion, UnusedReport
from aclog.usage.window import check_days, micros_of

NONE, FOUND = 0, 1
"""Exit codes."""


def print_unused(source: SourceFlags, flags: UnusedFlags, output: Output) -> int:
    """Print the answers about the rules of a source; return the exit code.

    Raises:
        ConfigError: flags that are not valid, or an index that is damaged, of another cluster, or empty.
        MetadataError, OSError: the source is damaged or cannot be read.

    """
    question = _question(flags)
    with UsageIndex.open(flags.index) as index:
        rules = StateRules.of(source.choose().image().acls)
        report = UnusedReport.of(index, rules, question)
        if flags.out is not None:
            _write_change(flags.out, report)
        if output.is_rows:
            from aclog.cli.unused.rows import UNUSED_COLUMNS, unused_rows

            output.print_rows(UNUSED_COLUMNS, unused_rows(report))
        else:
            from aclog.cli.unused.text_report import text_lines

            for line in text_lines(report):
                say(printable(line))
    return FOUND if report.unused.judgement.unused.any() else NONE


def _question(flags: UnusedFlags) -> UnusedQuestion:
    check_days(flags.days)
    until = None
    if flags.until is not None:
        moment = take_moment(flags.until)
        if moment is None or isinstance(moment, int):
            raise ConfigError(f"--until {flags.until}: expected a time, such as 2026-11-20T10:00:00Z")
        until = micros_of(moment)
    return UnusedQuestion(days=flags.days, gap=flags.gap_us(), until=until, ignored=flags.ignore_broker)


def _write_change(path: Path, report: UnusedReport) -> None:
    from aclog.cli.change_file import change_line, safe_order, write_change_file
    from aclog.sources.change_lines import Action

    found = [rule for _, rule in report.unused.rules.in_text_order(report.unused.removable)]
    found.sort(key=lambda rule: safe_order(rule.acl, added=False))
    state = write_change_file(path, (change_line(Action.REMOVE, rule.to_dict()) for rule in found), "--out")
    note(f"{path}: {state}: {len(found):,} removals, for --change")
