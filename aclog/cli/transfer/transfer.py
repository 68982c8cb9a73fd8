"""Export and import of states and ACLs."""

import os
import struct
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader
from itertools import chain, groupby, takewhile
from pathlib import Path
from typing import Any, TypeAlias, TypeVar
from uuid import UUID

from attrs import evolve, field

from aclog.authorizer.acl import StandardAcl, StandardAclWithId, acl_of, acl_text, rule_of_object
from aclog.authorizer.acl import record_of as record_of_acl
from aclog.cli.flags.common import ExportFormat
from aclog.cli.images import WrittenRules
from aclog.cli.transfer.output import open_output
from aclog.metalog.codec import ACL_CONTENT, decode_record, encode_acl, encode_record
from aclog.metalog.control_records import ControlRecord, ControlType, KRaftVersion, decode_control, encode_control
from aclog.metalog.errors import ConfigError, LogError, MetadataError, noun
from aclog.metalog.json_object import parse_object
from aclog.metalog.primitives import RandomIds, uuid_text
from aclog.metalog.records import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    MetadataRecord,
    RemoveAccessControlEntryRecord,
    TaggedFields,
    UserScramCredentialRecord,
)
from aclog.metalog.values import define
from aclog.ops.export_rows import (
    HISTORY,
    IMAGE,
    MAGIC,
    NO_ID,
    Row,
    RowReader,
    acl_record,
    change_row,
    keyless_rows,
    read_rows,
    record_of,
    row_line,
    row_of,
    write_rows,
)
from aclog.server.controller.activation import FormattedLog, formatted_log
from aclog.snapshots.history import Change, ChangeKind, history
from aclog.snapshots.image import METADATA_VERSION, Image, StateSource
from aclog.snapshots.moments import Moment
from aclog.sources.acl_lines import STDIN, display_name, numbered
from aclog.sources.formats.format import AclsFormat
from aclog.sources.formats.writers import UnfitError, write_rules
from aclog.sources.logs import LogSource
from aclog.targets.log import LogWriter, open_or_create
from aclog.terminal.notices import BYTES, Advance, progress, tracked
from aclog.terminal.output import note, say, warn

# Reader of exports, and of ACLs as JSON lines, row by row.


_T = TypeVar("_T")

Placed: TypeAlias = Iterator[tuple[str, _T]]
"""Entries of a file, each with its place (file and line or row) for messages."""

_STEP = 1024
"""Rows between two reports of progress."""

_ADVICE = {IMAGE: "to import a state, leave out --history", HISTORY: "to import a history, add --history"}


@contextmanager
def open_state(path: str, advance: Advance | None = None) -> Iterator[Placed[Row | StandardAclWithId]]:
    """Open an exported state (avro.files.IMAGE), or ACLs as JSON lines, each of which comes as an ACL.

    `advance` is called with how far the file is read, in bytes.

    Raises:
        ConfigError: another schema, or a damaged file; iterating it raises it too, with file and line.
        OSError: the file cannot be read.

    """
    if not _is_avro(path):
        reader = RowReader(IMAGE)
        yield _json_lines(
            path, lambda value: rule_of_object(value) if "resourceType" in value else reader.row(value), advance
        )
        return
    with _open_avro(path, IMAGE, advance) as rows:
        yield rows


@contextmanager
def open_history(path: str) -> Iterator[Placed[Row]]:
    """Open an exported history (avro.files.HISTORY). Raises as open_state."""
    if not _is_avro(path):
        yield _json_lines(path, RowReader(HISTORY).row)
        return
    with _open_avro(path, HISTORY) as rows:
        yield rows


@contextmanager
def _open_avro(path: str, schema: str, advance: Advance | None = None) -> Iterator[Placed[Row]]:
    with Path(path).open("rb") as file:
        schema_name, rows = read_rows(file, path)
        if schema_name != schema:
            raise ConfigError(f"{path}: an export of {schema_name}: {_ADVICE[schema_name]}")
        yield _placed_rows(file, path, rows, advance)


def _placed_rows(file: BufferedReader, path: str, rows: Iterable[Row], advance: Advance | None) -> Placed[Row]:
    size = os.fstat(file.fileno()).st_size
    for number, row in enumerate(rows, 1):
        if advance is not None and not number % _STEP:
            advance(file.tell(), size)
        yield f"{path}: row {number}", row


