"""Group commit: many threads append, one thread writes; whatever waits while it writes goes into its next write.

Mirrors what Kafka's `BatchAccumulator` and its append purgatory do together. Offsets are given out when a batch is
submitted, so the order of the calls is the order of the log; a batch's CRC does not cover its base offset, which is
therefore stamped on the finished batch.

Those who were answered together tend to come back together, one after the other: a commit that began with the first of
them would leave the others to the next one. So before it writes, the thread waits until as many wait as the last group
had, or until nobody more came for as long as the last commit took. A single writer never waits for that.
"""

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeAlias

from attrs import define, field

from aclog.metalog.batches import BatchHeader, check_crc, read_header
from aclog.metalog.errors import DecodeError, FencedError, LogError
from aclog.metalog.log import Appended

MAX_BATCH_BYTES = 8 << 20
"""Kafka's smallest metadata.log.segment.bytes: a larger batch would kill a Kafka that goes on with this log."""

MAX_WAITING_BYTES = 64 << 20
"""What may wait to be written: a caller that never looks at its futures is stopped here, not by the memory's end."""

Commit: TypeAlias = Callable[[Sequence[bytes], Sequence[int]], int]
"""Given batches and the offset after each: write at least the first of them, make them durable, publish; how many."""


class Acknowledgement(Future[Appended]):
    """A Future in every respect; only the wait of `result` and `exception` is another.

    Future waits by a Condition, which takes two locks and a queue for each waiter: with 64 threads that each wait for
    their own append, that was half of all the time (docs/decisions/0002-group-commit.md).
    """

    def __init__(self) -> None:
        """Not done, and running already: a write that is under way cannot be called off."""
        super().__init__()
        self.set_running_or_notify_cancel()
        self._gate = threading.Lock()
        self._gate.acquire()

    def set_result(self, result: Appended) -> None:
        """As Future has it; whoever waits goes on even if a callback raises."""
        try:
            super().set_result(result)
        finally:
            self._gate.release()

    def set_exception(self, exception: BaseException | None) -> None:
        """As Future has it; whoever waits goes on even if a callback raises."""
        try:
            super().set_exception(exception)
        finally:
            self._gate.release()

    def result(self, timeout: float | None = None) -> Appended:
        """As Future has it; raises TimeoutError."""
        self._pass(timeout)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """As Future has it; raises TimeoutError."""
        self._pass(timeout)
        return super().exception(0)

    def _pass(self, timeout: float | None) -> None:
        """Wait at the gate, and leave it open for whoever waits behind."""
        if self.done():
            return
        longest = -1.0 if timeout is None else min(max(timeout, 0.0), threading.TIMEOUT_MAX)
        if self._gate.acquire(timeout=longest):
            self._gate.release()


@define
class _Waiting:
    data: bytes
    appended: Appended
    future: Acknowledgement


