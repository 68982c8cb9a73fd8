"""Startup and activation of a controller: its log in a new epoch, and the first records of a leader."""

from collections.abc import Callable, Sequence, Sized
from concurrent.futures import Future
from pathlib import Path
from typing import Protocol

from attrs import field

from aclog.config.node_config import NodeConfig
from aclog.metalog.codec import encode_record
from aclog.metalog.committed_log import Appended, Log, LogReader
from aclog.metalog.control_records import ControlRecord, KRaftVersion
from aclog.metalog.errors import ConfigError, LogError
from aclog.metalog.filelog import FileLog, files, open_log
from aclog.metalog.filelog.committed_mark import read_committed
from aclog.metalog.filelog.locks import WriterLock, belongs_to_kafka
from aclog.metalog.filelog.meta_properties import read_meta_properties
from aclog.metalog.primitives import compact_string, current_time_ms
from aclog.metalog.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    OpaqueRecord,
    RecordType,
)
from aclog.metalog.values import frozen
from aclog.server.controller.snapshot_generator import remove_partial_checkpoints
from aclog.snapshots.applier import Applier
from aclog.snapshots.checkpoints import find_bootstrap, read_checkpoint, uncommitted_bootstrap
from aclog.snapshots.image import METADATA_VERSION, TRANSACTIONS_SINCE, Image, Provenance
from aclog.snapshots.publisher import Publisher, recover_log

# The records of a new leader before its first request (org.apache.kafka.controller.ActivationRecordsGenerator).


TRANSACTION_NAME = "Bootstrap records"
"""Kafka's name for the transaction that copies the bootstrap records into a new log."""

ELR_VERSION = "eligible.leader.replicas.version"
MIN_ISR = "min.insync.replicas"
_BROKER_CONFIG, _FRAME_VERSION, _NO_TAGS = 4, 1, b"\0"
"""Constants of a ConfigRecord: ConfigResource.Type.BROKER, whose empty name is all brokers; and the frame around it."""

_RECORDS_IN_BATCH = 10_000
"""The limit of Kafka's controller (QuorumController.DEFAULT_MAX_RECORDS_PER_BATCH)."""


class LedLog(Log, Protocol):
    """A log that this node leads."""

    def append_control(self, *records: ControlRecord, timestamp: int) -> Future[Appended]:
        """Append control records as one atomic control batch; see Log.append."""
        ...


def catch_up(log: LogReader, publisher: Publisher) -> None:
    """Replay and publish everything committed. Raises as LogReader.read and Applier.apply."""
    while publisher.applier.next_offset < log.high_watermark():
        publisher.advance(log.read(publisher.applier.next_offset))


def complete_activation(
    log: LedLog,
    publisher: Publisher,
    directory: Path,
    now: Callable[[], int],
    *,
    min_insync_replicas: int | None = None,
) -> None:
    """Write the activation records of a new leader (QuorumController.CompleteActivationEvent).

    A transaction that the previous leader left open is aborted. An empty log gets the records that formatting left in
    or beside `directory`, that of the log or of its checkpoints, in a transaction. With kraft.version 1 they are
    preceded by the voters of the 0-0 checkpoint, for observers that read the log from its start. `now` returns ms since
    1970. `min_insync_replicas` is the value of min.insync.replicas that goes with eligible leader replicas, as the
    default of the cluster (KIP-966; since Kafka 4.0); None: no such record.

    Raises:
        CheckpointError: The file with these records is incomplete or corrupt.
        LogError: The records cannot be written, or the log continues without them.
        NewerKafkaError: Their metadata.version is above those that this node supports.

    """
    # Must come first: records appended after an open BeginTransaction would become part of that transaction.
    if publisher.applier.in_transaction:
        _append(log, publisher, [AbortTransactionRecord(reason="failover")], now())
    image = publisher.latest
    parts: tuple[Sized, ...] = (image.features, image.acls, image.scram, image.tokens, image.cluster, image.opaque)
    if any(len(part) for part in parts):
        if problem := uncommitted_bootstrap(directory, image):
            raise LogError(f"{log.name}: {problem}")
        return
    bootstrap = find_bootstrap(directory)
    for record in () if bootstrap is None else bootstrap.records:
        if isinstance(record, FeatureLevelRecord):
            # Before it is written: a level that this node does not support would end the node when it is read back.
            publisher.applier.newer.check_feature(record, publisher.applier.next_offset)
    voters = image.provenance.voters
    if image.provenance.kraft_version and voters is not None:
        version = KRaftVersion(kraft_version=image.provenance.kraft_version)
        log.append_control(version, voters, timestamp=now()).result()
        catch_up(log, publisher)
    records = (
        []
        if bootstrap is None
        else _in_transaction((*bootstrap.records, *_of_elr(bootstrap.image, min_insync_replicas)))
    )
    for start in range(0, len(records), _RECORDS_IN_BATCH):
        _append(log, publisher, records[start : start + _RECORDS_IN_BATCH], now())


