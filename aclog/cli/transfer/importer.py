"""Import of an exported state, or of ACLs as JSON lines, into a log: all or nothing."""

import secrets
import struct
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from attrs import define, evolve, field

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acl_records import acl_of
from aclog.cli.log_writer import LogWriter, open_or_create
from aclog.cli.rule_warnings import WrittenRules
from aclog.cli.transfer.avro.files import IMAGE, Row
from aclog.cli.transfer.reader import open_export
from aclog.cli.transfer.rows import NO_ID, record_of
from aclog.metalog.codec import encode_record
from aclog.metalog.control_records import ControlRecord, ControlType, KRaftVersion, decode_control
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.metalog.records import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    MetadataRecord,
    UserScramCredentialRecord,
)
from aclog.metalog.uuids import random_uuid, uuid_text
from aclog.snapshots.image import Image
from aclog.terminal.notices import warn
from aclog.terminal.output import say
from aclog.terminal.progress import progress

_STEP = 1000
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
    with open_or_create(directory, force=force) as (writer, is_new):
        state = _NewState(image=writer.image, is_new=is_new, rules=rules)
        with open_export(path, IMAGE) as rows, progress("reading") as advance:
            for number, (place, row) in enumerate(rows):
                state.add(place, row)
                if number % _STEP == 0:
                    advance(number, None)
        state.write(writer)
    state.report()


@define(kw_only=True)
class _NewState:
    """The records to write; owned by the import that reads the rows."""

    image: Image
    is_new: bool
    rules: WrittenRules
    _values: list[bytes] = field(factory=list, init=False)
    _control: list[ControlRecord] = field(factory=list, init=False)
    _ids: set[UUID] = field(factory=set, init=False)
    _acls: dict[StandardAcl, UUID] = field(factory=dict, init=False)
    _written: Counter[str] = field(factory=Counter, init=False)
    _present: Counter[str] = field(factory=Counter, init=False)
    _left_out: Counter[tuple[str, str]] = field(factory=Counter, init=False)

    def add(self, place: str, row: Row) -> None:
        """Add a row. Raises ConfigError, with the place of the row."""
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
            self._add_acl(record)
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

    def _add_acl(self, record: AccessControlEntryRecord) -> None:
        acl = acl_of(record)
        self.rules.check(acl)
        earlier = self._acls.get(acl)
        if earlier is not None or (not self.is_new and self.image.acls.find(acl) is not None):
            # A row without an id may repeat any ACL; two ids for one ACL contradict each other.
            if earlier is not None and NO_ID not in {record.id, earlier}:
                raise ConfigError(f"an earlier row has the same ACL with id {uuid_text(earlier)}: {acl}")
            self._present["acl"] += 1
            return
        if record.id != NO_ID and (record.id in self._ids or self.image.acls.get(record.id) is not None):
            raise ConfigError(f"id {uuid_text(record.id)} belongs to another ACL")
        self._acls[acl] = record.id
        if record.id == NO_ID:
            record = evolve(record, id=random_uuid(secrets.token_bytes))
        self._ids.add(record.id)
        self._put("acl", record)
        self.rules.add(acl)

    def write(self, writer: LogWriter) -> None:
        """Write all records. Raises LogError."""
        if self.is_new and self._control:
            writer.append_control(self._control)
        # A new log is invisible until it is complete; in an existing one, readers must see all records at once.
        writer.append(self._values, atomic=not self.is_new)

    def report(self) -> None:
        """Print what was written, what existed already, and what was left out."""
        say(f"written: {_counts(self._written)}")
        if self._present:
            say(f"there already: {_counts(self._present)}")
        for (kind, why), count in self._left_out.items():
            warn(f"left out: {count} {_NAMES[kind]}: {why}")
        self.rules.report()


def _control_records(provenance: Mapping[str, Any]) -> list[ControlRecord]:
    """Return the control records of the voters, if a dynamic quorum was exported (KIP-853)."""
    if not provenance["kraftVersion"] or provenance["voters"] is None:
        return []
    # The key of a control record: its version and type.
    voters = decode_control(struct.pack(">hh", 0, ControlType.KRAFT_VOTERS), provenance["voters"])
    return [KRaftVersion(kraft_version=provenance["kraftVersion"]), voters]


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {_NAMES[kind]}" for kind, count in counts.items()) or "nothing"
