"""The file `aclog.committed` beside `__cluster_metadata-0`: that a log exists, of which cluster, how far committed.

The log's own files cannot tell that the log is gone, or that an older copy of it was restored. A node makes the mark
when it opens its log, before its first commit is acknowledged, and keeps it afterwards; whoever opens the log for
writing refuses one that does not contain what the mark says. It is in Kafka's log directory, where Kafka ignores it.

Properties as text: `version` 1, `cluster.id`, `end.offset`, `leader.epoch` (that of the record before the end),
`batch.crc` (that of the batch before the end, if known), and at the end `crc32c`, eight hexadecimal digits, the CRC-32C
of all bytes before that line.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from attrs import evolve, frozen

from aclog.metalog.errors import DecodeError, LogError
from aclog.metalog.filelog.epochs import epoch_at
from aclog.metalog.filelog.file_names import METADATA_DIRECTORY, list_segments
from aclog.metalog.filelog.filesystem import read_small, replace_durably
from aclog.metalog.filelog.text_checksum import with_checksum, without_checksum
from aclog.metalog.log import EpochStart
from aclog.metalog.properties_text import format_properties, parse_properties

COMMITTED_FILE = "aclog.committed"
_COMMENT = f"How far the log in {METADATA_DIRECTORY} was committed: a node refuses one that ends before."
_VERSION = "1"


@frozen(kw_only=True)
class CommittedMark:
    """The mark: everything below `end_offset` was committed, and the record before it has this epoch.

    `path` is the file, `directory` the log's directory. `batch_crc` is that of the batch before the end: logs of two
    clusters may have the same epochs. None if it is not known.
    """

    path: Path
    directory: Path
    cluster_id: str
    end_offset: int
    epoch: int
    batch_crc: int | None = None

    @classmethod
    def beside(
        cls, directory: Path, *, cluster_id: str, end_offset: int, epoch: int, batch_crc: int | None = None
    ) -> Self:
        """Return a mark for the log in a directory; nothing is written."""
        return cls(
            path=committed_path(directory),
            directory=directory,
            cluster_id=cluster_id,
            end_offset=end_offset,
            epoch=epoch,
            batch_crc=batch_crc,
        )

    def moved(self, end_offset: int, epoch: int, batch_crc: int | None = None) -> "CommittedMark":
        """Return the mark of the same log with another end."""
        return evolve(self, end_offset=end_offset, epoch=epoch, batch_crc=batch_crc)

    def write(self) -> None:
        """Replace the file durably.

        Raises:
            LogError: the disk is full or fails.

        """
        replace_durably(self.path, encode_committed(self))

    def check_exists(self) -> None:
        """Check that there is a log.

        Raises:
            LogError: there is none; says where it is expected, and how to start over.

        """
        if not self.directory.is_dir() or not list_segments(self.directory):
            raise self._refusal(
                f"no log, but {self.path} says that one was committed up to offset {self.end_offset}",
                "start over without it, remove the whole directory and format it again",
            )

    def check_end(self, end_offset: int, epochs: Sequence[EpochStart]) -> None:
        """Check that a log with this end and these epochs contains what was committed.

        Raises:
            LogError: it is shorter, or another log.

        """
        if end_offset < self.end_offset:
            raise self._refusal(
                f"the log ends at offset {end_offset}, but {self.path} says that it was committed up to "
                f"{self.end_offset}: records are missing, as in an older copy",
                f"accept this log as it is, remove {self.path}",
            )
        found = epoch_at(epochs, self.end_offset - 1)
        # None: a Kafka node's retention has removed that part of the log since.
        if found not in {None, self.epoch}:
            raise self._refusal(
                f"the record of offset {self.end_offset - 1} is of leader epoch {found}, but {self.path} says "
                f"that it was of {self.epoch}: another log",
                f"accept this log as it is, remove {self.path}",
            )

    def check_batch(self, crc: int | None) -> None:
        """Check that a log has the batch that was committed last; `crc` is None if none ends where that one did.

        Raises:
            LogError: it is another log.

        """
        if crc != self.batch_crc:
            raise self._refusal(
                f"the batch before offset {self.end_offset} is not the one that was committed, as {self.path} says: "
                "another log",
                f"accept this log as it is, remove {self.path}",
            )

    def notes(self, end_offset: int) -> tuple[str, ...]:
        """Return what a reader should be told of a log with this end: nothing if it contains what was committed."""
        if end_offset >= self.end_offset:
            return ()
        found = f"{self.directory}: ends at offset {end_offset}, but {self.path} says that the log was committed up to"
        return (f"{found} {self.end_offset}: this state is older than the node's, and no node starts on it",)

    def check_cluster(self, cluster_id: str) -> None:
        """Check that the log is this cluster's.

        Raises:
            LogError: it is another's.

        """
        if cluster_id != self.cluster_id:
            raise LogError(
                f"{self.path}: of cluster {self.cluster_id}, but meta.properties beside it is of {cluster_id}: "
                "expected files of one node"
            )

    def _refusal(self, what: str, otherwise: str) -> LogError:
        where = f"{self.directory}: {what}. Restore the newest log of cluster {self.cluster_id}, or mount its volume"
        return LogError(f"{where}; to {otherwise}")


def committed_path(directory: Path) -> Path:
    """Return the path of the mark for the log in a directory."""
    return directory.absolute().parent / COMMITTED_FILE


def read_committed(directory: Path) -> CommittedMark | None:
    """Return the mark of the log in a directory; None if there is none, or if the directory is not a node's.

    Raises:
        DecodeError: the file is damaged.
        LogError: it cannot be read.

    """
    # A copy of a log may lie beside the original under another name.
    if directory.absolute().name != METADATA_DIRECTORY:
        return None
    path = committed_path(directory)
    data = read_small(path)
    if data is None:
        return None
    try:
        return decode_committed(data, directory)
    except DecodeError as error:
        raise error.at(path=str(path)) from error


def encode_committed(mark: CommittedMark) -> bytes:
    """Return the file's content."""
    values = {
        "version": _VERSION,
        "cluster.id": mark.cluster_id,
        "end.offset": str(mark.end_offset),
        "leader.epoch": str(mark.epoch),
    }
    if mark.batch_crc is not None:
        values["batch.crc"] = f"{mark.batch_crc:08x}"
    text = format_properties(values, comments=_COMMENT)
    return with_checksum(text)


def decode_committed(data: bytes, directory: Path) -> CommittedMark:
    """Parse the file's content.

    Raises:
        DecodeError: damaged, or another version.

    """
    text = without_checksum(data)
    if text is None:
        raise DecodeError(
            "damaged: the checksum does not match. Restore it; if it is removed, the log is accepted as it is"
        )
    values = parse_properties(text)
    if values.get("version") != _VERSION:
        raise DecodeError(f"version {values.get('version')}: expected {_VERSION}")
    return CommittedMark.beside(
        directory,
        cluster_id=values["cluster.id"],
        end_offset=int(values["end.offset"]),
        epoch=int(values["leader.epoch"]),
        batch_crc=int(values["batch.crc"], 16) if "batch.crc" in values else None,
    )
