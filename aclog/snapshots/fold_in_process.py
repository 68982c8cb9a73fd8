"""Folding in a process of its own, off the interpreter's lock: for nodes, which may start processes.

The base goes there by the descriptor of the file in memory that it is mapped from, the changes in another such file,
and the new base comes back in a third. Nothing that comes back is believed until it has been checked.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from weakref import WeakKeyDictionary, finalize

import numpy as np
from attrs import define, field

from aclog.authorizer.acl_records import acl_of
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.acl_index import AclIndex
from aclog.authorizer.index.base import Base
from aclog.authorizer.index.flat_base import base_of
from aclog.authorizer.index.overlay import Overlay
from aclog.authorizer.index.row_digest import SUMS, ids_digest
from aclog.metalog.errors import DecodeError
from aclog.snapshots.anonymous_file import anonymous_file, map_for_reading, write_all
from aclog.snapshots.fold_message import write_changes
from aclog.snapshots.fold_worker import PROGRAM, Worker
from aclog.snapshots.folding import FoldError, FoldInThread, Pauses

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
                known = self._files.get(acls.index.base)
                base = stack.enter_context(_file("aclog-base")) if known is None else known
                changes, result = stack.enter_context(_file("aclog-changes")), stack.enter_context(_file("aclog-base"))
                worker = stack.enter_context(Worker.started(self.program, (base, changes, result)))
                self._set_worker(worker)
                stack.callback(self._set_worker, None)
                # While it starts: what it needs.
                if known is None:
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
        kept = os.dup(file)
        finalize(base, self._release, kept).atexit = False
        self._files[base] = kept


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
    found = os.fstat(result).st_size
    if size != found:
        raise FoldError(f"the process that merges ACLs wrote {found} bytes: it said {size}")
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
