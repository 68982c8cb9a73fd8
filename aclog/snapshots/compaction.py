"""Compaction: the overlay of ACL changes is folded into a new base, in a thread or a process of its own."""

import fcntl
import json
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from operator import attrgetter
from typing import Any, BinaryIO, Protocol, Self
from uuid import UUID
from weakref import WeakKeyDictionary, finalize

import numpy as np
from attrs import define, field, frozen

from aclog.authorizer.acl import acl_of
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index import layout
from aclog.authorizer.index.acl_index import AclIndex, Overlay
from aclog.authorizer.index.base import Base, base_of
from aclog.authorizer.index.queries import SUMS, ids_digest
from aclog.metalog.errors import DecodeError, MetadataError, printable
from aclog.metalog.persistent_map import Map
from aclog.metalog.records import AccessControlEntryRecord, TaggedFields
from aclog.snapshots.applier import AclChange

# Files without a name: memory that processes share by a descriptor, and that is gone with the last of them.


_PIECE = 1 << 30
"""A system call writes up to 2 GiB."""


def anonymous_file(name: str) -> int:
    """Return the descriptor of an empty file without a name, in memory where the system has such; `name` is a hint."""
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
    """Make a file this large, and map it."""
    os.ftruncate(descriptor, size)
    return mmap.mmap(descriptor, size)


def map_for_reading(descriptor: int) -> memoryview:
    """Map a file that nobody has mapped for writing any more; from now on nobody can change it.

    Where files cannot be sealed, that is a promise of whoever has the descriptor.
    """
    if hasattr(fcntl, "F_ADD_SEALS"):
        with suppress(OSError):  # not a file in memory
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
    return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))


# How an overlay is folded into a new base, and when: what the merger needs to know of either.


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
    """A new base was not made; the state is what it was. `here`: whether this process may fold by itself instead."""

    def __init__(self, what: str, *, here: bool = True) -> None:
        super().__init__(what)
        self.here = here


class Folder(Protocol):
    """Makes new bases, one at a time, for one merger."""

    def fold(self, acls: AclsImage) -> AclsImage:
        """Return the same ACLs without an overlay. Raises FoldError."""
        ...

    def tidy(self) -> None:
        """Free what belonged to bases that are gone; called after each merge, by whoever calls `fold`."""
        ...

    def close(self) -> None:
        """Make a `fold` in another thread end soon, with an error or not; called once, at the end."""
        ...


@frozen
class FoldInThread:
    """Folds in the calling thread, with pauses in which other threads go on."""

    def fold(self, acls: AclsImage) -> AclsImage:
        """Return the same ACLs without an overlay."""
        return acls.merged(Pauses().pause)

    def tidy(self) -> None:
        """Do nothing: there is nothing but the bases."""

    def close(self) -> None:
        """Do nothing: the thread does not outlive its process."""


@define
class Pauses:
    """The pauses of one thread: others take the interpreter's lock while it sleeps, but not too often.

    Getting the lock back takes up to 5 ms for each other busy thread, so a pause after every step would never end.
    """

    _worked_to: float = field(factory=time.thread_time, init=False)

    def pause(self) -> None:
        """Sleep, if this thread has worked for a while."""
        if time.thread_time() - self._worked_to >= _WORK_S:
            time.sleep(_PAUSE_S)
            self._worked_to = time.thread_time()


