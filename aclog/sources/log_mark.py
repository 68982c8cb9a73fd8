"""Whether a log in files still is the one that was read: a directory may be deleted, and another log put there."""

from attrs import define, field, frozen

from aclog.metalog.batches import last_batch, read_header
from aclog.metalog.errors import DecodeError, LogError
from aclog.metalog.filelog import FileLogReader
from aclog.metalog.log import LogReader


class ReplacedError(LogError):
    """Another log is where the one was that was read."""


@frozen(kw_only=True)
class _Marked:
    """A batch, and where it was."""

    offset: int
    """Where it begins."""
    batch: bytes
    directory: tuple[int, int]
    """Which one it was in: where retention seems to have deleted the batch, this alone tells."""


@define(eq=False, kw_only=True)
class LogMark:
    """The last batch that was read, to be compared with what stands there now: by any thread, while one marks.

    A log that is read over the network is not looked at: its reader knows the cluster that it follows.
    """

    log: LogReader
    _marked: _Marked | None = field(default=None, init=False)
    """None before a batch is marked."""

    @property
    def is_set(self) -> bool:
        """Whether a batch is marked."""
        return self._marked is not None

    def compare(self) -> None:
        """Compare the batch that was marked.

        Raises:
            ReplacedError: another batch, or none, is at its offset; or it is below the log's first one, and the
                directory is another.
            MetadataError, OSError: the log cannot be read.

        """
        marked = self._marked
        if marked is None:
            return
        if self._is_deleted(marked):
            self._compare_directory(marked)
            return
        try:
            found = self.log.read(marked.offset, 1)
        except (DecodeError, LogError) as error:
            if self._is_deleted(marked):  # meanwhile
                self._compare_directory(marked)
                return
            raise self._replaced(marked) from error
        if found != marked.batch:
            raise self._replaced(marked)

    def set_before(self, end: int) -> None:
        """Mark the batch before an end offset, if the log has it. Raises MetadataError, OSError: it cannot be read."""
        if isinstance(self.log, FileLogReader) and end > 0 and end - 1 >= self.log.start_offset():
            self.set_in(self.log.read(end - 1, 1))

    def set_in(self, chunk: bytes) -> None:
        """Mark the last one of some whole batches that were read, at least one."""
        if isinstance(self.log, FileLogReader):
            batch = chunk[last_batch(chunk) :]
            offset = read_header(batch).base_offset
            self._marked = _Marked(offset=offset, batch=batch, directory=_identity_of(self.log))

    def _is_deleted(self, marked: _Marked) -> bool:
        """Return whether retention has deleted the batch."""
        return marked.offset < self.log.start_offset()

    def _compare_directory(self, marked: _Marked) -> None:
        if isinstance(self.log, FileLogReader) and _identity_of(self.log) != marked.directory:
            raise self._replaced(marked)

    def _replaced(self, marked: _Marked) -> ReplacedError:
        return ReplacedError(
            f"{self.log.name}: another log is here than the one that was read, or it was cut: at offset "
            f"{marked.offset} there is something else: start again to read it"
        )


def _identity_of(log: FileLogReader) -> tuple[int, int]:
    """Return what tells a log's directory from others of the file systems. Raises OSError: it is gone."""
    status = log.directory.stat()
    return status.st_dev, status.st_ino
