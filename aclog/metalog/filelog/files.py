"""The files of a log directory.

Their names, complete writes and durable replacement, `leader-epoch-checkpoint` and `quorum-state`.
"""

import errno
import fcntl
import json
import os
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

from attrs import evolve

from aclog.metalog.batches import crc32c
from aclog.metalog.errors import NO_SUCH_PATH, DecodeError, LogError
from aclog.metalog.machine import disk, randomness
from aclog.metalog.native import regex
from aclog.metalog.text_forms import format_properties, parse_properties
from aclog.metalog.values import frozen

if TYPE_CHECKING:
    from aclog.metalog.committed_log import EpochStart

# An open file and the name it was opened by: whether the two still belong together.


@frozen(kw_only=True)
class NamedFile:
    """The identity of an open file, and its absolute path.

    Bytes written to a file that was removed or replaced, or that is below a directory that was renamed, replaced or
    mounted over, are durable, but lost to the next opener of the path.
    """

    path: str
    device: int
    inode: int

    @classmethod
    def of(cls, fd: int, path: Path) -> Self:
        """Return the identity of an open file. Raises OSError."""
        status = disk.fstat(fd)
        # Absolute: a relative path would follow the working directory if that were renamed.
        return cls(path=os.path.abspath(path), device=status.st_dev, inode=status.st_ino)  # noqa: PTH100

    @property
    def identity(self) -> tuple[int, int]:
        """The device and the inode."""
        return self.device, self.inode

    def check(self) -> None:
        """Check that the path still leads to the file; costs a microsecond or two.

        Raises:
            LogError: it leads to another file, or nowhere.

        """
        try:
            there = disk.stat(self.path)
        except OSError as error:
            raise self._removal(error.strerror or str(error)) from error
        if (there.st_dev, there.st_ino) != (self.device, self.inode):
            raise self._removal("another file has its name")

    def _removal(self, why: str) -> LogError:
        return LogError(
            f"{self.path}: removed, renamed or replaced while it was open ({why}); nothing more is acknowledged. "
            "Put the file or its directory back before you start again"
        )


# The last line of a small text file that guards the others: `crc32c=` and eight hexadecimal digits.


_KEY = b"crc32c="


def with_checksum(text: bytes) -> bytes:
    """Return lines, followed by a line with the CRC-32C of all their bytes."""
    return text + _last_line(text)


def without_checksum(data: bytes) -> bytes | None:
    """Return the lines that `with_checksum` was given; None if the last line does not match them."""
    text, key, crc = data.rpartition(_KEY)
    return text if key + crc == _last_line(text) else None


def _last_line(text: bytes) -> bytes:
    return _KEY + f"{crc32c(text):08x}\n".encode("ascii")


# File system primitives of the file log: complete writes, durable replacement, and OSErrors as LogErrors.


FILE_MODE = 0o600
DIRECTORY_MODE = 0o700
TEMPORARY_SUFFIX = ".tmp"


def log_error(error: OSError, path: Path, doing: str) -> LogError:
    """Return an OSError as a LogError; a full disk or quota is named as such."""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return LogError(f"{path}: {doing}: the disk is full: free space on it")
    return LogError(f"{path}: {doing}: {error.strerror or error}")


def write_all(fd: int, data: bytes | memoryview) -> None:
    """Append all of `data` to a file opened with O_APPEND, continuing after short writes."""
    view = memoryview(data)
    while view:
        view = view[disk.write(fd, view) :]


def read_at(fd: int, position: int, size: int) -> bytes:
    """Read up to `size` bytes from `position`; fewer only at the end of the file."""
    data = disk.pread(fd, size, position)
    while 0 < len(data) < size:
        more = disk.pread(fd, size - len(data), position + len(data))
        if not more:
            break
        data += more
    return data


def fsync_directory(directory: Path) -> None:
    """Make the names that were created, renamed or removed in `directory` durable."""
    # fsync of a file does not cover its name: after a power loss the file may be gone from its directory.
    fd = disk.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        disk.fsync(fd)
    finally:
        disk.close(fd)


def make_directories(directory: Path) -> None:
    """Create a directory with its missing parents, all of their names durable. Raises OSError."""
    missing, there = [], directory
    while not there.is_dir() and there != there.parent:
        missing.append(there)
        there = there.parent
    # A crash may have left this one without a durable name, if it was being created.
    with suppress(*([PermissionError] if missing else [])):
        fsync_directory(there.parent)
    for each in reversed(missing):
        if each == directory:
            each.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
        else:
            each.mkdir(exist_ok=True)
        fsync_directory(each.parent)


