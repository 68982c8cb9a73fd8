"""The changes of ACLs in a log, as `acls history` lists them."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any

from attrs import frozen

from aclog.cli.acls.flags import parse_principal
from aclog.cli.flags.output import Output
from aclog.cli.rule_columns import RULE_COLUMNS
from aclog.metalog.errors import LogError
from aclog.metalog.log import LogReader
from aclog.places.applied_changes import with_applies
from aclog.places.applies_file import read_applies
from aclog.planning.place import ApplyNote
from aclog.snapshots.moments import Moment, end_offset_at, moment_text
from aclog.snapshots.rule_history import Change
from aclog.sources.choice import ChosenSource
from aclog.sources.log_history import history_of, log_of
from aclog.sources.paths import LogSource
from aclog.terminal.columns import Column, Row
from aclog.terminal.notices import note
from aclog.terminal.rows import print_rows
from aclog.terminal.timestamps import time_text


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


def print_history(chosen: ChosenSource, span: Span, output: Output) -> None:
    """Print the changes up to the state that is chosen (`--as-of`), in the order of the log.

    Raises:
        ConfigError: the source has no history, or a principal has no colon.
        MetadataError: the log is damaged, or does not reach back to the moment since when changes are asked for.

    """
    wanted = frozenset(map(parse_principal, span.principals))
    history = history_of(chosen.source)
    # Read first: it shows the progress of a long replay, and warns of all that is wrong with the source.
    end, begin = chosen.image().end_offset, history.begin.end_offset
    first = begin if span.since is None else _end_offset(log_of(chosen.source), span.since, begin)
    changes = takewhile(lambda change: change.end_offset <= end, history.changes)
    # What the log begins with is no change of it.
    told = ((change, note) for change, note in _applied(changes, chosen, begin) if change.end_offset > first)
    rows = (_row(*each) for each in told if not wanted or each[0].rule.acl.principal in wanted)
    print_rows(COLUMNS, rows, output.form, chosen=output.columns)
    if span.since is None and begin:
        note(f"{chosen.source.name}: the log begins with the state at offset {begin}: earlier changes are not in it")
    chosen.warn_of_age()


def _end_offset(log: LogReader, since: Moment, begin: int) -> int:
    offset = since if isinstance(since, int) else end_offset_at(log, since)
    if offset < begin:
        raise LogError(
            f"{log.name}: --since {moment_text(since)}: the log begins with the state at offset {begin}: earlier "
            f"changes are unknown: expected {begin} or a later moment"
        )
    return offset


def _applied(changes: Iterable[Change], chosen: ChosenSource, begin: int) -> Iterator[tuple[Change, ApplyNote | None]]:
    """Yield the changes of a log that begins with the state at `begin`, each with the apply that made it, if known."""
    source = chosen.source
    found = read_applies(source.directory) if isinstance(source, LogSource) else None
    return with_applies(changes, () if found is None else found.applied, begin)


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
