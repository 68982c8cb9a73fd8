"""A copy of a log in a directory: written under a temporary name and renamed once it is complete and verified."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from attrs import define

from aclog.metalog.errors import LogError
from aclog.metalog.filelog import open_reader
from aclog.metalog.filelog.appender import SEGMENT_BYTES
from aclog.metalog.filelog.file_names import PARTIAL_SUFFIX, CheckpointFile
from aclog.metalog.filelog.filesystem import DIRECTORY_MODE, fsync_directory, log_error
from aclog.metalog.filelog.locks import WriterLock
from aclog.metalog.filelog.mirror_properties import LogEnd
from aclog.metalog.filelog.mirror_start import add_checkpoint, establish_start
from aclog.metalog.filelog.mirror_writer import MirrorWriter
from aclog.metalog.log import LogReader

_TOGETHER_BYTES = 1 << 20


@define(eq=False)
class DirectoryCopy:
    """A log being written in a directory with a temporary name."""

    directory: Path
    _writer: MirrorWriter
    _waiting: list[bytes]
    _size: int = 0

    def append(self, batch: bytes) -> None:
        """Append the next batch.

        Raises:
            ReplayError: it does not follow the previous one.
            LogError: the disk is full or fails.

        """
        self._waiting.append(batch)
        self._size += len(batch)
        if self._size >= _TOGETHER_BYTES:
            self._write()

    def _write(self) -> None:
        if self._waiting:
            self._writer.append(b"".join(self._waiting))
        self._waiting, self._size = [], 0

    @contextmanager
    def read_again(self) -> Iterator[LogReader]:
        """Open a reader of what has been written, from disk; raises what `append` raises."""
        self._write()
        with open_reader(self.directory) as reader:
            yield reader


@contextmanager
def copied_directory(target: Path, start: int, checkpoints: Sequence[CheckpointFile]) -> Iterator[DirectoryCopy]:
    """Create a copy whose log begins at offset `start`; it is renamed to `target` if the block ends without an error.

    After an error nothing is left.

    Raises:
        LogError: `target` is not empty; the remains of a killed copy are next to it; or the disk fails.

    """
    partial = target.with_name(target.name + PARTIAL_SUFFIX)
    _check_free(target, partial)
    try:
        with _written(partial, start, checkpoints) as copy:
            yield copy
        # The caller has verified the copy inside the block; the rename publishes it, and is itself made durable.
        partial.replace(target)
        fsync_directory(target.parent)
    except OSError as error:
        raise log_error(error, target, "cannot write") from error
    finally:
        # After success the directory has been renamed, so this removes nothing.
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def _written(directory: Path, start: int, checkpoints: Sequence[CheckpointFile]) -> Iterator[DirectoryCopy]:
    directory.mkdir(mode=DIRECTORY_MODE, parents=True)
    with closing(WriterLock.acquire(directory, force=False)):
        for checkpoint in checkpoints:
            add_checkpoint(directory, checkpoint)
        # The epoch of the record before the log start is unknown and does not matter: epoch 0 is below any real one.
        begin = LogEnd(end_offset=start, epoch=0)
        establish_start(directory, begin)
        with closing(MirrorWriter.open(directory, begin, segment_bytes=SEGMENT_BYTES, fsync=os.fsync)) as writer:
            yield DirectoryCopy(directory, writer, [])


def _check_free(target: Path, partial: Path) -> None:
    try:
        inside = sorted(path.name for path in target.iterdir()) if target.exists() else []
    except OSError as error:
        raise log_error(error, target, "cannot list") from error
    if inside:
        raise LogError(f"{target}: not empty (it contains {inside[0]}): expected an empty directory, or none")
    if partial.exists():
        raise LogError(f"{partial}: left by an interrupted copy: remove it, then try again")