def replace_durably(path: Path, data: bytes) -> None:
    """Replace the content of `path` so that a crash leaves either the old or the new content.

    Raises:
        LogError: the disk is full or fails.

    """
    partial = path.with_name(path.name + TEMPORARY_SUFFIX)
    try:
        fd = disk.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE)
        try:
            write_all(fd, data)
            disk.fsync(fd)
        finally:
            disk.close(fd)
        # The data must be durable before the rename, or a power loss could leave the new name with an empty file.
        partial.replace(path)
        fsync_directory(path.parent)
    except OSError as error:
        raise log_error(error, path, "cannot write") from error


def read_small(path: Path, limit: int = 1 << 20) -> bytes | None:
    """Return the content of a small file; None if it does not exist.

    Raises:
        LogError: it cannot be read, or is larger than `limit` bytes, which none of these files ever is.

    """
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise log_error(error, path, "cannot read") from error
    if len(data) > limit:
        raise LogError(f"{path}: larger than {limit} bytes, so not a file of this kind")
    return data


def truncate_failed(fd: int, size: int) -> None:
    """Cut what a failed append has written, if possible.

    After a failed fsync the kernel shows these bytes, and may lose them later: nothing may be appended after them.
    """
    with suppress(OSError):
        disk.ftruncate(fd, size)
        disk.fsync(fd)


def hole_start(data: bytes) -> int:
    """Return where the first line of a text begins that has a zero byte; the length of the text without one.

    Sectors that a power loss left out of an append read as zeros, which no text of ours has.
    """
    hole = data.find(b"\0")
    return len(data) if hole < 0 else data.rfind(b"\n", 0, hole) + 1


# The names of the files of a log directory: segments and checkpoints; all other files are ignored.
#
# Mirrors Kafka's `LogFileUtils` (segments: 20 digits of base offset) and `org.apache.kafka.snapshot.Snapshots`
# (checkpoints: 20 digits of end offset, 10 digits of epoch, `.checkpoint`; `.part` while being written, `.deleted`
# while being removed). `.index`, `.timeindex` and `.snapshot` files can be rebuilt and are not read. Beside a
# checkpoint there may be its image file, of the same name with `.image`, which only aclog knows.


METADATA_DIRECTORY = "__cluster_metadata-0"
"""The metadata log's directory, in the log directory of a node."""
PARTIAL_SUFFIX = ".part"
DELETED_SUFFIX = ".deleted"
CHECKPOINT_SUFFIX = ".checkpoint"
IMAGE_SUFFIX = ".image"
_SEGMENT = regex(r"([0-9]{20})\.log")
_CHECKPOINT = regex(r"([0-9]{20})-([0-9]{10})\.checkpoint")
_MAX_OFFSET = 2**63 - 1


@frozen(kw_only=True)
class SegmentFile:
    """A segment: its path, and the offset of its first record, from its name."""

    base_offset: int
    path: Path


@frozen(kw_only=True)
class CheckpointFile:
    """A finished checkpoint: its path, and its end offset (exclusive) and epoch, from its name."""

    end_offset: int
    epoch: int
    path: Path


def segment_name(base_offset: int) -> str:
    """Return the file name of the segment whose first record has this offset."""
    return f"{base_offset:020d}.log"


def parse_segment_name(name: str) -> int | None:
    """Return the base offset in a segment's file name; None for any other name."""
    match = _SEGMENT.fullmatch(name)
    if match is None or int(match[1]) > _MAX_OFFSET:
        return None
    return int(match[1])


def checkpoint_name(end_offset: int, epoch: int) -> str:
    """Return the file name of the checkpoint of all records below `end_offset`, the last of which has this epoch."""
    return f"{end_offset:020d}-{epoch:010d}.checkpoint"


def parse_checkpoint_name(name: str) -> tuple[int, int] | None:
    """Return (end offset, epoch) of a finished checkpoint's file name; None for others, `.part` and `.deleted` too."""
    match = _CHECKPOINT.fullmatch(name)
    if match is None or int(match[1]) > _MAX_OFFSET or int(match[2]) > MAX_EPOCH:
        return None
    return int(match[1]), int(match[2])


