"""Compaction: the overlay of ACL changes is folded into a new base, in a separate thread or process."""

import fcntl
import json
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from operator import attrgetter
from typing import Any, BinaryIO, Protocol, Self
from uuid import UUID
from weakref import WeakKeyDictionary, finalize

import numpy as np
from attrs import field

from aclog.authorizer.acl import acl_of
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index import layout
from aclog.authorizer.index.acl_index import AclIndex, Overlay
from aclog.authorizer.index.base import Base, base_of
from aclog.authorizer.index.queries import SUMS, ids_digest
from aclog.metalog.errors import DecodeError, MetadataError, printable
from aclog.metalog.machine import clock, threads
from aclog.metalog.persistent_map import Map
from aclog.metalog.records import AccessControlEntryRecord, TaggedFields
from aclog.metalog.values import define, frozen
from aclog.snapshots.applier import AclChange

# Unnamed files: memory that processes share by descriptor, and that is freed with the last descriptor.


_PIECE = 1 << 30
"""A system call writes up to 2 GiB."""


def anonymous_file(name: str) -> int:
    """Return the descriptor of an empty unnamed file, in memory where the system supports it; `name` is a hint."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with tempfile.TemporaryFile(prefix=name) as file:
        return os.dup(file.fileno())


def write_all(descriptor: int, data: memoryview) -> None:
    """Write all of the data from the start of the file on, in pieces, without holding the interpreter's lock."""
    data, at = data.cast("B"), 0
    while at < len(data):
        at += os.pwrite(descriptor, data[at : at + _PIECE], at)


def map_for_writing(descriptor: int, size: int) -> mmap.mmap:
    """Set the size of a file, and map it."""
    os.ftruncate(descriptor, size)
    return mmap.mmap(descriptor, size)


def map_for_reading(descriptor: int) -> memoryview:
    """Map a file that is no longer mapped for writing, and seal it against changes.

    Where files cannot be sealed, the holders of its descriptors must not change it.
    """
    if hasattr(fcntl, "F_ADD_SEALS"):
        with suppress(OSError):  # not a file in memory
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
    return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))


# When and how an overlay is folded into a new base: the interface between merger and folder.


MERGE_AT = 32_768
"""Changes at which an overlay is folded, however large the base: from here on the garbage collector takes more time for
it than a merge takes."""

_SHARE = 4
"""An overlay is also folded once it is this part of the base: then the merge is cheap, and decisions on a new cluster's
first rules are as fast as later."""

FEWEST = 256
"""Changes below which an overlay is left to a quiet moment: a merge of a tiny base takes 3 ms, which would come after
every other update."""

_WORK_S = 0.004
"""Below the interval at which the interpreter takes its lock from a thread that others wait for (5 ms)."""

_PAUSE_S = 1e-4
"""Long enough for a waiting thread to wake up: merely yielding the GIL does not give it a turn in time."""


class FoldError(MetadataError):
    """A new base was not made; the state is unchanged. `here`: whether this process may fold by itself instead."""

    def __init__(self, what: str, *, here: bool = True) -> None:
        super().__init__(what)
        self.here = here


class Folder(Protocol):
    """Makes new bases, one at a time, for one merger."""

    def fold(self, acls: AclsImage) -> AclsImage:
        """Return the same ACLs without an overlay. Raises FoldError."""
        ...

    def tidy(self) -> None:
        """Free the memory of bases that are no longer used; called after each merge, by the caller of `fold`."""
        ...

    def close(self) -> None:
        """Make a `fold` in another thread end soon, with an error or not; called once, at the end."""
        ...


@frozen
class FoldInThread:
    """Folds in the calling thread, with pauses in which other threads run."""

    def fold(self, acls: AclsImage) -> AclsImage:
        """Return the same ACLs without an overlay."""
        return acls.merged(Pauses().pause)

    def tidy(self) -> None:
        """Do nothing: bases are all there is."""

    def close(self) -> None:
        """Do nothing: the thread does not outlive its process."""


