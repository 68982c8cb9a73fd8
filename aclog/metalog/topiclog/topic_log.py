"""A topic log, open for writing (aclog.metalog.log.Log). Made by `open_topic_log`."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from attrs import define, field

from aclog.metalog.batch_run import BatchRun
from aclog.metalog.batches import BatchHeader, build_batch, read_header
from aclog.metalog.closeable import Closeable
from aclog.metalog.control_records import ControlRecord, control_batch
from aclog.metalog.errors import DecodeError, LogError
from aclog.metalog.group_commit import GroupCommit, read_prebuilt_header
from aclog.metalog.log import Appended
from aclog.metalog.topic_message import read_batch
from aclog.metalog.topiclog.historical_reads import HistoricalReads
from aclog.metalog.topiclog.read_back import ReadBack
from aclog.metalog.topiclog.settings import TopicSettings
from aclog.metalog.topiclog.tail_cache import TailCache
from aclog.metalog.topiclog.transactions import COMMIT_SECONDS, Transactions

_TRANSACTION_BYTES = 16 << 20
_TRANSACTION_RECORDS = 20_000
"""The maximum of one transaction, unless its first batch alone is larger."""


@define(eq=False)
class TopicLog(Closeable):
    """The topic's one writer until Kafka fences it, and a reader of it. Thread-safe.

    All waiting batches go into one transaction, and are acknowledged once they were read back. After a failed or
    uncertain transaction, or one that cannot be read back, the log is dead: all pending and later calls raise its
    `failure`. The transaction may still be committed, even if the writer was fenced: its commit may have been decided
    first. Opening the log again shows the outcome.
    """

    settings: TopicSettings
    leader_epoch: int
    _tail: TailCache = field(kw_only=True)
    _historical: HistoricalReads = field(kw_only=True)
    _transactions: Transactions = field(kw_only=True)
    _read_back: ReadBack = field(kw_only=True)
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
        """Why nothing can be appended any more, a FencedError if another writer took over; None otherwise.

        Closing is not a failure.
        """
        return self._committer.failure

    def start_offset(self) -> int:
        """The offset of the first whole batch."""
        return self._tail.start_offset

    def high_watermark(self) -> int:
        """The end of the committed log, which is known from the start: only this writer moves it."""
        return self._tail.high_watermark

    def end_offset(self) -> int:
        """The offset of the next record."""
        return self._committer.end_offset

    def append(self, values: Sequence[bytes], *, timestamp: int) -> Future[Appended]:
        """Append record values as one atomic batch (aclog.metalog.log.Log.append)."""
        batch = build_batch(values, base_offset=0, leader_epoch=self.leader_epoch, timestamp=timestamp)
        return self._committer.submit(batch, len(values), self.leader_epoch)

    def append_batch(self, batch: bytes) -> Future[Appended]:
        """Append a caller-built batch unchanged (aclog.metalog.log.Log.append_batch).

        Raises:
            LogError: as there; or the batch has properties that messages do not preserve.

        """
        header = read_prebuilt_header(self.name, batch, self.leader_epoch)
        self._check_carried(batch, header)
        return self._committer.submit(batch, header.record_count, self.leader_epoch, base_offset=header.base_offset)

    def append_control(self, *records: ControlRecord, timestamp: int) -> Future[Appended]:
        """Append control records as one atomic control batch; raises as `append`."""
        batch = control_batch(*records, base_offset=0, leader_epoch=self.leader_epoch, timestamp=timestamp)
        return self._committer.submit(batch, len(records), self.leader_epoch)

    def read(self, offset: int, max_bytes: int = 1 << 20) -> bytes:
        """Return whole committed batches from the one that holds `offset` (see LogReader.read)."""
        found = self._tail.read(offset, max_bytes)
        return self._historical.read(offset, self.high_watermark(), max_bytes) if found is None else found

    def wait(self, offset: int, timeout: float) -> bool:
        """Wait until the high-water mark is above `offset` (aclog.metalog.log.LogReader.wait)."""
        return self._tail.wait(offset, timeout)

    def abandon(self, why: str) -> None:
        """Give up at once, without waiting for a broker: pending appends fail with a LogError that says why.

        For a writer that was deposed. Transactions that it has sent may still be committed.
        """
        self._transactions.abandon()
        self._read_back.abandon()
        self._committer.abandon(f"{self.name}: {why}")

    def close(self) -> None:
        """Commit the pending batches, then close. May be called again.

        Raises:
            LogError: called from a future's callback, in the commit thread itself.

        """
        self._committer.close()
        if self._tail.close():
            self._transactions.close()
            self._historical.close()
            self._read_back.close()

    def _check_carried(self, batch: bytes, header: BatchHeader) -> None:
        try:
            carried = read_batch(batch, 0, header).encode()
        except DecodeError as error:
            raise LogError(f"{self.name}: cannot append the batch: {error}") from None
        # The topic stores records, not batches. Readers rebuild the batch, and must get the same bytes.
        if carried != batch:
            what = "the batch cannot be stored unchanged as messages: expected one built by aclog.metalog.batches"
            raise LogError(f"{self.name}: {what}; nothing is appended")

    def _commit(self, batches: Sequence[bytes], _: Sequence[int]) -> int:
        """Commit as many of `batches` as fit into one transaction, in the commit thread."""
        count, deadline = _fitting(batches), time.monotonic() + COMMIT_SECONDS
        self._transactions.commit(read_batch(batch, 0, read_header(batch)) for batch in batches[:count])
        self._read_back.check(batches[:count], deadline)
        # After the commit: readers of this process must not see what may still be aborted.
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
