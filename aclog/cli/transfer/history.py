"""The history of ACLs as rows of avro/history.avsc: export from a log, import into a new one."""

from collections.abc import Iterator, Mapping
from itertools import chain, groupby, takewhile
from pathlib import Path
from typing import Any
from uuid import UUID

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acl_records import acl_of
from aclog.cli.flags.common import ExportFormat
from aclog.cli.rule_warnings import WrittenRules
from aclog.cli.transfer.avro.files import HISTORY, Row
from aclog.cli.transfer.exporter import counted, write_export
from aclog.cli.transfer.reader import Placed, open_history
from aclog.cli.transfer.rows import NO_ID, acl_record, acl_row, record_of_rule
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.metalog.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from aclog.metalog.uuids import uuid_text
from aclog.nodes.controller.write_path.formatted_log import formatted_log
from aclog.places.log_writer import LogWriter, open_or_create
from aclog.snapshots.moments import Moment
from aclog.snapshots.rule_history import Change, ChangeKind, history
from aclog.snapshots.state_source import StateSource
from aclog.sources.paths import LogSource
from aclog.terminal.output import say
from aclog.terminal.progress import Advance, progress


def export_history(source: StateSource, as_of: Moment | None, export_format: ExportFormat, out: Path | None) -> None:
    """Write every change of an ACL in a log, up to a moment.

    Raises:
        ConfigError: the source is not a log, the format holds no history, or Avro output to a terminal.
        MetadataError: the log is damaged, or does not reach back to the moment.
        OSError: the file cannot be written.

    """
    if export_format.is_for_acls_only:
        raise ConfigError(f"--history --format {export_format}: a file of ACLs has no history: use avro or jsonl")
    if not isinstance(source, LogSource):
        raise ConfigError(f"{source.name}: only a log has a history: use --log DIR")
    changes: Iterator[Change] = history(source.directory)
    if as_of is not None:
        end = source.image_at(as_of).end_offset  # refuses a moment of which nobody knows the state
        changes = takewhile(lambda change: change.end_offset <= end, changes)
    with progress("exporting", "changes", streams=out is None) as advance:
        write_export(counted([], map(change_row, changes), advance, None), HISTORY, export_format, out)


def change_row(change: Change) -> Row:
    """Return a change as a row of avro/history.avsc."""
    return {
        "offset": change.offset,
        "endOffset": change.end_offset,
        "timestamp": change.timestamp,
        "change": change.kind.value,
        "firstSeen": change.first_seen,
        "acl": acl_row(record_of_rule(change.rule)),
    }


def import_history(path: str, directory: Path, *, force: bool, rules: WrittenRules) -> None:
    """Replay the changes of a history into a new log, with their timestamps, and print their number.

    `rules` checks the ACLs that are added.

    Raises:
        ConfigError: an invalid row, or one that contradicts earlier rows; or the log is not new.
        LogError: the log cannot be written.
        OSError: the file cannot be read.

    """
    if formatted_log(directory) is not None:
        # What formatting left for the log is younger than the first change of a history.
        raise ConfigError(f"{directory}: belongs to a node: a history can only be imported into a new log of its own")
    with open_history(path) as rows:
        # The first change is read ahead: the log must not begin later than its records, or time travel would fail.
        first = next(rows, None)
        start = None if first is None else int(str(first[1]["timestamp"]))
        with open_or_create(directory, force=force, timestamp=start) as (writer, is_new):
            if not is_new:
                raise ConfigError(
                    f"{directory}: a history can only be imported into a new log: expected an empty directory"
                )
            with progress("replaying", "changes") as advance:
                number = _replay(chain([] if first is None else [first], rows), _CurrentAcls(rules), writer, advance)
    say(f"written: {number} changes")
    rules.report()


def _replay(rows: Placed[Row], current: "_CurrentAcls", writer: LogWriter, advance: Advance) -> int:
    number = 0
    # Changes with the same end offset became visible together, and must do so again.
    for (_, timestamp), group in groupby(rows, key=lambda found: (found[1]["endOffset"], found[1]["timestamp"])):
        values = [current.value(place, row) for place, row in group]
        writer.submit(values, atomic=True, timestamp=timestamp)
        number += len(values)
        advance(number, None)
    writer.flush()
    return number


class _CurrentAcls:
    """The ACLs in force at one point of a history; owned by the import that reads it."""

    def __init__(self, written: WrittenRules) -> None:
        self._written = written
        self._rules: dict[UUID, StandardAcl] = {}
        self._contents: set[StandardAcl] = set()

    def value(self, place: str, row: Mapping[str, Any]) -> bytes:
        """Return the record value of a change. Raises ConfigError, with the place of the row."""
        try:
            return self._value(acl_record(row["acl"]), row["change"])
        except MetadataError as error:
            raise ConfigError(f"{place}: {error}") from error

    def _value(self, record: AccessControlEntryRecord, change: str) -> bytes:
        acl, text = acl_of(record), uuid_text(record.id)
        if record.id == NO_ID:
            raise ConfigError("an ACL in a history must have an id")
        if change == ChangeKind.ADDED.value:
            self._written.check(acl)
            if record.id in self._rules or acl in self._contents:
                raise ConfigError(f"{text} is added, but its id or an equal ACL already exists")
            self._rules[record.id] = acl
            self._contents.add(acl)
            self._written.add(acl)
            return encode_record(record)
        if change != ChangeKind.REMOVED.value:
            raise ConfigError(f"change is {change[:40]!r}: expected ADDED or REMOVED")
        if self._rules.pop(record.id, None) is None:
            raise ConfigError(f"{text} is removed, but does not exist")
        self._contents.discard(acl)
        return encode_record(RemoveAccessControlEntryRecord(id=record.id))
