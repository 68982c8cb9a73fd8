"""The Log protocol: what readers and the one writer of a metadata log can do, wherever the log is stored.

A log is a sequence of record batches with dense offsets. `LogReader.read` returns the raw bytes of whole committed
batches, as a KRaft leader answers a Fetch, and the caller decodes them (aclog.metalog.batches). So a directory of
segments, a topic and a live quorum look the same to it, and bytes can be mirrored unchanged. `Log` adds appending:
futures complete once the batch is committed, that is, below the high-water mark.

Implementations: aclog.metalog.filelog.FileLog and FileLogReader, aclog.metalog.topiclog.TopicLog and TopicReader, and
aclog.nodes.observer for live quorums. All pass the same contract tests (tests/contracts).
"""

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Protocol

from attrs import frozen


@frozen(kw_only=True)
class Appended:
    """Where a committed batch is: its first and last offset, and the leader epoch in which it was written."""

    base_offset: int
    last_offset: int
    leader_epoch: int


@frozen(kw_only=True)
class EpochStart:
    """A leader epoch and the offset of its first record (an entry of leader-epoch-checkpoint)."""

    epoch: int
    start_offset: int


class LogReader(Protocol):
    """Read access to the committed part of a log: up to the high-water mark and never beyond."""

    @property
    def name(self) -> str:
        """Location of the log, for messages: a directory, an address."""
        ...

    def start_offset(self) -> int:
        """Return the first offset that can still be read; retention raises it."""
        ...

    def high_watermark(self) -> int:
        """Return the high-water mark: everything below is committed. It never decreases; -1 while it is unknown."""
        ...

    def read(self, offset: int, max_bytes: int = 1 << 20) -> bytes:
        """Return whole committed batches, beginning with the one that contains `offset`.

        At most `max_bytes`, unless the first batch alone is larger; empty at the high-water mark. Since batches are
        never split, the first one may begin below `offset`.

        Raises:
            LogError: the offset is outside of start_offset()..high_watermark(), or the log is closed.
            DecodeError: the stored bytes are damaged; the CRC of every batch is checked before it is returned.

        """
        ...

    def wait(self, offset: int, timeout: float) -> bool:
        """Block for up to `timeout` seconds until the high-water mark is above `offset`; return whether it is."""
        ...

    def close(self) -> None:
        """Close files and connections; closing twice is allowed."""
        ...


class Log(LogReader, Protocol):
    """A log that this process, and no other, may write."""

    @property
    def leader_epoch(self) -> int:
        """The leader epoch of appended batches."""
        ...

    def end_offset(self) -> int:
        """Return the offset of the next record to be appended: the log end offset, committed or not."""
        ...

    def append(self, values: Sequence[bytes], *, timestamp: int) -> Future[Appended]:
        """Append record values as one atomic batch; the future completes when it and all earlier batches are committed.

        Batches are written in the order of the calls. `timestamp` is ms since 1970.

        Raises:
            LogError: closed, no values, an empty value, a batch over 8 MiB, or an earlier write has failed.

        """
        ...

    def append_batch(self, batch: bytes) -> Future[Appended]:
        """Append a caller-built batch unchanged (aclog.metalog.batches.build_batch).

        A controller builds a batch ahead, replays it, and appends the very bytes it has replayed. It must be one whole
        data batch that begins at end_offset() and carries leader_epoch, so the caller has to be the only one that
        appends. Order and future are those of `append`.

        Raises:
            LogError: not such a batch (truncated, CRC mismatch, another offset or epoch, a control batch), or whatever
                `append` raises it for. Nothing is written.

        """
        ...
