"""Answers which rules of a source nobody needs, and writes the removal of those that can go."""

from pathlib import Path

from aclog.authorizer.config import SUPER_USERS_CONFIG
from aclog.cli.flags.accesses import AccessesFlags, window_end
from aclog.cli.flags.gap import gap_us
from aclog.cli.flags.output import Output
from aclog.cli.flags.source import SourceFlags
from aclog.cli.premises import read_premises
from aclog.cli.unused.flags import UnusedFlags
from aclog.metalog.printable import printable
from aclog.terminal.notices import note
from aclog.terminal.output import say
from aclog.terminal.progress import tracked
from aclog.usage.index.usage_index import UsageIndex
from aclog.usage.unused.state_rules import StateRules
from aclog.usage.unused_report import UnusedQuestion, UnusedReport
from aclog.usage.window import check_days, micros_of

NONE, FOUND = 0, 1
"""Exit codes."""


def print_unused(source: SourceFlags, flags: UnusedFlags, proof: AccessesFlags | None, output: Output) -> int:
    """Print the answers about the rules of a source; return the exit code. `proof`: a log to prove them over.

    Raises:
        ConfigError: flags that are not valid, an index that is damaged, of another cluster, or empty; or what can go
            would change a decision.
        MetadataError, OSError: the source is damaged or cannot be read.

    """
    question = _question(flags)
    with UsageIndex.open(flags.index) as index:
        chosen = source.choose()
        if source.log is not None:
            from aclog.sources.cluster_identity import cluster_id_of

            index.check_cluster(cluster_id_of(source.log))
        report = UnusedReport.of(index, StateRules.of(chosen.image().acls), question)
        left = read_premises(chosen, index.given()).without({SUPER_USERS_CONFIG})
        if left:
            note(f"no ACL counts as removable: make the index anew, by aclog usage-index with {left.settled_by()}")
            report = report.without_removals()
        if proof is not None:
            from aclog.cli.unused_proof import prove
            from aclog.cli.usage_extra import need_usage_extra

            need_usage_extra()
            prove(report, chosen, proof)
        if flags.out is not None:
            _write_change(flags.out, report)
        if output.is_rows:
            from aclog.cli.unused.rows import UNREAD_COLUMN, UNUSED_COLUMNS, unused_rows

            rows = tracked(unused_rows(report), "listing", "ACLs", len(report.unused.rules), streams=True)
            more = (UNREAD_COLUMN,) if report.unused.unread else ()
            output.print_rows((*UNUSED_COLUMNS[:-1], *more, UNUSED_COLUMNS[-1]), rows)
        else:
            from aclog.cli.unused.text_report import text_lines

            for line in text_lines(report):
                say(printable(line))
    return FOUND if report.unused.judgement.unused.any() else NONE


def _question(flags: UnusedFlags) -> UnusedQuestion:
    check_days(flags.days)
    until = window_end(flags.until)
    end = None if until is None else micros_of(until)
    return UnusedQuestion(days=flags.days, gap=gap_us(flags.gap), until=end, ignored=flags.ignore_broker)


def _write_change(path: Path, report: UnusedReport) -> None:
    from aclog.authorizer.rule_change import Action
    from aclog.cli.change_file import safe_order, write_change_file
    from aclog.sources.change_lines import change_line

    numbered = tracked(report.unused.rules.in_text_order(report.unused.removable), "writing the change", "ACLs")
    found = [rule for _, rule in numbered]
    found.sort(key=lambda rule: safe_order(rule.acl, added=False))
    state = write_change_file(path, (change_line(Action.REMOVE, rule.to_dict()) for rule in found), "--out")
    note(f"{path}: {state}: {len(found):,} removals, for --change")
