"""State sources at a path: a log directory, a checkpoint, an image file."""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from uuid import UUID

from attrs import field

from aclog.authorizer.acl import ChangePlace, LogOrigin, Origin, StandardAcl
from aclog.authorizer.index.layout import Pause, no_pause
from aclog.authorizer.standard import Premise
from aclog.metalog.batches import decode_batch, last_batch, read_header
from aclog.metalog.committed_log import LogReader
from aclog.metalog.control_records import LeaderChange, decode_control
from aclog.metalog.errors import NO_SUCH_PATH, ConfigError, DecodeError, LogError
from aclog.metalog.filelog import FileLogReader, files, open_reader
from aclog.metalog.filelog.committed_mark import CommittedMark, read_committed
from aclog.metalog.filelog.locks import LOCK_FILE, kafka_log_dir
from aclog.metalog.filelog.meta_properties import read_meta_properties
from aclog.metalog.filelog.verify import UNCOMMITTED_TAIL
from aclog.metalog.records import AccessControlEntryRecord
from aclog.metalog.text_forms import format_properties, parse_properties
from aclog.metalog.values import define, frozen
from aclog.snapshots.applier import Applier
from aclog.snapshots.history import Change, TopicHistory, history_from, start_of_history, visible_records
from aclog.snapshots.image import Image, NewerKafka, StateSource
from aclog.snapshots.image_file import check_mapping
from aclog.snapshots.log_image import LogImages, Stamps, stamps_of
from aclog.snapshots.moments import Moment
from aclog.snapshots.publisher import Progress, Recovered, recover_log
from aclog.snapshots.record_filters import AclsNear, AdditionsOf
from aclog.sources.checkpoint import rules_hint
from aclog.sources.notes import Notify, newer_gaps, tail_gaps
from aclog.terminal.notices import Advance

# Progress of the replay of a directory in bytes: offsets indicate only roughly how long they take.


def in_bytes(directory: Path, advance: Advance) -> Progress:
    """Return a function that reports offsets as bytes since the first one, interpolated within a segment."""
    segments = files.list_segments(directory)
    starts = [each.base_offset for each in segments]
    sizes = [each.path.stat().st_size for each in segments]
    began: list[int] = []

    def bytes_below(offset: int, end: int) -> int:
        """Return how many bytes precede an offset of a log that ends at `end`."""
        number = max(bisect_right(starts, offset) - 1, 0)
        last = starts[number + 1] if number + 1 < len(starts) else max(end, offset)
        share = (offset - starts[number]) / max(last - starts[number], 1)
        return sum(sizes[:number]) + round(sizes[number] * min(max(share, 0), 1))

    def report(reached: int, limit: int) -> None:
        """Report the amount done, and the total. See aclog.snapshots.publisher.Progress."""
        done, total = bytes_below(reached, limit), bytes_below(limit, limit)
        if not began:
            began.append(done)
        advance(done - began[0], total - began[0])

    return report if segments else lambda _reached, _limit: None


# Whether a log in files still is the one that was read: a directory may be deleted, and another log put there.


class ReplacedError(LogError):
    """Another log is where the one was that was read."""


@frozen(kw_only=True)
class _Marked:
    """A batch, and where it was."""

    offset: int
    """Where it begins."""
    batch: bytes
    directory: tuple[int, int]
    """The directory's identity: the only evidence if retention seems to have deleted the batch."""


@define(eq=False, kw_only=True)
class LogMark:
    """The last batch that was read, to be compared with the current one there: by any thread, while one marks.

    A log that is read over the network is not checked: its reader verifies the cluster that it follows.
    """

    log: LogReader
    _marked: _Marked | None = field(default=None, init=False)
    """None before a batch is marked."""

    @property
    def is_set(self) -> bool:
        """Whether a batch is marked."""
        return self._marked is not None

    def compare(self) -> None:
        """Compare the batch that was marked.

        Raises:
            ReplacedError: another batch, or none, is at its offset; or it is below the log's first one, and the
                directory is another.
            MetadataError, OSError: the log cannot be read.

        """
        marked = self._marked
        if marked is None:
            return
        if self._is_deleted(marked):
            self._compare_directory(marked)
            return
        try:
            batch = self.log.read(marked.offset, 1)
        except (DecodeError, LogError) as error:
            if self._is_deleted(marked):  # meanwhile
                self._compare_directory(marked)
                return
            raise self._replaced(marked) from error
        if batch != marked.batch:
            raise self._replaced(marked)

    def set_before(self, end: int) -> None:
        """Mark the batch before an end offset, if the log has it. Raises MetadataError, OSError: it cannot be read."""
        if isinstance(self.log, FileLogReader) and end > 0 and end - 1 >= self.log.start_offset():
            self.set_in(self.log.read(end - 1, 1))

    def set_in(self, chunk: bytes) -> None:
        """Mark the last one of some whole batches that were read, at least one."""
        if isinstance(self.log, FileLogReader):
            batch = chunk[last_batch(chunk) :]
            offset = read_header(batch).base_offset
            self._marked = _Marked(offset=offset, batch=batch, directory=_identity_of(self.log))

    def _is_deleted(self, marked: _Marked) -> bool:
        """Return whether retention has deleted the batch."""
        return marked.offset < self.log.start_offset()

    def _compare_directory(self, marked: _Marked) -> None:
        if isinstance(self.log, FileLogReader) and _identity_of(self.log) != marked.directory:
            raise self._replaced(marked)

    def _replaced(self, marked: _Marked) -> ReplacedError:
        return ReplacedError(
            f"{self.log.name}: another log is here than the one that was read, or it was cut: at offset "
            f"{marked.offset} there is something else: start again to read it"
        )


