"""The active controller (org.apache.kafka.controller.QuorumController).

Every request is decided on the newest state, appended or committed, becomes one atomic batch, and is answered when
that batch and all before it are committed; one that changes nothing is answered when all before it is committed, so
that nothing uncommitted is ever confirmed. Readers see an image only once the high-water mark has reached it.

A commit that fails ends it: whoever waits gets the error, later requests are refused, and what was not committed is
never shown. What became of it is found out at the next start.

Where others may take the log over (`contested`), one that slept may decide on a state that is long past. What it
appends then is never committed. An answer without a record waits for a commit that was begun after it was decided: a
NoOpRecord's, where nothing else is appended (docs/decisions/0010-failover.md).
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from time import perf_counter
from typing import Any, Generic, TypeAlias, TypeVar
from uuid import UUID

from attrs import define, field, frozen

from aclog.authorizer.acl import AclBindingFilter, StandardAcl
from aclog.authorizer.control import create_acls, delete_acls
from aclog.authorizer.interface import AclCreateResult, AclDeleteResult, AclMutator, RequestContext
from aclog.metalog.batches import build_batch
from aclog.metalog.clock import current_time_ms
from aclog.metalog.codec import encode_record
from aclog.metalog.errors import LogError, MetadataError
from aclog.metalog.group_commit import MAX_BATCH_BYTES
from aclog.metalog.log import Appended, Log
from aclog.metalog.records import MetadataRecord, NoOpRecord
from aclog.metalog.uuids import random_uuid
from aclog.nodes.apis.request import OutcomeUnknownError, RequestError
from aclog.nodes.offload import MANY, committed
from aclog.nodes.telemetry.metrics import Metrics
from aclog.nodes.wire.error_codes import NOT_CONTROLLER, RECORD_LIST_TOO_LARGE
from aclog.snapshots.image import Image
from aclog.snapshots.publisher import Publisher

_POOL_BYTES = 4096

T = TypeVar("T")


@frozen(kw_only=True)
class ControllerResult(Generic[T]):
    """Records that become one atomic batch, none if nothing changes, and the answer (ControllerResult)."""

    records: Sequence[MetadataRecord]
    response: T


Operation: TypeAlias = Callable[[Image], ControllerResult[T]]
"""Pure: decides on the newest image, committed or not, what a request changes (ControllerWriteOperation)."""


MAX_UNCOMMITTED_BYTES = 32 << 20
"""How much may wait for its commit; further requests wait for their turn."""

_MANY_FILTERS = 16
"""One filter may take half a millisecond, where a prefix is to be matched."""

Watcher: TypeAlias = Callable[[int], None]
"""Told the high-water mark after each commit, when its image is shown."""


@define
class RandomIds:
    """Random uuids from the operating system's randomness, which is asked for in larger pieces.

    Each call for it lets go of the interpreter, and in a busy node it takes a hundred times as long to get it back.
    Used by one thread at a time.
    """

    _pool: bytes = field(default=b"", init=False)
    _taken: int = field(default=0, init=False)

    def __call__(self) -> UUID:
        """A new id."""
        return random_uuid(self._take)

    def _take(self, count: int) -> bytes:
        if self._taken + count > len(self._pool):
            self._pool, self._taken = os.urandom(_POOL_BYTES), 0
        self._taken += count
        return self._pool[self._taken - count : self._taken]


@define
class _Event:
    """A request that is under way: what it asks for, and what has come of it so far."""

    operation: Operation[Any]
    future: "Future[Any]"
    many: bool
    batch: bytes = b""
    """What to append, staged already; empty if nothing is."""
    appended: bool = False
    confirmed: bool = False
    """Nothing about it rests on this node's still being active."""
    record_count: int = 0
    response: Any = None
    begun: float = 0.0
    end_offset: int = -1
    """Answered when the high-water mark is here."""