def image_path(checkpoint: Path) -> Path:
    """Return the path of the image file of a checkpoint, whether there is one or not."""
    return checkpoint.with_suffix(IMAGE_SUFFIX)


def image_checkpoint(path: Path) -> Path | None:
    """Return the path of the checkpoint that an image file belongs to; None if the name is not an image file's."""
    checkpoint = path.with_suffix(".checkpoint")
    return checkpoint if path.suffix == IMAGE_SUFFIX and parse_checkpoint_name(checkpoint.name) is not None else None


def list_images(directory: Path) -> tuple[Path, ...]:
    """Return the image files of a directory, sorted by name.

    Raises:
        LogError: the directory cannot be listed.

    """
    paths = (directory / name for name in sorted(_listed(directory)) if name.endswith(IMAGE_SUFFIX))
    return tuple(path for path in paths if image_checkpoint(path) is not None)


def list_segments(directory: Path) -> tuple[SegmentFile, ...]:
    """Return the segments of a directory, sorted by base offset.

    Raises:
        LogError: the directory cannot be listed.

    """
    names = ((parse_segment_name(name), name) for name in _listed(directory))
    bases = sorted((base, name) for base, name in names if base is not None)
    return tuple(SegmentFile(base_offset=base, path=directory / name) for base, name in bases)


def list_checkpoints(directory: Path) -> tuple[CheckpointFile, ...]:
    """Return the finished checkpoints of a directory, sorted by end offset and epoch: the newest is the last.

    Raises:
        LogError: the directory cannot be listed.

    """
    names = ((parse_checkpoint_name(name), name) for name in _listed(directory))
    ids = sorted((key, name) for key, name in names if key is not None)
    return tuple(CheckpointFile(end_offset=end, epoch=epoch, path=directory / name) for (end, epoch), name in ids)


def list_deleted_segments(directory: Path) -> tuple[Path, ...]:
    """Return segments that were renamed for removal but still exist because a process died before unlinking them."""
    suffixed = (name for name in _listed(directory) if name.endswith(DELETED_SUFFIX))
    return tuple(directory / name for name in suffixed if _SEGMENT.fullmatch(name.removesuffix(DELETED_SUFFIX)))


def find_segments(directory: Path) -> tuple[SegmentFile, ...]:
    """Return the segments of a log directory, sorted by base offset.

    Raises:
        LogError: it does not exist, is not a directory, or has no segment.

    """
    if not directory.is_dir():
        raise LogError(f"{directory}: {'not a directory' if directory.exists() else NO_SUCH_PATH}")
    segments = list_segments(directory)
    if not segments:
        inner = directory / "__cluster_metadata-0"
        hint = f"; did you mean {inner}?" if inner.is_dir() else ""
        raise LogError(f"{directory}: not a metadata log: no segment (such as {segment_name(0)}) in it{hint}")
    return segments


def _listed(directory: Path) -> list[str]:
    try:
        return disk.listdir(directory)
    except FileNotFoundError as error:
        raise LogError(f"{directory}: {NO_SUCH_PATH}") from error
    except OSError as error:
        raise log_error(error, directory, "cannot list") from error


# The file `notice`: one line that the writer of a log directory leaves for its readers, until it is withdrawn.


NOTICE_FILE = "notice"
_MAX_CHARACTERS = 1000


def notices(directory: Path) -> tuple[str, ...]:
    """Return the notice as a warning, if there is one. Raises LogError: it cannot be read."""
    data = read_small(directory / NOTICE_FILE)
    if data is None:
        return ()
    return (f"warning: {directory}: {data.decode('utf-8', 'replace').strip()[:_MAX_CHARACTERS]}",)


def leave_notice(directory: Path, text: str) -> None:
    """Leave a notice durably, in place of an earlier one. Raises LogError: it cannot be written."""
    replace_durably(directory / NOTICE_FILE, f"{text}\n".encode())


def withdraw_notice(directory: Path) -> None:
    """Remove the notice durably, if there is one. Raises LogError: it cannot be removed."""
    path = directory / NOTICE_FILE
    try:
        path.unlink()
        fsync_directory(directory)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise log_error(error, path, "cannot remove") from error


# The `leader-epoch-checkpoint` file: where each leader epoch begins, in Kafka's text format.
#
# Mirrors Kafka's `LeaderEpochCheckpointFile`: a line with the version 0, a line with the number of entries, then a
# line `epoch start-offset` per entry, both ascending. The CRC of a batch does not cover its leader epoch; this file
# does.


