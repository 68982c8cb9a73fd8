"""The log of a formatted directory in which no node has started yet: how a command begins it in a node's place."""

from pathlib import Path

from attrs import field, frozen

from aclog.metalog.clock import current_time_ms
from aclog.metalog.errors import ConfigError
from aclog.metalog.filelog import FileLog
from aclog.metalog.filelog.committed_mark import read_committed
from aclog.metalog.filelog.file_names import METADATA_DIRECTORY, list_checkpoints, list_segments
from aclog.metalog.filelog.locks import belongs_to_kafka
from aclog.metalog.filelog.quorum_state import QuorumState, read_quorum_state, write_quorum_state
from aclog.nodes.controller.write_path.activation import catch_up, complete_activation
from aclog.nodes.storage.meta_properties import read_meta_properties
from aclog.snapshots.applier import Applier
from aclog.snapshots.bootstrap_records import find_bootstrap
from aclog.snapshots.checkpoint_reader import read_checkpoint
from aclog.snapshots.image import Image
from aclog.snapshots.provenance import Provenance
from aclog.snapshots.publisher import Publisher


@frozen(kw_only=True)
class FormattedLog:
    """`directory` will hold the log of a node; `image` is what formatting left for it: features and users."""

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
        """Write what must be there before the log is created. Raises as check_writable; LogError if the disk fails."""
        self.check_writable(force=force)
        if not formatted_provenance(self.directory).kraft_version:
            return
        if read_quorum_state(self.directory) is None:
            # With kraft.version 1 the voters are in the log, so quorum-state is written in version 1, without voters.
            write_quorum_state(self.directory, QuorumState(leader_id=-1, leader_epoch=0, voters=None))


def formatted_log(directory: Path) -> FormattedLog | None:
    """Return the log that the node of a formatted directory will begin; None if there is one, or no such node.

    Raises:
        LogError: a log was committed there and is gone; or a file cannot be read.
        ConfigError, CheckpointError: meta.properties or the file that formatting left is damaged.

    """
    if directory.name != METADATA_DIRECTORY or is_begun(directory):
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
    later = [one for one in list_checkpoints(directory) if one.end_offset]
    return bool(list_segments(directory) or later)


def begun_log(log: FileLog, applier: Applier) -> Image:
    """Write to an empty log what a new leader writes first, and return its state; another log is left as it is.

    `applier` has replayed the log, but for the end of a transaction that was left open. Raises as complete_activation.
    """
    publisher = Publisher(applier=applier)
    catch_up(log, publisher)
    complete_activation(log, publisher, log.directory, current_time_ms)
    return publisher.latest


def formatted_provenance(directory: Path) -> Provenance:
    """Return the provenance in the checkpoint that formatting writes, before there is a log. Raises CheckpointError."""
    found = list_checkpoints(directory) if directory.is_dir() else ()
    if not found or list_segments(directory):
        return Provenance()
    return read_checkpoint(found[0].path).provenance


def several_voters(where: str, others: set[int], node_id: int) -> ConfigError:
    """Return the error about a quorum of several voters."""
    return ConfigError(
        f"{where}: the quorum includes {', '.join(map(str, sorted(others)))}: expected controller {node_id} alone; "
        "a log in files has a single voter"
    )
