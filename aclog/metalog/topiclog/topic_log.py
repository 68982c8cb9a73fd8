"""A topic log, open for writing (aclog.metalog.log.Log). Made by `open_topic_log`."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Self

from attrs import define, field

from aclog.metalog.batch_run import BatchRun
from aclog.metalog.batches import BatchHeader, build_batch, read_header
from aclog.metalog.control_records import ControlRecord, control_batch
from aclog.metalog.errors import DecodeError, LogError
from aclog.metalog.group_commit import GroupCommit, read_prebuilt_header
from aclog.metalog.log import Appended
from aclog.metalog.topic_message import read_batch
from aclog.metalog.topiclog.historical_reads import HistoricalReads
from aclog.metalog.topiclog.settings import TopicSettings
from aclog.metalog.topiclog.tail_cache import TailCache
from aclog.metalog.topiclog.transactions import Transactions

_TRANSACTION_BYTES = 16 << 20
_TRANSACTION_RECORDS = 20_000
"""What one transaction holds at most, unless its first batch alone is larger."""


@define(eq=False)
class TopicLog:
    """The one writer of a topic, until Kafka fences it, and a reader of it. Safe for many threads.

    One transaction holds all batches that wait. Once anything about a transaction is in doubt, the log is dead: whoever
    waits, and whoever comes later, gets the `failure`. What became of the transaction is seen by opening it again: even
    a fenced one may have been committed, where its commit was decided before the other came.
    """

    settings: TopicSettings
    leader_epoch: int
    _tail: TailCache = field(kw_only=True)
    _historical: HistoricalReads = field(kw_only=True)
    _transactions: Transactions = field(kw_only=True)
    _on_failure: Callable[[LogError], None] | None = field(default=None, kw_only=True)
    _committer: GroupCommit = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._committer = GroupCommit(self.name, self.high_watermark(), self._commit, self._on_failure)

    @property
    def name(self) -> str:
        """kafka://SERVERS/TOPIC."""
        return self.settings.name

    @property
    def failure(self) -> LogError | None:
        """Why nothing can be appended any more, a FencedError where another writer took over; None while all is well.

        A close is no failure.
        """
        return self._committer.failure

    def start_offset(self) -> int:
        """The offset of the first batch that is there whole."""
        return self._tail.start_offset

    def high_watermark(self) -> int:
        """The end of what this writer found committed, and has committed since. Known from the start."""
        return self._tail.high_watermark

    def end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._committer.end_offset

    def append(self, values: Sequence[bytes], *, timestamp: int) -> Future[Appended]:
        """Append record values as one atomic batch (aclog.metalog.log.Log.append)."""
        batch = build_batch(values, base_offset=0, leader_epoch=self.leader_epoch, timestamp=timestamp)
        return self._committer.submit(batch, len(values), self.leader_epoch)

    def append_batch(self, batch: bytes) -> Future[Appended]:
        """Append a batch as it is (aclog.metalog.log.Log.append_batch).

        Raises:
            LogError: as there; or it holds what messages cannot carry, so that readers would see another batch.

        """
        header = read_prebuilt_header(self.name, batch, self.leader_epoch)
        self._check_carried(batch, header)
        return self._committer.submit(batch, header.record_count, self.leader_epoch, base_offset=header.base_offset)

    def append_control(self, *records: ControlRecord, timestamp: int) -> Future[Appended]:
        """Append control records as one atomic control batch; raises what `append` raises."""
        batch = control_batch(*records, base_offset=0, leader_epoch=self.leader_epoch, timestamp=timestamp)
        return self._committer.submit(batch, len(records), self.leader_epoch)

    def read(self, offset: int, max_bytes: int = 1 << 20) -> bytes:
        """Whole committed batches from the one that holds `offset` (aclog.metalog.log.LogReader.read)."""
        found = self._tail.read(offset, max_bytes)
        return self._historical.read(offset, self.high_watermark(), max_bytes) if found is None else found

    def wait(self, offset: int, timeout: float) -> bool:
        """Wait until the high-water mark is above `offset` (aclog.metalog.log.LogReader.wait)."""
        return self._tail.wait(offset, timeout)

    def abandon(self, why: str) -> None:
        """Give up at once, without waiting for any broker: all who wait get a LogError that says why.

        For a writer who hears that it is deposed. What it had sent may be committed still, or not.
        """
        self._transactions.abandon()
        self._committer.abandon(f"{self.name}: {why}")

    def close(self) -> None:
        """Commit what waits, then let go; a second close is nothing.

        Raises:
            LogError: called by a future's callback, in the thread that has to do the committing.

        """
        self._committer.close()
        if self._tail.close():
            self._transactions.close()
            self._historical.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _check_carried(self, batch: bytes, header: BatchHeader) -> None:
        try:
            carried = read_batch(batch, 0, header).encode()
        except DecodeError as error:
            raise LogError(f"{self.name}: not a batch that can be appended: {error}") from None
        if carried != batch:
            what = "a batch that messages cannot carry as it is: expected one as metalog.batches.build_batch makes it"
            raise LogError(f"{self.name}: {what}; nothing is appended")

    def _commit(self, batches: Sequence[bytes], _: Sequence[int]) -> int:
        """Commit as many of `batches` as go into one transaction; in the commit thread."""
        count = _fitting(batches)
        self._transactions.commit(batches[:count])
        self._tail.add(BatchRun.of(b"".join(batches[:count])))
        return count


def _fitting(batches: Sequence[bytes]) -> int:
    size = records = 0
    for number, batch in enumerate(batches):
        size += len(batch)
        records += read_header(batch).record_count
        if number and (size > _TRANSACTION_BYTES or records > _TRANSACTION_RECORDS):
            return number
    return len(batches)