EPOCHS_FILE = "leader-epoch-checkpoint"
MAX_EPOCH = 2**31 - 1
"""Epochs are int32."""
_NUMBER = regex(r"0|[1-9][0-9]{0,18}")


def read_epochs(directory: Path) -> "tuple[EpochStart, ...] | None":
    """Return the epochs of a log directory, ascending; None if there is no such file.

    Raises:
        DecodeError: the file is not in Kafka's format.
        LogError: it cannot be read.

    """
    path = directory / EPOCHS_FILE
    data = read_small(path)
    if data is None:
        return None
    try:
        return decode_epochs(data)
    except DecodeError as error:
        raise error.at(path=str(path)) from error


def write_epochs(directory: Path, starts: "Sequence[EpochStart]") -> None:
    """Replace the file durably.

    Raises:
        LogError: the disk is full or fails.

    """
    replace_durably(directory / EPOCHS_FILE, encode_epochs(starts))


def encode_epochs(starts: "Sequence[EpochStart]") -> bytes:
    """Return the file's content."""
    lines = ["0", str(len(starts)), *(f"{start.epoch} {start.start_offset}" for start in starts)]
    return "".join(f"{line}\n" for line in lines).encode("ascii")


def decode_epochs(data: bytes) -> "tuple[EpochStart, ...]":
    """Parse the file's content.

    Raises:
        DecodeError: an unexpected line, with its position.

    """
    lines = data.split(b"\n")
    if lines[-1] != b"":
        raise DecodeError("the last line has no newline", position=len(data) - len(lines[-1]))
    if lines[0] != b"0":
        raise DecodeError("the first line is not version 0", position=0)
    starts: list[EpochStart] = []
    position = len(lines[0]) + len(lines[1]) + 2
    for line in lines[2:-1]:
        starts.append(_decode_line(line, position, starts[-1] if starts else None))
        position += len(line) + 1
    if lines[1] != str(len(starts)).encode("ascii"):
        raise DecodeError(f"{len(starts)} epochs follow, but the second line has another count", position=2)
    return tuple(starts)


def epoch_at(starts: "Sequence[EpochStart]", offset: int) -> int | None:
    """Return the epoch of the record at `offset`; None before the first known epoch."""
    number = bisect_right(starts, offset, key=lambda start: start.start_offset)
    return starts[number - 1].epoch if number else None


def _decode_line(line: bytes, position: int, before: "EpochStart | None") -> "EpochStart":
    numbers = line.decode("latin-1").split(" ")
    if len(numbers) != 2 or not all(_NUMBER.fullmatch(number) for number in numbers):
        raise DecodeError("expected a line `epoch start-offset`", position=position)
    from aclog.metalog.committed_log import EpochStart  # noqa: PLC0415 - no checkpoint needs it

    start = EpochStart(epoch=int(numbers[0]), start_offset=int(numbers[1]))
    if start.epoch > MAX_EPOCH or start.start_offset > _MAX_OFFSET:
        raise DecodeError("an epoch over 31 bits or an offset over 63 bits", position=position)
    # Equal offsets are allowed: an epoch without any record ends where it begins.
    if before is not None and (start.epoch <= before.epoch or start.start_offset < before.start_offset):
        raise DecodeError(f"epoch {start.epoch} does not follow epoch {before.epoch}", position=position)
    return start


# The `mirror.properties` file: marks a directory as a mirror, with its cluster id and where its log begins.
#
# A mirror is a log directory that `aclog mirror` fills with what a quorum has committed. The file keeps every other
# writer from appending to it. Replacing it is also the commit point when a mirror restarts after a snapshot.


MIRROR_FILE = "mirror.properties"
_COMMENT = "A mirror of a quorum's metadata log, kept by `aclog mirror`: no other program may append to it."
_VERSION = "1"


@frozen(kw_only=True, order=True)
class LogEnd:
    """The end of a log, or of part of a log: the offset after its last record, and that record's epoch."""

    end_offset: int
    epoch: int


@frozen(kw_only=True)
class MirrorProperties:
    """The content of the file; `start` is the end of what precedes the log, None until that is known."""

    cluster_id: str
    start: LogEnd | None = None


