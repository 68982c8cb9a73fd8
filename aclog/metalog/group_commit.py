"""Group commit: many threads append, one thread writes; all batches that arrive during a write share the next one.

Combines what Kafka's `BatchAccumulator` and append purgatory do. Offsets are assigned when a batch is submitted, so
log order is call order. The CRC of a batch does not cover its base offset, which is therefore stamped onto the
finished batch without computing the CRC again.

Callers acknowledged together tend to append again together, one shortly after the other: a commit that started with
the first of them would leave the others to the next one. So the commit thread lingers, until as many batches wait as
the last group had, or until none has arrived for as long as the last commit took, but no longer than a tenth of a
second: a commit may have been slow for once. A single writer never lingers.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeAlias

from attrs import field

from aclog.metalog.batches import BatchHeader, check_crc, read_header
from aclog.metalog.committed_log import Appended
from aclog.metalog.errors import DecodeError, FencedError, LogError, UncertainError
from aclog.metalog.machine import clock, threads
from aclog.metalog.values import define

MAX_BATCH_BYTES = 8 << 20
"""Kafka's smallest metadata.log.segment.bytes: a Kafka node that takes over this log would fail on a larger batch."""

MAX_WAITING_BYTES = 64 << 20
"""Bound on queued bytes: a caller that never waits for its futures gets an error before memory runs out."""

_LONGEST_LINGER = 0.1
"""In seconds, for one group."""

Commit: TypeAlias = Callable[[Sequence[bytes], Sequence[int]], int]
"""Called with batches and their end offsets: writes at least the first, durably, publishes; returns the count."""


