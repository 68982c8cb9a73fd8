"""How a controller gets from a directory to a log that it leads and an image of all of it (SharedServer)."""

from pathlib import Path

from aclog.metalog.errors import ConfigError
from aclog.metalog.filelog import FileLog, open_log
from aclog.metalog.filelog.file_names import list_checkpoints, list_segments
from aclog.metalog.filelog.filesystem import DIRECTORY_MODE, log_error
from aclog.metalog.filelog.locks import WriterLock
from aclog.metalog.filelog.quorum_state import QUORUM_STATE_FILE, QuorumState, read_quorum_state, write_quorum_state
from aclog.nodes.config.node_config import NodeConfig
from aclog.nodes.controller.write_path.activation import catch_up
from aclog.nodes.controller.write_path.snapshot_generator import remove_partial_checkpoints
from aclog.snapshots.checkpoint_reader import read_checkpoint
from aclog.snapshots.image import Image
from aclog.snapshots.provenance import Provenance
from aclog.snapshots.publisher import Publisher
from aclog.snapshots.recovery import recover_log

LOG_DIRECTORY = "__cluster_metadata-0"


def open_controller_log(config: NodeConfig) -> FileLog:
    """The metadata log of a formatted directory, in a new epoch that this node leads; created where there is none.

    Raises:
        LockedError: somebody else writes to it, or a Kafka runs on it.
        ConfigError: it is the log of a quorum of several.
        LogError, DecodeError, CheckpointError: as aclog.metalog.filelog.open_log and read_checkpoint.

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
        LogError, DecodeError, CheckpointError: as aclog.snapshots.recovery.recover_log.

    """
    found = recover_log(log, list_checkpoints(log.directory))
    publisher.replace(found.image)
    catch_up(log, publisher)
    return (*log.notes, *found.notes)


def lock_checkpoints(directory: Path) -> WriterLock:
    """The directory of a controller whose log lives elsewhere, locked: its checkpoints are there, and no log.

    Raises:
        LockedError: somebody else writes there, or a Kafka runs on it.
        ConfigError: there is a log in it.
        LogError: the disk refuses.

    """
    try:
        directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    except OSError as error:
        raise log_error(error, directory, "cannot create") from error
    lock = WriterLock.acquire(directory, force=True)
    if list_segments(directory):
        lock.close()
        raise ConfigError(
            f"{directory}: a log in files, but metadata.log.kind is topic: expected none; `aclog log copy` takes it to "
            "the topic, then move it away"
        )
    remove_partial_checkpoints(directory)
    return lock