@define
class Pauses:
    """The pauses of one thread, in which others can take the interpreter's lock, but not too often.

    Getting the lock back takes up to 5 ms for each other busy thread, so pausing after every step would take too long.
    """

    _worked_to: float = field(factory=clock.thread_time, init=False)

    def pause(self) -> None:
        """Sleep, if this thread has worked for a while."""
        if clock.thread_time() - self._worked_to >= _WORK_S:
            clock.sleep(_PAUSE_S)
            self._worked_to = clock.thread_time()


def fold_at(rules: int, most: int = MERGE_AT) -> int:
    """Return the number of changes at which an overlay on a base of this many ACLs is folded."""
    return min(most, max(FEWEST, rules // _SHARE))


# A merge in progress: the folded ACLs, and the changes that they still lack.


_AHEAD = 2
"""For each change of its own, how many journaled ones an update applies; and one in addition. More would end a merge
sooner, and make each of these updates cost more."""


@define(eq=False)
class Merge:
    """Owned by the publisher that began it, whose lock guards it.

    The journal holds every ACL change since then, in order; readers see those changes in the old form meanwhile. Once
    the folded ACLs are here, every update applies more journaled changes to them than it adds: so the merge ends
    under any load, after half as many updates as came while the ACLs were folded, and no update has to do more than
    a bounded multiple of its own work.
    """

    begun: AclsImage | None
    """The ACLs to fold; None once they are."""
    journal: list[AclChange] = field(factory=list)
    folded: AclsImage | None = None
    """The same ACLs in a new base, and those of the journaled changes that were applied to it."""
    replaced: AclsImage | None = None
    """The ACLs that the folded ones replaced, after they did."""
    ended: bool = False
    """Whether the merge has ended: the ACLs were replaced, or the merge is void."""
    failure: Exception | None = None
    """The error if the changes could not be applied to the folded ACLs, which were wrong then."""
    _applied: int = 0
    _journaled: int = 0

    def offer(self, folded: AclsImage) -> None:
        """Continue with the folded ACLs."""
        self.begun, self.folded, self._journaled = None, folded, len(self.journal)

    @property
    def share(self) -> int:
        """How many journaled changes the update that was just journaled must apply."""
        own, self._journaled = len(self.journal) - self._journaled, len(self.journal)
        return _AHEAD * own + 1

    def step(self, most: int) -> AclsImage | None:
        """Apply up to `most` journaled changes; return the ACLs that have all of them, None if some are left.

        Raises:
            ReplayError: the folded ACLs are not those that the changes were made to.

        """
        if self.folded is None:
            return None
        changes = self.journal[self._applied : self._applied + most]
        if changes:
            self.folded = self.folded.apply(changes)
            self._applied += len(changes)
        return self.folded if self._applied == len(self.journal) else None

    def end(self, replaced: AclsImage | None = None, failure: Exception | None = None) -> None:
        """Release everything except the replaced ACLs, or the failure."""
        self.begun, self.folded, self.journal = None, None, []
        self.replaced, self.failure, self.ended = replaced, failure, True


# The message to a process that folds: the changes of the overlay, as lines of JSON.
#
# Each line holds the columns of some thousand ACLs: the sender shares its interpreter with those who decide, and
# columns take a fraction of the time of records.


_VERSION = 1
"""To be raised with every change of the message."""

IDENTITY = f"message {_VERSION}, flat base {layout.VERSION}, Python {sys.version}"
"""The identity that both ends must share. It differs after a running node's installation was replaced."""

_CHUNK = 4096

_COLUMNS = (
    "resource_type",
    "resource_name",
    "pattern_type",
    "principal",
    "host",
    "operation",
    "permission_type",
)


def write_changes(file: BinaryIO, overlay: Overlay, pause: Callable[[], None]) -> None:
    """Write the changes of an overlay, calling `pause` between chunks."""
    _write(file, {"from": IDENTITY, "added": len(overlay.added), "removed": list(overlay.removed)})
    records = iter(overlay.added.values())
    while chunk := list(islice(records, _CHUNK)):
        tags = {
            n: [(tag, data.hex()) for tag, data in record.tagged_fields]
            for n, record in enumerate(chunk)
            if record.tagged_fields
        }
        columns = [list(map(attrgetter(name), chunk)) for name in _COLUMNS]
        ids = b"".join([record.id.int.to_bytes(16) for record in chunk]).hex()
        _write(file, {"ids": ids, "columns": columns, "tags": tags})
        pause()


def read_changes(file: BinaryIO) -> tuple[list[AccessControlEntryRecord], list[int]]:
    """Return the records added and the rows removed.

    Raises:
        ValueError: another version wrote the message, or it is truncated.

    """
    head = json.loads(file.readline())
    if head["from"] != IDENTITY:
        raise ValueError(f"its parent has another version ({head['from']}; this is {IDENTITY}): restart the node")
    added: list[AccessControlEntryRecord] = []
    while len(added) < head["added"]:
        added += _records(**json.loads(file.readline()))
    return added, head["removed"]


def _write(file: BinaryIO, line: dict[str, Any]) -> None:
    file.write(json.dumps(line).encode() + b"\n")


def _records(ids: str, columns: list[list[Any]], tags: dict[str, Any]) -> Iterator[AccessControlEntryRecord]:
    data = bytes.fromhex(ids)
    tags_of: dict[int, TaggedFields] = {
        int(n): tuple((tag, bytes.fromhex(value)) for tag, value in pairs) for n, pairs in tags.items()
    }
    for n, values in enumerate(zip(*columns, strict=True)):
        yield AccessControlEntryRecord(
            id=UUID(bytes=data[16 * n : 16 * n + 16]),
            tagged_fields=tags_of.get(n, ()),
            **dict(zip(_COLUMNS, values, strict=True)),
        )


# The compaction process (aclog.snapshots.fold_process), as its parent sees it.


PROGRAM = ("-I", "-m", "aclog.snapshots.fold_process")
"""Arguments of the interpreter: neither the environment nor the working directory affects imports."""

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Keeps numpy from starting threads, which would take longer than the rest of its import."""

_MAX_TEXT = 300


@frozen(eq=False)
class Worker:
    """A process, and the descriptor of its stderr."""

    process: "subprocess.Popen[bytes]"
    errors: int

    @classmethod
    @contextmanager
    def started(cls, program: Sequence[str], files: Sequence[int]) -> Iterator[Self]:
        """Start a process with these descriptors; it is killed at the end of the context.

        Raises:
            OSError: it cannot be started.

        """
        errors = anonymous_file("aclog-errors")
        try:
            process = subprocess.Popen(  # noqa: S603 - this very program
                [sys.executable, *program, *map(str, files)],
                bufsize=0,  # nothing remains to be written after it has ended
                # Its end of this pipe is closed when this process ends.
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                pass_fds=files,
                env={**os.environ, **_ONE_THREAD},
                cwd="/",
                start_new_session=True,  # an interrupt on the terminal is for this process alone
            )
            with process:
                try:
                    yield cls(process, errors)
                finally:
                    process.kill()
        finally:
            os.close(errors)

    def go(self) -> None:
        """Signal that the files are written; until then the process prepares."""
        if self.process.stdin is not None:
            with suppress(BrokenPipeError):  # `wait` reports the reason
                self.process.stdin.write(b".")

    def wait(self, seconds: float) -> int:
        """Wait until the process has folded; return the size of the new base.

        Raises:
            FoldError: it timed out, or failed.

        """
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise FoldError(f"the compaction process timed out after {seconds:.0f} s") from None
        output = self.process.stdout.read() if self.process.stdout is not None else b""
        try:
            answer = json.loads(output)
            size, error = answer.get("size"), answer.get("error")
        except (ValueError, AttributeError):
            size, error = None, None
        if code == 0 and isinstance(size, int) and size > 0:
            return size
        if code < 0:
            # Most likely the system has run out of memory: this process must not need as much.
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            raise FoldError(f"the compaction process was killed by {name}", here=code != -signal.SIGKILL)
        why = error or self._last_error() or f"it printed {output[:_MAX_TEXT]!r}"
        raise FoldError(f"the compaction process failed (exit code {code}): {why}", here="MemoryError" not in str(why))

    def _last_error(self) -> str:
        """Return the last line that it wrote to stderr."""
        size = os.fstat(self.errors).st_size
        text = os.pread(self.errors, 4096, max(size - 4096, 0)).decode(errors="replace")
        return printable((text.strip().splitlines() or [""])[-1])[:_MAX_TEXT]


# Folding in a separate process, outside of the interpreter's lock: for nodes, which may start processes.
#
# The process receives the base as the descriptor of its file in memory, and the changes in another such file; it
# returns the new base in a third. The new base is verified before it is used.


SMALLEST = 50_000
"""The number of ACLs below which a thread folds: faster than a process starts."""

_SECONDS, _SECONDS_PER_RULE = 30.0, 1e-4
"""The timeout of a process: a hundred times its duration on an idle machine."""

_LOOKED_UP = 64
"""How many added ACLs, and how many others, are looked up to verify a new base."""


@define(eq=False)
class FoldInProcess:
    """Owned by one merger. Starts a process for each merge; small ones are folded in the calling thread instead."""

    smallest: int = SMALLEST
    program: tuple[str, ...] = PROGRAM
    seconds: float = _SECONDS
    _files: "WeakKeyDictionary[Base, int]" = field(factory=WeakKeyDictionary, init=False)
    """Bases that a process returned, and the descriptors of their files."""
    _unused: list[int] = field(factory=list, init=False)
    """Descriptors of files whose base is no longer used. Closing the last one frees a file's memory, which takes 20 ms
    at a
    million ACLs: if that were the one of the mapping, it would happen with the interpreter's lock held."""
    _worker: Worker | None = field(default=None, init=False)
    _closed: bool = field(default=False, init=False)
    _lock: "threading.Lock" = field(factory=threads.lock, init=False)

    def fold(self, acls: AclsImage) -> AclsImage:
        """Return the same ACLs without an overlay.

        Raises:
            FoldError: the process could not be started, failed, took too long, or returned an invalid base.

        """
        if len(acls) < self.smallest:
            return FoldInThread().fold(acls)
        try:
            with ExitStack() as stack:
                cached = self._files.get(acls.index.base)
                base = stack.enter_context(_file("aclog-base")) if cached is None else cached
                changes, result = stack.enter_context(_file("aclog-changes")), stack.enter_context(_file("aclog-base"))
                worker = stack.enter_context(Worker.started(self.program, (base, changes, result)))
                self._set_worker(worker)
                stack.callback(self._set_worker, None)
                # Prepare its input while it starts.
                if cached is None:
                    write_all(base, acls.index.base.buffer)
                _write_changes(changes, acls.index.overlay)
                worker.go()
                # Prepare the verification while it works.
                ids = _ids_after(acls)
                size = worker.wait(self.seconds + _SECONDS_PER_RULE * len(acls))
                folded = _checked(result, size, acls, ids)
                self._keep(folded.index.base, result)
                return folded
        except OSError as error:
            raise FoldError(f"cannot start the compaction process: {error}") from None

    def _release(self, file: int) -> None:
        self._unused.append(file)
        if self._closed:
            self.tidy()

    def tidy(self) -> None:
        """Free the memory of bases that are no longer used."""
        while self._unused:
            os.close(self._unused.pop())

    def close(self) -> None:
        """End the process, if one runs; its `fold` raises FoldError."""
        with self._lock:
            self._closed = True
            if self._worker is not None:
                self._worker.process.kill()

    def _set_worker(self, worker: Worker | None) -> None:
        with self._lock:
            self._worker = worker
            if worker is not None and self._closed:
                raise FoldError("the node is stopping")

    def _keep(self, base: Base, file: int) -> None:
        """Keep the file of a base for the next merge, as long as the base is used."""
        duplicate = os.dup(file)
        finalize(base, self._release, duplicate).atexit = False
        self._files[base] = duplicate


@contextmanager
def _file(name: str) -> Iterator[int]:
    descriptor = anonymous_file(name)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _write_changes(changes: int, overlay: Overlay) -> None:
    """Write the changes of an overlay to a file, to be read from its start."""
    with os.fdopen(os.dup(changes), "wb") as file:
        write_changes(file, overlay, Pauses().pause)
    os.lseek(changes, 0, os.SEEK_SET)


def _ids_after(acls: AclsImage) -> int:
    """Return the digest of the ids of the ACLs after folding."""
    base, overlay = acls.index.base, acls.index.overlay
    ids = np.frombuffer(base.ids.ids, np.uint8)
    removed = ids.reshape(-1, 16)[list(overlay.removed)].reshape(-1)
    added = np.frombuffer(b"".join([number.to_bytes(16) for number in overlay.added]), np.uint8)
    return (ids_digest(ids) - ids_digest(removed) + ids_digest(added)) % SUMS


def _checked(result: int, size: int, acls: AclsImage, ids: int) -> AclsImage:
    """Return the ACLs of a new base, which must have these ids.

    The process has compared all ACLs with its input. Here the counts, all ids, and a sample of lookups are verified.

    Raises:
        FoldError: they are not the same ACLs.

    """
    before, overlay = acls.index.base, acls.index.overlay
    actual = os.fstat(result).st_size
    if size != actual:
        raise FoldError(f"the compaction process wrote {actual} bytes, but reported {size}")
    try:
        base = base_of(map_for_reading(result))
    except DecodeError as error:
        raise FoldError(f"the compaction process returned an invalid base: {error}") from None
    after = AclsImage(AclIndex(base), acls.documented, acls.cidr)
    expected = (len(acls), before.has_ids, before.unbindable + overlay.unbindable, before.irregular + overlay.irregular)
    if (len(base), base.has_ids, base.unbindable, base.irregular) != expected:
        raise FoldError(f"the compaction process returned {len(base)} ACLs: expected {len(acls)}")
    if ids_digest(np.frombuffer(base.ids.ids, np.uint8)) != ids:
        raise FoldError("the compaction process returned other ACLs than it was sent")
    _look_up(after, acls)
    return after


def _look_up(after: AclsImage, before: AclsImage) -> None:
    """Look up some of the ACLs in a new base. Raises FoldError if one differs."""
    try:
        same = _are_found(after, before)
    except (LookupError, ValueError):  # a damaged index may lead anywhere
        same = False
    if not same:
        raise FoldError("the compaction process returned an index that lacks an ACL")


def _are_found(after: AclsImage, before: AclsImage) -> bool:
    base, overlay = before.index.base, before.index.overlay
    some = [acl_of(record) for record in islice(overlay.added.values(), _LOOKED_UP)]
    step = max(len(base) // _LOOKED_UP, 1)
    some += [base.rule(row).acl for row in range(0, len(base), step) if row not in overlay.removed]
    return all(
        (id_ := before.find(acl)) is not None and after.find(acl) == id_ and after.get(id_) == acl for acl in some
    )


# Incremental release of the overlay that a merge replaced.
#
# The overlay of a million ACLs that was just folded has hundreds of thousands of objects, and the last reference to it
# frees them all at once: 50 ms in which no other thread of the process runs. So its maps are emptied in slices.


_SLICE = 512


def take_apart(retired: list[AclsImage], pause: Callable[[], None]) -> None:
    """Free the overlays of ACLs that are no longer used, calling `pause` between slices.

    They are removed from the list: a reference to one of them, such as an argument, would keep it whole until later.
    Harmless if one is still used: the maps are persistent, and other references keep their content.
    """
    maps: list[Map[Any, Any]] = []
    while retired:
        overlay = retired.pop().index.overlay
        maps += [*overlay.touched, overlay.added, overlay.removed]
        del overlay
    while maps:
        _empty(maps, pause)


def _empty(maps: "list[Map[Any, Any]]", pause: Callable[[], None]) -> None:
    """Empty the last of these maps, and remove it."""
    keys = iter(list(maps[-1]))
    rest = maps.pop()
    while some := list(islice(keys, _SLICE)):
        rest = rest.changed({}, some)  # keys come leaf by leaf: few nodes are copied
        pause()
