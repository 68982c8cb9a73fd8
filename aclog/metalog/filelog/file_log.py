"""The writable file log: appends by group commit, reads up to its own high-water mark, and retention."""

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path

from attrs import define, field

from aclog.metalog.batches import build_batch, read_header
from aclog.metalog.closeable import Closeable
from aclog.metalog.control_records import ControlRecord, control_batch
from aclog.metalog.errors import LogError
from aclog.metalog.filelog.appender import Appender
from aclog.metalog.filelog.committed_mark import CommittedMark
from aclog.metalog.filelog.locks import WriterLock
from aclog.metalog.filelog.mark import Mark, MarkFile
from aclog.metalog.filelog.retention import check_recoverable, remove_segments_below
from aclog.metalog.filelog.segments import Segments
from aclog.metalog.group_commit import GroupCommit, read_prebuilt_header
from aclog.metalog.log import Appended


@define(eq=False)
class FileLog(Closeable):
    """The one writer of a log directory, and a reader of it (aclog.metalog.log.Log). Made by `open_log`.

    Thread-safe. `notes` reports what recovery did when it was opened (a torn tail that was truncated).
    """

    directory: Path
    notes: tuple[str, ...]
    leader_epoch: int
    _lock: WriterLock
    _marks: MarkFile
    _segments: Segments
    _appender: Appender
    _high_watermark: int
    _last_crc: int | None = None
    """That of the batch before the high-water mark, if known; both change together."""
    _committed: CommittedMark | None = None
    _keeping: threading.Lock = field(init=False, factory=threading.Lock)
    _published: threading.Condition = field(init=False, factory=threading.Condition)
    _closed: bool = field(init=False, default=False)
    _committer: GroupCommit = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._committer = GroupCommit(self.name, self._high_watermark, self._commit)

    @property
    def name(self) -> str:
        """The directory."""
        return str(self.directory)

    def start_offset(self) -> int:
        """Return the first offset that can still be read."""
        return self._segments.start_offset()

    def high_watermark(self) -> int:
        """Return the high-water mark: everything below is fsynced and published to readers in other processes."""
        return self._high_watermark

    def end_offset(self) -> int:
        """Return the offset of the next record to be appended."""
        return self._committer.end_offset

    def append(self, values: Sequence[bytes], *, timestamp: int) -> Future[Appended]:
        """Append record values as one atomic batch (aclog.metalog.log.Log.append)."""
        batch = build_batch(values, base_offset=0, leader_epoch=self.leader_epoch, timestamp=timestamp)
        return self._committer.submit(batch, len(values), self.leader_epoch)

    def append_batch(self, batch: bytes) -> Future[Appended]:
        """Append a caller-built batch unchanged (aclog.metalog.log.Log.append_batch)."""
        header = read_prebuilt_header(self.name, batch, self.leader_epoch)
        return self._committer.submit(batch, header.record_count, self.leader_epoch, base_offset=header.base_offset)

    def append_control(self, *records: ControlRecord, timestamp: int) -> Future[Appended]:
        """Append control records as one atomic control batch; raises what `append` raises."""
        batch = control_batch(*records, base_offset=0, leader_epoch=self.leader_epoch, timestamp=timestamp)
        return self._committer.submit(batch, len(records), self.leader_epoch)

    def read(self, offset: int, max_bytes: int = 1 << 20) -> bytes:
        """Return whole committed batches from the one that contains `offset` (see LogReader.read)."""
        self._check_open()
        start, mark = self.start_offset(), self._high_watermark
        if not start <= offset <= mark:
            raise LogError(f"{self.name}: offset {offset} is outside of {start}..{mark}, log start to high-water mark")
        return b"" if offset == mark else self._segments.read(offset, mark, max_bytes)

    def wait(self, offset: int, timeout: float) -> bool:
        """Block until the high-water mark is above `offset` (aclog.metalog.log.LogReader.wait)."""
        with self._published:
            most = min(timeout, threading.TIMEOUT_MAX)
            self._published.wait_for(lambda: self._high_watermark > offset or self._closed, most)
            return self._high_watermark > offset

    def delete_segments_below(self, offset: int) -> int:
        """Remove segments entirely below `offset`, the end offset of a checkpoint; return the new start offset.

        The last segment always stays. A crash half-way leaves a log that begins where a removed segment ended.

        Raises:
            LogError: no checkpoint in the directory reaches `offset`, the disk fails, or the log is closed.

        """
        self._check_open()
        return remove_segments_below(self._segments, min(offset, self._high_watermark))

    def keep_mark(self, cluster_id: str | None = None) -> None:
        """Write the committed mark if it is behind; given a cluster's id, make one if there is none yet.

        It never promises more than what is fsynced, and costs the commits nothing: the owner calls this once a second.

        Raises:
            LogError: it is another cluster's, or the disk fails.

        """
        with self._keeping:
            if not self._closed:  # else another writer may have moved the log and the mark on
                self._keep_mark(cluster_id)

    def _keep_mark(self, cluster_id: str | None) -> None:
        before, epoch = self._committed, self.leader_epoch
        with self._published:
            end, crc = self._high_watermark, self._last_crc
        if before is not None and cluster_id is not None:
            before.check_cluster(cluster_id)
        if before is None and cluster_id is not None:
            mark = CommittedMark.beside(
                self.directory, cluster_id=cluster_id, end_offset=end, epoch=epoch, batch_crc=crc
            )
        elif before is None or (before.end_offset == end and before.path.exists()):
            return
        else:
            mark = before.moved(end, epoch, crc)
        mark.write()
        self._committed = mark

    def check_files(self) -> None:
        """Check that the files which are open are the files which are named.

        Each commit checks the segment that it goes to; this finds the rest, and what happens to a log without commits.

        Raises:
            LogError: a file or a directory was removed, renamed, replaced or mounted over.

        """
        if self._closed:
            return
        self._lock.check()
        self._marks.check()
        self._appender.file.check()
        check_recoverable(self._segments)

    def abandon(self, why: str) -> None:
        """Fail all appends that wait, and all later ones (GroupCommit.abandon)."""
        self._committer.abandon(why)

    def _check_open(self) -> None:
        if self._closed:
            raise LogError(f"{self.name}: closed")

    def close(self) -> None:
        """Commit what is queued, then close files and release the locks; closing twice is allowed."""
        self._committer.close()
        with self._published:
            if self._closed:
                return
            self._closed = True
            self._published.notify_all()
        # Callbacks run in reverse order: the locks go last, when no file is open for writing any more.
        with ExitStack() as stack:
            stack.callback(self._lock.close)
            stack.callback(self._marks.close)
            stack.callback(self._appender.close)
            self._marks.sync()
            if self._committer.failure is None:  # else the mark might be written into another directory
                with self._keeping:
                    self._keep_mark(None)

    def _commit(self, batches: Sequence[bytes], ends: Sequence[int]) -> int:
        """Write as many of `batches` as fit into one segment, make them durable, publish; runs in the commit thread."""
        count = self._appender.fits(batches)
        if not count:
            # Commits leave the mark file in the page cache. Before rolling it is fsynced, so that after a power loss
            # the mark still points into the last segment, the only one that can have a torn tail.
            self._marks.sync()
            self._segments.add(self._appender.roll(self._high_watermark))
            count = self._appender.fits(batches)
        # fsync first, then the mark file, then our own readers: nobody sees a batch that a crash could take back.
        self._appender.write(batches[:count])
        self._publish(ends[count - 1])
        with self._published:
            self._high_watermark, self._last_crc = ends[count - 1], read_header(batches[count - 1]).crc
            self._published.notify_all()
        return count

    def _publish(self, offset: int) -> None:
        try:
            self._marks.publish(Mark(epoch=self.leader_epoch, offset=offset))
        except LogError as error:
            raise LogError(f"{error}; the last append is in the log and may reappear") from error
