"""Where `aclog migrate` writes what a ZooKeeper holds: the interface, and the log of a directory."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Protocol
from uuid import UUID

from attrs import define, field, frozen

from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.acls_image import AclsImage
from aclog.cli.log_writer import LogWriter, batched, open_writer
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import ConfigError, LogError
from aclog.metalog.filelog.file_names import list_checkpoints, list_segments
from aclog.metalog.records import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from aclog.metalog.uuids import random_uuid
from aclog.nodes.storage.feature_levels import METADATA_VERSIONS, feature_levels
from aclog.snapshots.features import METADATA_VERSION
from aclog.snapshots.image import Image
from aclog.snapshots.recovery import recover
from aclog.zkstore.migration.access_state import AccessState, StateChange, difference, record_values, state_of_image

TRANSACTION = "aclog migrate"
_ABORTED = "aclog migrate was stopped before the switch"
_NEEDED = "3.6-IV2"
"""The first metadata.version whose log may hold all of it: transactions, SCRAM credentials, tokens."""


@frozen(kw_only=True)
class Held:
    """What a target holds: as a state, and its rules as what decides."""

    state: AccessState
    acls: AclsImage = field(repr=False)


class MigrationTarget(Protocol):
    """What is being written; owned by one migration.

    `standing` is what it will hold at the switch if nothing more is written.
    """

    standing: AccessState

    def write(self, wanted: AccessState) -> StateChange:
        """Write what makes `wanted` of `standing`, not visible before `switch` where the place can do so."""
        ...

    def switch(self) -> None:
        """Make visible, all at once, what was written; on the disk when it returns."""
        ...

    def give_up(self) -> None:
        """Drop what was written since the last switch."""
        ...


class Place(Protocol):
    """Where a migration goes: looked at, written, looked at again."""

    @property
    def name(self) -> str:
        """For messages."""
        ...

    @property
    def limit(self) -> str:
        """What it cannot take, and why; empty where it takes everything."""
        ...

    def takes(self, state: AccessState) -> AccessState:
        """The part of a state that it can take."""
        ...

    def held(self) -> Held:
        """What it holds now. Raises MetadataError."""
        ...

    def open(self) -> AbstractContextManager[MigrationTarget]:
        """Begin to write there. Raises MetadataError."""
        ...


def held_in(image: Image) -> Held:
    """What an image holds."""
    return Held(state=state_of_image(image), acls=image.acls)


@define
class AclIds:
    """The ids of rules: those that stand, and a new one for each that comes."""

    _ids: dict[StandardAcl, UUID]
    _new_id: Callable[[], UUID] = field(default=lambda: random_uuid(secrets.token_bytes))

    def of(self, change: StateChange) -> dict[StandardAcl, UUID]:
        """The ids of the rules that come and go."""
        taken = {acl: self._ids.pop(acl) for acl in change.removed_acls}
        new = {acl: self._new_id() for acl in change.added_acls}
        self._ids |= new
        return taken | new


@frozen(kw_only=True)
class LogPlace:
    """A log's directory, new or ours."""

    directory: Path
    force: bool

    @property
    def name(self) -> str:
        """The directory."""
        return str(self.directory)

    @property
    def limit(self) -> str:
        """It takes everything."""
        return ""

    def takes(self, state: AccessState) -> AccessState:
        """All of it."""
        return state

    def held(self) -> Held:
        """What is visible in the log; nothing, where there is none yet."""
        return held_in(recover(self.directory).image if self._is_there() else Image.EMPTY)

    def existing(self) -> Held:
        """As `held`, of a log that has to be there already. Raises LogError."""
        return held_in(recover(self.directory).image)

    def _is_there(self) -> bool:
        directory = self.directory
        return directory.is_dir() and bool(list_segments(directory) or list_checkpoints(directory))

    @contextmanager
    def open(self) -> Iterator[MigrationTarget]:
        """Open the log as its one writer, and make it if it is new; what an interrupted migration left is aborted."""
        is_new = not self._is_there()
        if is_new and not self.directory.absolute().parent.is_dir():
            raise LogError(f"{self.directory.parent}: no such directory: expected one to make {self.directory.name} in")
        with open_writer(self.directory, create=is_new, force=self.force) as writer:
            _check_metadata_version(self.directory, writer.image)
            ids = {rule.acl: rule.id for rule in writer.image.acls if rule.id is not None}
            target = LogTarget(
                standing=state_of_image(writer.image),
                writer=writer,
                ids=AclIds(ids),
                features=_features(writer.image),
            )
            try:
                yield target
            except BaseException:
                target.give_up()
                raise


def _check_metadata_version(directory: Path, image: Image) -> None:
    level = image.features.level(METADATA_VERSION)
    if 0 < level < METADATA_VERSIONS[_NEEDED]:
        raise ConfigError(f"{directory}: metadata.version {level}: expected {_NEEDED} or later, which has transactions")


def _features(image: Image) -> list[bytes]:
    """What a log begins with, as `aclog format` has it; nothing where it has begun."""
    if image.features.level(METADATA_VERSION):
        return []
    return [encode_record(record) for record in feature_levels(None, (), dynamic_quorum=False).records]


@define(kw_only=True)
class LogTarget:
    """An open log. All that is written between two switches is one metadata transaction (KIP-868).

    Until its EndTransactionRecord is on the disk, readers see what stood before; then they see all of it. A marker
    that was perhaps not written is never taken for written: an open transaction that stays behind is aborted by the
    next writer, while an Abort without a Begin would be damage.
    """

    standing: AccessState
    _writer: LogWriter
    _ids: AclIds
    _features: list[bytes]
    _in_transaction: bool = field(default=False, init=False)

    def write(self, wanted: AccessState) -> StateChange:
        """See MigrationTarget. Raises LogError, EncodeError."""
        change = difference(self.standing, wanted)
        values = [*self._features, *record_values(change, self._ids.of(change))]
        if values and not self._in_transaction:
            self._writer.append([encode_record(BeginTransactionRecord(name=TRANSACTION))])
            self._in_transaction = True
        for batch in batched(values):
            self._writer.append(batch, together=False)
        self.standing, self._features = wanted, []
        return change

    def switch(self) -> None:
        """See MigrationTarget. Raises LogError."""
        if self._in_transaction:
            self._in_transaction = False
            self._writer.append([encode_record(EndTransactionRecord())])

    def give_up(self) -> None:
        """See MigrationTarget; in a log that takes no more, the transaction stays open, and nobody sees it."""
        if self._in_transaction:
            self._in_transaction = False
            with suppress(LogError):
                self._writer.append([encode_record(AbortTransactionRecord(reason=_ABORTED))])