def _of_elr(image: Image, min_insync_replicas: int | None) -> tuple[OpaqueRecord, ...]:
    """Return the config that a leader adds to the bootstrap records that enable eligible leader replicas."""
    if min_insync_replicas is None or not image.features.level(ELR_VERSION):
        return ()
    fields = bytes([_BROKER_CONFIG]) + b"".join(map(compact_string, ("", MIN_ISR, str(min_insync_replicas))))
    value = bytes([_FRAME_VERSION, RecordType.CONFIG_RECORD, 0]) + fields + _NO_TAGS
    return (OpaqueRecord(api_key=RecordType.CONFIG_RECORD, version=0, value=value),)


def _in_transaction(records: Sequence[MetadataRecord]) -> Sequence[MetadataRecord]:
    """Wrap the records in a transaction if their metadata.version supports transactions."""
    levels = [r.feature_level for r in records if isinstance(r, FeatureLevelRecord) and r.name == METADATA_VERSION]
    if not records or (levels and levels[-1] < TRANSACTIONS_SINCE):
        return records
    return [BeginTransactionRecord(name=TRANSACTION_NAME), *records, EndTransactionRecord()]


def _append(log: LedLog, publisher: Publisher, records: Sequence[MetadataRecord], timestamp: int) -> None:
    log.append([encode_record(record) for record in records], timestamp=timestamp).result()
    catch_up(log, publisher)


# The log of a formatted directory in which no node has started yet: how a command begins it instead of a node.


@frozen(kw_only=True)
class FormattedLog:
    """`directory` will hold the log of a node; `image` has its bootstrap records: features and users."""

    directory: Path
    node_id: int
    bootstrap: Path
    """The file from which the log is begun."""
    image: Image = field(repr=False)

    def check_writable(self, *, force: bool) -> None:
        """Check, before anything is written, that the log may be begun.

        Raises:
            LogError: `force` is not given.
            ConfigError: the quorum has other voters, which would begin it without this node.
            CheckpointError: the checkpoint with the voters is damaged.

        """
        if not force:
            raise belongs_to_kafka(self.directory, self.directory.parent)
        voters = formatted_provenance(self.directory).voters
        others = {voter.voter_id for voter in voters.voters} - {self.node_id} if voters is not None else None
        if others:
            raise several_voters(str(self.directory), others, self.node_id)

    def prepare(self, *, force: bool) -> None:
        """Write the files needed before the log is created. Raises as check_writable; LogError if the disk fails."""
        self.check_writable(force=force)
        if not formatted_provenance(self.directory).kraft_version:
            return
        if files.read_quorum_state(self.directory) is None:
            # With kraft.version 1 the voters are in the log, so quorum-state is written in version 1, without voters.
            files.write_quorum_state(self.directory, files.QuorumState(leader_id=-1, leader_epoch=0, voters=None))


def formatted_log(directory: Path) -> FormattedLog | None:
    """Return the log that the node of a formatted directory will begin; None if there is one, or no such node.

    Raises:
        LogError: a log was committed there and is gone; or a file cannot be read.
        ConfigError, CheckpointError: meta.properties or the file that formatting left is damaged.

    """
    if directory.name != files.METADATA_DIRECTORY or is_begun(directory):
        return None
    meta = read_meta_properties(directory.absolute().parent)
    bootstrap = None if meta is None else find_bootstrap(directory)
    if meta is None or bootstrap is None:
        return None
    if committed := read_committed(directory):
        committed.check_exists()
    return FormattedLog(directory=directory, node_id=meta.node_id, bootstrap=bootstrap.path, image=bootstrap.image)


def is_begun(directory: Path) -> bool:
    """Return whether a log was begun in a directory: there is more than the checkpoint that formatting leaves."""
    if not directory.is_dir():
        return False
    later = [one for one in files.list_checkpoints(directory) if one.end_offset]
    return bool(files.list_segments(directory) or later)


def begun_log(log: FileLog, applier: Applier) -> Image:
    """Write the first records of a new leader to an empty log, and return its state; another log is not changed.

    `applier` has replayed the log, except for the end of a transaction that was left open. Raises as
    complete_activation.
    """
    publisher = Publisher(applier=applier)
    catch_up(log, publisher)
    complete_activation(log, publisher, log.directory, current_time_ms)
    return publisher.latest


def formatted_provenance(directory: Path) -> Provenance:
    """Return the provenance in the checkpoint that formatting writes, before there is a log. Raises CheckpointError."""
    checkpoints = files.list_checkpoints(directory) if directory.is_dir() else ()
    if not checkpoints or files.list_segments(directory):
        return Provenance()
    return read_checkpoint(checkpoints[0].path).provenance


