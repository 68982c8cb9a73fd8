"""The active controller (org.apache.kafka.controller.QuorumController)."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Generic, TypeAlias, TypeVar
from uuid import UUID

from attrs import field

from aclog.authorizer.acl import AclBindingFilter, StandardAcl
from aclog.authorizer.control import AclCreation, create_acls, delete_acls, filter_value
from aclog.authorizer.interface import AclCreateResult, AclDeleteResult, AclMutator, RequestContext
from aclog.authorizer.settings import Generation
from aclog.metalog.batches import build_batch
from aclog.metalog.codec import encode_record
from aclog.metalog.committed_log import Appended, Log
from aclog.metalog.errors import LogError, MetadataError, UncertainError
from aclog.metalog.group_commit import MAX_BATCH_BYTES
from aclog.metalog.machine import clock
from aclog.metalog.primitives import RandomIds, current_time_ms
from aclog.metalog.records import MetadataRecord, NoOpRecord
from aclog.metalog.values import define, frozen
from aclog.protocol import error_codes
from aclog.protocol.headers import OutcomeUnknownError, RequestError
from aclog.server.loops import MANY, LoopFuture, committed
from aclog.server.telemetry import Metrics
from aclog.snapshots.image import METADATA_VERSION, Image
from aclog.snapshots.publisher import Publisher

# CreateAcls requests that arrive together and become one batch, as in Kafka's BatchAccumulator.


MOST_ACLS = 256
"""The most ACLs that are decided together on the event loop, which takes about 5 ms."""


@define(eq=False)
class CreationGroup:
    """Requests in order of arrival, decided as one: each gets the results that it would get alone, after those before.

    Rules for a whole request must not hold for a group: requests with ANY or MATCH, and those of more than
    MOST_ACLS, are decided alone. So is every request of a group that fails.
    """

    acls: list[StandardAcl] = field(factory=list, init=False)
    requests: list[tuple[int, LoopFuture[list[AclCreateResult]]]] = field(factory=list, init=False)
    """The number of ACLs of each request, and its future."""

    def has_room(self, count: int) -> bool:
        """Whether as many more ACLs may join."""
        return len(self.acls) + count <= MOST_ACLS

    def add(self, acls: Sequence[StandardAcl], future: LoopFuture[list[AclCreateResult]]) -> None:
        """Add a request."""
        self.acls += acls
        self.requests.append((len(acls), future))

    def set_result(self, results: Sequence[AclCreateResult]) -> None:
        """Complete the future of each request with its results."""
        at = 0
        for count, future in self.requests:
            future.set_result(list(results[at : at + count]))
            at += count

    def set_exception(self, error: BaseException) -> None:
        """Let all requests fail."""
        for _, future in self.requests:
            future.set_exception(error)

    def apart(self) -> "list[CreationGroup]":
        """Return a group for each request."""
        groups, at = [], 0
        for count, future in self.requests:
            group = CreationGroup()
            group.add(self.acls[at : at + count], future)
            groups.append(group)
            at += count
        return groups


# The change of a request, and a request in progress on the write path.


T = TypeVar("T")


@frozen(kw_only=True)
class ControllerResult(Generic[T]):
    """Records that become one atomic batch (none if nothing changes), and the response (ControllerResult)."""

    records: Sequence[MetadataRecord]
    response: T


Operation: TypeAlias = Callable[[Image], ControllerResult[T]]
"""A pure function from the newest image, committed or not, to a change (ControllerWriteOperation)."""


@define
class WriteEvent:
    """A request in progress (QuorumController.ControllerWriteEvent)."""

    operation: Operation[Any]
    reply: LoopFuture[Any] | CreationGroup
    offload: bool = False
    batch: bytes = b""
    """The staged batch to append; empty if there are no records."""
    appended: bool = False
    confirmed: bool = False
    """Whether the response is valid even if this node is no longer active."""
    record_count: int = 0
    response: Any = None
    begun: float = 0.0
    end_offset: int = -1
    """The response is sent once the high-water mark reaches this offset."""

    @property
    def request_count(self) -> int:
        """The number of requests that get the response."""
        return len(self.reply.requests) if isinstance(self.reply, CreationGroup) else 1

    def failure(self, stopped: MetadataError, *, contested: bool, committed: int) -> MetadataError:
        """Return the error of the request if its controller stopped: on a contested log, whether to try another one.

        `committed`: the log's high-water mark.
        """
        # Of another log, a batch that failed for certain was truncated.
        is_uncertain = contested or isinstance(stopped, UncertainError) or self.end_offset <= committed
        if self.appended and is_uncertain:
            # The transaction may have been committed without a response to this node: neither success nor failure.
            return OutcomeUnknownError(f"appended, but the commit is unknown: {stopped}")
        if not contested:
            return stopped
        return RequestError(error_codes.NOT_CONTROLLER, "This node is no longer the active controller.")


def creation_event(
    group: CreationGroup, decide: Callable[[Image, Sequence[StandardAcl]], AclCreation], *, begun: float
) -> WriteEvent:
    """Return the event that decides a group of CreateAcls requests."""

    def operation(image: Image) -> ControllerResult[tuple[AclCreateResult, ...]]:
        """See Operation."""
        creation = decide(image, group.acls)
        return ControllerResult(records=creation.records, response=creation.results)

    return WriteEvent(operation, group, begun=begun)


# The active controller (org.apache.kafka.controller.QuorumController).
#
# A request is decided on the newest state, including uncommitted records, and becomes one atomic batch; requests to
# create a few ACLs that arrive together share a batch. A response is sent once that batch and all before it are
# committed. A request without records waits for everything before it, so no response ever confirms uncommitted state.
# An image becomes visible once the high-water mark has reached its end.
#
# A failed commit stops the controller: pending and later requests fail, and uncommitted images are never published.
# The next startup finds out which of their records are in the log.
#
# If other nodes may take over the log (`contested`), a controller that was paused may decide on an outdated state.
# The log's fencing keeps its appends from being committed. A response without records must not slip through either:
# it waits for a commit that began after the decision, of a NoOpRecord if nothing else is appended
# (docs/decisions/0010-failover.md).


MAX_UNCOMMITTED_BYTES = 32 << 20
"""The limit of uncommitted batch bytes; requests beyond it are queued undecided."""
_MANY_FILTERS = 16
"""DeleteAcls with more filters than this is decided in a thread: a filter on prefixes may take 0.5 ms."""
Watcher: TypeAlias = Callable[[int], None]
"""Called with the high-water mark after each commit, once its image is published."""


@define(eq=False, kw_only=True)
class QuorumController(AclMutator):
    """The only writer of a log. Created and called on one event loop's thread, which also completes its futures.

    The publisher must have replayed the log to its end; no other writer may append to the log or stage images.
    """

    log: Log
    publisher: Publisher
    loop: asyncio.AbstractEventLoop
    on_failure: Callable[[MetadataError], None] = lambda _: None
    """Called once when a commit failed or an image could not be published; nothing is written afterwards."""
    contested: bool = False
    """Whether another node may take over the log without this one noticing."""
    cidr: bool = False
    """Whether an ACL's host may be a CIDR range (KIP-1276)."""
    generation: Generation = Generation.V4_3
    """The Kafka whose checks CreateAcls makes."""
    clock: Callable[[], int] = current_time_ms
    new_id: Callable[[], UUID] = field(factory=RandomIds)
    metrics: Metrics | None = None
    failure: MetadataError | None = field(default=None, init=False)
    """Why the controller has stopped; None while it is running."""
    committed_bytes: int = field(default=0, init=False)
    """The total size of the batches committed by this controller."""
    _committed: int = field(init=False)
    _announced: int = field(init=False)
    _end: int = field(init=False)
    _uncommitted: deque[WriteEvent] = field(factory=deque, init=False)
    """Decided requests awaiting their commit, in log order."""
    _uncommitted_bytes: int = field(default=0, init=False)
    _undecided: deque[WriteEvent] = field(factory=deque, init=False)
    """Requests queued behind one that is being decided in a thread, or behind MAX_UNCOMMITTED_BYTES."""
    _unconfirmed: list[WriteEvent] = field(factory=list, init=False)
    """Requests decided without records, until a later batch is appended whose commit proves this node active."""
    _group_is_due: bool = field(default=False, init=False)
    """Whether the event loop will decide a group in its next turn."""
    _confirming: bool = field(default=False, init=False)
    """Whether a NoOpRecord is in progress; there is one at a time, for all requests waiting by then."""
    _deciding: "asyncio.Future[Exception | None] | None" = field(default=None, init=False)
    _closed: bool = field(default=False, init=False)
    _staging: bool = field(default=False, init=False)
    _staging_seconds: float = field(default=0.0, init=False)
    """Time spent on images that are not published yet."""
    _commit_is_due: bool = field(default=False, init=False)
    _watchers: list[Watcher] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self._end = self._committed = self._announced = self.log.high_watermark()
        if not self._end == self.log.end_offset() == self.publisher.applier.next_offset:
            raise LogError(
                f"{self.log.name}: the image is at offset {self.publisher.applier.next_offset}, the log ends at "
                f"{self.log.end_offset()}, its high-water mark is {self._end}: expected all three to be equal"
            )

    def create_acls(self, context: RequestContext, acls: Sequence[StandardAcl]) -> "Future[list[AclCreateResult]]":  # noqa: ARG002
        """Create ACLs (aclog.authorizer.control.create_acls); see AclMutator."""
        if len(acls) <= MOST_ACLS and not any(map(filter_value, acls)):
            return self._join_group(acls)

        def operation(image: Image) -> ControllerResult[list[AclCreateResult]]:
            """See Operation."""
            creation = self._creation(image, acls)
            return ControllerResult(records=creation.records, response=list(creation.results))

        return self.write(operation, offload=len(acls) > MANY)

    def _creation(self, image: Image, acls: Sequence[StandardAcl]) -> AclCreation:
        level = image.features.level(METADATA_VERSION)
        return create_acls(image.acls, acls, self.new_id, cidr=self.cidr, generation=self.generation, level=level)

    def delete_acls(
        self,
        context: RequestContext,  # noqa: ARG002
        filters: Sequence[AclBindingFilter],
    ) -> "Future[list[AclDeleteResult]]":
        """Delete the ACLs that match (aclog.authorizer.control.delete_acls); see AclMutator."""

        def operation(image: Image) -> ControllerResult[list[AclDeleteResult]]:
            """See Operation."""
            deletion = delete_acls(image.acls, filters)
            return ControllerResult(records=deletion.records, response=list(deletion.results))

        return self.write(operation, offload=len(filters) > _MANY_FILTERS or self._reads_many(filters))

    def _reads_many(self, filters: Sequence[AclBindingFilter]) -> bool:
        wide = any(acl_filter.resource_name is None or acl_filter.principal is None for acl_filter in filters)
        return wide and len(self.publisher.latest.acls) > MANY

    def write(self, operation: Operation[T], *, offload: bool = False) -> "Future[T]":
        """Decide on the newest state, append, and respond when committed, in call order.

        With `offload` the operation runs in a thread, and later ones wait for it. The future raises what the operation
        raised, RequestError if its records exceed the batch limit, or LogError after a failure.
        """
        future: LoopFuture[T] = LoopFuture(self.loop)
        event = WriteEvent(operation, future, offload, begun=clock.perf_counter())
        if not self._refuse(event):
            self._undecided.append(event)
            self._process_queue()
        return future

    def _join_group(self, acls: Sequence[StandardAcl]) -> "Future[list[AclCreateResult]]":
        """Decide together with other requests that arrive in this turn of the event loop, or wait."""
        future: LoopFuture[list[AclCreateResult]] = LoopFuture(self.loop)
        group = self._undecided[-1].reply if self._undecided else None
        if isinstance(group, CreationGroup) and group.has_room(len(acls)):
            group.add(acls, future)
            return future
        group = CreationGroup()
        group.add(acls, future)
        event = creation_event(group, self._creation, begun=clock.perf_counter())
        if not self._refuse(event):
            self._undecided.append(event)
            if not self._group_is_due:
                self._group_is_due = True
                self.loop.call_soon(self._decide_groups)
        return future

    def _decide_groups(self) -> None:
        self._group_is_due = False
        self._process_queue()

    def _refuse(self, event: WriteEvent) -> bool:
        """Let a request fail if the controller has stopped; return whether it has."""
        if self.failure is None and not self._closed:
            return False
        stopped = self.failure or LogError(f"{self.log.name}: the controller has stopped")
        event.reply.set_exception(self._failure_of(event, stopped))
        return True

    def watch(self, watcher: Watcher) -> None:
        """Call `watcher` after every commit from now on."""
        self._watchers.append(watcher)

    async def close(self) -> None:
        """Accept no more requests and wait for the pending ones; idempotent."""
        # An empty last event completes after everything queued before it.
        ended: LoopFuture[None] = LoopFuture(self.loop)
        last = WriteEvent(lambda _: ControllerResult(records=(), response=None), ended, confirmed=True)
        if self.failure is None and not self._closed:
            self._closed = True
            self._undecided.append(last)
            self._process_queue()
            with suppress(MetadataError):
                await committed(ended)

    async def depose(self, why: MetadataError) -> None:
        """Stop at once because another node leads: all pending requests fail.

        Returns once no thread decides any longer, after which the publisher may be reset to the committed image.
        """
        self._end_with(why)
        while self._deciding is not None:
            await asyncio.wait((self._deciding,))
            await asyncio.sleep(0)  # let the done callback run, which may start the next decision

    def _process_queue(self) -> None:
        """Decide queued requests until one is offloaded or too many bytes are uncommitted."""
        while self._undecided and self._deciding is None and self._uncommitted_bytes < MAX_UNCOMMITTED_BYTES:
            event = self._undecided.popleft()
            if event.offload:
                self._decide_in_thread(event)
                continue
            error = self._decide(event)
            if error is None or self.publisher.applier.failed or not self._decide_apart(event):
                self._decided(event, error)

    def _decide_apart(self, event: WriteEvent) -> bool:
        """Queue each request of a failed group by itself: the failure may be of one request. False without a group."""
        if not isinstance(event.reply, CreationGroup) or event.request_count == 1:
            return False
        for each in reversed(event.reply.apart()):
            self._undecided.appendleft(creation_event(each, self._creation, begun=event.begun))
        return True

    def _decide_in_thread(self, event: WriteEvent) -> None:
        """Decide in a thread; until it is done, nothing else is decided or staged."""

        def done(deciding: "asyncio.Future[Exception | None]") -> None:
            """Append the decision, and catch up with the commits deferred meanwhile."""
            self._deciding = None
            self._decided(event, LogError("the controller stops") if deciding.cancelled() else deciding.result())
            if self._commit_is_due:
                self._commit()
            else:
                self._process_queue()

        self._deciding = self.loop.run_in_executor(None, self._decide, event)
        self._deciding.add_done_callback(done)

    def _decide(self, event: WriteEvent) -> Exception | None:
        """Decide, and stage the batch before it is appended: a batch that cannot be replayed must not enter the log."""
        try:
            result = event.operation(self.publisher.latest)
            values = [encode_record(record) for record in result.records]
            if values:
                event.batch, event.record_count = self._stage(values), len(values)
        except Exception as e:  # noqa: BLE001 - fails this request only, as nothing is appended
            return e
        event.response = result.response
        return None

    def _stage(self, values: list[bytes]) -> bytes:
        """Build the batch and replay it onto the newest image. Exactly these bytes are appended later."""
        epoch, timestamp = self.log.leader_epoch, self.clock()
        batch = build_batch(values, base_offset=self._end, leader_epoch=epoch, timestamp=timestamp)
        if len(batch) > MAX_BATCH_BYTES:
            what = f"batch of {len(batch)} bytes: expected at most {MAX_BATCH_BYTES}"
            raise RequestError(error_codes.RECORD_LIST_TOO_LARGE, what)
        self._staging, begun = True, clock.perf_counter()
        try:
            self.publisher.stage(batch)
        finally:
            self._staging = False
            self._staging_seconds += clock.perf_counter() - begun
        return batch

    def _decided(self, event: WriteEvent, error: Exception | None) -> None:
        """Append the decision, and schedule its response."""
        # A failed applier is ahead of the log for good: nothing decided on its image may be appended.
        if self.publisher.applier.failed:
            self._fail(error or LogError(f"{self.log.name}: the decided records cannot be replayed"))
        elif error is None and self.failure is None:
            try:
                self._append(event)
            except Exception as e:  # noqa: BLE001 - the image is ahead of the log now, so the controller must stop
                self._fail(e)
        if self.failure is not None:
            event.reply.set_exception(self._failure_of(event, self.failure))
        elif error is not None:
            event.reply.set_exception(error)
        elif self.contested and not (event.appended or event.confirmed):
            self._confirm(event)
        elif self._end <= self._committed:
            event.reply.set_result(event.response)
        else:
            self._respond_when_committed(event)

    def _respond_when_committed(self, event: WriteEvent) -> None:
        """Respond once everything appended so far is committed."""
        event.end_offset = self._end
        self._uncommitted.append(event)
        self._uncommitted_bytes += len(event.batch)

    def _append(self, event: WriteEvent) -> None:
        if not event.batch:
            return
        begun = clock.perf_counter()
        appending = self.log.append_batch(event.batch)
        event.appended = True
        self._end += event.record_count
        appending.add_done_callback(lambda appended: self._appended(appended, begun))
        # This append began after those requests were decided, so its commit proves that this node was still active.
        unconfirmed, self._unconfirmed = self._unconfirmed, []
        for each in unconfirmed:
            self._respond_when_committed(each)

    def _confirm(self, event: WriteEvent) -> None:
        """Respond after the commit of a batch appended from now on, and make sure that there is one."""
        self._unconfirmed.append(event)
        if not self._confirming:
            self._confirming = True
            self.loop.call_soon(self._append_no_op)

    def _append_no_op(self) -> None:
        """Append a NoOpRecord unless another batch has confirmed the waiting requests meanwhile."""
        if not self._unconfirmed or self.failure is not None:
            self._confirming = False
            return
        future: LoopFuture[None] = LoopFuture(self.loop)
        future.add_done_callback(self._no_op_committed)
        self._undecided.append(WriteEvent(lambda _: ControllerResult(records=(NoOpRecord(),), response=None), future))
        self._process_queue()

    def _no_op_committed(self, future: "Future[None]") -> None:
        """Continue with the requests that arrived while the NoOpRecord was being committed."""
        error = future.exception()
        if error is None:
            self.loop.call_soon(self._append_no_op)
        elif self.failure is None:
            self._fail(error)

    def _appended(self, future: "Future[Appended]", begun: float) -> None:
        """Notify the event loop that the high-water mark moved. Runs in the log's thread."""
        error = future.exception()
        if error is not None:
            self.loop.call_soon_threadsafe(self._fail, error)
            return
        # A group commit completes many futures at once; only the first of them needs to wake the loop.
        mark = self.log.high_watermark()
        if mark > self._announced:
            self._announced = mark
            if self.metrics is not None:
                self.metrics.append.observe(clock.perf_counter() - begun)
            self.loop.call_soon_threadsafe(self._commit)

    def _commit(self) -> None:
        """Publish the image and complete the requests below the high-water mark."""
        if self.failure is not None:
            return
        if self._staging:
            self._commit_is_due = True  # a thread is staging: waiting for the publisher would block the loop
            return
        self._commit_is_due = False
        try:
            self._publish(self.log.high_watermark())
        except Exception as e:  # noqa: BLE001 - some subscribers may have missed the image: the node must stop
            self._fail(e)
        self._process_queue()

    def _publish(self, mark: int) -> None:
        begun = clock.perf_counter()
        # Visible before acknowledged: a client must be able to read its own write as soon as it has the response.
        self.publisher.commit(mark)
        self._committed = mark
        now, waiting = clock.perf_counter(), self._uncommitted
        commit_metric = None if self.metrics is None else self.metrics.commit
        if self.metrics is not None:
            self.metrics.apply.observe(self._staging_seconds + now - begun)
            self._staging_seconds = 0.0
        while waiting and waiting[0].end_offset <= mark:
            event = waiting.popleft()
            self._uncommitted_bytes -= len(event.batch)
            self.committed_bytes += len(event.batch)
            if commit_metric is not None:
                for _ in range(event.request_count):
                    commit_metric.observe(now - event.begun)
            event.reply.set_result(event.response)
        for watcher in self._watchers:
            watcher(mark)

    def _fail(self, error: BaseException) -> None:
        """Stop, fail all pending requests, and report the failure to the owner."""
        if self._end_with(error) and self.failure is not None:
            self.on_failure(self.failure)

    def _failure_of(self, event: WriteEvent, stopped: MetadataError) -> MetadataError:
        return event.failure(stopped, contested=self.contested, committed=self.log.high_watermark())

    def _end_with(self, error: BaseException) -> bool:
        """Fail all pending and later requests with the error; return whether this is the first failure."""
        if self.failure is not None:
            return False
        self.failure = error if isinstance(error, MetadataError) else LogError(f"{self.log.name}: {error!r}")
        for event in (*self._uncommitted, *self._unconfirmed, *self._undecided):
            event.reply.set_exception(self._failure_of(event, self.failure))
        self._uncommitted.clear()
        self._unconfirmed.clear()
        self._undecided.clear()
        return True