@define(eq=False)
class GroupCommit:
    """The batches that wait, and the thread that commits them. Safe for many threads.

    `_commit` runs in that thread only, and never again once it has failed.
    """

    _name: str
    _end_offset: int
    _commit: Commit
    _on_failure: Callable[[LogError], None] | None = None
    """Called once, in the commit thread, before those who wait hear of it."""
    _waiting: list[_Waiting] = field(init=False, factory=list)
    _waiting_bytes: int = field(init=False, default=0)
    _guard: threading.Lock = field(init=False, factory=threading.Lock)
    _work: threading.Condition = field(init=False)
    _in_commit: list[_Waiting] = field(init=False, factory=list)
    _refusal: str = field(init=False, default="")
    _refused_as: type[LogError] = field(init=False, default=LogError)
    _failed: bool = field(init=False, default=False)
    _abandoned: bool = field(init=False, default=False)
    _wanted: int = field(init=False, default=1)
    _last_size: int = field(init=False, default=1)
    _last_seconds: float = field(init=False, default=0.0)
    _closing: bool = field(init=False, default=False)
    _pid: int = field(init=False, factory=os.getpid)
    _thread: threading.Thread = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._work = threading.Condition(self._guard)
        self._thread = threading.Thread(target=self._run, name=f"commit {self._name}", daemon=True)
        self._thread.start()

    @property
    def end_offset(self) -> int:
        """The offset that the next batch gets."""
        return self._end_offset

    @property
    def failure(self) -> LogError | None:
        """Why nothing can be committed any more; None while all is well, and after a close."""
        return self._refused_as(self._refusal) if self._failed else None

    def submit(
        self, batch: bytes, count: int, leader_epoch: int, *, base_offset: int | None = None
    ) -> Future[Appended]:
        """Queue a finished batch of `count` records; its base offset is stamped here.

        With `base_offset` it may get no other one.

        Raises:
            LogError: the batch is beyond 8 MiB, too much waits already, the log is closed or has failed, or ends
                elsewhere than at `base_offset`.

        """
        if len(batch) > MAX_BATCH_BYTES:
            raise LogError(f"{self._name}: a batch of {len(batch)} bytes: at most {MAX_BATCH_BYTES} are expected")
        if os.getpid() != self._pid:
            raise LogError(f"{self._name}: opened for writing by process {self._pid}, not by this one")
        future = Acknowledgement()
        with self._guard:
            self._check(len(batch))
            if base_offset is not None:
                check_base_offset(self._name, base_offset, self._end_offset)
            base, self._end_offset = self._end_offset, self._end_offset + count
            appended = Appended(base_offset=base, last_offset=base + count - 1, leader_epoch=leader_epoch)
            self._waiting.append(_Waiting(base.to_bytes(8, "big") + batch[8:], appended, future))
            self._waiting_bytes += len(batch)
            if len(self._waiting) == self._wanted:
                self._work.notify()
        return future

    def _check(self, size: int) -> None:
        if self._refusal:
            raise self._refused_as(self._refusal)
        if self._waiting_bytes + size > MAX_WAITING_BYTES:
            raise LogError(f"{self._name}: {self._waiting_bytes} bytes wait to be written: wait for earlier appends")

    def _run(self) -> None:
        while self._next_group():
            self._last_size = len(self._in_commit)
            try:
                while self._in_commit:
                    self._commit_some(self._in_commit)
            except Exception as error:  # noqa: BLE001 - whatever it was, nobody may wait for ever
                self._fail(error)
                return

    def _commit_some(self, group: list[_Waiting]) -> None:
        begin = time.monotonic()
        count = self._commit([one.data for one in group], [one.appended.last_offset + 1 for one in group])
        self._last_seconds = time.monotonic() - begin
        with self._guard:
            done, self._in_commit = self._in_commit[:count], self._in_commit[count:]
        for one in done:
            with suppress(SystemExit):  # of a callback, which must not end this thread
                one.future.set_result(one.appended)

    def _next_group(self) -> bool:
        """Take what waits, once there is something; tells whether there is."""
        with self._guard:
            while not self._waiting and not self._closing:
                self._work.wait()
            self._gather()
            self._in_commit, self._waiting, self._waiting_bytes = self._waiting, [], 0
            return bool(self._in_commit)

    def _gather(self) -> None:
        came = 0
        self._wanted = self._last_size
        while came < len(self._waiting) < self._wanted and not self._closing:
            came = len(self._waiting)
            self._work.wait(self._last_seconds)
        self._wanted = 1

    def _fail(self, error: Exception) -> None:
        kind = FencedError if isinstance(error, FencedError) else LogError
        with self._guard:
            if self._abandoned:
                return
            group = self._refuse(kind, f"{error}; the log takes no more appends until it is opened again")
        try:
            if self._on_failure is not None:
                self._on_failure(kind(self._refusal))
        finally:
            self._tell(group)

    def abandon(self, why: str) -> None:
        """Refuse at once what waits, what is being committed, and all that comes; what became of a commit is open.

        Nothing where it has failed before, or is abandoned.
        """
        with self._guard:
            if self._failed or self._abandoned:
                return
            self._abandoned = self._closing = True
            group = self._refuse(LogError, why)
            self._work.notify()
        self._tell(group)

    def _refuse(self, kind: type[LogError], why: str) -> list[_Waiting]:
        """Take no more from now on; who is to be told. For the holder of the guard."""
        group = self._in_commit + self._waiting
        self._in_commit, self._waiting, self._waiting_bytes = [], [], 0
        self._failed, self._refused_as, self._refusal = True, kind, why
        if group:
            self._end_offset = group[0].appended.base_offset
        return group

    def _tell(self, group: list[_Waiting]) -> None:
        for one in group:
            with suppress(SystemExit):
                one.future.set_exception(self._refused_as(self._refusal))

    def close(self) -> None:
        """Commit what waits, then stop; a second close is nothing.

        Raises:
            LogError: called by a future's callback, in the thread that has to do the committing.

        """
        if self._thread is threading.current_thread():
            raise LogError(f"{self._name}: cannot be closed by a callback of its own append")
        if self._pid != os.getpid():
            return  # a forked child has neither the thread nor, perhaps, a guard that is free
        with self._guard:
            self._closing = True
            self._refusal = self._refusal or f"{self._name}: closed"
            self._work.notify()
        self._thread.join()


def read_prebuilt_header(name: str, batch: bytes, leader_epoch: int) -> BatchHeader:
    """The header of one whole data batch of `leader_epoch`; `name` is the log's, for the error.

    The CRC tells that the records are as they were built. Its base offset is checked where offsets are given out.

    Raises:
        LogError: it is anything else.

    """
    try:
        header = read_header(batch)
        check_crc(batch, 0, header)
    except DecodeError as error:
        raise LogError(f"{name}: not a batch that can be appended: {error}") from None
    if header.size != len(batch):
        raise LogError(f"{name}: {len(batch)} bytes where one batch of {header.size} is expected: nothing is appended")
    if header.is_control:
        raise LogError(f"{name}: a control batch where a data batch is expected: nothing is appended")
    if header.leader_epoch != leader_epoch:
        what = f"a batch of epoch {header.leader_epoch}, the log's is {leader_epoch}"
        raise LogError(f"{name}: {what}: nothing is appended")
    return header


def check_base_offset(name: str, base_offset: int, end_offset: int) -> None:
    """Return if a batch built for `base_offset` continues the log of this name, which ends at `end_offset`.

    Raises:
        LogError: it does not: somebody else has appended since it was built.

    """
    if base_offset != end_offset:
        what = f"a batch of base offset {base_offset}, but the log ends at {end_offset}"
        raise LogError(f"{name}: {what}: somebody else appends to it; nothing is appended")
