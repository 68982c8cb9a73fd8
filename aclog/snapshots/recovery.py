"""Recovery: the newest valid checkpoint, then the log after it (what a Kafka node does at startup)."""

import ctypes
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from attrs import define, field, frozen

from aclog.metalog.batch_scan import scan_batches
from aclog.metalog.batches import end_offset
from aclog.metalog.errors import CheckpointError, DecodeError, LogError
from aclog.metalog.filelog import open_reader
from aclog.metalog.filelog.committed_mark import read_committed
from aclog.metalog.filelog.file_names import CheckpointFile, list_checkpoints, list_segments
from aclog.metalog.log import LogReader
from aclog.snapshots.applier import Applier
from aclog.snapshots.checkpoint_state import read_state
from aclog.snapshots.folding import fold_at
from aclog.snapshots.image import Image
from aclog.snapshots.mapped_file import check_mapping
from aclog.snapshots.moments import Moment, end_offset_at, milliseconds
from aclog.snapshots.newer_kafka import NewerKafka

Progress: TypeAlias = Callable[[int, int], None]
"""Called with (offset reached, offset to reach) at the beginning and after each chunk."""


@frozen(kw_only=True)
class Recovered:
    """A state, its source, and notes for the operator.

    `applier` is where replay ended, including an open transaction: follow the log from its `next_offset`.
    """

    image: Image
    notes: tuple[str, ...]
    source: str
    applier: Applier = field(repr=False)


def recover(
    path: Path | str, as_of: Moment | None = None, *, strict: bool = True, progress: Progress | None = None
) -> Recovered:
    """Return the state in a directory of segments and checkpoints, or in a single checkpoint file.

    Unless `strict`, a log of a newer Kafka is replayed with a note, as read-only commands do.

    Raises:
        LogError: no such directory or log, or `as_of` is out of reach.
        CheckpointError: no valid checkpoint covers what precedes the log, or the file is not valid.
        DecodeError: damage in the log, a ReplayError if its records are inconsistent; with path and offset.

    """
    path = Path(path)
    if path.is_file():
        return _recover_file(path, as_of, NewerKafka(strict=strict))
    checkpoints = _checkpoints_in(path)
    while True:
        try:
            return _recover_directory(path, checkpoints, as_of, newer=NewerKafka(strict=strict), progress=progress)
        except (LogError, CheckpointError):
            # A live node may have written a checkpoint in the meantime and removed the segments it covers: list again.
            before, checkpoints = checkpoints, _checkpoints_in(path)
            if checkpoints == before:
                raise


def _checkpoints_in(path: Path) -> tuple[CheckpointFile, ...]:
    return list_checkpoints(path) if path.is_dir() else ()


def _recover_directory(
    path: Path,
    checkpoints: tuple[CheckpointFile, ...],
    as_of: Moment | None,
    newer: NewerKafka,
    progress: Progress | None,
) -> Recovered:
    committed = read_committed(path)  # before the log: a live writer moves the log on first
    if committed is not None:
        committed.check_exists()  # a checkpoint alone would be a state without most of the rules
    if checkpoints and not list_segments(path):
        return recover_log(None, checkpoints, as_of, newer=newer, progress=progress)
    with open_reader(path) as reader:
        found = recover_log(reader, checkpoints, as_of, newer=newer, progress=progress)
        missing = () if committed is None else committed.notes(reader.high_watermark())
        notes = (*missing, *reader.notes, *found.notes)
        return Recovered(image=found.image, notes=notes, source=found.source, applier=found.applier)


def _recover_file(path: Path, as_of: Moment | None, newer: NewerKafka) -> Recovered:
    notes: list[str] = []
    image = read_state(path, newer=newer, notify=notes.append)
    _release_freed_memory()
    reached = image.end_offset if isinstance(as_of, int) else image.timestamp
    wanted = milliseconds(as_of) if isinstance(as_of, datetime) else as_of
    if isinstance(as_of, datetime) and image.end_offset == 0:
        raise LogError(f"{path}: as of {as_of}: the state is unknown: a checkpoint that ends at offset 0 has no time")
    if wanted is not None and (wanted < reached or (isinstance(as_of, int) and wanted > reached)):
        raise LogError(
            f"{path}: as of {as_of}: expected {image.end_offset}, the end offset of this checkpoint, or a time not "
            f"before its last record's, {image.timestamp} ms"
        )
    applier = Applier(image=image, newer=newer)
    return Recovered(image=image, notes=(*notes, *newer.warnings()), source=str(path), applier=applier)


