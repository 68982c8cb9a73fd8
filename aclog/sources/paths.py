"""Where a state comes from: a log directory, a checkpoint file, or a file of rules."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from attrs import define, field

from aclog.authorizer.acls_image import AclsImage
from aclog.metalog.batches import decode_batch
from aclog.metalog.control_records import LeaderChange, decode_control
from aclog.metalog.errors import ConfigError, LogError, ReplayError
from aclog.metalog.filelog import FileLogReader, open_reader
from aclog.metalog.filelog.epochs import read_epochs
from aclog.metalog.filelog.file_names import list_checkpoints, list_segments
from aclog.metalog.filelog.locks import kafka_log_dir
from aclog.metalog.filelog.reader import UNCOMMITTED_TAIL
from aclog.snapshots.image import Image
from aclog.snapshots.moments import Moment
from aclog.snapshots.newer_kafka import NewerKafka
from aclog.snapshots.recovery import Progress, Recovered, recover, recover_log
from aclog.snapshots.state_source import StateSource
from aclog.sources.acl_lines import read_acls
from aclog.sources.sync_properties import read_sync_properties, refuse_before_first_poll
from aclog.sources.text_lines import STDIN, display_name

Notify: TypeAlias = Callable[[str], None]
"""Told each note of a recovery once: a torn tail, a lowered offset, a checkpoint that was passed over."""

METADATA_PARTITION = "__cluster_metadata-0"
_READ_BYTES = 16 << 20


@define(eq=False)
class LogSource:
    """A directory of segments and checkpoints; its newest image follows the log from one question to the next."""

    directory: Path
    notify: Notify
    progress: Progress | None = None
    _reader: FileLogReader | None = field(default=None, init=False)
    _newest: Recovered | None = field(default=None, init=False)
    _told: set[str] = field(factory=set, init=False)

    @property
    def name(self) -> str:
        """The directory."""
        return str(self.directory)

    @property
    def log(self) -> FileLogReader | None:
        """The log, which is followed live; None for a directory that holds nothing but checkpoints.

        Raises:
            LogError: it is no log.

        """
        if self._reader is None and list_segments(self.directory):
            self._reader = open_reader(self.directory)
        return self._reader

    @property
    def writable_log(self) -> str | None:
        """The directory, unless it is of a Kafka, or tells of one, which its own tools change; or has no segments."""
        ours = (
            list_segments(self.directory)
            and kafka_log_dir(self.directory) is None
            and read_sync_properties(self.directory) is None
        )
        return self.name if ours else None

    def image(self) -> Image:
        """The newest committed state. Raises as aclog.snapshots.recovery.recover."""
        log = self.log
        if self._newest is None or log is None:
            self._newest = self._recover(None)
            return self._newest.image
        applier = self._newest.applier
        try:
            while applier.next_offset < log.high_watermark():
                applier.apply(log.read(applier.next_offset, _READ_BYTES))
        except LogError:  # retention took away what comes next, and left a checkpoint instead
            self._newest = self._recover(None)
        return self._newest.applier.image

    def image_at(self, moment: Moment) -> Image:
        """The state at a moment.

        Raises:
            MetadataError: as snapshots.recovery.recover; or a time before `aclog sync` knew anything of its cluster.

        """
        refuse_before_first_poll(self.directory, moment)
        return self._recover(moment).image

    def close(self) -> None:
        """Let go of open files; a second close is nothing."""
        if self._reader is not None:
            self._reader.close()

    def _recover(self, moment: Moment | None) -> Recovered:
        checkpoints = list_checkpoints(self.directory)
        if not checkpoints and self.log is None:
            raise LogError(f"{self.directory}: not a metadata log: {_what_is_there(self.directory)}")
        if not checkpoints and self.log is not None and self.log.high_watermark() == 0:
            self._check_is_empty()
        newer = NewerKafka(strict=False)
        found = recover_log(self.log, checkpoints, moment, newer=newer, progress=self.progress)
        self._tell(found.notes if self.log is None else (*_notes_of(self.log, found.image), *found.notes))
        return found

    def _check_is_empty(self) -> None:
        """Refuse bytes of which not one batch is whole: they are no log that was cut, but something else."""
        for segment in list_segments(self.directory):
            if segment.path.stat().st_size:
                raise LogError(f"{segment.path}: not a metadata log: it does not begin with a whole batch")

    def _tell(self, notes: tuple[str, ...]) -> None:
        for note in notes:
            if note not in self._told:
                self._told.add(note)
                self.notify(note)


def _what_is_there(directory: Path) -> str:
    if not directory.exists():
        return "no such directory"
    if not directory.is_dir():
        return "not a directory"
    if (directory / METADATA_PARTITION).is_dir():
        return f"it holds no segments; {METADATA_PARTITION} in it may be meant"
    return "it holds no segments (*.log) and no checkpoints"


def _notes_of(log: FileLogReader, image: Image) -> tuple[str, ...]:
    """What is to be said of a log, whose newest state is `image`, without what a sole voter makes void.

    Raises:
        LogError, DecodeError: the log cannot be read where its last epoch begins.

    """
    if not any(note.endswith(UNCOMMITTED_TAIL) for note in log.notes) or not _has_one_voter(log, image):
        return log.notes
    return tuple(note for note in log.notes if not note.endswith(UNCOMMITTED_TAIL))


def _has_one_voter(log: FileLogReader, image: Image) -> bool:
    """Whether the newest voters that the log tells of are one; False where it tells of none.

    A KRaftVoters record says who they are (KIP-853), in a static quorum the LeaderChange that began the last epoch.
    """
    voters = image.provenance.voters
    if voters is not None:
        return len(voters.voters) == 1
    leader = _last_leader_change(log)
    return leader is not None and len(leader.voters) == 1


def _last_leader_change(log: FileLogReader) -> LeaderChange | None:
    *_, start = read_epochs(log.directory) or [None]
    if start is None or not log.start_offset() <= start.start_offset < log.high_watermark():
        return None
    batch = decode_batch(log.read(start.start_offset, max_bytes=1))
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

    log: None = field(default=None, init=False)
    """Nothing to follow."""

    writable_log: None = field(default=None, init=False)
    """Nothing to change."""

    @property
    def name(self) -> str:
        """The file."""
        return str(self.path)

    def image(self) -> Image:
        """The checkpoint's state. Raises CheckpointError."""
        if self._image is None:
            self._image = self._recover(None)
        return self._image

    def close(self) -> None:
        """Nothing is held."""

    def image_at(self, moment: Moment) -> Image:
        """The checkpoint's state, if it is that of the moment. Raises LogError otherwise."""
        return self._recover(moment)

    def _recover(self, moment: Moment | None) -> Image:
        if not self.path.is_file():
            raise LogError(f"{self.path}: not a file: expected a checkpoint")
        found = recover(self.path, moment, strict=False)
        for note in found.notes:
            self.notify(note)
        return found.image


