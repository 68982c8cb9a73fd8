"""The Log protocol: what every place where a metadata log can live offers to those above it.

A log is a sequence of record batches with dense offsets. Readers get raw bytes of whole, committed batches and
decode them themselves (metalog.batches), as a follower of a KRaft quorum does: so a file, a topic and a live quorum
look alike, and bytes can be mirrored unchanged.
"""

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Protocol

from attrs import frozen


@frozen(kw_only=True)
class Appended:
    """Where an acknowledged batch stands: its first and last offset, and the leader epoch it was written in."""

    base_offset: int
    last_offset: int
    leader_epoch: int


@frozen(kw_only=True)
class EpochStart:
    """A leader epoch and the offset of its first record (a line of leader-epoch-checkpoint)."""

    epoch: int
    start_offset: int


class LogReader(Protocol):
    """What can be read, up to the high-water mark and never past it."""

    @property
    def name(self) -> str:
        """Where this log lives, for messages."""
        ...

    def start_offset(self) -> int:
        """The first offset that can still be read."""
        ...

    def high_watermark(self) -> int:
        """All below this offset is committed; -1 while it is not known. It never goes back."""
        ...

    def read(self, offset: int, max_bytes: int = 1 << 20) -> bytes:
        """Whole committed batches from the one that contains `offset`, at least one if there is one.

        Together at most `max_bytes`, unless the first batch alone is larger. Empty at the high-water mark.

        Raises:
            LogError: the offset lies outside start_offset()..high_watermark(), or the log is closed.
            DecodeError: the bytes there are damaged (every CRC is checked before a batch is handed out).

        """
        ...

    def wait(self, offset: int, timeout: float) -> bool:
        """Wait, at most `timeout` seconds, until the high-water mark is above `offset`; tell whether it is."""
        ...

    def close(self) -> None:
        """Let go of files and connections; a second close is nothing."""
        ...


class Log(LogReader, Protocol):
    """A log that this process, and no other, may write."""

    @property
    def leader_epoch(self) -> int:
        """The epoch that appended batches carry."""
        ...

    def end_offset(self) -> int:
        """The offset that the next record gets, committed or not."""
        ...

    def append(self, values: Sequence[bytes], *, timestamp: int) -> Future[Appended]:
        """Append record values as one atomic batch; the future is done when the batch and all before it are committed.

        Batches keep the order of the calls. `timestamp` is ms since 1970.

        Raises:
            LogError: closed, no value, an empty value, a batch beyond 8 MiB, or a writer that failed earlier.

        """
        ...

    def append_batch(self, batch: bytes) -> Future[Appended]:
        """Append a batch as it is, which the caller has built (aclog.metalog.batches.build_batch) and perhaps replayed.

        It must be one whole data batch that begins at end_offset() and carries leader_epoch: whoever builds ahead has
        to be the only one who appends. The future is that of `append`, and so is the order.

        Raises:
            LogError: it is not such a batch (cut, with a wrong CRC, of another offset or epoch, a control batch), or
                what `append` raises it for. Nothing is written then.

        """
        ...