def _identity_of(log: FileLogReader) -> tuple[int, int]:
    """Return the identity of a log's directory in the file system. Raises OSError: it does not exist."""
    status = log.directory.stat()
    return status.st_dev, status.st_ino


_DIGEST_BYTES = 7
"""Of a digest: positive as a word of 8 bytes."""


def log_digest(log: LogReader | None, end: int) -> int:
    """Return a number that differs between logs: from the batch before an end offset, or from the id of the cluster.

    0 if it is unknown: there is no log, or retention has deleted the batch.

    Raises:
        MetadataError, OSError: the log cannot be read there.

    """
    if isinstance(log, FileLogReader):
        content = b"" if end - 1 < log.start_offset() else log.read(end - 1, 1)
    else:
        content = (getattr(log, "known_cluster_id", None) or "").encode()
    return int.from_bytes(blake2b(content, digest_size=_DIGEST_BYTES).digest()) if content else 0


# The file `sync.properties`, which marks a log directory that `aclog sync` writes, and since when it does.


SYNC_FILE = "sync.properties"
_COMMENT = "Written by `aclog sync`: no other program may append to this log."
_VERSION = "1"


@frozen(kw_only=True)
class SyncProperties:
    """The recorded cluster, and when its first response arrived (ms since 1970)."""

    cluster_id: str
    first_poll: int


def read_sync_properties(directory: Path) -> SyncProperties | None:
    """Return the properties of a directory; None if it has no such file, so is not written by `aclog sync`.

    Raises:
        DecodeError: the file is malformed or of an unknown version.
        LogError: it cannot be read.

    """
    path = directory / SYNC_FILE
    data = files.read_small(path)
    if data is None:
        return None
    try:
        values = parse_properties(data)
    except ValueError:
        raise DecodeError("not a properties file", path=str(path)) from None
    if values.get("version") != _VERSION:
        raise DecodeError(f"version {values.get('version')} is unknown: expected {_VERSION}", path=str(path))
    cluster_id, first_poll = values.get("cluster.id"), values.get("first.poll.ms", "")
    if not cluster_id or not (first_poll.isascii() and first_poll.isdecimal() and len(first_poll) < 19):
        raise DecodeError("expected cluster.id, and first.poll.ms as a number", path=str(path))
    return SyncProperties(cluster_id=cluster_id, first_poll=int(first_poll))


def write_sync_properties(directory: Path, properties: SyncProperties) -> None:
    """Write the file durably. Raises LogError: it cannot be written."""
    values = {
        "version": _VERSION,
        "cluster.id": properties.cluster_id,
        "first.poll.ms": str(properties.first_poll),
    }
    text = format_properties(values, comments=_COMMENT)
    files.replace_durably(directory / SYNC_FILE, text)


def refuse_other_writers(directory: Path) -> None:
    """Refuse to write to a directory that `aclog sync` writes.

    Raises:
        LogError: `aclog sync` writes it: any other record would look like a change of the cluster.
        DecodeError: its sync.properties is damaged.

    """
    properties = read_sync_properties(directory)
    if properties is not None:
        raise LogError(
            f"{directory}: the record of cluster {properties.cluster_id}: only `aclog sync` appends to it; "
            f"to change it, make a copy without {SYNC_FILE}"
        )


# The cluster that a log directory belongs to.