@define(eq=False)
class AclsSource:
    """A file of rules as JSON lines, or stdin."""

    path: str
    _image: Image | None = field(default=None, init=False)

    log: None = field(default=None, init=False)
    """Nothing to follow."""

    writable_log: None = field(default=None, init=False)
    """Nothing to change."""

    @property
    def name(self) -> str:
        """The file."""
        return display_name(self.path)

    def image(self) -> Image:
        """A state of nothing but these rules.

        Raises:
            ConfigError: a line that is no rule, or two rules that cannot stand beside one another.
            OSError: the file cannot be read.

        """
        if self._image is None:
            try:
                acls = AclsImage.from_acls(read_acls(self.path))
            except ReplayError as error:
                raise ConfigError(f"{self.name}: {error.what}") from error
            self._image = Image(acls=acls)
        return self._image

    def close(self) -> None:
        """Nothing is held."""

    def image_at(self, moment: Moment) -> Image:
        """Raises ConfigError: a file of rules holds no past."""
        raise ConfigError(f"{self.name}: as of {moment}: a file of rules holds one state only")


def open_path(path: str, notify: Notify, progress: Progress | None = None) -> StateSource:
    """The source at a path: a directory is a log, `*.checkpoint` a checkpoint, anything else a file of rules.

    Raises:
        LogError: there is nothing.

    """
    if path == STDIN:
        return AclsSource(path)
    found = Path(path)
    if not found.exists():
        raise LogError(f"{path}: no such file or directory")
    if found.is_dir():
        return LogSource(found, notify, progress)
    return CheckpointSource(found, notify) if ".checkpoint" in found.name else AclsSource(path)
