"""State sources at a path: a log directory, a checkpoint file, or a file of ACLs."""

from itertools import islice
from pathlib import Path

from attrs import define, field

from aclog.authorizer.change_place import ChangePlace
from aclog.authorizer.premises import Premise
from aclog.metalog.batches import decode_batch
from aclog.metalog.control_records import LeaderChange, decode_control
from aclog.metalog.errors import LogError
from aclog.metalog.filelog import FileLogReader, open_reader
from aclog.metalog.filelog.committed_mark import CommittedMark, read_committed
from aclog.metalog.filelog.epochs import read_epochs
from aclog.metalog.filelog.file_names import list_checkpoints, list_segments
from aclog.metalog.filelog.locks import kafka_log_dir
from aclog.metalog.filelog.mirror_properties import read_mirror_properties
from aclog.metalog.filelog.notice import notices
from aclog.metalog.filelog.reader import UNCOMMITTED_TAIL
from aclog.snapshots.applier import Applier
from aclog.snapshots.image import Image
from aclog.snapshots.mapped_file import check_mapping
from aclog.snapshots.moments import Moment
from aclog.snapshots.newer_kafka import NewerKafka
from aclog.snapshots.recovery import Recovered, recover, recover_log
from aclog.snapshots.state_source import StateSource
from aclog.sources.acls_source import AclsSource
from aclog.sources.gaps import newer_gaps, tail_gaps
from aclog.sources.log_bytes import in_bytes
from aclog.sources.log_mark import LogMark
from aclog.sources.notify import Notify
from aclog.sources.sync_properties import read_sync_properties
from aclog.sources.text_lines import STDIN
from aclog.terminal.progress import Advance

METADATA_PARTITION = "__cluster_metadata-0"
_LOOKED_AT = 1000
"""Paths that are looked at for files of rules, where no log is."""
_RULE_FILES = frozenset((".yaml", ".yml", ".tf", ".jsonl", ".csv"))
_READ_BYTES = 16 << 20
"""Per read while following a log: large enough for bulk replay, small enough for memory."""


@define(eq=False)
class LogSource:
    """A directory of segments and checkpoints; each `image` continues from the one before.

    Raises LogError when it is made of a file.
    """

    directory: Path
    notify: Notify
    progress: Advance | None = None
    """Called with the bytes that have been replayed."""
    _reader: FileLogReader | None = field(default=None, init=False)
    _newest: Recovered | None = field(default=None, init=False)
    _last: Applier | None = field(default=None, init=False)
    """What replayed the state that was returned last."""
    _committed: CommittedMark | None = field(default=None, init=False)
    """As it was when a state was last read from the beginning."""
    _mark: LogMark | None = field(default=None, init=False)
    """Of the newest state; None without a log."""
    _notified: set[str] = field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        if self.directory.is_file():
            raise LogError(
                f"{self.directory}: not a directory: expected --acls for a file of ACLs, --snapshot for a checkpoint"
            )
        if self.directory.is_dir():
            self._notify(notices(self.directory))

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
        if self._reader is None and list_segments(self.directory):
            self._reader = open_reader(self.directory)
        return self._reader

    @property
    def left_out(self) -> bool:
        """Whether the newest state lacks what a newer Kafka has added to the log."""
        return self._newest is not None and bool(self._newest.applier.newer.warnings())

    @property
    def change_place(self) -> ChangePlace:
        """The directory if `aclog acls` may change it: it has segments, and no node, `sync` or `mirror` owns it."""
        owned = (
            list_segments(self.directory)
            and kafka_log_dir(self.directory) is None
            and read_sync_properties(self.directory) is None
            and read_mirror_properties(self.directory) is None
        )
        return ChangePlace(log=self.name) if owned else ChangePlace()

    def image(self) -> Image:
        """Return the newest committed state.

        Raises:
            ReplacedError: another log is here than the one that the state before was read from.
            MetadataError: as aclog.snapshots.recovery.recover.

        """
        log, mark = self.log, self._mark
        self._notify(notices(self.directory))  # it may be newer than the log's last recovery
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
        """Return what the state that was returned last lacks; of the newest one if none was yet. Raises as `image`."""
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
            MetadataError: as snapshots.recovery.recover.

        """
        self._check_same()
        found = self._recover(moment).image
        self._check_same()  # and was while it was read
        return found

    def freshness(self) -> None:
        """Return None: a directory is read as it is. A notice that its writer has left since is told."""
        self._notify(notices(self.directory))

    def close(self) -> None:
        """Close open files; idempotent."""
        if self._reader is not None:
            self._reader.close()

    def _check_same(self) -> None:
        if self._mark is not None:
            self._mark.compare()

    def _begin(self) -> Recovered:
        """Read the newest state anew, to go on from there."""
        self._newest, log = self._recover(None), self.log
        self._mark = None if log is None else LogMark(log=log)
        if self._mark is not None:
            self._mark.set_before(self._newest.applier.next_offset)
        return self._newest

    def _recover(self, moment: Moment | None) -> Recovered:
        committed = self._committed = read_committed(self.directory)  # before the log: a live writer moves it on first
        if committed is not None:
            committed.check_exists()  # a checkpoint alone would be a state without most of the rules
        checkpoints = list_checkpoints(self.directory)
        if not checkpoints and self.log is None:
            raise LogError(f"{self.directory}: not a metadata log: {_what_is_there(self.directory)}")
        if not checkpoints and self.log is not None and self.log.high_watermark() == 0:
            self._refuse_other_files()
        # A reader skips what a newer Kafka added, with a warning; a writer (strict) must understand every record.
        newer = NewerKafka(strict=False)
        shown = None if self.progress is None else in_bytes(self.directory, self.progress)
        found = recover_log(self.log, checkpoints, moment, newer=newer, progress=shown)
        if committed is not None and self.log is not None:
            self._notify(committed.notes(self.log.high_watermark()))
        self._notify(found.notes if self.log is None else (*_notes_of(self.log, found.image), *found.notes))
        self._last = found.applier
        return found

    def _refuse_other_files(self) -> None:
        """Refuse segments without a single whole batch: that is some other file, not a truncated log."""
        for segment in list_segments(self.directory):
            if segment.path.stat().st_size:
                raise LogError(f"{segment.path}: not a metadata log: it does not begin with a whole batch")

    def _notify(self, notes: tuple[str, ...]) -> None:
        for note in notes:
            if note not in self._notified:
                self._notified.add(note)
                self.notify(note)


def _what_is_there(directory: Path) -> str:
    if not directory.exists():
        return "no such directory"
    if (directory / METADATA_PARTITION).is_dir():
        return f"it has no segments: did you mean its {METADATA_PARTITION}?"
    if any(_may_hold_rules(path) for path in islice(directory.rglob("*"), _LOOKED_AT)):
        return f"it has no segments (*.log) and no checkpoints: did you mean --acls {directory}?"
    return "it has no segments (*.log) and no checkpoints"


def _may_hold_rules(path: Path) -> bool:
    return path.suffix in _RULE_FILES and not any(part.startswith(".") for part in path.parts)


def _notes_of(log: FileLogReader, image: Image) -> tuple[str, ...]:
    """Return the notes of a log, without that of an uncommitted tail if its quorum has a single voter.

    With a single voter, whatever the log holds is committed. `image` is the newest state of the log.

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
    *_, start = read_epochs(log.directory) or [None]
    if start is None or not log.start_offset() <= start.start_offset < log.high_watermark():
        return None
    batch = decode_batch(log.read(start.start_offset, max_bytes=1))  # a read returns at least one whole batch
    if not batch.header.is_control:
        return None
    control = decode_control(batch.records[0].key or b"", batch.records[0].value)
    return control if isinstance(control, LeaderChange) else None