def read_mirror_properties(directory: Path) -> MirrorProperties | None:
    """Return the content of a directory's file; None if the directory has none, so that it is not a mirror.

    Raises:
        DecodeError: the file is not in the format of `write_mirror_properties`.
        LogError: it cannot be read.

    """
    path = directory / MIRROR_FILE
    data = read_small(path)
    if data is None:
        return None
    try:
        return decode_mirror_properties(data)
    except DecodeError as error:
        raise error.at(path=str(path)) from error


def write_mirror_properties(directory: Path, properties: MirrorProperties) -> None:
    """Replace the file durably.

    Raises:
        LogError: the disk is full or fails.

    """
    replace_durably(directory / MIRROR_FILE, encode_mirror_properties(properties))


def refuse_mirror(directory: Path) -> None:
    """Raise if a directory is a mirror.

    Raises:
        LogError: it is: its content belongs to a quorum, and only `aclog mirror` appends to it.
        DecodeError: its file is damaged.

    """
    properties = read_mirror_properties(directory) if directory.is_dir() else None
    if properties is not None:
        raise LogError(
            f"{directory}: a mirror of cluster {properties.cluster_id}: only `aclog mirror` appends to it; "
            f"a copy without {MIRROR_FILE} is an independent log"
        )


def encode_mirror_properties(properties: MirrorProperties) -> bytes:
    """Return the file's content."""
    values = {"version": _VERSION, "cluster.id": properties.cluster_id}
    if properties.start is not None:
        values |= {"start.offset": str(properties.start.end_offset), "start.epoch": str(properties.start.epoch)}
    return format_properties(values, comments=_COMMENT)


def decode_mirror_properties(data: bytes) -> MirrorProperties:
    """Parse the file's content.

    Raises:
        DecodeError: not a properties file, another version, or a missing or invalid value.

    """
    try:
        values = parse_properties(data)
    except ValueError as error:
        raise DecodeError(f"not a properties file: {error}") from error
    if values.get("version") != _VERSION:
        raise DecodeError(f"unknown version {values.get('version')}: expected {_VERSION}")
    if not values.get("cluster.id"):
        raise DecodeError("cluster.id is missing")
    # A mirror is bound to a cluster before it knows where the cluster's log begins.
    if "start.offset" not in values:
        return MirrorProperties(cluster_id=values["cluster.id"])
    start = LogEnd(
        end_offset=_number(values, "start.offset", _MAX_OFFSET), epoch=_number(values, "start.epoch", MAX_EPOCH)
    )
    return MirrorProperties(cluster_id=values["cluster.id"], start=start)


def _number(values: dict[str, str], key: str, most: int) -> int:
    text = values.get(key, "")
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= most):
        raise DecodeError(f"{key}={text}: expected an integer from 0 to {most}")
    return int(text)


# The `quorum-state` file: the epoch of a KRaft quorum, its leader and this node's vote, as JSON.
#
# Mirrors Kafka's `FileQuorumStateStore` and `QuorumStateData`: version 1 if the voters are in the log (kraft.version
# 1), version 0, with the voters in the file, if they are in the configuration.


QUORUM_STATE_FILE = "quorum-state"
_MAX_INT32 = 2**31 - 1
_NO_DIRECTORY = "AAAAAAAAAAAAAAAAAAAAAA"


@frozen(kw_only=True)
class QuorumState:
    """The content of the file. `voters` (ids) is None in version 1; an id of -1 means none."""

    leader_id: int
    leader_epoch: int
    voted_id: int = -1
    voted_directory_id: str = _NO_DIRECTORY
    voters: tuple[int, ...] | None = None

    def led_by(self, leader_id: int, leader_epoch: int) -> "QuorumState":
        """Return the state in which `leader_id` leads a new epoch and no vote has been cast."""
        return evolve(
            self, leader_id=leader_id, leader_epoch=leader_epoch, voted_id=-1, voted_directory_id=_NO_DIRECTORY
        )


def read_quorum_state(directory: Path) -> QuorumState | None:
    """Return the quorum state of a log directory; None if it has none.

    Raises:
        DecodeError: the file is not in Kafka's format.
        LogError: it cannot be read.

    """
    path = directory / QUORUM_STATE_FILE
    data = read_small(path)
    if data is None:
        return None
    try:
        return decode_quorum_state(data)
    except DecodeError as error:
        raise error.at(path=str(path)) from error


def write_quorum_state(directory: Path, state: QuorumState) -> None:
    """Replace the file durably.

    Raises:
        LogError: the disk is full or fails.

    """
    replace_durably(directory / QUORUM_STATE_FILE, encode_quorum_state(state))


