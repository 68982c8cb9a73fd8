"""Targets of a migration from ZooKeeper: a log, a checkpoint, a quorum."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Protocol
from uuid import UUID

from attrs import field

from aclog.authorizer.acl import AclBindingFilter, StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import ResourceType
from aclog.authorizer.interface import AclCreateResult, AclDeleteResult
from aclog.authorizer.settings import RANGES_LEVEL
from aclog.client import requests
from aclog.client.connection import Connection, Role
from aclog.config.node_config import ClientSecurity, HostPort
from aclog.metalog.batches import build_batch, read_header
from aclog.metalog.codec import encode_record
from aclog.metalog.control_records import SnapshotFooter, SnapshotHeader, control_batch
from aclog.metalog.errors import ConfigError, DecodeError, LogError, MetadataError
from aclog.metalog.filelog.files import METADATA_DIRECTORY, list_checkpoints, list_segments, replace_durably
from aclog.metalog.filelog.meta_properties import META_PROPERTIES
from aclog.metalog.primitives import RandomIds, current_time_ms
from aclog.metalog.records import AbortTransactionRecord, BeginTransactionRecord, EndTransactionRecord
from aclog.metalog.values import define, frozen
from aclog.protocol import api_keys
from aclog.protocol.headers import RequestError
from aclog.server.controller.activation import formatted_log, is_begun
from aclog.server.feature_levels import METADATA_VERSIONS, feature_levels
from aclog.server.storage import READ_ONLY
from aclog.snapshots.checkpoints import (
    BOOTSTRAP_NAME,
    FIRST_CHECKPOINT,
    BootstrapRecords,
    find_bootstrap,
    read_bootstrap,
)
from aclog.snapshots.image import METADATA_VERSION, Image
from aclog.snapshots.publisher import recover
from aclog.sources.live import connect_to_first
from aclog.targets.log import LogWriter, batched, check_parent, open_writer
from aclog.terminal.notices import progress
from aclog.terminal.output import warn
from aclog.zookeeper.migration import AccessState, StateChange, difference, record_values, state_of_image

# Which file the first start of a formatted directory reads, and so which one a migration may write.


_FLAG = "expected --bootstrap-checkpoint"


def first_start_file(path: Path) -> Path:
    """Return the file to write: `path`, or of a directory the file that its first start reads.

    A file of another name is for a directory that is not known yet.

    Raises:
        ConfigError: a first start would ignore what is written there.
        CheckpointError: a file that formatting left is damaged, or was written by a newer Kafka.
        LogError: the directory cannot be listed.

    """
    if path.is_dir():
        return _file_of_directory(path)
    if path.name == FIRST_CHECKPOINT:
        _check_first_checkpoint(path)
    elif path.name == BOOTSTRAP_NAME:
        _check_legacy(path)
    return path


def _file_of_directory(path: Path) -> Path:
    log = path if path.name == METADATA_DIRECTORY else path / METADATA_DIRECTORY
    _check_not_begun(log)
    bootstrap = find_bootstrap(log)
    if bootstrap is None:
        what = f"neither {BOOTSTRAP_NAME} nor {METADATA_DIRECTORY}/{FIRST_CHECKPOINT} with records is there"
        raise ConfigError(f"{path}: {what}: {_FLAG} of a formatted directory of a controller")
    return bootstrap.path


def _check_first_checkpoint(path: Path) -> None:
    _check_not_begun(path.parent)
    if not path.is_file():
        raise ConfigError(f"{path}: no such file: {_FLAG} with the file that `kafka-storage format` of Kafka 4.4 wrote")
    if not read_bootstrap(path).records:
        legacy = path.absolute().parent.parent / BOOTSTRAP_NAME
        raise ConfigError(
            f"{path}: formatted by a Kafka before 4.4 or by aclog, whose first start reads no records here: "
            f"{_FLAG} {legacy}"
        )


def _check_legacy(path: Path) -> None:
    log = path.absolute().parent / METADATA_DIRECTORY
    _check_not_begun(log)
    bootstrap = find_bootstrap(log)
    if bootstrap is not None and bootstrap.in_first_checkpoint:
        raise ConfigError(
            f"{path.parent}: formatted by Kafka 4.4 or later, whose first start reads {bootstrap.path} and ignores "
            f"{BOOTSTRAP_NAME}: {_FLAG} {bootstrap.path}"
        )
    if bootstrap is None and (path.parent / META_PROPERTIES).exists():
        raise ConfigError(
            f"{path.parent}: formatted without {BOOTSTRAP_NAME}, so its first start would ignore one: {_FLAG} of a "
            "controller's metadata.log.dir"
        )


def _check_not_begun(log: Path) -> None:
    if is_begun(log):
        raise ConfigError(
            f"{log.parent}: a node has started there, and no later start reads {BOOTSTRAP_NAME} or "
            f"{FIRST_CHECKPOINT}: expected --bootstrap-controller with the running quorum, or a directory in which no "
            "node has started"
        )


# Targets of a migration from ZooKeeper: the interface, and what its implementations share.


@frozen(kw_only=True)
class TargetContents:
    """What a target holds: the access state, and an image of its ACLs for decisions."""

    state: AccessState
    acls: AclsImage = field(repr=False)


class TargetWriter(Protocol):
    """An open target; one migration owns it.

    `state` is what the target holds after `commit` if nothing else is written.
    """

    state: AccessState

    def write(self, goal: AccessState) -> StateChange:
        """Write the changes from `state` to `goal`; if the target can do so, invisible until `commit`."""
        ...

    def commit(self) -> None:
        """Make everything that was written visible, atomically and durably."""
        ...

    def abort(self) -> None:
        """Discard what was written since the last commit."""
        ...


class Target(Protocol):
    """A metadata log, directly or as part of a Kafka node. It is read, written, and read again for the comparison."""

    @property
    def name(self) -> str:
        """For messages."""
        ...

    @property
    def limitation(self) -> str:
        """What it cannot hold, and why; empty if it can hold everything."""
        ...

    def supported(self, state: AccessState) -> AccessState:
        """Return the part of a state that it can hold."""
        ...

    def contents(self) -> TargetContents:
        """Read what it holds now. Raises MetadataError."""
        ...

    def open(self) -> AbstractContextManager[TargetWriter]:
        """Open it for writing. Raises MetadataError."""
        ...


def contents_of(image: Image) -> TargetContents:
    """Return the contents of an image."""
    return TargetContents(state=state_of_image(image), acls=image.acls)


def default_features() -> list[bytes]:
    """Return the feature records with which `aclog format` begins a log."""
    return [encode_record(record) for record in feature_levels(None, (), dynamic_quorum=False).records]


@define
class AclIds:
    """Ids of the ACLs in a target; a new ACL gets a new id."""

    _ids: dict[StandardAcl, UUID]
    _new_id: Callable[[], UUID] = field(factory=RandomIds)

    def of(self, change: StateChange) -> dict[StandardAcl, UUID]:
        """Return the ids of the added and removed ACLs."""
        removed = {acl: self._ids.pop(acl) for acl in change.removed_acls}
        added = {acl: self._new_id() for acl in change.added_acls}
        self._ids |= added
        return removed | added


# A checkpoint of bootstrap records as the target of a migration: a new Kafka writes them into its log at its start.


@frozen(kw_only=True)
class CheckpointTarget:
    """A checkpoint file, new or written by `kafka-storage format`, whose features, voters and users are kept.

    `path` may be the formatted directory. Each access checks that the first start there will read the file.
    """

    path: Path

    @property
    def name(self) -> str:
        """The file, or the directory that has it."""
        return str(self.path)

    @property
    def limitation(self) -> str:
        """None."""
        return ""

    def supported(self, state: AccessState) -> AccessState:
        """Return the state and the users of the file; a user in both has the credentials of the state."""
        own = {(record.name, record.mechanism): record for record in _read(self.path).image.scram.records()}
        return AccessState(acls=state.acls, credentials={**own, **state.credentials}, tokens=state.tokens)

    def contents(self) -> TargetContents:
        """Read the file; a missing one is empty. Its ACLs decide as in the Kafka that formatted the directory."""
        bootstrap = _read(self.path)
        ranges = bootstrap.in_first_checkpoint or bootstrap.image.features.level(METADATA_VERSION) >= RANGES_LEVEL
        return contents_of(bootstrap.image.with_acls(bootstrap.image.acls.with_options(documented=False, cidr=ranges)))

    @contextmanager
    def open(self) -> Iterator[TargetWriter]:
        """Collect the new contents; the file is written by `commit`. Raises ConfigError, LogError."""
        bootstrap = _read(self.path)
        # Records of other types would be lost, since the file is written anew.
        if len(bootstrap.image.opaque) or len(bootstrap.image.cluster):
            raise ConfigError(f"{bootstrap.path}: contains records of other types: expected a bootstrap.checkpoint")
        check_parent(bootstrap.path)
        yield CheckpointTargetWriter(bootstrap=bootstrap, state=state_of_image(bootstrap.image))


def _read(path: Path) -> BootstrapRecords:
    """Return what the first start will read. Raises as first_start_file."""
    path = first_start_file(path)
    if not path.exists():
        return BootstrapRecords(path=path, records=(), image=Image.EMPTY)
    return read_bootstrap(path)


def _features(image: Image) -> list[bytes]:
    if image.features.level(METADATA_VERSION):
        return [encode_record(record) for record in image.features.records()]
    return default_features()


@define(kw_only=True)
class CheckpointTargetWriter:
    """The future contents of the file, in memory until `commit`."""

    state: AccessState
    _bootstrap: BootstrapRecords = field(repr=False)

    def write(self, goal: AccessState) -> StateChange:
        """See TargetWriter. Raises ConfigError: the metadata.version of the file is too old for what is written."""
        _check_level(self._bootstrap, goal)
        change, self.state = difference(self.state, goal), goal
        return change

    def commit(self) -> None:
        """Write the file atomically. Raises LogError, EncodeError; ConfigError: as first_start_file."""
        everything, path = difference(AccessState(), self.state), self._bootstrap.path
        values = [*_features(self._bootstrap.image), *record_values(everything, AclIds({}).of(everything))]
        if _read(path).records != self._bootstrap.records:
            raise ConfigError(f"{path}: another program has changed it meanwhile: run the command again")
        opening = _opening(path) if self._bootstrap.in_first_checkpoint else None
        replace_durably(path, bootstrap_bytes(values, opening=opening, now_ms=current_time_ms()))
        if opening is not None:
            path.chmod(READ_ONLY)  # as formatting leaves it
        self._bootstrap = _read(path)  # a change during the switchover is committed after it

    def abort(self) -> None:
        """Do nothing: nothing was written."""


def _check_level(bootstrap: BootstrapRecords, goal: AccessState) -> None:
    level = bootstrap.image.features.level(METADATA_VERSION)
    for what, present, since in (
        ("SCRAM credentials", goal.credentials, "3.5-IV2"),
        ("delegation tokens", goal.tokens, "3.6-IV2"),
    ):
        if present and 0 < level < METADATA_VERSIONS[since]:
            raise ConfigError(
                f"{bootstrap.path}: metadata.version {level} has no {what}: expected a directory that was formatted "
                f"with --release-version {since} or later"
            )


def _opening(path: Path) -> bytes:
    """Return the first batch of a 0-0 checkpoint: without its KRaftVersion and KRaftVoters no leader is elected."""
    data = path.read_bytes()
    return data[: read_header(data).size]


def bootstrap_bytes(values: list[bytes], *, opening: bytes | None = None, now_ms: int) -> bytes:
    """Encode record values as a checkpoint in as many batches as needed (BootstrapDirectory, Formatter).

    `opening` is its batch of control records, by default the header of a bootstrap.checkpoint.
    """
    if opening is None:
        header = SnapshotHeader(last_contained_log_timestamp=0)
        opening = control_batch(header, base_offset=0, leader_epoch=0, timestamp=now_ms)
    pieces, offset = [opening], read_header(opening).end_offset
    for batch in batched(values):
        pieces.append(build_batch(batch, base_offset=offset, leader_epoch=0, timestamp=now_ms))
        offset += len(batch)
    pieces.append(control_batch(SnapshotFooter(), base_offset=offset, leader_epoch=0, timestamp=now_ms))
    return b"".join(pieces)


# A log directory as the target of a migration, written as one metadata transaction (KIP-868).


TRANSACTION = "aclog migrate"
_ABORT_REASON = "aclog migrate was stopped before the switch"
_REQUIRED_VERSION = "3.6-IV2"
"""The first metadata.version with transactions, SCRAM credentials and delegation tokens."""


@frozen(kw_only=True)
class LogTarget:
    """A log directory, new or written by aclog."""

    directory: Path
    force: bool

    @property
    def name(self) -> str:
        """The directory."""
        return str(self.directory)

    @property
    def limitation(self) -> str:
        """None."""
        return ""

    def supported(self, state: AccessState) -> AccessState:
        """Return the whole state."""
        return state

    def contents(self) -> TargetContents:
        """Read the visible state of the log; a log that does not exist yet is empty."""
        return contents_of(recover(self.directory).image if self._exists() else Image.EMPTY)

    def existing(self) -> TargetContents:
        """Read the visible state of a log that must exist. Raises LogError."""
        return contents_of(recover(self.directory).image)

    def _exists(self) -> bool:
        directory = self.directory
        return directory.is_dir() and bool(list_segments(directory) or list_checkpoints(directory))

    @contextmanager
    def open(self) -> Iterator[TargetWriter]:
        """Open the log for writing, and create it if missing; the transaction of an interrupted run is aborted."""
        if formatted := formatted_log(self.directory):
            raise ConfigError(
                f"{self.directory}: no node has started there since it was formatted: expected --bootstrap-checkpoint "
                f"{formatted.bootstrap}"
            )
        is_new = not self._exists()
        if is_new:
            check_parent(self.directory)
        with open_writer(self.directory, create=is_new, force=self.force) as writer:
            _check_metadata_version(self.directory, writer.image)
            ids = {each.acl: each.id for each in writer.image.acls if each.id is not None}
            is_empty = not writer.image.features.level(METADATA_VERSION)
            target = LogTargetWriter(
                state=state_of_image(writer.image),
                writer=writer,
                ids=AclIds(ids),
                features=default_features() if is_empty else [],
            )
            try:
                yield target
            except BaseException:  # Ctrl-C included
                target.abort()
                raise


def _check_metadata_version(directory: Path, image: Image) -> None:
    level = image.features.level(METADATA_VERSION)
    if 0 < level < METADATA_VERSIONS[_REQUIRED_VERSION]:
        raise ConfigError(
            f"{directory}: metadata.version {level}: expected {_REQUIRED_VERSION} or later, which has transactions"
        )


@define(kw_only=True)
class LogTargetWriter:
    """An open log. Everything between two commits is one metadata transaction.

    Readers see no record before its EndTransactionRecord is on disk, and all records after that.
    """

    state: AccessState
    _writer: LogWriter
    _ids: AclIds
    _features: list[bytes]
    _in_transaction: bool = field(default=False, init=False)

    def write(self, goal: AccessState) -> StateChange:
        """See TargetWriter. Raises LogError, EncodeError."""
        change = difference(self.state, goal)
        values = [*self._features, *record_values(change, self._ids.of(change))]
        if values and not self._in_transaction:
            self._writer.append([encode_record(BeginTransactionRecord(name=TRANSACTION))])
            # Only now: if the append fails, the marker may or may not be on disk. An Abort without a Begin would
            # corrupt the log, while a transaction left open is aborted by the next writer.
            self._in_transaction = True
        for batch in batched(values):
            self._writer.append(batch, atomic=False)
        self.state, self._features = goal, []
        return change

    def commit(self) -> None:
        """See TargetWriter. Raises LogError."""
        if self._in_transaction:
            # Cleared first: if the append fails, the End may be on disk, and no Abort may follow it.
            self._in_transaction = False
            self._writer.append([encode_record(EndTransactionRecord())])

    def abort(self) -> None:
        """See TargetWriter. If the log cannot be written, the transaction stays open, which is as invisible."""
        if self._in_transaction:
            self._in_transaction = False
            with suppress(LogError):
                self._writer.append([encode_record(AbortTransactionRecord(reason=_ABORT_REASON))])


# A running quorum as the target of a migration: ACLs only, by CreateAcls and DeleteAcls, visible batch by batch.


_CREATIONS_PER_REQUEST = 1000
_DELETIONS_PER_REQUEST = 100
"""Fewer, because a controller compares each filter with every ACL."""
_RESPONSE_S = 120.0
"""How long a response with all ACLs may take, as for other commands."""


@define(kw_only=True)
class QuorumTarget:
    """The controllers of a running quorum (aclog or Kafka), and the security settings of its clients.

    All connections of a migration must lead to one cluster.
    """

    controllers: tuple[HostPort, ...]
    security: ClientSecurity
    _cluster_id: str | None = field(default=None, init=False, eq=False)
    """The cluster of the first connection; None before it, or if the controllers do not name it."""

    @property
    def name(self) -> str:
        """The controllers."""
        return f"the quorum at {','.join(map(str, self.controllers))}"

    @property
    def limitation(self) -> str:
        """Why it can hold ACLs only."""
        return (
            "a running quorum takes ACLs only, in batches that become visible one by one: no request can carry the "
            "keys of a SCRAM credential or the id of a token"
        )

    def supported(self, state: AccessState) -> AccessState:
        """Return the ACLs."""
        return AccessState(acls=state.acls)

    def contents(self) -> TargetContents:
        """Read all ACLs by DescribeAcls. Raises DecodeError, LogError: as `open`."""
        with self._connected() as (_, _, state):
            image = AclsImage.from_acls(StandardAclWithId(id=None, acl=acl) for acl in state.acls)
            return TargetContents(state=state, acls=image)

    @contextmanager
    def open(self) -> Iterator[TargetWriter]:
        """Connect for the duration of the migration; the ACLs are read over the connection that is written to.

        Raises:
            DecodeError: an ACL that only a filter can be: its removal would remove others.
            LogError: another cluster than that of an earlier connection.

        """
        with self._connected() as (runner, connection, state):
            yield QuorumTargetWriter(state=state, runner=runner, connection=connection)

    @contextmanager
    def _connected(self) -> Iterator[tuple[asyncio.Runner, Connection, AccessState]]:
        """Connect, and read all ACLs."""
        with asyncio.Runner() as runner:
            connection = runner.run(connect_to_first(self.controllers, self.security, Role.CONTROLLER))
            try:
                yield runner, connection, runner.run(self._state(connection))
            finally:
                runner.run(connection.close())

    async def _state(self, connection: Connection) -> AccessState:
        await self._check_cluster(connection)
        acls = await requests.describe_acls(connection, AclBindingFilter(), _RESPONSE_S)
        try:
            requests.check_acls(acls)
        except DecodeError as error:
            raise error.at(path=str(connection.address)) from None
        return AccessState(acls=frozenset(acls))

    async def _check_cluster(self, connection: Connection) -> None:
        try:
            cluster_id = (await requests.describe_cluster(connection, requests.CONTROLLERS)).cluster_id
        except (RequestError, ConfigError):  # without ALTER, or before Kafka 3.7 (KIP-919)
            return
        if self._cluster_id not in {None, cluster_id}:
            raise LogError(
                f"{connection.address}: a controller of cluster {cluster_id}: expected one of cluster "
                f"{self._cluster_id}, as before: compare both with --compare, and run the command again"
            )
        self._cluster_id = cluster_id


@define(kw_only=True)
class QuorumTargetWriter:
    """A connection to a running quorum. DENY ACLs are created first and deleted last, to never allow too much."""

    state: AccessState
    _runner: asyncio.Runner
    _connection: Connection
    _refused: set[StandardAcl] = field(factory=set, init=False)
    """ACLs that the controller rejects, or is too old for; not sent again: the comparison lists them as missing."""

    def write(self, goal: AccessState) -> StateChange:
        """Create and delete ACLs, visible at once; report and skip one that the controller rejects, or is too old for.

        Raises:
            UnreachableError: the controller is unreachable. RequestError: it refuses the whole request.
            DecodeError: a malformed response, or one without a result for each ACL.

        """
        self._refuse_unsupported(goal.acls - self._refused)
        change = difference(self.state, AccessState(acls=goal.acls - self._refused))
        # Creations before deletions, in the order of listing_key and in its reverse: DENY is created first, deleted
        # last.
        done, total = 0, len(change.added_acls) + len(change.removed_acls)
        with progress("writing to the quorum", "ACLs") as advance:
            try:
                for acls in _pieces(change.added_acls, _CREATIONS_PER_REQUEST):
                    created = self._runner.run(requests.create_acls(self._connection, acls))
                    self._note_refusals(acls, created, "not created")
                    advance(done := done + len(acls), total)
                for acls in _pieces(reversed(change.removed_acls), _DELETIONS_PER_REQUEST):
                    filters = [AclBindingFilter.of(acl) for acl in acls]
                    deleted = self._runner.run(requests.delete_acls(self._connection, filters))
                    self._note_refusals(acls, deleted, "not deleted")
                    advance(done := done + len(acls), total)
            except (KeyboardInterrupt, MetadataError):
                what = f"{done:,} of {total:,} changes are made, perhaps a request more"
                warn(f"{what}: run the command again for the rest")
                raise
        self.state = AccessState(acls=goal.acls - self._refused)
        return change

    def _refuse_unsupported(self, acls: Iterable[StandardAcl]) -> None:
        """Refuse ACLs on USER resources before a quorum that is too old for them is sent any."""
        users = [acl for acl in acls if acl.resource_type == ResourceType.USER]
        try:
            requests.version_for(self._connection, api_keys.CREATE_ACLS, [acl.resource_type for acl in users])
        except ConfigError as error:
            for acl in users:
                self._refuse(acl, "not created", error)

    def _note_refusals(
        self, acls: Sequence[StandardAcl], results: Sequence[AclCreateResult | AclDeleteResult], what: str
    ) -> None:
        for acl, result in zip(acls, results, strict=True):
            if result.error is not None:
                self._refuse(acl, what, result.error)

    def _refuse(self, acl: StandardAcl, what: str, error: Exception) -> None:
        self._refused.add(acl)
        warn(f"{what}: {acl}: {error}")

    def commit(self) -> None:
        """Do nothing: everything is visible already."""

    def abort(self) -> None:
        """Do nothing: what was created stays, as it is what ZooKeeper holds."""


def _pieces(acls: Iterable[StandardAcl], size: int) -> Iterator[Sequence[StandardAcl]]:
    """Split ACLs into pieces of at most `size`."""
    remaining = iter(acls)
    while piece := tuple(islice(remaining, size)):
        yield piece
