"""The records of a new leader before its first request (org.apache.kafka.controller.ActivationRecordsGenerator)."""

from collections.abc import Callable, Sequence, Sized
from concurrent.futures import Future
from pathlib import Path
from typing import Protocol

from aclog.metalog.codec import encode_record
from aclog.metalog.control_records import ControlRecord, KRaftVersion
from aclog.metalog.errors import LogError
from aclog.metalog.log import Appended, Log, LogReader
from aclog.metalog.primitives import compact_string
from aclog.metalog.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    OpaqueRecord,
    RecordType,
)
from aclog.snapshots.bootstrap_records import find_bootstrap, uncommitted_bootstrap
from aclog.snapshots.features import METADATA_VERSION, TRANSACTIONS_SINCE
from aclog.snapshots.image import Image
from aclog.snapshots.publisher import Publisher

TRANSACTION_NAME = "Bootstrap records"
"""Kafka's name for the transaction that copies what formatting left into a new log."""

ELR_VERSION = "eligible.leader.replicas.version"
MIN_ISR = "min.insync.replicas"
_BROKER_CONFIG, _FRAME_VERSION, _NO_TAGS = 4, 1, b"\0"
"""Of a ConfigRecord: ConfigResource.Type.BROKER, whose empty name is all brokers; and the frame around it."""

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
    default of the cluster (KIP-966); None: no such record.

    Raises:
        CheckpointError: The file with these records is incomplete or corrupt.
        LogError: The records cannot be written, or the log goes on without them.
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
    found = find_bootstrap(directory)
    for record in () if found is None else found.records:
        if isinstance(record, FeatureLevelRecord):
            # Before it is written: a level that this node does not support would end the node when it is read back.
            publisher.applier.newer.check_feature(record, publisher.applier.next_offset)
    voters = image.provenance.voters
    if image.provenance.kraft_version and voters is not None:
        version = KRaftVersion(kraft_version=image.provenance.kraft_version)
        log.append_control(version, voters, timestamp=now()).result()
        catch_up(log, publisher)
    records = [] if found is None else _in_transaction((*found.records, *_of_elr(found.image, min_insync_replicas)))
    for start in range(0, len(records), _RECORDS_IN_BATCH):
        _append(log, publisher, records[start : start + _RECORDS_IN_BATCH], now())


def _of_elr(image: Image, min_insync_replicas: int | None) -> tuple[OpaqueRecord, ...]:
    """Return the config that a leader adds to what formatting left, where it has enabled eligible leader replicas."""
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