def encode_quorum_state(state: QuorumState) -> bytes:
    """Return the file's content: keys in Kafka's order, without whitespace."""
    led: dict[str, object] = {"leaderId": state.leader_id, "leaderEpoch": state.leader_epoch, "votedId": state.voted_id}
    if state.voters is None:
        content = {**led, "votedDirectoryId": state.voted_directory_id, "data_version": 1}
    else:
        voters = [{"voterId": voter} for voter in state.voters]
        # appliedOffset and an empty clusterId are what Kafka writes in version 0.
        content = {"clusterId": "", **led, "appliedOffset": 0, "currentVoters": voters, "data_version": 0}
    return json.dumps(content, separators=(",", ":")).encode("ascii")


def decode_quorum_state(data: bytes) -> QuorumState:
    """Parse the file's content.

    Raises:
        DecodeError: not JSON, an unknown version, or a key that is missing or of the wrong type.

    """
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DecodeError("not JSON") from error
    if not isinstance(content, dict):
        raise DecodeError("not a JSON object")
    version = _int(content, "data_version")
    if version not in {0, 1}:
        raise DecodeError(f"unknown data_version {version}: expected 0 or 1")
    return QuorumState(
        leader_id=_int(content, "leaderId"),
        leader_epoch=_int(content, "leaderEpoch"),
        voted_id=_int(content, "votedId"),
        voted_directory_id=str(content.get("votedDirectoryId", _NO_DIRECTORY)),
        voters=None if version == 1 else _voters(content),
    )


def _voters(content: dict[str, object]) -> tuple[int, ...]:
    voters = content.get("currentVoters")
    if not isinstance(voters, list) or not all(isinstance(voter, dict) for voter in voters):
        raise DecodeError("currentVoters is not a list of objects")
    return tuple(_int(cast("dict[str, object]", voter), "voterId") for voter in voters)


def _int(content: dict[str, object], key: str) -> int:
    value = content.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not -1 <= value <= _MAX_INT32:
        raise DecodeError(f"{key} is missing or not an integer from -1 to {_MAX_INT32}")
    return value


# Files that get their names once they are whole, and partial ones that killed processes leave.


_PARTIAL = regex(rf".+-[0-9a-f]{{16}}\.[a-z]+{re.escape(PARTIAL_SUFFIX)}")


@contextmanager
def written_whole(path: Path) -> Iterator[int]:
    """Yield the descriptor of a new file, which gets its name, durably, if the `with` ends without an error.

    Until then it is `<stem>-<random><suffix>.part`, locked: without a lock it was left by a killed process
    (`remove_abandoned`). The random part is for concurrent writers of one name. Raises OSError.
    """
    fd, partial = _open_partial(path)
    lock = disk.dup(fd)
    try:
        try:
            try:
                yield fd
                # Content before name, and the name before anything relies on it.
                disk.fsync(fd)
            finally:
                disk.close(fd)  # before the rename: on a network, this may report that the disk is full
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
    finally:
        disk.close(lock)
    fsync_directory(path.parent)


def _open_partial(path: Path) -> tuple[int, Path]:
    while True:
        partial = path.with_name(f"{path.stem}-{randomness.urandom(8).hex()}{path.suffix}{PARTIAL_SUFFIX}")
        fd = disk.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, FILE_MODE)
        # Not an fcntl lock: this process may look at its own partial files, which must not release their locks.
        with suppress(OSError):  # a file system without locks
            disk.flock(fd, fcntl.LOCK_EX)
        if _leads_to(partial, fd):
            return fd, partial
        disk.close(fd)  # another process took it for abandoned before it was locked


def _leads_to(path: Path, fd: int) -> bool:
    try:
        return os.path.samestat(path.stat(follow_symlinks=False), disk.fstat(fd))
    except FileNotFoundError:
        return False


def remove_abandoned(directory: Path, suffix: str) -> tuple[Path, ...]:
    """Remove the partial files of names that end in `suffix` whose writers are dead (`written_whole`); return them.

    What cannot be locked or removed stays.
    """
    removed = []
    for path in sorted(directory.glob(f"*{suffix}{PARTIAL_SUFFIX}")):
        if _PARTIAL.fullmatch(path.name) is None:
            continue
        with suppress(OSError):
            fd = disk.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                disk.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _leads_to(path, fd):
                    path.unlink()
                    removed.append(path)
            finally:
                disk.close(fd)
    return tuple(removed)