def cluster_id_of(directory: Path) -> str | None:
    """Return the id of the cluster whose log this is, which may be one of `aclog sync`; None if no file has it.

    Raises:
        MetadataError: the file with the id is malformed, or cannot be read.

    """
    synced = read_sync_properties(directory)
    if synced is not None:
        return synced.cluster_id
    place = kafka_log_dir(directory)
    properties = None if place is None else read_meta_properties(place)
    if properties is not None:
        return properties.cluster_id
    mark = read_committed(directory)  # as a copy of a node's log has it without meta.properties
    return None if mark is None else mark.cluster_id or None


def cluster_of(source: StateSource) -> str | None:
    """Return the id of a source's cluster: only the directory of a log has it. Raises as `cluster_id_of`."""
    return cluster_id_of(source.directory) if isinstance(source, LogSource) else None


# State sources at a path: a log directory, a checkpoint file, or a file of ACLs.


METADATA_PARTITION = "__cluster_metadata-0"
_READ_BYTES = 16 << 20
"""Per read while following a log: large enough for bulk replay, small enough for memory."""


_KEEP_AFTER = 50_000
"""Records since the state that was kept last, after which the newest one is kept."""


@define(eq=False)
class LogSource:
    """A directory of segments and checkpoints; each `image` continues from the one before.

    Raises LogError when it is made of a file.
    """

    directory: Path
    notify: Notify
    progress: Advance | None = None
    """Called with the bytes that have been replayed."""
    images: LogImages | None = None
    """Where the state of a large log is kept, so that the next command need not replay it."""
    _reader: FileLogReader | None = field(default=None, init=False)
    _newest: Recovered | None = field(default=None, init=False)
    _last: Applier | None = field(default=None, init=False)
    """The applier of the state that was returned last."""
    _committed: CommittedMark | None = field(default=None, init=False)
    """The mark when a state was last read from the beginning."""
    _mark: LogMark | None = field(default=None, init=False)
    """The mark of the newest state; None without a log."""
    _notified: set[str] = field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        if self.directory.is_file():
            raise LogError(
                f"{self.directory}: not a directory: expected --acls for a file of ACLs, --snapshot for a checkpoint"
            )
        if self.directory.is_dir():
            self._notify(files.notices(self.directory))

    @property
    def name(self) -> str:
        """The directory."""
        return str(self.directory)

    @property
    def log(self) -> FileLogReader | None:
        """The log; None for a directory of checkpoints only.

        Raises:
            LogError: the directory is not a log.

        """
        if self._reader is None and files.list_segments(self.directory):
            self._reader = open_reader(self.directory)
        return self._reader

    @property
    def left_out(self) -> bool:
        """Whether the newest state lacks records that a newer Kafka has added to the log."""
        return self._newest is not None and bool(self._newest.applier.newer.warnings())

    @property
    def change_place(self) -> ChangePlace:
        """The directory if it is aclog's: it has segments, and no node, `sync` or `mirror` owns it.

        A copy of Kafka's log has no lock of aclog: a fix belongs on the cluster, not in the copy.
        """
        owned = (
            files.list_segments(self.directory)
            and (self.directory / LOCK_FILE).exists()
            and kafka_log_dir(self.directory) is None
            and read_sync_properties(self.directory) is None
            and files.read_mirror_properties(self.directory) is None
        )
        return ChangePlace(log=self.name) if owned else ChangePlace()

    def image(self) -> Image:
        """Return the newest committed state.

        Raises:
            ReplacedError: another log is here than the one that the state before was read from.
            MetadataError: as aclog.snapshots.publisher.recover.

        """
        log, mark = self.log, self._mark
        self._notify(files.notices(self.directory))  # it may be newer than the log's last recovery
        if self._newest is None or log is None or mark is None:
            return self._begin().image
        mark.compare()
        applier = self._newest.applier
        # Never past the high-water mark: what lies above it may still be truncated by the writer.
        try:
            check_mapping(applier.image.acls)
            while applier.next_offset < log.high_watermark():
                chunk = log.read(applier.next_offset, _READ_BYTES)
                applier.apply(chunk)
                mark.set_in(chunk)
        except LogError:  # retention deleted the next offset, or the image file in use was overwritten
            return self._begin().image
        self._last = applier
        return applier.image

    def gaps(self) -> tuple[Premise, ...]:
        """Return the gaps of the state that was returned last; of the newest one if none was yet. Raises as `image`."""
        if self._last is None:
            self.image()
        if self._last is None:
            return ()
        newer, log = newer_gaps(self._last.newer), self.log
        if log is None or self._last.next_offset < log.high_watermark():
            return newer
        missing = () if self._committed is None else self._committed.notes(log.high_watermark())
        return (*newer, *tail_gaps(missing, log.torn_note))

    def image_at(self, moment: Moment) -> Image:
        """Return the state at a moment.

        Raises:
            ReplacedError: another log is here than the one that the newest state was read from.
            MetadataError: as snapshots.publisher.recover.

        """
        self._check_same()
        image = self._recover(moment).image
        self._check_same()  # and was while it was read
        return image

    def freshness(self) -> None:
        """Return None: a directory is read as it is. Prints a notice if its writer has left since."""
        self._notify(files.notices(self.directory))

    def close(self) -> None:
        """Close open files; idempotent."""
        if self._reader is not None:
            self._reader.close()

    def _check_same(self) -> None:
        if self._mark is not None:
            self._mark.compare()

    def _begin(self) -> Recovered:
        """Read the newest state anew, to continue from there."""
        self._newest, log = self._recover(None), self.log
        self._mark = None if log is None else LogMark(log=log)
        if self._mark is not None:
            self._mark.set_before(self._newest.applier.next_offset)
        return self._newest

    def _recover(self, moment: Moment | None) -> Recovered:
        committed = self._committed = read_committed(self.directory)  # before the log: a live writer moves it on first
        if committed is not None:
            committed.check_exists()  # a checkpoint alone would be a state without most of the rules
        checkpoints = files.list_checkpoints(self.directory)
        if not checkpoints and self.log is None:
            raise LogError(f"{self.directory}: not a metadata log: {_what_is_there(self.directory)}")
        if not checkpoints and self.log is not None and self.log.high_watermark() == 0:
            self._refuse_other_files()
        # A reader skips records of a newer Kafka, with a warning; a writer (strict) must understand every record.
        newer = NewerKafka(strict=False)
        progress = None if self.progress is None else in_bytes(self.directory, self.progress)
        log, start = self.log, None
        before: Stamps = ()
        if log is not None and moment is None and self.images is not None:
            before = stamps_of(self.directory, checkpoints)
            start = self.images.read(self.directory, checkpoints, log.high_watermark())
        recovered = recover_log(log, checkpoints, moment, newer=newer, progress=progress, start=start)
        if before and self.images is not None:
            self._keep(self.images, recovered, checkpoints, before, start)
        if committed is not None and self.log is not None:
            self._notify(committed.notes(self.log.high_watermark()))
        self._notify(recovered.notes if self.log is None else (*_notes_of(self.log, recovered.image), *recovered.notes))
        self._last = recovered.applier
        return recovered

    def _keep(
        self,
        images: LogImages,
        recovered: Recovered,
        checkpoints: tuple[files.CheckpointFile, ...],
        before: Stamps,
        start: Image | None,
    ) -> None:
        """Keep a state that took long to replay: all committed batches, outside of a transaction, all understood."""
        applier, begun = recovered.applier, 0 if start is None else start.end_offset
        is_whole = not applier.in_transaction and not applier.newer.warnings() and not recovered.notes
        if is_whole and (start is None or applier.next_offset - begun > _KEEP_AFTER):
            images.write(self.directory, checkpoints, recovered.image, before)

    def _refuse_other_files(self) -> None:
        """Refuse segments without a single whole batch: that is some other file, not a truncated log."""
        for segment in files.list_segments(self.directory):
            if segment.path.stat().st_size:
                raise LogError(f"{segment.path}: not a metadata log: it does not begin with a whole batch")

    def _notify(self, notes: tuple[str, ...]) -> None:
        for note in notes:
            if note not in self._notified:
                self._notified.add(note)
                self.notify(note)


