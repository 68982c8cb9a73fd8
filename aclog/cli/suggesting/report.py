"""Suggests rules, proves them, and prints or writes them."""

from collections.abc import Set as AbstractSet
from pathlib import Path

from attrs import frozen

from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.generation import Generation
from aclog.authorizer.settings import Settings
from aclog.cli.access_log import AccessLog, Judging, warn_of_rejects
from aclog.cli.change_file import write_change_file
from aclog.cli.existing_topics import existing_topics
from aclog.cli.flags.accesses import AccessesFlags, WindowFlags
from aclog.cli.flags.output import Output
from aclog.cli.flags.source import SourceFlags
from aclog.cli.premises import read_premises, refuse_unless_known
from aclog.cli.suggesting.flags import SuggestFlags
from aclog.cli.suggesting.rows import SUGGESTED_COLUMNS, suggested_rows
from aclog.cli.suggesting.text_report import text_lines
from aclog.cli.unused_wording import unread_text
from aclog.metalog.printable import printable
from aclog.snapshots.image import Image
from aclog.terminal.json_text import json_text
from aclog.terminal.notices import note, warn
from aclog.terminal.output import say
from aclog.terminal.progress import progress
from aclog.usage.judging.counted_log import CountedLog
from aclog.usage.judging.processes import Each
from aclog.usage.suggestion.need import Needs
from aclog.usage.suggestion.proof import prove
from aclog.usage.suggestion.suggestion import Question, Suggestion, suggest
from aclog.usage.unread import UnreadAccesses
from aclog.usage.window import Window


@frozen(eq=False, kw_only=True)
class SuggestReport:
    """A suggestion, and what it was made of."""

    suggestion: Suggestion
    now: int
    """The number of present rules."""
    needs: Needs
    replayed: int
    """Accesses that were decided again, as often as they were made."""
    window: Window
    unread: UnreadAccesses
    """Of the window: not in the proof."""


def print_suggestion(
    source: SourceFlags,
    log: tuple[AccessesFlags, WindowFlags],
    settings: Settings,
    flags: SuggestFlags,
    output: Output,
    each: Each | None = None,
    *,
    given: AbstractSet[str] = frozenset(),
) -> None:
    """Print the least rules that keep what was used, once they are proved.

    `each` reads and counts the log, by default processes of this machine. `given`: the properties of brokers whose
    values `settings` has.

    Raises:
        SuggestionError: they are not sound; nothing is printed.
        ConfigError: flags that are not valid, a malformed file, or what decides is unknown, so that nothing is proved.
        MetadataError, OSError: the log or the source cannot be read.

    """
    least, until, topics = flags.least(), log[1].end(), source.topics()
    found = AccessLog.of(log[0], each)
    chosen = source.choose(topics=topics)
    image = chosen.image()
    refuse_unless_known(read_premises(chosen, given), "no rule can be proved to be enough")
    judging = Judging.of_state(image, settings)
    kafka = judging.rules.intervals.kafka
    settings = judging.settings if kafka is None else judging.settings.of_generation(Generation.V4_4)
    acls = image.acls.with_options(documented=settings.documented, cidr=settings.cidr)
    counted, judged = found.count_window(judging, log[1].days, until)
    exist = existing_topics(topics, (image,), (chosen,))
    principals = frozenset(flags.principal)
    _check_principals(principals, image)
    with progress("suggesting"):
        needs = Needs.of(counted.accesses, judging.rules, judging.settings)
        unread = UnreadAccesses.sum_of((judged.unread(counted.unread), needs.undecided))
        question = Question(
            settings=settings,
            fold=least,
            principals=principals,
            topics=frozenset() if exist is None else frozenset(exist),
            unread=unread,
            ranges_allow=kafka is None,
        )
        suggestion = suggest(needs, [rule.acl for rule in acls], question)
    with progress("proving"):
        deciding = (settings,) if kafka is None else tuple(map(settings.of_generation, Generation))
        proof, *_ = [prove(image.acls, suggestion.acls, counted.accesses, one) for one in deciding]
    report = SuggestReport(
        suggestion=suggestion, now=len(acls), needs=needs, replayed=proof.replayed, window=judged.window, unread=unread
    )
    if flags.out is not None:
        _write(flags.out, suggestion)
    _print(report, flags, output)
    _warn(counted)


def _check_principals(principals: frozenset[str], image: Image) -> None:
    for principal in sorted(principals - image.acls.principals()):
        warn(f"--principal {principal}: no rule is for it")


def _print(report: SuggestReport, flags: SuggestFlags, output: Output) -> None:
    if output.is_rows:
        output.print_rows(SUGGESTED_COLUMNS, suggested_rows(report.suggestion))
    else:
        for line in text_lines(report.suggestion, now=report.now, explain=flags.explain):
            say(printable(line))
    denied = f"; {report.needs.denied:,} are denied now, and are not kept" if report.needs.denied else ""
    if report.unread:
        decided = report.replayed - report.needs.undecided.total
        warn(
            f"{unread_text(report.unread)}: the rules that they may need stay, not judged; the other {decided:,} "
            f"accesses were decided again, none of these is lost, and no request is allowed that was not{denied}"
        )
        return
    note(
        f"proved: {report.replayed:,} accesses decided again, none lost, and no request is allowed that was not{denied}"
    )


def _warn(counted: CountedLog) -> None:
    if counted.rows.without_time:
        warn(f"{counted.rows.without_time:,} accesses have no timestamp: the suggestion does not count them")
    warn_of_rejects(counted.rejects)


def _write(path: Path, suggestion: Suggestion) -> None:
    rules = [StandardAclWithId(id=None, acl=acl) for acl in suggestion.acls]
    state = write_change_file(path, (json_text(rule.to_dict()) for rule in rules), "--out")
    note(f"{path}: {state}: {len(rules):,} rules, all that are wanted")