@define(eq=False)
class CheckpointSource:
    """One checkpoint file."""

    path: Path
    notify: Notify
    _image: Image | None = field(default=None, init=False)
    _gaps: tuple[Premise, ...] = field(default=(), init=False)

    log: None = field(default=None, init=False)
    """None: there is no log to follow."""

    change_place: ChangePlace = field(factory=ChangePlace, init=False)
    """A cluster whose address is not known."""

    @property
    def name(self) -> str:
        """The file."""
        return str(self.path)

    def image(self) -> Image:
        """Return the state in the checkpoint. Raises CheckpointError; LogError: its image file was overwritten."""
        if self._image is None:
            self._image = self._recover(None)
        check_mapping(self._image.acls)
        return self._image

    def gaps(self) -> tuple[Premise, ...]:
        """Return what the state lacks. Raises as `image`."""
        self.image()
        return self._gaps

    def freshness(self) -> None:
        """Return None: a file is read as it is."""

    def close(self) -> None:
        """Do nothing: no file is kept open."""

    def image_at(self, moment: Moment) -> Image:
        """Return the state in the checkpoint if it is that of the moment. Raises LogError otherwise."""
        return self._recover(moment)

    def _recover(self, moment: Moment | None) -> Image:
        if not self.path.is_file():
            raise LogError(f"{self.path}: not a file: expected a checkpoint")
        found = recover(self.path, moment, strict=False)
        for note in found.notes:
            self.notify(note)
        self._gaps = newer_gaps(found.applier.newer)
        return found.image


def open_path(path: str, notify: Notify, progress: Advance | None = None) -> StateSource:
    """Return the source at a path: a directory is a log, `*.checkpoint` a checkpoint, anything else a file of ACLs.

    Raises:
        LogError: there is no such file.

    """
    if path == STDIN:
        return AclsSource(path)
    found = Path(path)
    if not found.exists():
        raise LogError(f"{path}: no such file or directory")
    if found.is_dir():
        return LogSource(found, notify, progress)
    return CheckpointSource(found, notify) if ".checkpoint" in found.name else AclsSource(path)
