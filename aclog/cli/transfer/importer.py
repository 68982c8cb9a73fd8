"""Import of an exported state, or of ACLs as JSON lines, into a log: all or nothing."""

import struct
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from attrs import define, evolve, field

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.authorizer.acl_records import acl_of
from aclog.authorizer.acl_records import record_of as record_of_acl
from aclog.cli.rule_warnings import WrittenRules
from aclog.cli.transfer.avro.files import Row
from aclog.cli.transfer.reader import open_state
from aclog.cli.transfer.rows import NO_ID, record_of
from aclog.metalog.codec import ACL_CONTENT, decode_record, encode_acl, encode_record
from aclog.metalog.control_records import ControlRecord, ControlType, KRaftVersion, decode_control
from aclog.metalog.errors import ConfigError, LogError, MetadataError
from aclog.metalog.records import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    MetadataRecord,
    TaggedFields,
    UserScramCredentialRecord,
)
from aclog.metalog.uuids import RandomIds, uuid_text
from aclog.nodes.controller.write_path.formatted_log import FormattedLog, formatted_log
from aclog.places.log_writer import LogWriter, open_or_create
from aclog.snapshots.image import Image
from aclog.sources.text_lines import display_name
from aclog.terminal.notices import warn
from aclog.terminal.output import say
from aclog.terminal.progress import BYTES, progress, tracked

_LOOKING_COSTS = 8
"""How many ACLs of an image are read in the time that it takes to look for one."""

_NAMES = {
    "acl": "ACLs",
    "scram": "SCRAM credentials",
    "delegationToken": "delegation tokens",
    "feature": "features",
    "opaque": "other records",
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

    def _add_acl(self, acl: StandardAcl, given: UUID | None, tagged: TaggedFields = ()) -> None:
        self.rules.check(acl)
        given = None if given == NO_ID else given
        new_id = given or self._new_id()
        value = encode_acl(acl, new_id)
        # Hashed as bytes: a million ACLs would cost as much again as objects.
        content = value[ACL_CONTENT:]
        if content in self._acls or (not self.is_new and self._is_there(acl, content)):
            # A row without an id may repeat any ACL; two ids for one ACL contradict each other.
            earlier = self._acls.get(content)
            if given and earlier:
                raise ConfigError(f"an earlier row has the same ACL with id {uuid_text(earlier)}: {acl}")
            self._present["acl"] += 1
            return
        if given and (given.int in self._ids or self.image.acls.get(given) is not None):
            raise ConfigError(f"id {uuid_text(given)} belongs to another ACL")
        self._acls[content] = given
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
            say(f"there already: {_counts(self._present)}")
        for (kind, why), count in self._left_out.items():
            warn(f"left out: {count} {_NAMES[kind]}: {why}")
        self.rules.report(self.image)


def _control_records(provenance: Mapping[str, Any]) -> list[ControlRecord]:
    """Return the control records of the voters, if a dynamic quorum was exported (KIP-853)."""
    if not provenance["kraftVersion"] or provenance["voters"] is None:
        return []
    # The key of a control record: its version and type.
    voters = decode_control(struct.pack(">hh", 0, ControlType.KRAFT_VOTERS), provenance["voters"])
    return [KRaftVersion(kraft_version=provenance["kraftVersion"]), voters]


def _content(value: bytes) -> bytes:
    """Return what an AccessControlEntryRecord says, without its id and tagged fields."""
    record = decode_record(value)
    if isinstance(record, AccessControlEntryRecord) and record.tagged_fields:
        value = encode_acl(record, record.id)
    return value[ACL_CONTENT:]


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {_NAMES[kind]}" for kind, count in counts.items()) or "nothing"
