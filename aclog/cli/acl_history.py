"""The changes of ACLs in a log, as `acls history` lists them: apart, as no other command reads a log's history."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any

from attrs import frozen

from aclog.cli.flags.commands import parse_principal
from aclog.cli.flags.common import Output
from aclog.cli.images import RULE_COLUMNS
from aclog.metalog.committed_log import LogReader
from aclog.metalog.errors import LogError
from aclog.planning.plan import ApplyNote
from aclog.snapshots.history import Change
from aclog.snapshots.moments import Moment, end_offset_at, moment_text
from aclog.sources.choice import ChosenSource
from aclog.sources.logs import LogSource, history_of, log_of
from aclog.targets.applies import read_applies, with_applies
from aclog.terminal.columns import Column, Row
from aclog.terminal.output import note, time_text
from aclog.terminal.tables import print_rows


def _time(value: Any) -> str:
    return time_text(value)


COLUMNS = (
    Column(key="timestamp", title="TIME", text=_time),
    Column(key="offset"),
    Column(key="change"),
    *RULE_COLUMNS,
    Column(key="apply", spare=True),
    Column(key="who", cut=True, spare=True),
    Column(key="git", spare=True),
)
"""When, at which offset, and what happened to which ACL; and which apply made it, if it is known."""


@frozen(kw_only=True)
class Span:
    """Which changes are listed: those after the state at `since`, all if it is None; of one of `principals`, if any."""

    since: Moment | None
    principals: Sequence[str]


def print_history(choice: ChosenSource, span: Span, output: Output) -> None:
    """Print the changes up to the state that is chosen (`--as-of`), in the order of the log.

    Raises:
        ConfigError: the source has no history, or a principal has no colon.
        MetadataError: the log is damaged, or does not reach back to the moment of `since`.

    """
    subjects = frozenset(map(parse_principal, span.principals))
    history = history_of(choice.source)
    # Read first: it shows the progress of a long replay, and warns of all that is wrong with the source.
    end, begin = choice.image().end_offset, history.begin.end_offset
    first = begin if span.since is None else _end_offset(log_of(choice.source), span.since, begin)
    changes = takewhile(lambda change: change.end_offset <= end, history.changes)
    # The state at the beginning of the log is not a change.
    entries = ((change, note) for change, note in _applied(changes, choice, begin) if change.end_offset > first)
    rows = (_row(*each) for each in entries if not subjects or each[0].rule.acl.principal in subjects)
    print_rows(COLUMNS, rows, output.form, keys=output.columns)
    if span.since is None and begin:
        note(f"{choice.source.name}: the log begins with the state at offset {begin}: earlier changes are not in it")
    choice.warn_of_age()


def _end_offset(log: LogReader, since: Moment, begin: int) -> int:
    offset = since if isinstance(since, int) else end_offset_at(log, since)
    if offset < begin:
        raise LogError(
            f"{log.name}: --since {moment_text(since)}: the log begins with the state at offset {begin}: earlier "
            f"changes are unknown: expected {begin} or a later moment"
        )
    return offset


def _applied(changes: Iterable[Change], choice: ChosenSource, begin: int) -> Iterator[tuple[Change, ApplyNote | None]]:
    """Yield the changes of a log that begins with the state at `begin`, each with the apply that made it, if known."""
    source = choice.source
    applies = read_applies(source.directory) if isinstance(source, LogSource) else None
    return with_applies(changes, () if applies is None else applies.applied, begin)


def _row(change: Change, applied: ApplyNote | None) -> Row:
    return {
        "timestamp": change.timestamp,
        "offset": change.offset,
        "change": change.kind.value,
        **change.rule.to_dict(),
        "apply": None if applied is None else applied.apply,
        "who": None if applied is None else applied.who,
        "git": None if applied is None else applied.git,
    }