def _what_is_there(directory: Path) -> str:
    if not directory.exists():
        return NO_SUCH_PATH
    if (directory / METADATA_PARTITION).is_dir():
        return f"it has no segments: did you mean its {METADATA_PARTITION}?"
    return f"it has no segments (*.log) and no checkpoints{rules_hint(directory)}"


def _notes_of(log: FileLogReader, image: Image) -> tuple[str, ...]:
    """Return the notes of a log, without that of an uncommitted tail if its quorum has a single voter.

    With a single voter, all records in the log are committed. `image` is the newest state of the log.

    Raises:
        LogError, DecodeError: the log cannot be read at the start of its last epoch.

    """
    if not any(note.endswith(UNCOMMITTED_TAIL) for note in log.notes) or not _has_one_voter(log, image):
        return log.notes
    return tuple(note for note in log.notes if not note.endswith(UNCOMMITTED_TAIL))


def _has_one_voter(log: FileLogReader, image: Image) -> bool:
    """Return whether the newest voter set in the log has one member; False if the log has none.

    In a dynamic quorum it is in a KRaftVoters record (KIP-853), in a static one in the LeaderChange of the last epoch.
    """
    voters = image.provenance.voters
    if voters is not None:
        return len(voters.voters) == 1
    leader = _last_leader_change(log)
    return leader is not None and len(leader.voters) == 1