def _is_avro(path: str) -> bool:
    if path == STDIN or not Path(path).is_file():
        return False  # what is read of a pipe is gone
    with Path(path).open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _json_lines(path: str, entry: Callable[[dict[str, object]], _T], advance: Advance | None = None) -> Placed[_T]:
    name = display_name(path)
    for number, line in numbered(path, advance):
        place = f"{name}: line {number}"
        try:
            value = entry(_object(line))
        except ConfigError as error:
            raise ConfigError(f"{place}: {error}") from error
        yield place, value


def _object(line: bytes) -> dict[str, object]:
    if line.startswith(MAGIC):
        raise ConfigError("Avro can only be read from a file, not from stdin")
    return parse_object(line)


# Import of an exported state, or of ACLs as JSON lines, into a log: all or nothing.


_LOOKING_COSTS = 8
"""How many ACLs of an image are read in the time that it takes to look for one."""

_NAMES = {
    "acl": "ACL",
    "scram": "SCRAM credential",
    "delegationToken": "delegation token",
    "feature": "feature",
    "opaque": "other record",
}


def import_state(path: str, directory: Path, *, force: bool, rules: WrittenRules) -> None:
    """Write the rows of a file into a log, and print what was written; `rules` checks the ACLs.

    Raises:
        ConfigError: an invalid row, or one that conflicts with another or with the log.
        LockedError, LogError, DecodeError: the log cannot be written, or is damaged.
        OSError: the file cannot be read.

    """
    formatted = formatted_log(directory)
    if formatted is not None:
        state = _import_into(formatted, path, force=force, rules=rules)
    else:
        with open_or_create(directory, force=force) as (writer, is_new):
            state = _NewState(image=writer.image, is_new=is_new, rules=rules)
            state.read(path)
            state.write(writer)
    state.report()


def _import_into(formatted: FormattedLog, path: str, *, force: bool, rules: WrittenRules) -> "_NewState":
    """Begin the log of a formatted directory as a node does at its first start, then write the rows of a file.

    The log is not begun before the whole file is known to be good. Raises as import_state.
    """
    formatted.check_writable(force=force)
    state = _NewState(image=formatted.image, is_new=False, rules=rules)
    state.read(path)
    with open_or_create(formatted.directory, force=force) as (writer, _):
        if len(writer.image.acls):
            raise LogError(f"{formatted.directory}: a node has started on it in the meantime: run the command again")
        state.write(writer)
    return state