@define(eq=False, kw_only=True)
class QuorumController(AclMutator):
    """The one writer of a log. Made, called and answered on one event loop's thread.

    The publisher must have been brought to the log's end; nobody else may append to the log or stage images.
    """

    log: Log
    publisher: Publisher
    loop: asyncio.AbstractEventLoop
    on_failure: Callable[[MetadataError], None] = lambda _: None
    """Told once, when a commit has failed, or an image could not be shown: nothing is written any more."""
    contested: bool = False
    """Whether another node may take the log over, so that this one is no longer active and does not know it."""
    cidr: bool = False
    """Whether a rule's host may be a CIDR range (KIP-1276)."""
    clock: Callable[[], int] = current_time_ms
    new_id: Callable[[], UUID] = field(factory=RandomIds)
    metrics: Metrics | None = None
    failure: MetadataError | None = field(default=None, init=False)
    """Why nothing is written any more."""
    committed_bytes: int = field(default=0, init=False)
    """The sizes of all batches that this has committed."""
    _committed: int = field(init=False)
    _announced: int = field(init=False)
    _end: int = field(init=False)
    _uncommitted: deque[_Event] = field(factory=deque, init=False)
    """Decided, not answered, in the order of the log."""
    _uncommitted_bytes: int = field(default=0, init=False)
    _undecided: deque[_Event] = field(factory=deque, init=False)
    """Those behind one that is being decided in another thread, or behind too many uncommitted bytes."""
    _unconfirmed: list[_Event] = field(factory=list, init=False)
    """Decided without a record, until a batch is appended whose commit confirms that this node was still active."""
    _confirming: bool = field(default=False, init=False)
    """Whether a NoOpRecord is under way: one at a time, for all that wait by then."""
    _deciding: "asyncio.Future[Exception | None] | None" = field(default=None, init=False)
    _closed: bool = field(default=False, init=False)
    _staging: bool = field(default=False, init=False)
    _staging_seconds: float = field(default=0.0, init=False)
    """Spent on images that are not shown yet."""
    _commit_is_due: bool = field(default=False, init=False)
    _watchers: list[Watcher] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self._end = self._committed = self._announced = self.log.high_watermark()
        if not self._end == self.log.end_offset() == self.publisher.applier.next_offset:
            raise LogError(
                f"{self.log.name}: the image stands at {self.publisher.applier.next_offset}, the log ends at "
                f"{self.log.end_offset()}, its high-water mark is {self._end}: expected all three to be the same"
            )

    def create_acls(self, context: RequestContext, acls: Sequence[StandardAcl]) -> "Future[list[AclCreateResult]]":  # noqa: ARG002
        """Create rules (aclog.authorizer.control.create_acls); see AclMutator."""

        def operation(image: Image) -> ControllerResult[list[AclCreateResult]]:
            """See Operation."""
            creation = create_acls(image.acls, acls, self.new_id, cidr=self.cidr)
            return ControllerResult(records=creation.records, response=list(creation.results))

        return self.write(operation, many=len(acls) > MANY)

    def delete_acls(
        self,
        context: RequestContext,  # noqa: ARG002
        filters: Sequence[AclBindingFilter],
    ) -> "Future[list[AclDeleteResult]]":
        """Delete what the filters take (aclog.authorizer.control.delete_acls); see AclMutator."""

        def operation(image: Image) -> ControllerResult[list[AclDeleteResult]]:
            """See Operation."""
            deletion = delete_acls(image.acls, filters)
            return ControllerResult(records=deletion.records, response=list(deletion.results))

        wide = any(wanted.resource_name is None or wanted.principal is None for wanted in filters)
        many = len(filters) > _MANY_FILTERS or (wide and len(self.publisher.latest.acls) > MANY)
        return self.write(operation, many=many)

    def write(self, operation: Operation[T], *, many: bool = False) -> "Future[T]":
        """Decide on the newest state, append, and answer when committed, in the order of the calls.

        With `many` the operation runs in another thread, and later ones wait for it. The future holds what the
        operation raised, RequestError where its records are more than a batch may hold, LogError after a failure.
        """
        event = _Event(operation, Future(), many, begun=perf_counter())
        event.future.set_running_or_notify_cancel()  # what is written cannot be called off
        if self.failure is not None or self._closed:
            stopped = LogError(f"{self.log.name}: the controller has stopped")
            event.future.set_exception(self._told(event, self.failure or stopped))
        else:
            self._undecided.append(event)
            self._go_on()
        return event.future

    def watch(self, watcher: Watcher) -> None:
        """Tell `watcher` of every commit from now on."""
        self._watchers.append(watcher)

    async def close(self) -> None:
        """Take no more requests, and wait until those that were taken are answered; a second close is nothing."""
        last = _Event(lambda _: ControllerResult(records=(), response=None), Future(), many=False, confirmed=True)
        if self.failure is None and not self._closed:
            self._closed = True
            self._undecided.append(last)
            self._go_on()
            with suppress(MetadataError):
                await committed(last.future)

    async def depose(self, why: MetadataError) -> None:
        """Stop at once: nothing is answered with success any more. Returns when no thread decides any longer."""
        self._end_with(why)
        while self._deciding is not None:
            await asyncio.wait((self._deciding,))
            await asyncio.sleep(0)  # the callback that looks at what was decided comes in this turn or the next

    def _go_on(self) -> None:
        """Decide what can be decided now."""
        while self._undecided and self._deciding is None and self._uncommitted_bytes < MAX_UNCOMMITTED_BYTES:
            event = self._undecided.popleft()
            if event.many:
                self._decide_elsewhere(event)
            else:
                self._decided(event, self._decide(event))

    def _decide_elsewhere(self, event: _Event) -> None:
        """Decide in another thread; until it is done, nothing else is decided or staged."""

        def done(deciding: "asyncio.Future[Exception | None]") -> None:
            """What was decided is here: go on with it."""
            self._deciding = None
            self._decided(event, LogError("the controller stops") if deciding.cancelled() else deciding.result())
            if self._commit_is_due:
                self._commit()
            else:
                self._go_on()

        self._deciding = self.loop.run_in_executor(None, self._decide, event)
        self._deciding.add_done_callback(done)

    def _decide(self, event: _Event) -> Exception | None:
        """Decide, and stage what will be appended: what cannot be replayed must never get into the log."""
        try:
            result = event.operation(self.publisher.latest)
            values = [encode_record(record) for record in result.records]
            if values:
                event.batch, event.record_count = self._stage(values), len(values)
        except Exception as e:  # noqa: BLE001 - whatever it is, it is this request's, and nothing is appended
            return e
        event.response = result.response
        return None

    def _stage(self, values: list[bytes]) -> bytes:
        """The batch of these values, replayed onto the newest image: the very bytes that will be appended."""
        epoch, timestamp = self.log.leader_epoch, self.clock()
        batch = build_batch(values, base_offset=self._end, leader_epoch=epoch, timestamp=timestamp)
        if len(batch) > MAX_BATCH_BYTES:
            what = f"a batch of {len(batch)} bytes: at most {MAX_BATCH_BYTES} are expected"
            raise RequestError(RECORD_LIST_TOO_LARGE, what)
        self._staging, begun = True, perf_counter()
        try:
            self.publisher.stage(batch)
        finally:
            self._staging = False
            self._staging_seconds += perf_counter() - begun
        return batch

    def _decided(self, event: _Event, error: Exception | None) -> None:
        """Append what was decided, and have it answered in its turn."""
        if self.publisher.applier.failed:
            self._fail(error or LogError(f"{self.log.name}: what was decided on cannot be replayed"))
        elif error is None and self.failure is None:
            try:
                self._append(event)
            except Exception as e:  # noqa: BLE001 - the image is ahead of the log now, whatever it was
                self._fail(e)
        if self.failure is not None:
            event.future.set_exception(self._told(event, self.failure))
        elif error is not None:
            event.future.set_exception(error)
        elif self.contested and not (event.appended or event.confirmed):
            self._confirm(event)
        elif self._end <= self._committed:
            event.future.set_result(event.response)
        else:
            self._answer_later(event)

    def _answer_later(self, event: _Event) -> None:
        """Have it answered when all that is appended by now is committed."""
        event.end_offset = self._end
        self._uncommitted.append(event)
        self._uncommitted_bytes += len(event.batch)

    def _append(self, event: _Event) -> None:
        if not event.batch:
            return
        begun = perf_counter()
        appending = self.log.append_batch(event.batch)
        event.appended = True
        self._end += event.record_count
        appending.add_done_callback(lambda appended: self._appended(appended, begun))
        unconfirmed, self._unconfirmed = self._unconfirmed, []
        for each in unconfirmed:
            self._answer_later(each)

    def _confirm(self, event: _Event) -> None:
        """Have it answered when a batch is committed that is appended from now on; see to it that there is one."""
        self._unconfirmed.append(event)
        if not self._confirming:
            self._confirming = True
            self.loop.call_soon(self._append_nothing)

    def _append_nothing(self) -> None:
        """Append a NoOpRecord, unless what was to be confirmed waits for another batch by now."""
        if not self._unconfirmed or self.failure is not None:
            self._confirming = False
            return
        event = _Event(lambda _: ControllerResult(records=(NoOpRecord(),), response=None), Future(), many=False)
        event.future.add_done_callback(self._nothing_appended)
        self._undecided.append(event)
        self._go_on()

    def _nothing_appended(self, future: "Future[None]") -> None:
        """It is committed: the next one, for who has come meanwhile."""
        error = future.exception()
        if error is None:
            self.loop.call_soon(self._append_nothing)
        elif self.failure is None:
            self._fail(error)

    def _appended(self, future: "Future[Appended]", begun: float) -> None:
        """In the log's own thread: pass on, once for each group, that the high-water mark has moved."""
        error = future.exception()
        if error is not None:
            self.loop.call_soon_threadsafe(self._fail, error)
            return
        mark = self.log.high_watermark()
        if mark > self._announced:
            self._announced = mark
            if self.metrics is not None:
                self.metrics.append.observe(perf_counter() - begun)
            self.loop.call_soon_threadsafe(self._commit)

    def _commit(self) -> None:
        """Show and answer all below the high-water mark."""
        if self.failure is not None:
            return
        if self._staging:
            self._commit_is_due = True  # the publisher is busy in another thread: not to be waited for on the loop
            return
        self._commit_is_due = False
        try:
            self._show(self.log.high_watermark())
        except Exception as e:  # noqa: BLE001 - an image that was not shown to everybody: the node must stop
            self._fail(e)
        self._go_on()

    def _show(self, mark: int) -> None:
        begun = perf_counter()
        self.publisher.commit(mark)
        self._committed = mark
        now, waiting = perf_counter(), self._uncommitted
        commit_metric = None if self.metrics is None else self.metrics.commit
        if self.metrics is not None:
            self.metrics.apply.observe(self._staging_seconds + now - begun)
            self._staging_seconds = 0.0
        while waiting and waiting[0].end_offset <= mark:
            event = waiting.popleft()
            self._uncommitted_bytes -= len(event.batch)
            self.committed_bytes += len(event.batch)
            if commit_metric is not None:
                commit_metric.observe(now - event.begun)
            event.future.set_result(event.response)
        for watcher in self._watchers:
            watcher(mark)

    def _fail(self, error: BaseException) -> None:
        """Stop: answer what is committed, and everybody else with the error; and tell whoever owns this."""
        if self._end_with(error) and self.failure is not None:
            self.on_failure(self.failure)

    def _end_with(self, error: BaseException) -> bool:
        """Answer everybody who waits with the error, and whoever comes later; tells whether it was the first one."""
        if self.failure is not None:
            return False
        self.failure = error if isinstance(error, MetadataError) else LogError(f"{self.log.name}: {error!r}")
        for event in (*self._uncommitted, *self._unconfirmed, *self._undecided):
            event.future.set_exception(self._told(event, self.failure))
        self._uncommitted.clear()
        self._unconfirmed.clear()
        self._undecided.clear()
        return True

    def _told(self, event: _Event, failure: MetadataError) -> MetadataError:
        """What whoever waits is told of a failure: where another node may be active, whether to ask that one."""
        if not self.contested:
            return failure
        if event.appended:
            return OutcomeUnknownError(f"appended, and not known to be committed: {failure}")
        return RequestError(NOT_CONTROLLER, "This node is not the active controller any more.")
