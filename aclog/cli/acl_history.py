"""The changes of ACLs in a log, as `acls history` lists them: apart, as no other command reads a log's history."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any

from attrs import evolve

from aclog.authorizer.acl import AclBindingFilter
from aclog.authorizer.codes import WILDCARD, PatternType
from aclog.authorizer.index.queries import filter_matches
from aclog.authorizer.settings import name_text
from aclog.cli.flags.common import Output
from aclog.cli.images import RULE_COLUMNS
from aclog.metalog.committed_log import LogReader
from aclog.metalog.errors import plural
from aclog.metalog.values import define, frozen
from aclog.planning.plan import ApplyNote
from aclog.snapshots.history import Change
from aclog.snapshots.moments import Moment, first_later, milliseconds, moment_text
from aclog.sources.choice import ChosenSource
from aclog.sources.logs import history_of, log_of
from aclog.targets.applies import applied_of, with_applies
from aclog.terminal.columns import Column, OutputFormat, Row
from aclog.terminal.output import note, time_text
from aclog.terminal.tables import print_rows, terminal_width


def _time(value: Any) -> str:
    return time_text(value)


_APPLY_COLUMNS = (
    Column(key="apply", title="APPLY RUN", spare=True),
    Column(key="who", title="CHANGED BY", cut=True, spare=True),
    Column(key="git", title="GIT COMMIT", spare=True),
)

_WIDE_COLUMNS = (
    Column(key="timestamp", title="TIME", text=_time),
    Column(key="offset"),
    Column(key="change"),
    *RULE_COLUMNS,
)
"""When, at which offset, and what happened to which ACL."""

COLUMNS = (*_WIDE_COLUMNS, *_APPLY_COLUMNS)
"""The same; and which apply made the change, if it is known."""

_RESOURCE = "resource"
"""The key of a resource in a narrow table."""


def _seconds(value: Any) -> str:
    return re.sub(r"\.\d+", "", time_text(value))


_NARROW_COLUMNS = (
    Column(key="timestamp", title="TIME", text=_seconds),
    Column(key="offset"),
    Column(key="change"),
    Column(key="permissionType", title="RULE"),
    Column(key="principal", cut=True),
    Column(key="operation"),
    Column(key=_RESOURCE, cut=True),
    Column(key="host", cut=True),
    Column(key="id", spare=True),
)
"""The columns of a table for a terminal, which fits 100 columns: a resource is one cell, a time has whole seconds."""


@frozen(kw_only=True)
class Span:
    """Which changes are listed: those after the state at `since`, all if it is None; of ACLs that a filter matches."""

    since: Moment | None
    filters: Sequence[AclBindingFilter]
    """At least one; AclBindingFilter() matches all ACLs."""


def print_history(choice: ChosenSource, span: Span, output: Output) -> None:
    """Print the changes up to the state that is chosen (`--as-of`), in the order of the log.

    Raises:
        ConfigError: the source has no history.
        MetadataError: the log is damaged, or does not reach back to the moment of `since`.

    """
    history = history_of(choice.source)
    # Read first: it shows the progress of a long replay, and warns of all that is wrong with the source.
    end, begin = choice.image().end_offset, history.begin.end_offset
    first = begin if span.since is None else _end_offset(log_of(choice.source), span.since, begin)
    changes = takewhile(lambda change: change.end_offset <= end, history.changes)
    applied = applied_of(choice.source)
    entries = _Entries(first=first, begin=begin, filters=span.filters)
    rows = (_row(*each) for each in entries.listed(with_applies(changes, applied or (), begin)))
    if output.form is OutputFormat.TABLE and not output.columns:
        columns = _WIDE_COLUMNS if terminal_width() is None else _NARROW_COLUMNS
        columns = columns if applied is None else (*columns, *_APPLY_COLUMNS)
        print_rows(columns, ({**row, _RESOURCE: _resource_text(row)} for row in rows), output.form)
        if applied is not None and entries.has_other_authors:
            note("APPLY RUN -: the change was not made by a recorded run of aclog apply")
    else:
        print_rows(COLUMNS, rows, output.form, keys=output.columns)
    if entries.is_empty and output.form is OutputFormat.TABLE:
        note(_no_change(span, entries.earlier))
    if entries.affecting and output.form is OutputFormat.TABLE:
        others = plural(entries.affecting, "change")
        note(f"{others} of other ACLs that affect these names: --resource-pattern-type match")
    if span.since is None and begin:
        note(f"{choice.source.name}: the log begins with the state at offset {begin}: earlier changes are not in it")
    choice.warn_of_age()
    choice.note_without_authorizer()


@define(kw_only=True)
class _Entries:
    """The changes that are listed, and the last one before them."""

    first: int
    """The end offset of the state after which changes are listed."""
    begin: int
    """That of the first state of the log, which is not a change."""
    filters: Sequence[AclBindingFilter]
    is_empty: bool = True
    affecting: int = 0
    """How many changes after `first` are of other ACLs that affect the selected resources."""
    has_other_authors: bool = False
    """Whether a listed change was not made by a recorded apply."""
    earlier: Change | None = None
    """The last change of these ACLs before the listed ones; complete once these are read."""

    def listed(self, entries: Iterable[tuple[Change, ApplyNote | None]]) -> Iterator[tuple[Change, ApplyNote | None]]:
        """Yield the changes after the first state, of ACLs that a filter matches."""
        wider = [evolve(each, pattern_type=PatternType.MATCH) for each in self.filters if _is_by_name(each)]
        for change, applied in entries:
            if not _any_matches(self.filters, change):
                self.affecting += change.end_offset > self.first and _any_matches(wider, change)
                continue
            if change.end_offset > self.first:
                self.is_empty = False
                self.has_other_authors = self.has_other_authors or applied is None
                yield change, applied
            elif change.end_offset > self.begin:
                self.earlier = change


def _is_by_name(acl_filter: AclBindingFilter) -> bool:
    return acl_filter.resource_name is not None and acl_filter.pattern_type in (PatternType.LITERAL, PatternType.ANY)


def _any_matches(filters: Iterable[AclBindingFilter], change: Change) -> bool:
    return any(filter_matches(each, change.rule.acl) for each in filters)


def _no_change(span: Span, earlier: Change | None) -> str:
    principals = sorted({each.principal for each in span.filters if each.principal is not None})
    whose = f" of ACLs of {' or '.join(principals)}" if principals else ""
    if any(each.resource_name is not None for each in span.filters):
        whose = f"{whose or ' of ACLs'} on these resources"
    if span.since is None:
        return f"no change{whose} in the log"
    nothing = f"no change{whose} after {moment_text(span.since)}"
    if earlier is None:
        return f"{nothing}, and no earlier one is in the log"
    time = "" if earlier.timestamp < 0 else f"{time_text(earlier.timestamp)} "
    return f"{nothing}; the last one is at {time}(offset {earlier.offset})"


def _end_offset(log: LogReader, since: Moment, begin: int) -> int:
    """Return the end offset of the state after which changes are listed; the first one, with a note, for any before."""
    if isinstance(since, int):
        offset, is_before = since, since < begin
    else:
        later = first_later(log, milliseconds(since), log.start_offset())
        offset, is_before = later.offset, later.offset == 0 or later.offset < begin
    if not is_before:
        return offset
    first = f"with the state at offset {begin}" if begin else "later"
    note(f"{log.name}: --since {moment_text(since)}: the log begins {first}: all of its changes are listed")
    return begin


def _resource_text(row: Row) -> str:
    """Return the type and the name of a resource, as a question has it: `TOPIC pii-*`."""
    name = row["resourceName"]
    pattern = PatternType[row["patternType"]] if row["patternType"] in PatternType.__members__ else PatternType.LITERAL
    label = name if name == WILDCARD and pattern is PatternType.LITERAL else name_text(name, pattern)
    return f"{row['resourceType']} {label}"


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
