"""A shared log as a standby replays it: from the checkpoints that lie beside the controller (MetadataLoader)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

from aclog.metalog.errors import DecodeError, LogError
from aclog.metalog.filelog.file_names import CheckpointFile, list_checkpoints
from aclog.nodes.controller.shared.fenced_log import SharedReader
from aclog.nodes.observer.errors import FollowingEndedError


@frozen(kw_only=True)
class FollowedLog:
    """Implements aclog.nodes.observer.follower.FollowedLog; `on_read` is told how many bytes were read, in that thread.

    What cannot be decoded ends a follower: it is so in the log itself, and comes no better when it is read again.
    """

    reader: SharedReader
    directory: Path
    on_read: Callable[[int], object]

    @property
    def name(self) -> str:
        """See LogReader."""
        return self.reader.name

    def start_offset(self) -> int:
        """See LogReader."""
        return self.reader.start_offset()

    def high_watermark(self) -> int:
        """See LogReader."""
        return self.reader.high_watermark()

    def read(self, offset: int, max_bytes: int = 1 << 20) -> bytes:
        """See LogReader."""
        with _for_good():
            data = self.reader.read(offset, max_bytes)
        self.on_read(len(data))
        return data

    def wait(self, offset: int, timeout: float) -> bool:
        """See LogReader."""
        with _for_good():
            return self.reader.wait(offset, timeout)

    def close(self) -> None:
        """The reader belongs to whoever made it."""

    def checkpoints(self) -> tuple[CheckpointFile, ...]:
        """Those beside the controller that hold anything."""
        return checkpoints_in(self.directory)


@contextmanager
def _for_good() -> Iterator[None]:
    try:
        yield
    except DecodeError as error:
        raise FollowingEndedError(str(error)) from error


def checkpoints_in(directory: Path) -> tuple[CheckpointFile, ...]:
    """The checkpoints that hold more than `format` has put there, by offset."""
    return tuple(each for each in list_checkpoints(directory) if each.end_offset)


def check_checkpoints(directory: Path, reader: SharedReader) -> None:
    """Stop where a checkpoint knows of more than the log has: it is of another log, or the log has lost its end.

    Raises:
        LogError: so it is.

    """
    mark = reader.high_watermark()
    for each in checkpoints_in(directory)[-1:]:
        if each.end_offset > mark:
            raise LogError(
                f"{each.path}: of offset {each.end_offset}, but {reader.name} ends at {mark}: expected a checkpoint of "
                "this log; where it is another's, move it away"
            )
