"""Appends a quorum's batches, of any epoch, as its leader wrote them (KafkaMetadataLog.appendAsFollower)."""

from contextlib import ExitStack
from pathlib import Path
from typing import Self

from attrs import define, field

from aclog.metalog.batch_run import BatchRun
from aclog.metalog.errors import DecodeError, LogError, ReplayError
from aclog.metalog.filelog.appender import Appender, Fsync
from aclog.metalog.filelog.epochs import epoch_at, write_epochs
from aclog.metalog.filelog.mark import Mark, MarkFile, publish_durably
from aclog.metalog.filelog.mirror_properties import LogEnd
from aclog.metalog.filelog.tail_recovery import recover_end
from aclog.metalog.log import EpochStart


@define(eq=False)
class MirrorWriter:
    """The open log of a mirror; not thread-safe. `notes` says what was truncated when it was opened.

    Every batch it is given is committed in the quorum, so a whole batch that a crash leaves above the mark is kept.
    """

    directory: Path
    notes: tuple[str, ...]
    _marks: MarkFile
    _appender: Appender
    _epochs: tuple[EpochStart, ...]
    _end: LogEnd
    _failure: str = field(default="", init=False)

    @classmethod
    def open(cls, directory: Path, start: LogEnd, *, segment_bytes: int, fsync: Fsync) -> Self:
        """Continue a log that begins after `start`; the caller holds the writer's lock.

        Raises:
            LogError: it cannot be read or written.
            DecodeError: committed bytes are damaged.

        """
        with ExitStack() as stack:
            found = recover_end(directory, stack, segment_bytes, fsync)
            epoch = epoch_at(found.epochs, found.end_offset - 1)
            end = LogEnd(end_offset=found.end_offset, epoch=start.epoch if epoch is None else epoch)
            writer = cls(
                directory=directory,
                notes=found.notes,
                marks=found.marks,
                appender=found.appender,
                epochs=found.epochs,
                end=end,
            )
            stack.pop_all()
        return writer

    @property
    def end(self) -> LogEnd:
        """The end of the durable log."""
        return self._end

    def append(self, batches: bytes) -> int:
        """Append whole batches that follow the end, make them durable and publish them; return how many there are.

        A batch that begins a new epoch is written only after leader-epoch-checkpoint has that epoch.

        Raises:
            DecodeError: damaged or truncated; a ReplayError if they do not follow the end. Nothing is written.
            LogError: the disk is full or fails; the mirror must then be opened again.

        """
        if self._failure:
            raise LogError(self._failure)
        run = self._checked(batches)
        try:
            first = 0
            for last in _epoch_ends(run):
                self._append_epoch(run, first, last)
                first = last
        except BaseException as error:
            self._failure = f"{error}; no further appends are accepted until the mirror is opened again"
            raise
        return len(run)

    def _checked(self, batches: bytes) -> BatchRun:
        run = BatchRun.of(batches)
        if run.size != len(batches):
            raise DecodeError("a damaged or truncated batch", position=run.size, offset=run.end_offset)
        # A mirror writes what it was sent without decoding records, so everything that no CRC covers is checked first.
        run.check_follows(self._end.end_offset, self._end.epoch)
        if run.base_offset != self._end.end_offset:
            what = f"a batch with base offset {run.base_offset}: expected one that begins where the mirror ends"
            raise ReplayError(what, position=0, offset=self._end.end_offset)
        return run

    def _append_epoch(self, run: BatchRun, first: int, last: int) -> None:
        """Append the batches from number `first` to before `last`, all of one epoch."""
        epoch = int(run.epochs[first])
        if not self._epochs or epoch > self._epochs[-1].epoch:
            self._begin_epoch(epoch)
        while first < last:
            batches = [run.data[run.positions[n] : run.positions[n + 1]] for n in range(first, last)]
            count = self._appender.fits(batches)
            if not count:
                self._marks.sync()  # as in FileLog: after a power loss the mark must be in the last segment
                self._appender.roll(self._end.end_offset)
                count = self._appender.fits(batches)
            # As in FileLog: fsync before the mark, so that no reader sees what a crash could take back.
            self._appender.write(batches[:count])
            first += count
            self._publish(LogEnd(end_offset=int(run.ends[first - 1]), epoch=epoch))

    def _publish(self, end: LogEnd) -> None:
        self._marks.publish(Mark(epoch=end.epoch, offset=end.end_offset))
        self._end = end

    def _begin_epoch(self, epoch: int) -> None:
        """Enter a new epoch: the mark file first, so that it is never behind leader-epoch-checkpoint (see mark.py)."""
        start = self._end.end_offset
        publish_durably(self._marks, Mark(epoch=epoch, offset=start))
        epochs = (*self._epochs, EpochStart(epoch=epoch, start_offset=start))
        write_epochs(self.directory, epochs)
        self._epochs = epochs

    def close(self) -> None:
        """Make the mark durable and close the files."""
        with ExitStack() as stack:
            stack.callback(self._marks.close)
            stack.callback(self._appender.close)
            self._marks.sync()


def _epoch_ends(run: BatchRun) -> list[int]:
    """Return the number of the batch after the last one of each epoch."""
    changes = (run.epochs[1:] != run.epochs[:-1]).nonzero()[0] + 1
    return [*map(int, changes), len(run)]
