"""A snapshot file while it is downloaded: it grows under a temporary name and is renamed when complete."""

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
    """One download. `position` is the number of bytes written; `size` is that of the whole file, -1 while unknown."""

    snapshot: EpochEnd
    directory: Path
    position: int = 0
    size: int = -1

    @classmethod
    def begin(cls, snapshot: EpochEnd, directory: Path) -> Self:
        """Create an empty temporary file, in place of an earlier one.

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
        """The path of the complete file."""
        return self.directory / checkpoint_name(self.snapshot.end_offset, self.snapshot.epoch)

    @property
    def _partial(self) -> Path:
        return self.path.with_name(self.path.name + PARTIAL_SUFFIX)

    @property
    def whole(self) -> bool:
        """Whether the download is complete."""
        return self.position == self.size

    def append(self, chunk: SnapshotChunk) -> None:
        """Append the next chunk.

        Raises:
            DecodeError: the chunk does not continue the file, or changes its size.
            LogError: the file cannot be written.

        """
        if chunk.position != self.position or chunk.size <= 0 or self.size not in (-1, chunk.size):
            raise DecodeError(
                f"a snapshot chunk at byte {chunk.position} of {chunk.size}: expected byte {self.position}"
                + (f" of {self.size}" if self.size >= 0 else "")
            )
        if not chunk.data or chunk.position + len(chunk.data) > chunk.size:
            raise DecodeError(
                f"a snapshot chunk of {len(chunk.data)} bytes at byte {chunk.position}: expected 1 to "
                f"{chunk.size - chunk.position} bytes"
            )
        try:
            with self._partial.open("ab") as file:
                file.write(chunk.data)
        except OSError as error:
            raise log_error(error, self._partial, "cannot write") from error
        self.position, self.size = self.position + len(chunk.data), chunk.size

    def finish(self) -> CheckpointFile:
        """Check the complete file, and rename it to `path`.

        Raises:
            CheckpointError: it is not a checkpoint.
            LogError: it cannot be read or renamed.

        """
        try:
            _check(self._partial.read_bytes(), self.path)
            self._partial.rename(self.path)
        except OSError as error:
            raise log_error(error, self._partial, "cannot read or rename") from error
        return CheckpointFile(end_offset=self.snapshot.end_offset, epoch=self.snapshot.epoch, path=self.path)


def _check(data: bytes, path: Path) -> None:
    """Check what is visible without decoding records: CRCs, lengths, and the control batches at both ends."""
    found, damage = scan_batches(data)
    whole = int(found.end[-1]) if len(found) else 0
    if damage is not None or whole != len(data):
        raise CheckpointError(f"{path}: byte {whole}: damaged or truncated: expected complete batches to the end")
    if len(found) < 2 or not (found.is_control[0] and found.is_control[-1]):
        raise CheckpointError(f"{path}: not a checkpoint: expected control records at both ends")
