"""The publisher, and the merger that starts compactions of the overlay.

Readers see one reference, which is swapped at the high-water mark; recovery from the newest checkpoint, and
following from there.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from attrs import field

from aclog.authorizer.acls_image import AclsImage
from aclog.metalog.batches import end_offset, iter_batches, scan_batches
from aclog.metalog.committed_log import LogReader
from aclog.metalog.errors import CheckpointError, DecodeError, LogError
from aclog.metalog.filelog import open_reader
from aclog.metalog.filelog.committed_mark import read_committed
from aclog.metalog.filelog.files import CheckpointFile, list_checkpoints, list_segments
from aclog.metalog.machine import clock, threads
from aclog.metalog.values import define, frozen
from aclog.snapshots.applier import AclChange, Applier
from aclog.snapshots.checkpoints import read_state, release_freed_memory, state_in
from aclog.snapshots.compaction import MERGE_AT, Folder, FoldError, FoldInThread, Merge, Pauses, fold_at, take_apart
from aclog.snapshots.image import Image, NewerKafka, Provenance, StateSource
from aclog.snapshots.image_file import check_mapping
from aclog.snapshots.moments import Moment, end_offset_at, milliseconds

# The publisher: readers see one reference, which is swapped after each whole batch (MetadataPublisher, KIP-801).


Subscriber: TypeAlias = Callable[[Image], None]
"""Called with each new image, in order, by the thread that publishes or merges; must be quick and must not publish."""

UNKNOWN_MARK = -1
"""A high-water mark that is not known yet (LogReader.high_watermark)."""


@define(kw_only=True, eq=False)
class Publisher:
    """Owns the applier and the image that readers see.

    Readers take `current` once per call and keep it; they never wait. One thread at a time calls `advance`, `stage`,
    `commit` or `replace`; a lock excludes a merge in another thread (see Merger), also between the swap and the
    notification of subscribers: they see every image, merged ones too, in order. It is held for one update at most.

    Followers of a log use `advance`. A writer decides on what it has already appended and shows it only once committed:
    `stage`, then `commit`.
    """

    applier: Applier = field(factory=Applier)
    current: Image = field(init=False)
    _ready_mark: int = field(default=UNKNOWN_MARK, init=False)
    _notified: int = field(default=0, init=False)
    """The end offset of the newest image that all subscribers have."""
    _ready: "threading.Event" = field(factory=threads.event, init=False)
    _subscribers: list[Subscriber] = field(factory=list, init=False)
    _swap_lock: "threading.Lock" = field(factory=threads.lock, init=False)
    _staged: deque[Image] = field(factory=deque, init=False)
    """Images that are not published yet, oldest first; the newest is the applier's."""
    _merge: Merge | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.current = self.applier.image

    def advance(self, chunk: bytes) -> Image:
        """Replay a chunk of whole committed batches and publish the result. Raises what Applier.apply raises.

        All batches of the chunk become visible together, with any staged images. After an error readers keep the image
        from before the chunk.
        """
        with self._swap_lock:
            self._staged.clear()
            image = self.applier.apply(chunk)
            if self._merge is not None:
                image = self._after_update(self._merge)
            self.current = image
            self._notify(image)
        return image

    @property
    def latest(self) -> Image:
        """The newest image, staged or published: the one on which the next change is decided."""
        return self.applier.image

    def stage(self, chunk: bytes) -> Image:
        """Replay a chunk of whole appended batches without publishing the result. Raises what Applier.apply raises."""
        with self._swap_lock:
            image = self.applier.apply(chunk)
            if self._merge is not None:
                image = self._after_update(self._merge)
            self._staged.append(image)
        return image

    def commit(self, high_watermark: int) -> Image:
        """Publish the newest staged image that is entirely below the high-water mark; return the published image."""
        with self._swap_lock:
            newest = None
            while self._staged and self._staged[0].end_offset <= high_watermark:
                newest = self._staged.popleft()
            if newest is not None:
                self.current = newest
                self._notify(newest)
            return self.current

    def replace(self, image: Image) -> None:
        """Publish another image, such as a checkpoint's, in one swap; replay continues from it, without staged ones."""
        with self._swap_lock:
            self.applier.load(image)
            self._staged.clear()
            self.current = image
            self._notify(image)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Call `subscriber` with every image from now on."""
        self._subscribers.append(subscriber)

    def observe_high_watermark(self, high_watermark: int) -> None:
        """Note the high-water mark; the first known one must be replayed before this node is ready (KIP-801)."""
        if self._ready_mark == UNKNOWN_MARK and high_watermark >= 0:
            self._ready_mark = high_watermark
            self._check_ready()

    @property
    def ready(self) -> bool:
        """Whether the image is not empty and readers and subscribers see all below the first known high-water mark."""
        return self._ready.is_set()

    def wait_ready(self, timeout: float | None = None) -> bool:
        """Wait for up to `timeout` seconds until this node is ready; return whether it is."""
        return self._ready.wait(timeout)

    def _notify(self, image: Image) -> None:
        failure: Exception | None = None
        for subscriber in self._subscribers:
            try:
                subscriber(image)
            except Exception as error:  # noqa: BLE001 - the other subscribers must still see the image
                failure = failure or error
        if failure is not None:
            raise failure
        # Last: a reader that sees `ready` may use a subscriber, such as the authorizer, and must not get an older
        # image.
        self._notified = image.end_offset
        if not self._ready.is_set():
            self._check_ready()

    def _check_ready(self) -> None:
        if self._ready_mark != UNKNOWN_MARK and 0 < self._notified >= self._ready_mark:
            self._ready.set()

    def begin_merge(self) -> Merge:
        """Begin to fold the newest ACLs; from here on ACL changes are journaled.

        Raises:
            RuntimeError: a merge is already running, whose journal would be lost.

        """
        with self._swap_lock:
            if self._merge is not None:
                raise RuntimeError("a merge is already running")
            self._merge = merge = Merge(self.applier.image.acls)
            self.applier.journal = merge.journal
            return merge

    def offer_merged(self, merge: Merge, folded: AclsImage) -> None:
        """Let updates bring the folded ACLs up to date, and put them in the place of the others as soon as they are.

        If a checkpoint has replaced the image in the meantime, or replay has failed, the merge is void. If images are
        staged, the folded ACLs go into the newest one, and are published with it.
        """
        with self._swap_lock:
            if not merge.ended:
                merge.offer(folded)

    def catch_up(self, merge: Merge, most: int) -> None:
        """Do a part of what updates would do, for a merge that waits for updates: apply up to `most` changes."""
        with self._swap_lock:
            if merge.ended or not self._step(merge, most):
                return
            if self._staged:
                self._staged[-1] = self.applier.image
            else:
                self.current = self.applier.image
                self._notify(self.current)

    def abandon_merge(self, merge: Merge) -> None:
        """End a merge that failed, unless it has ended; nothing was replaced."""
        with self._swap_lock:
            if not merge.ended:
                self._end(merge)

    def _after_update(self, merge: Merge) -> Image:
        """Apply a few journaled changes after those of an update; return the newest image."""
        if merge.folded is not None:
            self._step(merge, merge.share)
        return self.applier.image

    def _step(self, merge: Merge, most: int) -> bool:
        """Apply journaled changes to the folded ACLs; return whether they have taken the place of the applier's."""
        if self.applier.journal is not merge.journal or self.applier.failed:
            self._end(merge)
            return False
        try:
            current = merge.step(most)
        except Exception as error:  # noqa: BLE001 - the update itself was applied, even if the folded ACLs are wrong
            self._end(merge, failure=error)
            return False
        if current is None:
            return False
        replaced = self.applier.image.acls
        self.applier.put_acls(current)
        self._end(merge, replaced=replaced)
        return True

    def _end(self, merge: Merge, *, replaced: AclsImage | None = None, failure: Exception | None = None) -> None:
        if self.applier.journal is merge.journal:
            self.applier.journal = None
        self._merge = None
        merge.end(replaced, failure)