@define(kw_only=True)
class _NewState:
    """The records to write; owned by the import that reads the rows."""

    image: Image
    is_new: bool
    rules: WrittenRules
    _values: list[bytes] = field(factory=list, init=False)
    _control: list[ControlRecord] = field(factory=list, init=False)
    _new_id: RandomIds = field(factory=RandomIds, init=False)
    _ids: set[int] = field(factory=set, init=False)
    _acls: dict[bytes, UUID | None] = field(factory=dict, init=False)
    """By their content in the record: the id of the row, None if it has none."""
    _there: frozenset[bytes] | None = field(default=None, init=False)
    """The contents of the ACLs of `image`, once more ACLs were looked for than it takes time to read them all."""
    _looked_for: int = field(default=0, init=False)
    _written: Counter[str] = field(factory=Counter, init=False)
    _present: Counter[str] = field(factory=Counter, init=False)
    _left_out: Counter[tuple[str, str]] = field(factory=Counter, init=False)

    def read(self, path: str) -> None:
        """Add the rows of a file. Raises as import_state."""
        with progress(f"reading {display_name(path)}", BYTES) as advance, open_state(path, advance) as rows:
            for place, row in rows:
                self.add(place, row)

    def add(self, place: str, row: Row | StandardAclWithId) -> None:
        """Add a row, or a line that is an ACL. Raises ConfigError, with its place."""
        if isinstance(row, StandardAclWithId):
            try:
                self._add_acl(row.acl, row.id)
            except MetadataError as error:
                raise ConfigError(f"{place}: {error}") from error
            return
        try:
            [(kind, value)] = [(kind, value) for kind, value in row.items() if value is not None]
        except ValueError:
            raise ConfigError(f"{place}: expected exactly one of {', '.join(row)}") from None
        try:
            self._add(kind, value)  # type: ignore[arg-type]
        except MetadataError as error:
            raise ConfigError(f"{place}: {error}") from error

    def _add(self, kind: str, value: Mapping[str, Any]) -> None:
        if kind == "provenance":
            self._control += _control_records(value)
            return
        record = record_of(kind, value)
        if record is None:
            self._left_out[kind, "exported without their secrets"] += 1
        elif kind in {"feature", "opaque"} and not self.is_new:
            self._left_out[kind, "only a new log accepts them"] += 1
        elif isinstance(record, AccessControlEntryRecord):
            self._add_acl(acl_of(record), record.id, record.tagged_fields)
        elif self._exists(record):
            self._present[kind] += 1
        else:
            self._put(kind, record)

    def _put(self, kind: str, record: MetadataRecord) -> None:
        self._values.append(encode_record(record))
        self._written[kind] += 1

    def _exists(self, record: MetadataRecord) -> bool:
        match record:
            case UserScramCredentialRecord():
                return self.image.scram.get(record.name, record.mechanism) == record
            case DelegationTokenRecord():
                return self.image.tokens.get(record.token_id) == record
            case _:
                return False

    def _add_acl(self, acl: StandardAcl, acl_id: UUID | None, tagged: TaggedFields = ()) -> None:
        self.rules.check(acl)
        acl_id = None if acl_id == NO_ID else acl_id
        new_id = acl_id or self._new_id()
        value = encode_acl(acl, new_id)
        # Hashed as bytes: a million ACLs would cost as much again as objects.
        content = value[ACL_CONTENT:]
        if content in self._acls or (not self.is_new and self._is_there(acl, content)):
            # A row without an id may repeat any ACL; two ids for one ACL contradict each other.
            earlier = self._acls.get(content)
            if acl_id and earlier:
                raise ConfigError(f"an earlier row has the same ACL with id {uuid_text(earlier)}: {acl}")
            self._present["acl"] += 1
            return
        if acl_id and (acl_id.int in self._ids or self.image.acls.get(acl_id) is not None):
            raise ConfigError(f"id {uuid_text(acl_id)} belongs to another ACL")
        self._acls[content] = acl_id
        self._ids.add(new_id.int)
        if tagged:
            value = encode_record(evolve(record_of_acl(acl, new_id), tagged_fields=tagged))
        self._values.append(value)
        self._written["acl"] += 1
        self.rules.add(acl)

    def _is_there(self, acl: StandardAcl, content: bytes) -> bool:
        """Return whether the log has the ACL: looked for a while, and of a long file compared with all that it has."""
        if self._there is None:
            if self._looked_for * _LOOKING_COSTS < len(self.image.acls):
                self._looked_for += 1
                return self.image.acls.find(acl) is not None
            self._there = frozenset(map(_content, self.image.acls.records()))
        return content in self._there

    def write(self, writer: LogWriter) -> None:
        """Write all records. Raises LogError."""
        if self.is_new and self._control:
            writer.append_control(self._control)
        # A new log is invisible until it is complete; in an existing one, readers must see all records at once.
        values = tracked(self._values, "writing", "records", len(self._values))
        writer.append(values, atomic=not self.is_new)

    def report(self) -> None:
        """Print what was written, what existed already, and what was left out."""
        say(f"written: {_counts(self._written)}")
        if self._present:
            say(f"existing: {_counts(self._present)}")
        for (kind, why), count in self._left_out.items():
            warn(f"left out: {count} {noun(count, _NAMES[kind])}: {why}")
        self.rules.report(self.image)


def _control_records(provenance: Mapping[str, Any]) -> list[ControlRecord]:
    """Return the control records of the voters, if a dynamic quorum was exported (KIP-853)."""
    if not provenance["kraftVersion"] or provenance["voters"] is None:
        return []
    # The key of a control record: its version and type.
    voters = decode_control(struct.pack(">hh", 0, ControlType.KRAFT_VOTERS), provenance["voters"])
    return [KRaftVersion(kraft_version=provenance["kraftVersion"]), voters]


