"""How a controller gets from a directory to a log that it leads and an image of all of it (SharedServer)."""

from collections.abc import Callable, Sequence
from pathlib import Path

from metalog.batches import iter_batches
from metalog.codec import decode_values, encode_record
from metalog.control import KRaftVersion
from metalog.errors import CheckpointError, ConfigError
from metalog.filelog import FileLog, open_log
from metalog.filelog.names import list_checkpoints, list_segments
from metalog.filelog.quorum_state import QUORUM_STATE_FILE, QuorumState, read_quorum_state, write_quorum_state
from metalog.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
)
from nodes.config.node_config import NodeConfig
from nodes.controller.checkpointing import remove_partial_checkpoints
from snapshots.checkpoint_reader import read_checkpoint
from snapshots.features import METADATA_VERSION
from snapshots.image import Image
from snapshots.provenance import Provenance
from snapshots.publisher import Publisher
from snapshots.recovery import recover_log

LOG_DIRECTORY = "__cluster_metadata-0"
TRANSACTION_NAME = "Bootstrap records"
"""Kafka's name for the transaction in which a new log gets what `format` has put beside it."""

TRANSACTIONS_SINCE = 13
"""The level of metadata.version 3.6-IV1, the first whose log may hold transactions."""

_RECORDS_IN_BATCH = 10_000
"""No batch of Kafka's controller holds more (QuorumController.DEFAULT_MAX_RECORDS_PER_BATCH)."""


def open_controller_log(config: NodeConfig) -> FileLog:
    """The metadata log of a formatted directory, in a new epoch that this node leads; created where there is none.

    Raises:
        LockedError: somebody else writes to it, or a Kafka runs on it.
        ConfigError: it is the log of a quorum of several.
        LogError, DecodeError, CheckpointError: as metalog.filelog.open_log and read_checkpoint.

    """
    directory = config.metadata_log_dir / LOG_DIRECTORY
    state = read_quorum_state(directory) if directory.is_dir() else None
    if state is not None:
        _check_state(directory, state, config.node_id)
    elif directory.is_dir() and _formatted(directory).kraft_version:
        # The voters are in the log: the file's version 1, without them.
        write_quorum_state(directory, QuorumState(leader_id=-1, leader_epoch=0, voters=None))
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


def _check_state(directory: Path, state: QuorumState, node_id: int) -> None:
    """Nobody else may have had a vote: the log's end might not be committed, and others go on with theirs."""
    others = {state.leader_id, *(state.voters or ())} - {-1, node_id}
    if others:
        raise _several(str(directory / QUORUM_STATE_FILE), others, node_id)


def check_only_voter(log: FileLog, image: Image, node_id: int) -> None:
    """Check that this node is the only voter in the log, where the voters stand there (kraft.version 1).

    Raises:
        ConfigError: it is the log of a quorum of several.

    """
    voters = image.provenance.voters
    others = {voter.voter_id for voter in voters.voters} - {node_id} if voters is not None else None
    if others:
        raise _several(log.name, others, node_id)


def _several(where: str, others: set[int], node_id: int) -> ConfigError:
    return ConfigError(
        f"{where}: of a quorum with {', '.join(map(str, sorted(others)))} in it: expected controller {node_id} alone, "
        "a quorum of several is not supported"
    )


def _formatted(directory: Path) -> Provenance:
    """What a checkpoint that `format` wrote says of the quorum."""
    found = list_checkpoints(directory)
    if not found or list_segments(directory):
        return Provenance()
    return read_checkpoint(found[0].path).provenance


def replay(log: FileLog, publisher: Publisher) -> tuple[str, ...]:
    """Bring the publisher to the log's end; returns what an operator should know. Takes as long as it takes.

    Its applier is inside a transaction afterwards where the last leader left one open.

    Raises:
        LogError, DecodeError, CheckpointError: as snapshots.recovery.recover_log.

    """
    found = recover_log(log, list_checkpoints(log.directory))
    publisher.replace(found.image)
    _catch_up(log, publisher)
    return (*log.notes, *found.notes)


def _catch_up(log: FileLog, publisher: Publisher) -> None:
    while publisher.applier.next_offset < log.high_watermark():
        publisher.advance(log.read(publisher.applier.next_offset))


def activate(log: FileLog, publisher: Publisher, bootstrap: Path, now: Callable[[], int]) -> None:
    """Write what stands before a new leader's first request (CompleteActivationEvent).

    A transaction that the last leader left open is aborted. An empty log gets the records of `bootstrap`, the file
    that `format` wrote, in a transaction; and before them, where kraft.version is 1, the voters of the checkpoint that
    `format` wrote, so that whoever follows the log from its start knows them too. `now` gives ms since 1970.

    Raises:
        CheckpointError: `bootstrap` is not whole.
        LogError: the disk is full, or refuses.

    """
    if publisher.applier.in_transaction:
        _append(log, publisher, [AbortTransactionRecord(reason="failover")], now())
    image = publisher.latest
    if len(image.features) or len(image.acls) or len(image.scram) or len(image.tokens) or len(image.opaque):
        return
    voters = image.provenance.voters
    if image.provenance.kraft_version and voters is not None:
        version = KRaftVersion(kraft_version=image.provenance.kraft_version)
        log.append_control(version, voters, timestamp=now()).result()
        _catch_up(log, publisher)
    records = _in_transaction(_records_of(bootstrap))
    for start in range(0, len(records), _RECORDS_IN_BATCH):
        _append(log, publisher, records[start : start + _RECORDS_IN_BATCH], now())


def _in_transaction(records: list[MetadataRecord]) -> list[MetadataRecord]:
    """The records between a Begin and an End, unless their metadata.version is from before there were any."""
    levels = [r.feature_level for r in records if isinstance(r, FeatureLevelRecord) and r.name == METADATA_VERSION]
    if not records or (levels and levels[-1] < TRANSACTIONS_SINCE):
        return records
    return [BeginTransactionRecord(name=TRANSACTION_NAME), *records, EndTransactionRecord()]


def _append(log: FileLog, publisher: Publisher, records: Sequence[MetadataRecord], timestamp: int) -> None:
    log.append([encode_record(record) for record in records], timestamp=timestamp).result()
    _catch_up(log, publisher)


def _records_of(path: Path) -> list[MetadataRecord]:
    """The records of bootstrap.checkpoint; none if there is no such file."""
    if not path.exists():
        return []
    read_checkpoint(path)  # whole, or an error
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot read: {error.strerror or error}") from error
    batches = [(position, header) for position, header in iter_batches(data) if not header.is_control]
    return [record for position, header in batches for record in decode_values(data, position, header)]