# The merger: folds the overlay of ACL changes into a new base, in the background, without blocking updates.


IDLE_S = 1.0
"""Seconds without an update after which the overlay is folded. A client that creates its ACLs one request after the
other
never pauses that long, and a request after a change is answered only slightly slower until then."""

_REST = 20
"""After a merge in a quiet moment, the next one waits for this many times its duration: occasional changes cost at most
a
twentieth of a core, for any size of the base."""
_LONGEST_REST_S = 60.0
"""The longest such wait: a merge may have been slow for once."""

_SLICE = 64
"""Journaled changes that the merger applies at once where no updates come to do it, holding the publisher's lock: under
a millisecond."""
_LULL_S = 0.002
"""Time without an update after which the merger does so."""


@frozen(kw_only=True)
class MergeReport:
    """How a merge ended. `rules` and `changes`: the size of the base and of the overlay that it began with."""

    rules: int
    changes: int
    seconds: float
    failure: str | None = None
    """Why nothing was merged, in a line; None if it was, or if the merge was overtaken (a checkpoint came)."""


@define(kw_only=True, eq=False)
class Merger:
    """Watches a publisher's images and folds their overlay, in a separate thread, until it is closed.

    That happens once the overlay has `merge_at` changes, or a quarter of the base's; or when no update has come for a
    second. No change is lost, readers never wait, updates wait for less than a millisecond, and a merge ends under any
    load (see Merge). `folder` makes the new base. `report` is called in the merger's thread.
    """

    publisher: Publisher
    folder: Folder = field(factory=FoldInThread)
    merge_at: int = MERGE_AT
    idle_s: float = IDLE_S
    report: Callable[[MergeReport], None] = lambda _: None
    _not_below: int = field(default=0, init=False)
    """After a failed merge: the overlay size at which the next attempt is made."""
    _fold_here: bool = field(default=False, init=False)
    """Whether the next attempt is made in this process, since the folder has failed."""
    _rest_until: float = field(default=0.0, init=False)
    _wake: "threading.Event" = field(factory=threads.event, init=False)
    _asleep: bool = field(default=False, init=False)
    """Whether the thread waits for a first change, without a limit."""
    _merging: bool = field(default=False, init=False)
    _closed: bool = field(default=False, init=False)
    _thread: "threading.Thread | None" = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.publisher.subscribe(self.consider)

    def consider(self, image: Image) -> None:
        """Have this image merged if it needs it; called for every image, so nothing is done here."""
        index = image.acls.index
        changes = index.overlay.changes
        if not changes or self._merging or self._closed:
            return
        if self._thread is None:
            self._thread = threads.Thread(target=self._run, name="acl-merge", daemon=True)
            self._thread.start()
        if self._asleep or changes >= self._due_at(len(index.base)):
            self._wake.set()

    def close(self) -> None:
        """Stop merging, and wait until nothing of it runs; idempotent."""
        self._closed = True
        self.folder.close()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self.folder.tidy()

    def _due_at(self, rules: int) -> int:
        return max(fold_at(rules, self.merge_at), self._not_below)

    def _run(self) -> None:
        previous: Provenance | None = None
        quiet = False
        while not self._closed:
            acls, provenance = self.publisher.latest.acls, self.publisher.latest.provenance
            rules, changes = len(acls.index.base), acls.overlay_size
            del acls  # not kept alive while this thread waits
            if changes >= self._due_at(rules):
                self._merge()
            elif changes and quiet and provenance is previous and clock.monotonic() >= self._rest_until:
                seconds = self._merge()
                self._rest_until = clock.monotonic() + min(_REST * seconds, _LONGEST_REST_S)
            previous, quiet = provenance, self._wait()

    def _wait(self) -> bool:
        """Wait until a merge may be due; return whether a whole quiet moment has passed."""
        self._asleep = True
        # `consider` knows that this thread is asleep before it looks, so that the first change cannot be missed.
        changes = self.publisher.latest.acls.overlay_size
        self._asleep = not changes
        woken = self._wake.wait(self.idle_s if changes else None)
        self._asleep = False
        self._wake.clear()
        return not woken

    def _merge(self) -> float:
        """Fold the newest overlay; return how long it took, in seconds."""
        self._merging, begun = True, clock.monotonic()
        merge = self.publisher.begin_merge()
        acls = self.publisher.latest.acls
        rules, changes = len(acls.index.base), acls.overlay_size
        del acls
        failure: Exception | None = None
        try:
            self._carry_out(merge)
            failure = merge.failure
        except Exception as error:  # noqa: BLE001 - out of memory, for example: the state is right, and stays so
            failure = error
        finally:
            self.publisher.abandon_merge(merge)
            self._merging = False
        seconds = clock.monotonic() - begun
        self._fold_here = failure is not None and not self._fold_here and getattr(failure, "here", True)
        self._not_below = 0 if failure is None else changes + max(changes // 2, 1)
        if not self._closed:
            self.report(MergeReport(rules=rules, changes=changes, seconds=seconds, failure=_line(failure)))
        if merge.replaced is not None:
            retired, merge.replaced = [merge.replaced], None
            take_apart(retired, Pauses().pause)
        self.folder.tidy()
        return seconds

    def _carry_out(self, merge: Merge) -> None:
        folder = FoldInThread() if self._fold_here else self.folder
        if (begun := merge.begun) is not None:
            folded = folder.fold(begun)
            if begun.index.base.memo.ranges_read:
                folded.index.base.read_ranges()  # here, and not when the image is published
            # Otherwise bytes written over an image file would persist in a base that passes all checks.
            check_mapping(begun)
            del begun
            self.publisher.offer_merged(merge, folded)
            del folded
        while not merge.ended and not self._closed:
            before = len(merge.journal)
            clock.sleep(_LULL_S)
            if len(merge.journal) == before:
                self.publisher.catch_up(merge, _SLICE)


def _line(failure: Exception | None) -> str | None:
    if failure is None:
        return None
    return str(failure) if isinstance(failure, FoldError) else f"{type(failure).__name__}: {failure}"


# Following a log: one visible state after the other, with what changed in between.


WAIT_S = 1.0
"""How long one poll of the log waits, in seconds; Ctrl-C takes effect within this time."""

_MANY_CHANGES = 1024
"""ACL changes after which they are merged into the index: a comparison of two states scans the unmerged ones."""

_SHARE = 128
"""A large index is merged only when this part of it has changed: a merge takes about as long as reading it anew."""


@frozen(kw_only=True)
class Followed:
    """A visible state, the one that was seen before, and the ACL records between them, in order.

    `changes` is None if states in between were not seen: a snapshot has replaced the records that made them.
    """

    before: Image
    after: Image
    changes: tuple[AclChange, ...] | None


def follow(
    source: StateSource, log: LogReader, image: Image, idle: Callable[[], None] = lambda: None
) -> Iterator[Followed]:
    """Yield each visible state after `image`; never ends.

    One batch at a time, or one metadata transaction. If retention has removed the records that follow, the source's
    newest state is next.

    `idle` is called whenever WAIT_S has passed without a record.

    Raises:
        MetadataError: the log is damaged or deleted, or can never be followed again; or the image file that the state
            is mapped from was overwritten.

    """
    applier = _applier(image)
    while True:
        chunk = next_batches(log, applier.next_offset, WAIT_S)
        check_mapping(applier.image.acls)
        if chunk is None:
            before, applier = applier.image, _applier(source.image())
            yield Followed(before=before, after=applier.image, changes=None)
            continue
        if not chunk:
            idle()
        for position, header in iter_batches(chunk):
            before, applier.journal = applier.image, []
            after = applier.apply(chunk[position : position + header.size])
            if after is not before:  # within a transaction the image does not change
                yield Followed(before=before, after=after, changes=tuple(applier.journal))
            if after.acls.overlay_size > max(_MANY_CHANGES, len(after.acls) // _SHARE):
                merged = after.acls.merged()
                check_mapping(after.acls)  # else what was written over a file would live on in the merged index
                applier.put_acls(merged)


def _applier(image: Image) -> Applier:
    return Applier(image=image, newer=NewerKafka(strict=False))


def next_batches(log: LogReader, offset: int, timeout: float) -> bytes | None:
    """Return the batches from an offset; none if none is committed in time, None if the log begins above it.

    Raises:
        MetadataError: the log is damaged, deleted or closed, or can never be followed again.

    """
    if offset < log.start_offset():
        return None
    try:
        return log.read(offset) if log.wait(offset, timeout) else b""
    except LogError:
        if offset < log.start_offset():  # it has begun to in the meantime
            return None
        raise


# Recovery: the newest valid checkpoint, then the log after it (what a Kafka node does at startup).


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
        recovered = recover_log(reader, checkpoints, as_of, newer=newer, progress=progress)
        missing = () if committed is None else committed.notes(reader.high_watermark())
        notes = (*missing, *reader.notes, *recovered.notes)
        return Recovered(image=recovered.image, notes=notes, source=recovered.source, applier=recovered.applier)


def _recover_file(path: Path, as_of: Moment | None, newer: NewerKafka) -> Recovered:
    notes: list[str] = []
    image = state_in(path, as_of, newer=newer, notify=notes.append)
    applier = Applier(image=image, newer=newer)
    return Recovered(image=image, notes=(*notes, *newer.warnings()), source=str(path), applier=applier)


def recover_log(
    reader: LogReader | None,
    checkpoints: Sequence[CheckpointFile],
    as_of: Moment | None = None,
    *,
    newer: NewerKafka | None = None,
    progress: Progress | None = None,
    start: Image | None = None,
) -> Recovered:
    """Return the state of a log, wherever it is stored, using these checkpoints (sorted by offset).

    `start` is a state that was replayed from it before, from which the newest state is replayed.

    Raises what `recover` raises.
    """
    recovery = _Recovery(
        reader=reader, checkpoints=checkpoints, newer=newer or NewerKafka(), progress=progress, start=start
    )
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
    start: Image | None = None
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
        release_freed_memory()
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
        if self.start is not None and as_of is None and log_start is not None and self.start.end_offset >= log_start:
            return self.start, None
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


def _size_below(chunk: bytes, limit: int) -> int:
    """Return how many bytes of a chunk of whole batches are below the offset `limit`, up to a whole batch."""
    batches, _ = scan_batches(chunk)
    beyond = (batches.end_offset > limit).nonzero()[0]
    return int(batches.position[beyond[0]]) if len(beyond) else len(chunk)