def _content(value: bytes) -> bytes:
    """Return the content of an AccessControlEntryRecord, without its id and tagged fields."""
    record = decode_record(value)
    if isinstance(record, AccessControlEntryRecord) and record.tagged_fields:
        value = encode_acl(record, record.id)
    return value[ACL_CONTENT:]


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {noun(count, _NAMES[kind])}" for kind, count in counts.items()) or "nothing"


# Export of a state as rows, in Avro or JSON lines.


_EXPORT_STEP = 1000


def export_image(image: Image, export_format: ExportFormat, out: Path | None, *, show_secrets: bool) -> None:
    """Write a state.

    Raises:
        ConfigError: Avro output to a terminal.
        OSError: the file cannot be written.

    """
    total = len(image.acls) + len(image.cluster) + len(image.opaque)
    with progress("exporting", "rows", streams=out is None) as advance:
        records = (row_of(record, show_secrets=show_secrets) for record in image_records(image))
        rows = chain(records, keyless_rows(image.scram.keyless))
        write_export(counted([_provenance_row(image)], rows, advance, total), IMAGE, export_format, out)


def image_records(image: Image) -> Iterator[MetadataRecord]:
    """Yield the records of a state in the order of a checkpoint."""
    yield from image.features.records()  # first, as in Kafka: they set the metadata.version for the rest
    yield from image.cluster.records(image.features.level(METADATA_VERSION))
    yield from map(decode_record, image.opaque.values())
    yield from map(decode_record, image.acls.records())
    yield from image.scram.records()
    yield from image.tokens.records()


def _provenance_row(image: Image) -> Row:
    provenance = image.provenance
    voters = None if provenance.voters is None else encode_control(provenance.voters)[1]
    return {
        "provenance": {
            "endOffset": provenance.end_offset,
            "epoch": provenance.epoch,
            "timestamp": provenance.timestamp,
            "kraftVersion": provenance.kraft_version,
            "voters": voters,
        }
    }


def write_export(rows: Iterable[Row], schema: str, export_format: ExportFormat, out: Path | None) -> None:
    """Write rows of an export schema. Raises as export_image."""
    with open_output(out, binary=export_format is ExportFormat.AVRO) as file:
        if export_format is ExportFormat.AVRO:
            write_rows(file, schema, rows)
        else:
            for row in rows:
                file.write(row_line(row).encode() + b"\n")


def counted(first: Iterable[Row], rows: Iterable[Row], advance: Advance, total: int | None) -> Iterator[Row]:
    """Yield the rows, reporting progress."""
    yield from first
    for number, row in enumerate(rows):
        if number % _EXPORT_STEP == 0:
            advance(number, total)
        yield row


# The history of ACLs as rows of avro/history.avsc: export from a log, import into a new one.


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
        end = source.image_at(as_of).end_offset  # refuses a moment whose state is unknown
        changes = takewhile(lambda change: change.end_offset <= end, changes)
    with progress("exporting", "changes", streams=out is None) as advance:
        write_export(counted([], map(change_row, changes), advance, None), HISTORY, export_format, out)


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
    for (_, timestamp), group in groupby(rows, key=lambda item: (item[1]["endOffset"], item[1]["timestamp"])):
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


# Export of the ACLs of a state as the files of another tool.


def export_acls(image: Image, export_format: ExportFormat, out: Path | None) -> None:
    """Write the ACLs of a state; a note lists what else the state has, and a warning names each ACL that does not fit.

    Raises:
        ConfigError: the format cannot hold some of them, or names that would steer a terminal.
        OSError: the file cannot be written.

    """
    try:
        text = write_rules(AclsFormat(export_format.value), [rule.acl for rule in image.acls])
    except UnfitError as error:
        for acl, why in error.unfit:
            warn(f"{export_format} cannot hold {acl_text(acl)}: {why}")
        raise
    if out is None and sys.stdout.isatty() and not text.replace("\n", "").replace("\t", "").isprintable():
        raise ConfigError("names with characters that do not print: use --out FILE or a pipe")
    with open_output(out, binary=False) as file:
        file.write(text.encode())
    counts = {"SCRAM credentials": len(image.scram), "delegation tokens": len(image.tokens)}
    rest = ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)
    if rest:
        note(f"{export_format} holds ACLs only: left out: {rest}")
