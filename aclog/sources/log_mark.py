"""Whether a log in files still is the one that was read: a directory may be deleted, and another log put there."""

from attrs import define, field

from aclog.metalog.batches import last_batch, read_header
from aclog.metalog.errors import DecodeError, LogError
from aclog.metalog.filelog import FileLogReader
from aclog.metalog.log import LogReader


class ReplacedError(LogError):
    """Another log is where the one was that was read."""


@define(eq=False, kw_only=True)
class LogMark:
    """The last batch that was read, to be compared with what stands there now.

    A log that is read over the network is not looked at: its reader knows the cluster that it follows.
    """

    log: LogReader
    _offset: int = field(default=-1, init=False)
    """Where the batch begins; -1 before one is marked."""
    _batch: bytes = field(default=b"", init=False)
    _directory: tuple[int, int] | None = field(default=None, init=False)
    """Which directory it was in: where retention seems to have deleted the batch, this alone tells."""

    @property
    def is_set(self) -> bool:
        """Whether a batch is marked."""
        return self._offset >= 0

    def compare(self) -> None:
        """Compare the batch that was marked.

        Raises:
            ReplacedError: another batch, or none, is at its offset; or it is below the log's first one, and the
                directory is another.
            MetadataError, OSError: the log cannot be read.

        """
        if not self.is_set:
            return
        if self._is_deleted():
            self._compare_directory()
            return
        try:
            found = self.log.read(self._offset, 1)
        except (DecodeError, LogError) as error:
            if self._is_deleted():  # meanwhile
                self._compare_directory()
                return
            raise self._replaced() from error
        if found != self._batch:
            raise self._replaced()

    def set_before(self, end: int) -> None:
        """Mark the batch before an end offset, if the log has it. Raises MetadataError, OSError: it cannot be read."""
        if isinstance(self.log, FileLogReader) and end > 0 and end - 1 >= self.log.start_offset():
            self.set_in(self.log.read(end - 1, 1))

    def set_in(self, chunk: bytes) -> None:
        """Mark the last one of some whole batches that were read, at least one."""
        if isinstance(self.log, FileLogReader):
            self._batch = chunk[last_batch(chunk) :]
            self._offset = read_header(self._batch).base_offset
            self._directory = _identity_of(self.log)

    def _is_deleted(self) -> bool:
        """Return whether retention has deleted the batch."""
        return self._offset < self.log.start_offset()

    def _compare_directory(self) -> None:
        if isinstance(self.log, FileLogReader) and _identity_of(self.log) != self._directory:
            raise self._replaced()

    def _replaced(self) -> ReplacedError:
        return ReplacedError(
            f"{self.log.name}: another log is here than the one that was read, or it was cut: at offset {self._offset} "
            "there is something else: start again to read it"
        )


def _identity_of(log: FileLogReader) -> tuple[int, int]:
    """Return what tells a log's directory from others of the file systems. Raises OSError: it is gone."""
    status = log.directory.stat()
    return status.st_dev, status.st_ino