def fold_at(rules: int, most: int = MERGE_AT) -> int:
    """Return the number of changes at which an overlay of a base with so many rules is folded."""
    return min(most, max(FEWEST, rules // _SHARE))


# A merge under way: the folded ACLs, and the changes that they still lack.


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
    """What the folded ACLs replaced, once they did."""
    ended: bool = False
    """Whether it is done: the ACLs were replaced, or it is void."""
    failure: Exception | None = None
    """Why the changes could not be applied to the folded ACLs, which were wrong then."""
    _applied: int = 0
    _journaled: int = 0

    def offer(self, folded: AclsImage) -> None:
        """Go on with the folded ACLs."""
        self.begun, self.folded, self._journaled = None, folded, len(self.journal)

    @property
    def share(self) -> int:
        """How many journaled changes the update that was just journaled must apply."""
        own, self._journaled = len(self.journal) - self._journaled, len(self.journal)
        return _AHEAD * own + 1

    def step(self, most: int) -> AclsImage | None:
        """Apply up to `most` journaled changes; return the ACLs that have all of them, None if some are left.

        Raises:
            ReplayError: the folded ACLs are not what the changes were made to.

        """
        if self.folded is None:
            return None
        changes = self.journal[self._applied : self._applied + most]
        if changes:
            self.folded = self.folded.apply(changes)
            self._applied += len(changes)
        return self.folded if self._applied == len(self.journal) else None

    def end(self, replaced: AclsImage | None = None, failure: Exception | None = None) -> None:
        """Keep nothing but what was replaced, or why nothing was."""
        self.begun, self.folded, self.journal = None, None, []
        self.replaced, self.failure, self.ended = replaced, failure, True


# The message to a process that folds: what the overlay adds and removes, as lines of JSON.
#
# Each line holds the columns of some thousand ACLs: the sender shares its interpreter with those who decide, and
# columns take a fraction of the time of records.


_VERSION = 1
"""To be raised with every change of the message."""

IDENTITY = f"message {_VERSION}, flat base {layout.VERSION}, Python {sys.version}"
"""What both ends must be. They differ once a running node's installation has been replaced."""

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
        ValueError: another program wrote the message, or it is cut off.

    """
    head = json.loads(file.readline())
    if head["from"] != IDENTITY:
        raise ValueError(f"its parent is another program ({head['from']}; this is {IDENTITY}): restart the node")
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


# A running process that folds (aclog.snapshots.fold_process), as its parent sees it.


PROGRAM = ("-I", "-m", "aclog.snapshots.fold_process")
"""Arguments of the interpreter: nothing of the environment or of the working directory decides what is imported."""

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""So that numpy starts no threads, which would take longer than the rest of its import."""

_MAX_TEXT = 300


@frozen(eq=False)
class Worker:
    """A process, and the descriptor of what it writes to stderr."""

    process: "subprocess.Popen[bytes]"
    errors: int

    @classmethod
    @contextmanager
    def started(cls, program: Sequence[str], files: Sequence[int]) -> Iterator[Self]:
        """Start a process that gets these descriptors; at the end it is gone, whatever it was doing.

        Raises:
            OSError: it cannot be started.

        """
        errors = anonymous_file("aclog-errors")
        try:
            process = subprocess.Popen(  # noqa: S603 - this very program
                [sys.executable, *program, *map(str, files)],
                bufsize=0,  # nothing is left to write when it is gone
                # Its end of this pipe tells it when this process is gone.
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
        """Tell it that the files are written: until then it has got ready."""
        if self.process.stdin is not None:
            with suppress(BrokenPipeError):  # `wait` says why
                self.process.stdin.write(b".")

    def wait(self, seconds: float) -> int:
        """Wait until it has folded; return the size of the new base.

        Raises:
            FoldError: it did not say so within this time, or it failed.

        """
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise FoldError(
                f"the process that merges ACLs was ended: it had not done so after {seconds:.0f} s"
            ) from None
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
            raise FoldError(f"the process that merges ACLs was ended by {name}", here=code != -signal.SIGKILL)
        why = error or self._last_error() or f"it said {output[:_MAX_TEXT]!r}"
        raise FoldError(
            f"the process that merges ACLs failed (exit code {code}): {why}", here="MemoryError" not in str(why)
        )

    def _last_error(self) -> str:
        """Return the last line that it wrote to stderr."""
        size = os.fstat(self.errors).st_size
        text = os.pread(self.errors, 4096, max(size - 4096, 0)).decode(errors="replace")
        return printable((text.strip().splitlines() or [""])[-1])[:_MAX_TEXT]


# Folding in a process of its own, off the interpreter's lock: for nodes, which may start processes.
#
# The base goes there by the descriptor of the file in memory that it is mapped from, the changes in another such
# file, and the new base comes back in a third. Nothing that comes back is believed until it has been checked.


SMALLEST = 50_000
"""ACLs below which a thread folds: in less time than a process takes to start."""

_SECONDS, _SECONDS_PER_RULE = 30.0, 1e-4
"""How long a process may take: a hundred times as long as it does on a machine that has nothing else to do."""

_LOOKED_UP = 64
"""Added ACLs, and others, that are looked up in a new base before anybody else does."""


@define(eq=False)
class FoldInProcess:
    """Owned by one merger. Starts a process for each merge; small ones are folded in the calling thread instead."""

    smallest: int = SMALLEST
    program: tuple[str, ...] = PROGRAM
    seconds: float = _SECONDS
    _files: "WeakKeyDictionary[Base, int]" = field(factory=WeakKeyDictionary, init=False)
    """Bases that came back from a process, and the descriptors of their files."""
    _unused: list[int] = field(factory=list, init=False)
    """Descriptors of files whose base is gone. The last one frees a file's memory, which takes 20 ms at a million ACLs:
    if that were the one of the mapping, it would happen while holding the interpreter's lock."""
    _worker: Worker | None = field(default=None, init=False)
    _closed: bool = field(default=False, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def fold(self, acls: AclsImage) -> AclsImage:
        """Return the same ACLs without an overlay.

        Raises:
            FoldError: the process could not be started, failed, took too long, or returned something else.

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
                # While it starts: what it needs.
                if cached is None:
                    write_all(base, acls.index.base.buffer)
                _write_changes(changes, acls.index.overlay)
                worker.go()
                # While it works: what has to come out of it.
                ids = _ids_after(acls)
                size = worker.wait(self.seconds + _SECONDS_PER_RULE * len(acls))
                folded = _checked(result, size, acls, ids)
                self._keep(folded.index.base, result)
                return folded
        except OSError as error:
            raise FoldError(f"no process that merges ACLs: {error}") from None

    def _release(self, file: int) -> None:
        self._unused.append(file)
        if self._closed:
            self.tidy()

    def tidy(self) -> None:
        """Free the memory of bases that are gone."""
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
                raise FoldError("the node stops")

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
    """Return the digest of the ids that the ACLs must have without an overlay."""
    base, overlay = acls.index.base, acls.index.overlay
    ids = np.frombuffer(base.ids.ids, np.uint8)
    removed = ids.reshape(-1, 16)[list(overlay.removed)].reshape(-1)
    added = np.frombuffer(b"".join([number.to_bytes(16) for number in overlay.added]), np.uint8)
    return (ids_digest(ids) - ids_digest(removed) + ids_digest(added)) % SUMS


def _checked(result: int, size: int, acls: AclsImage, ids: int) -> AclsImage:
    """Return the ACLs of a new base, which must have these ids.

    The process has compared all of them with what it was sent. Here it is taken at its word for the rest only once the
    numbers and all ids are right, and those added and removed are found and not found.

    Raises:
        FoldError: they are not the same ACLs.

    """
    before, overlay = acls.index.base, acls.index.overlay
    actual = os.fstat(result).st_size
    if size != actual:
        raise FoldError(f"the process that merges ACLs wrote {actual} bytes: it said {size}")
    try:
        base = base_of(map_for_reading(result))
    except DecodeError as error:
        raise FoldError(f"the process that merges ACLs returned something else: {error}") from None
    after = AclsImage(AclIndex(base), acls.documented, acls.cidr)
    expected = (len(acls), before.has_ids, before.unbindable + overlay.unbindable, before.irregular + overlay.irregular)
    if (len(base), base.has_ids, base.unbindable, base.irregular) != expected:
        raise FoldError(f"the process that merges ACLs returned {len(base)} ACLs: expected {len(acls)}")
    if ids_digest(np.frombuffer(base.ids.ids, np.uint8)) != ids:
        raise FoldError("the process that merges ACLs returned others than those it was sent")
    _look_up(after, acls)
    return after


def _look_up(after: AclsImage, before: AclsImage) -> None:
    """Look up some of the ACLs in a new base. Raises FoldError if one is not as it was."""
    try:
        same = _are_found(after, before)
    except (LookupError, ValueError):  # a damaged index may lead anywhere
        same = False
    if not same:
        raise FoldError("the process that merges ACLs returned an index in which an ACL is not found")


def _are_found(after: AclsImage, before: AclsImage) -> bool:
    base, overlay = before.index.base, before.index.overlay
    some = [acl_of(record) for record in islice(overlay.added.values(), _LOOKED_UP)]
    step = max(len(base) // _LOOKED_UP, 1)
    some += [base.rule(row).acl for row in range(0, len(base), step) if row not in overlay.removed]
    return all(
        (id_ := before.find(acl)) is not None and after.find(acl) == id_ and after.get(id_) == acl for acl in some
    )


# What a merge replaced, taken apart slowly.
#
# The overlay of a million ACLs that was just folded is hundreds of thousands of objects, and the last reference to it
# frees them all at once: 50 ms in which no other thread of the process runs. So its maps are emptied in slices.


_SLICE = 512


def take_apart(retired: list[AclsImage], pause: Callable[[], None]) -> None:
    """Free the overlays of ACLs that nobody needs any more, calling `pause` between slices.

    They are taken out of the list: whoever refers to one of them, as to an argument, would keep it whole until later.
    Harmless if somebody needs them: the maps are persistent, and what others refer to stays.
    """
    maps: list[Map[Any, Any]] = []
    while retired:
        overlay = retired.pop().index.overlay
        maps += [*overlay.touched, overlay.added, overlay.removed]
        del overlay
    while maps:
        _empty(maps, pause)


def _empty(maps: "list[Map[Any, Any]]", pause: Callable[[], None]) -> None:
    """Empty the last of these maps, and take it out."""
    keys = iter(list(maps[-1]))
    rest = maps.pop()
    while some := list(islice(keys, _SLICE)):
        rest = rest.changed({}, some)  # keys come leaf by leaf: few nodes are copied
        pause()
