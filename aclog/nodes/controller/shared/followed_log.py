"""The shared log as a standby replays it, starting from local checkpoints (MetadataLoader)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

from aclog.metalog.errors import DecodeError
from aclog.metalog.filelog.file_names import CheckpointFile, list_checkpoints
from aclog.nodes.controller.shared.fenced_log import SharedReader
from aclog.nodes.observer.errors import FollowingEndedError


@frozen(kw_only=True)
class FollowedLog:
    """Implements aclog.nodes.observer.follower.FollowedLog; `on_read` gets the number of bytes read, in that thread.

    A DecodeError ends the follower: the damage is in the log itself, so reading again does not help.
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
        with _decode_error_is_final():
            data = self.reader.read(offset, max_bytes)
        self.on_read(len(data))
        return data

    def wait(self, offset: int, timeout: float) -> bool:
        """See LogReader."""
        with _decode_error_is_final():
            return self.reader.wait(offset, timeout)

    def close(self) -> None:
        """Do nothing: the reader belongs to its creator."""

    def checkpoints(self) -> tuple[CheckpointFile, ...]:
        """The non-empty local checkpoints."""
        return checkpoints_in(self.directory)


@contextmanager
def _decode_error_is_final() -> Iterator[None]:
    try:
        yield
    except DecodeError as error:
        raise FollowingEndedError(str(error)) from error


def checkpoints_in(directory: Path) -> tuple[CheckpointFile, ...]:
    """Return the checkpoints by offset, without the empty one that `format` writes at offset 0."""
    return tuple(each for each in list_checkpoints(directory) if each.end_offset)
