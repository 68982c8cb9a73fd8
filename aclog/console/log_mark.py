"""Whether a log in files still is the one that was read: a directory may be deleted, and another log put there."""

from attrs import define, field

from aclog.metalog.errors import DecodeError, LogError
from aclog.metalog.filelog import FileLogReader
from aclog.metalog.log import LogReader


class ReplacedError(LogError):
    """Another log is where the one was that was read."""


@define(eq=False, kw_only=True)
class LogMark:
    """A batch that was read, to be compared with what stands there now."""

    log: LogReader
    _offset: int = field(default=-1, init=False)
    _batch: bytes = field(default=b"", init=False)

    @property
    def is_set(self) -> bool:
        """Whether a batch is marked."""
        return self._offset >= 0

    def check(self, end: int) -> None:
        """Compare the batch that was marked, and mark the last one before an end offset.

        A log that is read over the network is not looked at: its reader knows the cluster that it follows.

        Raises:
            ReplacedError: another batch, or none, is at the offset of the marked one.
            MetadataError, OSError: the log cannot be read.

        """
        if not isinstance(self.log, FileLogReader):
            return
        if self._offset >= self.log.start_offset():  # else retention has deleted it
            self._compare()
        if end > 0 and end - 1 >= self.log.start_offset():
            self._offset, self._batch = end - 1, self.log.read(end - 1, 1)

    def _compare(self) -> None:
        try:
            found = self.log.read(self._offset, 1)
        except DecodeError as error:
            raise self._replaced() from error
        if found != self._batch:
            raise self._replaced()

    def _replaced(self) -> ReplacedError:
        return ReplacedError(
            f"{self.log.name}: another log is here than the one that was read, or it was cut: at offset {self._offset} "
            "there is something else: start again to read it"
        )