def recover_log(
    reader: LogReader | None,
    checkpoints: Sequence[CheckpointFile],
    as_of: Moment | None = None,
    *,
    newer: NewerKafka | None = None,
    progress: Progress | None = None,
) -> Recovered:
    """Return the state of a log, wherever it is stored, using these checkpoints (sorted by offset).

    Raises what `recover` raises.
    """
    recovery = _Recovery(reader=reader, checkpoints=checkpoints, newer=newer or NewerKafka(), progress=progress)
    return recovery.run(as_of)


_CHUNK_BYTES = 256 << 20
"""How much is replayed at once, across segments: every further chunk rebuilds the base of the ACLs."""


def _read(reader: LogReader, offset: int, end: int) -> bytes:
    """Return whole committed batches from `offset` on, up to a chunk, ending before damage."""
    pieces: list[bytes] = []
    size = 0
    while offset < end and size < _CHUNK_BYTES:
        try:
            piece = reader.read(offset, _CHUNK_BYTES - size)
        except DecodeError:
            if pieces:  # replay what is good: the next call begins at the damage and reports it
                break
            raise
        if not piece:
            break
        pieces.append(piece)
        size, offset = size + len(piece), end_offset(piece)
    return b"".join(pieces)


@define(kw_only=True)
class _Recovery:
    """One recovery in progress: its inputs, and its notes so far."""

    reader: LogReader | None
    checkpoints: Sequence[CheckpointFile]
    newer: NewerKafka
    progress: Progress | None
    notes: list[str] = field(factory=list)

    def run(self, as_of: Moment | None) -> Recovered:
        """Read and replay; raises what `recover` raises."""
        limit = self._target_offset(as_of)
        image, checkpoint = self._starting_image(limit, as_of)
        sources = [] if checkpoint is None else [str(checkpoint.path)]
        applier = Applier(image=image, newer=self.newer)
        if self.reader is not None and applier.next_offset < limit:
            self._replay(self.reader, applier, limit)
            sources.append(f"{self.reader.name} from offset {image.end_offset}")
        acls = applier.image.acls
        if acls.overlay_size >= fold_at(len(acls.index.base)):
            # Merged here, before anyone reads the image: later a background merge would compete with requests.
            merged = acls.merged()
            check_mapping(acls)  # else what was written over the image file would live on in the merged index
            applier.put_acls(merged)
        self._note_lowered(applier, limit)
        _release_freed_memory()
        notes = (*self.notes, *self.newer.warnings())
        return Recovered(image=applier.image, notes=notes, source=", then ".join(sources), applier=applier)

    def _target_offset(self, as_of: Moment | None) -> int:
        """Return the end offset to reach."""
        newest = self.checkpoints[-1].end_offset if self.checkpoints else 0
        # A follower that has fallen behind fetches a checkpoint first, so the newest one may be ahead of the mark.
        end = newest if self.reader is None else max(self.reader.high_watermark(), newest)
        if as_of is None:
            return end
        if isinstance(as_of, datetime):
            return end if self.reader is None else min(end_offset_at(self.reader, as_of), end)
        if not 0 <= as_of <= end:
            raise self._unreachable(as_of)
        return as_of

    def _starting_image(self, limit: int, as_of: Moment | None) -> tuple[Image, CheckpointFile | None]:
        """Return the newest image at or below `limit` from which the log continues."""
        log_start = self._log_start(limit)
        failure: CheckpointError | None = None
        for checkpoint in reversed(self.checkpoints):
            end = checkpoint.end_offset
            # A checkpoint below the log start leaves a gap before the first segment, unless it is the wanted state.
            if end > limit or not (end == limit or (log_start is not None and log_start <= end)):
                continue
            try:
                image = read_state(checkpoint.path, newer=self.newer, notify=self.notes.append)
            except CheckpointError as e:
                failure = e
                self.notes.append(f"{e}; falling back to an older checkpoint or the log")
                continue
            if end == 0:
                image = self._before_the_log(image, checkpoint)
            if not isinstance(as_of, datetime) or _is_known_at(image, as_of) or end == 0 < limit:
                return image, checkpoint
        if log_start == 0:
            return Image.EMPTY, None
        if failure is not None:
            raise failure
        raise self._unreachable(as_of)

    def _before_the_log(self, image: Image, checkpoint: CheckpointFile) -> Image:
        """Return the state at offset 0: the voters of the 0-0 checkpoint. Its records are for the first leader."""
        if self.reader is None and len(image.features) + len(image.acls) + len(image.scram):
            self.notes.append(
                f"{checkpoint.path}: formatted, and no node has started: its {len(image.acls):,} ACLs and "
                f"{len(image.scram):,} SCRAM credentials come into force with the first start"
            )
        return Image.EMPTY.at(image.provenance)

    def _log_start(self, limit: int) -> int | None:
        """Return the offset from which the log leads to `limit`; None if it does not (a checkpoint is ahead of it)."""
        if self.reader is None or limit > self.reader.high_watermark():
            return None
        return self.reader.start_offset()

    def _replay(self, reader: LogReader, applier: Applier, limit: int) -> None:
        # Read once: a live log moves on, and following it is not the job of recovery.
        committed = reader.high_watermark()
        if self.progress is not None:
            self.progress(applier.next_offset, limit)
        while applier.next_offset < limit:
            chunk = _read(reader, applier.next_offset, committed)
            size = len(chunk) if limit >= committed else _size_below(chunk, limit)
            try:
                applier.apply(chunk, 0, size)
            except DecodeError as e:
                # A position in the chunk means nothing to an operator; the offset identifies the place.
                raise type(e)(e.what, offset=e.offset, path=reader.name) from None
            if self.progress is not None:
                self.progress(applier.next_offset, limit)
            if size < len(chunk) or not chunk:
                return

    def _note_lowered(self, applier: Applier, limit: int) -> None:
        reached = applier.image.end_offset
        if reached < limit:
            why = f"a transaction is open at {limit}" if applier.in_transaction else f"{limit} is inside a batch"
            self.notes.append(f"offset {limit} was lowered to {reached}, the end of the last whole batch: {why}")

    def _unreachable(self, as_of: Moment | None) -> LogError:
        where = self.reader.name if self.reader is not None else str(self.checkpoints[0].path.parent)
        ends = [checkpoint.end_offset for checkpoint in self.checkpoints]
        if self.reader is None:
            return LogError(f"{where}: as of {as_of}: expected one of the end offsets {', '.join(map(str, ends))}")
        start, end = self.reader.start_offset(), self.reader.high_watermark()
        earliest = min((e for e in (*ends, *([0] * (start == 0))) if e >= start), default=None)
        if earliest is None:
            return LogError(f"{where}: the log begins at offset {start}, and no checkpoint covers what precedes it")
        return LogError(f"{where}: as of {as_of}: expected an offset or a time from {earliest} to {end}")


def _is_known_at(image: Image, time: datetime) -> bool:
    """Return whether a checkpoint's state is known to hold at a time: not before its last record, if it has one."""
    return image.end_offset > 0 and image.timestamp <= milliseconds(time)


def _release_freed_memory() -> None:
    """Return memory that the allocator holds but nobody uses; after a large replay that is most of it.

    Only a hint: a C library without malloc_trim keeps it.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _size_below(chunk: bytes, limit: int) -> int:
    """Return how many bytes of a chunk of whole batches are below the offset `limit`, up to a whole batch."""
    batches, _ = scan_batches(chunk)
    beyond = (batches.base_offset + batches.record_count > limit).nonzero()[0]
    return int(batches.position[beyond[0]]) if len(beyond) else len(chunk)
