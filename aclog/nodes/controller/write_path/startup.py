"""Startup of a controller: open its log in a new epoch and replay it (kafka.server.SharedServer)."""

from pathlib import Path

from aclog.metalog.errors import ConfigError, LogError
from aclog.metalog.filelog import FileLog, open_log
from aclog.metalog.filelog.committed_mark import read_committed
from aclog.metalog.filelog.file_names import list_checkpoints, list_segments
from aclog.metalog.filelog.filesystem import DIRECTORY_MODE, log_error
from aclog.metalog.filelog.locks import WriterLock
from aclog.metalog.filelog.quorum_state import QUORUM_STATE_FILE, QuorumState, read_quorum_state, write_quorum_state
from aclog.nodes.config.node_config import NodeConfig
from aclog.nodes.controller.write_path.activation import catch_up
from aclog.nodes.controller.write_path.formatted_log import formatted_provenance, is_begun, several_voters
from aclog.nodes.controller.write_path.snapshot_generator import remove_partial_checkpoints
from aclog.snapshots.image import Image
from aclog.snapshots.publisher import Publisher
from aclog.snapshots.recovery import recover_log

LOG_DIRECTORY = "__cluster_metadata-0"


def open_controller_log(config: NodeConfig) -> FileLog:
    """Open the metadata log of a formatted directory in a new leader epoch, or create it.

    Raises:
        LockedError: Another writer or a Kafka process uses the directory.
        ConfigError: The log belongs to a quorum of several voters.
        LogError, DecodeError, CheckpointError: As aclog.metalog.filelog.open_log and read_checkpoint; or there is
            neither a log nor what `aclog format` leaves for one.

    """
    directory = config.metadata_log_dir / LOG_DIRECTORY
    if read_committed(directory) is None:  # else the mark says more
        _check_begun(directory, config)
    state = read_quorum_state(directory) if directory.is_dir() else None
    if state is not None:
        _check_state(directory, state, config.node_id)
    elif directory.is_dir() and formatted_provenance(directory).kraft_version:
        # With kraft.version 1 the voters are in the log, so quorum-state is written in version 1, without voters.
        write_quorum_state(directory, QuorumState(leader_id=-1, leader_epoch=0, voters=None))
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
    if directory.is_dir() and list_checkpoints(directory):
        provenance = formatted_provenance(directory)
        # With --no-initial-controllers, Kafka from 4.4 on writes one with kraft.version 1 and no voters.
        if provenance.voters is not None or not provenance.kraft_version:
            return
    raise LogError(
        f"{directory}: neither a log nor the checkpoint with the voters that formatting writes. Restore the log; to "
        "start over without it, remove the whole directory and format it again (`aclog format CONFIG --standalone`)"
    )


def _check_state(directory: Path, state: QuorumState, node_id: int) -> None:
    """Refuse a quorum with other voters: the end of this log may be uncommitted, and they may continue without it."""
    others = {state.leader_id, *(state.voters or ())} - {-1, node_id}
    if others:
        raise several_voters(str(directory / QUORUM_STATE_FILE), others, node_id)


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
        LogError, DecodeError, CheckpointError: As aclog.snapshots.recovery.recover_log.

    """
    found = recover_log(log, list_checkpoints(log.directory), newer=publisher.applier.newer.copy())
    publisher.replace(found.image)
    catch_up(log, publisher)
    return (*log.notes, *found.notes)


def lock_checkpoints(directory: Path) -> WriterLock:
    """Lock the checkpoint directory of a controller whose log is on a topic.

    Raises:
        LockedError: Another writer or a Kafka process uses the directory.
        ConfigError: The directory contains a log.
        LogError: The directory cannot be created or locked.

    """
    try:
        directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    except OSError as error:
        raise log_error(error, directory, "cannot create") from error
    lock = WriterLock.acquire(directory, force=True)
    if list_segments(directory):
        lock.close()
        raise ConfigError(
            f"{directory}: contains log segments, but metadata.log.kind is topic: copy them to the topic with "
            "`aclog log copy`, then move them away"
        )
    remove_partial_checkpoints(directory)
    return lock