def _last_leader_change(log: FileLogReader) -> LeaderChange | None:
    # Each epoch begins with the LeaderChange of its leader; the epoch file has the offsets. Retention may have deleted
    # that batch, and it may not be committed yet.
    *_, start = files.read_epochs(log.directory) or [None]
    if start is None or not log.start_offset() <= start.start_offset < log.high_watermark():
        return None
    batch = decode_batch(log.read(start.start_offset, max_bytes=1))  # a read returns at least one whole batch
    if not batch.header.is_control:
        return None
    control = decode_control(batch.records[0].key or b"", batch.records[0].value)
    return control if isinstance(control, LeaderChange) else None


# The history of a source's log: its first state, and every change of an ACL.


@frozen(eq=False, kw_only=True)
class LogHistory:
    """The state with which a history begins, and its rules and every later change, in order (rule_history)."""

    begin: Image
    changes: Iterator[Change]


def history_of(source: StateSource, names: Collection[str] | None = None) -> LogHistory:
    """Return the history of a source's log, up to the high-water mark.

    With `names`, only of ACLs that may cover one of them, or names that begin with one, and perhaps of others: the
    other records are not decoded, nor compared with one another, so first read the state, which replays them.

    Raises:
        ConfigError: the source is a single state.
        MetadataError: the log is damaged, or no checkpoint reaches its start; also while the changes are read.

    """
    log = log_of(source)
    begin = start_of(source)
    return LogHistory(begin=begin, changes=history_from(begin, log, None if names is None else AclsNear(names)))


def start_of(source: StateSource) -> Image:
    """Return the state with which the history of a source's log begins. Raises as history_of."""
    log = log_of(source)
    if isinstance(source, LogSource):
        checkpoints = files.list_checkpoints(source.directory)
    else:
        # Slow to import, and only needed here: a command on a log starts without it.
        from aclog.client.quorum_log import QuorumLog

        checkpoints = tuple(log.checkpoints()) if isinstance(log, QuorumLog) else ()
    return start_of_history(log, checkpoints)


def log_of(source: StateSource) -> LogReader:
    """Return the log of a source. Raises ConfigError: the source is a single state."""
    log = source.log
    if log is None:
        raise ConfigError(
            f"{source.name}: a single state has no history: use --log DIR or --bootstrap-controller HOST:PORT"
        )
    return log


# The origins of a state's rules and topics in the log of its source: when each was created.


@frozen(kw_only=True)
class LogPast:
    """Where some rules were added, and when topics existed (aclog.authorizer.acl.Origins)."""

    topics: TopicHistory
    _added: Mapping[StandardAcl, tuple[LogOrigin, int]] = field(alias="added")

    def of(self, acl: StandardAcl) -> tuple[Origin, ...]:
        """Return the record that added a rule; none if it is not from a log, or older than the log."""
        addition = self._added.get(acl)
        return () if addition is None else (addition[0],)

    def added(self, acls: Iterable[StandardAcl]) -> Iterator[tuple[StandardAcl, int]]:
        """Yield those of some rules whose addition the log has, with the end offset of the first state with each."""
        return ((acl, self._added[acl][1]) for acl in acls if acl in self._added)


def past_of(
    source: StateSource, end_offset: int, rules: Mapping[UUID, StandardAcl], pause: Pause = no_pause
) -> LogPast:
    """Read the log of a source up to a state; note where those of its rules were added, and all of its topics.

    `pause` is called at each record that is read for that.

    Raises:
        ConfigError: the source has no log.
        MetadataError: the log is damaged, or no checkpoint reaches its start.

    """
    log, begin = log_of(source), start_of(source)
    topics, added = TopicHistory.beginning(begin), dict[StandardAcl, tuple[LogOrigin, int]]()
    for entry in visible_records(begin.provenance, log, AdditionsOf({each.bytes for each in rules})):
        pause()
        if entry.end_offset > end_offset:
            break
        if isinstance(entry.record, AccessControlEntryRecord):
            origin = LogOrigin(offset=entry.offset, timestamp=entry.timestamp)
            added[rules[entry.record.id]] = (origin, entry.end_offset)
        else:
            topics.replay(entry)
    return LogPast(topics=topics, added=added)