class Acknowledgement(Future[Appended]):
    """The Future of an append; only the waiting in `result` and `exception` is implemented differently.

    Future waits on a Condition, which takes two locks and a queue for each waiter: with 64 threads that each wait for
    their own append, that was half of the total time (docs/decisions/0002-group-commit.md). Here all wait on one lock.
    """

    def __init__(self) -> None:
        """Create it running rather than pending: a write that is under way cannot be cancelled."""
        super().__init__()
        self.set_running_or_notify_cancel()
        self._gate = threads.Lock()
        # Held until the future completes; `_pass` blocks on it.
        self._gate.acquire()

    def set_result(self, result: Appended) -> None:
        """Complete the future; waiters are released even if a callback raises."""
        try:
            super().set_result(result)
        finally:
            self._gate.release()

    def set_exception(self, exception: BaseException | None) -> None:
        """Fail the future; waiters are released even if a callback raises."""
        try:
            super().set_exception(exception)
        finally:
            self._gate.release()

    def result(self, timeout: float | None = None) -> Appended:
        """Return the result or raise the exception; raises TimeoutError after `timeout` seconds."""
        self._pass(timeout)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return the exception, if any; raises TimeoutError after `timeout` seconds."""
        self._pass(timeout)
        return super().exception(0)

    def _pass(self, timeout: float | None) -> None:
        """Wait at the gate, then leave it open for the next waiter."""
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
    """The queue of batches and the thread that commits them. Thread-safe.

    `_commit` runs in that thread only, and is never called again after it has failed.
    """

    _name: str
    _end_offset: int
    _commit: Commit
    _on_failure: Callable[[LogError], None] | None = None
    """Called once, in the commit thread, before the waiting futures fail."""
    _waiting: list[_Waiting] = field(init=False, factory=list)
    _waiting_bytes: int = field(init=False, default=0)
    _guard: "threading.Lock" = field(init=False, factory=threads.lock)
    _work: "threading.Condition" = field(init=False)
    _in_commit: list[_Waiting] = field(init=False, factory=list)
    _refusal: str = field(init=False, default="")
    _refused_as: type[LogError] = field(init=False, default=LogError)
    _failed: bool = field(init=False, default=False)
    _abandoned: bool = field(init=False, default=False)
    _linger_for: int = field(init=False, default=1)
    _last_size: int = field(init=False, default=1)
    _last_seconds: float = field(init=False, default=0.0)
    _closing: bool = field(init=False, default=False)
    _pid: int = field(init=False, factory=threads.process_id)
    _thread: "threading.Thread" = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._work = threads.Condition(self._guard)
        self._thread = threads.Thread(target=self._run, name=f"commit {self._name}", daemon=True)
        self._thread.start()

    @property
    def end_offset(self) -> int:
        """The offset that the next batch gets."""
        return self._end_offset

    @property
    def failure(self) -> LogError | None:
        """Why nothing can be committed any more; None while healthy, and after a normal close."""
        return self._refused_as(self._refusal) if self._failed else None

    def submit(
        self, batch: bytes, count: int, leader_epoch: int, *, base_offset: int | None = None
    ) -> Future[Appended]:
        """Queue a finished batch of `count` records; its base offset is stamped here.

        If `base_offset` is given, the batch must get exactly this offset.

        Raises:
            LogError: the batch is over 8 MiB, the queue has no room for its bytes, the log is closed or has failed, or
                does not end at `base_offset`.

        """
        if len(batch) > MAX_BATCH_BYTES:
            raise LogError(f"{self._name}: a batch of {len(batch)} bytes: expected at most {MAX_BATCH_BYTES}")
        # A forked child inherits this object, but neither the commit thread nor the fcntl locks of the log.
        if threads.getpid() != self._pid:
            raise LogError(f"{self._name}: opened for writing by process {self._pid}, not by this one")
        future = Acknowledgement()
        with self._guard:
            self._check(len(batch))
            if base_offset is not None:
                check_base_offset(self._name, base_offset, self._end_offset)
            # Assigning the offset and queueing are one step under the lock, so log order is call order.
            base, self._end_offset = self._end_offset, self._end_offset + count
            appended = Appended(base_offset=base, last_offset=base + count - 1, leader_epoch=leader_epoch)
            self._waiting.append(_Waiting(base.to_bytes(8, "big") + batch[8:], appended, future))
            self._waiting_bytes += len(batch)
            # Wake the commit thread only when the group it lingers for is complete; it wakes by itself after a timeout.
            if len(self._waiting) == self._linger_for:
                self._work.notify()
        return future

    def _check(self, size: int) -> None:
        if self._refusal:
            raise self._refused_as(self._refusal)
        if self._waiting_bytes + size > MAX_WAITING_BYTES:
            raise LogError(
                f"{self._name}: {self._waiting_bytes} bytes are queued: wait for earlier appends to complete"
            )

    def _run(self) -> None:
        while self._next_group():
            self._last_size = len(self._in_commit)
            try:
                while self._in_commit:
                    self._commit_some(self._in_commit)
            except Exception as error:  # noqa: BLE001 - no caller may wait forever, for any failure
                self._fail(error)
                return

    def _commit_some(self, group: list[_Waiting]) -> None:
        begin = clock.monotonic()
        count = self._commit(
            [waiting.data for waiting in group], [waiting.appended.last_offset + 1 for waiting in group]
        )

        self._last_seconds = clock.monotonic() - begin
        with self._guard:
            done, self._in_commit = self._in_commit[:count], self._in_commit[count:]
        # Futures complete outside of the lock: their callbacks may append again.
        for waiting in done:
            with suppress(SystemExit):  # raised by a callback; it must not end the commit thread
                waiting.future.set_result(waiting.appended)

    def _next_group(self) -> bool:
        """Wait for batches and take them; return False once the log is closing and none is left."""
        with self._guard:
            while not self._waiting and not self._closing:
                self._work.wait()
            self._linger()
            self._in_commit, self._waiting, self._waiting_bytes = self._waiting, [], 0
            return bool(self._in_commit)

    def _linger(self) -> None:
        arrived, left = 0, _LONGEST_LINGER
        self._linger_for, end = self._last_size, clock.monotonic() + left
        while arrived < len(self._waiting) < self._linger_for and not self._closing and left > 0:
            arrived = len(self._waiting)
            self._work.wait(min(self._last_seconds, left))
            left = end - clock.monotonic()
        self._linger_for = 1

    def _fail(self, error: Exception) -> None:
        # Later appends fail with the same type: a fenced writer must step down, other errors may pass on reopening.
        kind = FencedError if isinstance(error, FencedError) else LogError
        with self._guard:
            if self._abandoned:
                return
            # The outcome of the failing write is unknown, so no write may follow it: the next open determines it.
            uncertain = len(self._in_commit) if isinstance(error, UncertainError) else 0
            group = self._stop_accepting(
                kind, f"{error}; no further appends are accepted until the log is opened again"
            )
        try:
            if self._on_failure is not None:
                self._on_failure(kind(self._refusal))
        finally:
            self._fail_futures(group, uncertain=uncertain)

    def abandon(self, why: str) -> None:
        """Fail at once all queued batches, the ones being committed, and all later ones.

        Those being committed fail with UncertainError: that commit may still succeed. No effect after a failure or an
        earlier call.
        """
        with self._guard:
            if self._failed or self._abandoned:
                return
            self._abandoned = self._closing = True
            uncertain = len(self._in_commit)
            group = self._stop_accepting(LogError, why)
            self._work.notify()
        self._fail_futures(group, uncertain=uncertain)

    def _stop_accepting(self, kind: type[LogError], why: str) -> list[_Waiting]:
        """Accept nothing from now on; return the batches to fail. The caller holds the lock."""
        group = self._in_commit + self._waiting
        self._in_commit, self._waiting, self._waiting_bytes = [], [], 0
        self._failed, self._refused_as, self._refusal = True, kind, why
        if group:
            # For callers, none of the failed batches is in the log: it ends before the first failed batch.
            self._end_offset = group[0].appended.base_offset
        return group

    def _fail_futures(self, group: list[_Waiting], *, uncertain: int) -> None:
        """Fail batches that are not committed, of which the first ones may be in the log."""
        for number, waiting in enumerate(group):
            kind = UncertainError if number < uncertain else self._refused_as
            with suppress(SystemExit):
                waiting.future.set_exception(kind(self._refusal))

    def close(self) -> None:
        """Commit what is queued, then stop; closing twice is allowed.

        Raises:
            LogError: called from a future's callback, that is, in the commit thread itself.

        """
        if self._thread is threads.current_thread():
            raise LogError(f"{self._name}: cannot be closed by a callback of its own append")
        if self._pid != threads.getpid():
            return  # a forked child has no commit thread, and may have inherited the lock in its locked state
        with self._guard:
            self._closing = True
            self._refusal = self._refusal or f"{self._name}: closed"
            self._work.notify()
        self._thread.join()


def read_prebuilt_header(name: str, batch: bytes, leader_epoch: int) -> BatchHeader:
    """Check a caller-built batch before it is appended unchanged (Log.append_batch), and return its header.

    The CRC proves that the records are as they were built. The base offset is checked in `submit`, under the lock that
    assigns offsets. `name` is the log's, for errors.

    Raises:
        LogError: not one whole data batch of `leader_epoch`.

    """
    try:
        header = read_header(batch)
        check_crc(batch, 0, header)
    except DecodeError as error:
        raise LogError(f"{name}: not a valid batch, nothing is appended: {error}") from None
    if header.size != len(batch):
        raise LogError(f"{name}: {len(batch)} bytes, expected exactly one batch of {header.size}: nothing is appended")
    if header.is_control:
        raise LogError(f"{name}: a control batch, expected a data batch: nothing is appended")
    if header.leader_epoch != leader_epoch:
        what = f"a batch of leader epoch {header.leader_epoch}, expected {leader_epoch}"
        raise LogError(f"{name}: {what}: nothing is appended")
    return header


def check_base_offset(name: str, base_offset: int, end_offset: int) -> None:
    """Check that a batch built for `base_offset` continues a log that ends at `end_offset`.

    Raises:
        LogError: it does not: another caller has appended since it was built.

    """
    if base_offset != end_offset:
        what = f"a batch of base offset {base_offset}, but the log ends at {end_offset}"
        raise LogError(f"{name}: {what}: another caller has appended; nothing is appended")
