"""A snapshot as it is downloaded: a file that grows, and gets its name when it is whole."""

from pathlib import Path
from typing import Self

from attrs import define

from aclog.metalog.batch_scan import scan_batches
from aclog.metalog.errors import CheckpointError, DecodeError
from aclog.metalog.filelog.file_names import PARTIAL_SUFFIX, CheckpointFile, checkpoint_name
from aclog.metalog.filelog.filesystem import log_error
from aclog.nodes.observer.fetch_messages import EpochEnd
from aclog.nodes.observer.snapshot_messages import SnapshotChunk


@define(eq=False)
class SnapshotFile:
    """One download. `position` is how many bytes are here, `size` how many there will be, -1 while it is not known."""

    snapshot: EpochEnd
    directory: Path
    position: int = 0
    size: int = -1

    @classmethod
    def begin(cls, snapshot: EpochEnd, directory: Path) -> Self:
        """A download of nothing yet.

        Raises:
            LogError: the file cannot be written.

        """
        begun = cls(snapshot, directory)
        try:
            begun._partial.write_bytes(b"")
        except OSError as error:
            raise log_error(error, begun._partial, "cannot write") from error
        return begun

    @property
    def path(self) -> Path:
        """Where it is when it is whole."""
        return self.directory / checkpoint_name(self.snapshot.end_offset, self.snapshot.epoch)

    @property
    def _partial(self) -> Path:
        return self.path.with_name(self.path.name + PARTIAL_SUFFIX)

    @property
    def whole(self) -> bool:
        """Whether every byte is here."""
        return self.position == self.size

    def append(self, chunk: SnapshotChunk) -> None:
        """Add what comes next.

        Raises:
            DecodeError: it is not what comes next.
            LogError: the file cannot be written.

        """
        if chunk.position != self.position or chunk.size <= 0 or self.size not in (-1, chunk.size):
            raise DecodeError(
                f"bytes from {chunk.position} on of a snapshot of {chunk.size}: expected those from {self.position} on"
                + (f" of {self.size}" if self.size >= 0 else "")
            )
        if not chunk.data or chunk.position + len(chunk.data) > chunk.size:
            raise DecodeError(
                f"{len(chunk.data)} bytes of a snapshot of {chunk.size}: expected 1 to {chunk.size - chunk.position}"
            )
        try:
            with self._partial.open("ab") as file:
                file.write(chunk.data)
        except OSError as error:
            raise log_error(error, self._partial, "cannot write") from error
        self.position, self.size = self.position + len(chunk.data), chunk.size

    def finish(self) -> CheckpointFile:
        """Check the whole file, and give it its name.

        Raises:
            CheckpointError: it is no checkpoint.
            LogError: it cannot be read or renamed.

        """
        try:
            _check(self._partial.read_bytes(), self.path)
            self._partial.rename(self.path)
        except OSError as error:
            raise log_error(error, self._partial, "cannot read or rename") from error
        return CheckpointFile(end_offset=self.snapshot.end_offset, epoch=self.snapshot.epoch, path=self.path)


def _check(data: bytes, path: Path) -> None:
    """Look at what can be seen without decoding records: CRCs, lengths, and control batches at both ends."""
    found, damage = scan_batches(data)
    whole = int(found.end[-1]) if len(found) else 0
    if damage is not None or whole != len(data):
        raise CheckpointError(f"{path}: byte {whole}: damaged or cut: expected whole batches to the end")
    if len(found) < 2 or not (found.is_control[0] and found.is_control[-1]):
        raise CheckpointError(f"{path}: not a checkpoint: expected control records at both ends")