def several_voters(where: str, others: set[int], node_id: int) -> ConfigError:
    """Return the error about a quorum of several voters."""
    return ConfigError(
        f"{where}: the quorum includes {', '.join(map(str, sorted(others)))}: expected controller {node_id} alone; "
        "a log in files has a single voter"
    )


# Startup of a controller: open its log in a new epoch and replay it (kafka.server.SharedServer).


LOG_DIRECTORY = "__cluster_metadata-0"


def open_controller_log(config: NodeConfig) -> FileLog:
    """Open the metadata log of a formatted directory in a new leader epoch, or create it.

    Raises:
        LockedError: Another writer or a Kafka process uses the directory.
        ConfigError: The log belongs to a quorum of several voters.
        LogError, DecodeError, CheckpointError: As aclog.metalog.filelog.open_log and read_checkpoint; or there is
            neither a log nor the bootstrap files of `aclog format`.

    """
    directory = config.metadata_log_dir / LOG_DIRECTORY
    if read_committed(directory) is None:  # otherwise the mark is checked
        _check_begun(directory, config)
    state = files.read_quorum_state(directory) if directory.is_dir() else None
    if state is not None:
        _check_state(directory, state, config.node_id)
    elif directory.is_dir() and formatted_provenance(directory).kraft_version:
        # With kraft.version 1 the voters are in the log, so quorum-state is written in version 1, without voters.
        files.write_quorum_state(directory, files.QuorumState(leader_id=-1, leader_epoch=0, voters=None))
    # A new epoch at every start, as an elected leader would have: observers notice the restart and refetch their
    # epoch, and records of the previous process cannot be confused with new ones at the same offset.
    log = open_log(
        directory,
        create=True,
        force=True,
        new_epoch=True,
        node_id=config.node_id,
        segment_bytes=config.checkpoints.segment_bytes,
    )
    remove_partial_checkpoints(directory)
    return log


def _check_begun(directory: Path, config: NodeConfig) -> None:
    """Refuse a directory without a log that is not as it was formatted: its log was removed.

    Voters that are not in the configuration are in the log, and, before there is one, in the checkpoint of the format.
    """
    if config.voters or is_begun(directory):
        return
    if directory.is_dir() and files.list_checkpoints(directory):
        provenance = formatted_provenance(directory)
        # With --no-initial-controllers, Kafka from 4.4 on writes one with kraft.version 1 and no voters.
        if provenance.voters is not None or not provenance.kraft_version:
            return
    raise LogError(
        f"{directory}: neither a log nor the checkpoint with the voters that formatting writes. Restore the log; to "
        "start over without it, remove the whole directory and format it again (`aclog format CONFIG --standalone`)"
    )


def _check_state(directory: Path, state: files.QuorumState, node_id: int) -> None:
    """Refuse a quorum with other voters: the end of this log may be uncommitted, and they may continue without it."""
    others = {state.leader_id, *(state.voters or ())} - {-1, node_id}
    if others:
        raise several_voters(str(directory / files.QUORUM_STATE_FILE), others, node_id)


def check_only_voter(log: FileLog, image: Image, node_id: int) -> None:
    """Check that this node is the only voter if the log contains the voters (kraft.version 1).

    Raises:
        ConfigError: The log belongs to a quorum of several voters.

    """
    voters = image.provenance.voters
    others = {voter.voter_id for voter in voters.voters} - {node_id} if voters is not None else None
    if others:
        raise several_voters(log.name, others, node_id)


def replay(log: FileLog, publisher: Publisher) -> tuple[str, ...]:
    """Replay the log to its end into the publisher; return findings for the operator. Blocks.

    If the previous leader left a transaction open, the applier is inside it afterwards.

    Raises:
        LogError, DecodeError, CheckpointError: As aclog.snapshots.publisher.recover_log.

    """
    recovered = recover_log(log, files.list_checkpoints(log.directory), newer=publisher.applier.newer.copy())
    publisher.replace(recovered.image)
    catch_up(log, publisher)
    return (*log.notes, *recovered.notes)


def lock_checkpoints(directory: Path) -> WriterLock:
    """Lock the checkpoint directory of a controller whose log is on a topic.

    Raises:
        LockedError: Another writer or a Kafka process uses the directory.
        ConfigError: The directory contains a log.
        LogError: The directory cannot be created or locked.

    """
    try:
        files.make_directories(directory)
    except OSError as error:
        raise files.log_error(error, directory, "cannot create") from error
    lock = WriterLock.acquire(directory, force=True)
    if files.list_segments(directory):
        lock.close()
        raise ConfigError(
            f"{directory}: contains log segments, but metadata.log.kind is topic: copy them to the topic with "
            "`aclog log copy`, then move them away"
        )
    remove_partial_checkpoints(directory)
    return lock
