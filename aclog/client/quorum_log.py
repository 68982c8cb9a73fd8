"""A quorum's log, read over the network: replayed into an image, or appended to a mirror log."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from attrs import field

from aclog.client.connection import Connection, connect
from aclog.client.errors import (
    LoginError,
    ObserverFailedError,
    QuorumRefusedError,
    TransientReadError,
    check_same_voters,
    retriable,
)
from aclog.client.fetching import (
    EpochEnd,
    FetchBuffer,
    Fetcher,
    LogIdentity,
    ObserverOptions,
    ObserverState,
    ServerRotation,
)
from aclog.client.snapshots import SideConnection, SnapshotDownload
from aclog.config.node_config import ClientSecurity, HostPort
from aclog.metalog.batches import BatchRun, end_offset, read_header
from aclog.metalog.committed_log import Closeable
from aclog.metalog.control_records import KRaftVoters, decode_control_batch
from aclog.metalog.errors import ConfigError, LogError, MetadataError
from aclog.metalog.filelog.files import CheckpointFile, checkpoint_name
from aclog.metalog.filelog.mirror import MirrorLog
from aclog.metalog.machine import clock, disk, threads
from aclog.metalog.primitives import current_time_ms, elapsed_seconds
from aclog.metalog.values import define
from aclog.snapshots.image import Freshness
from aclog.snapshots.publisher import recover

# Reads of committed batches that the fetch buffer no longer holds, or skipped.


async def fetch_committed(side: SideConnection, offset: int, max_bytes: int) -> bytes:
    """Return committed batches from the one that holds `offset`, at most `max_bytes` but at least one batch.

    Raises:
        LogError: the batches are no longer on the leader, or no leader is found within `read_seconds`.
        DecodeError: the batches are damaged.

    """
    shared, options = side.fetcher.buffer, side.fetcher.options
    async with side.lock:
        deadline = side.deadline
        while True:
            # Read before fetching. A mark received while the fetch is under way may be the next leader's; the one
            # that responds may have records below it that were never committed and have been replaced since.
            mark = shared.high_watermark
            try:
                response = await side.fetch(offset, min(max_bytes, options.fetch_bytes))
                if response.snapshot is None:
                    return _committed(shared.name, response.records, offset, mark).read(offset, max_bytes)[0]
            except MetadataError as error:
                await side.retry(error, deadline)
            else:
                shared.begin_at(response.snapshot, response.high_watermark)
                shared.check_bounds(offset)
                await side.retry(
                    LogError(f"{shared.name}: offset {offset}: the leader offers a snapshot instead"), deadline
                )


def _committed(name: str, records: bytes, offset: int, mark: int) -> BatchRun:
    if not records:
        raise LogError(f"{name}: offset {offset}: the leader returned no batch")
    run = BatchRun.of(records)
    run.check_follows(offset, 0)
    committed = run.slice(0, run.below(mark))
    if committed is None:
        raise LogError(f"{name}: offset {offset}: the leader returned no committed batch")
    return committed


# A KRaft quorum's metadata log, ours or Kafka's, read over the network (aclog.metalog.committed_log.LogReader).


_T = TypeVar("_T")

_CLOSE_SECONDS = 5.0
_CHECK_SECONDS = 0.5
"""How often a waiting thread checks that the event loop is still running."""


@define(kw_only=True, eq=False)
class QuorumLog(Closeable):
    """Follows the leader in a thread of its own, as an observer that does not vote. Thread-safe.

    Batches are buffered until they are read, within bounds; batches no longer buffered are fetched again. Lost
    connections, leader changes and silent servers are retried; meanwhile `high_watermark` may be behind the quorum's.
    """

    servers: tuple[HostPort, ...]
    security: ClientSecurity = field(factory=ClientSecurity)
    client_id: str = "aclog-observer"
    cluster_id: str | None = None
    """If it is given, servers of another cluster are refused."""
    after: EpochEnd | None = None
    """The end of the caller's log: this one starts there, and a leader that lacks it is refused."""
    identity: LogIdentity = field(factory=LogIdentity)
    """The batches that the caller has, if known: a leader with other batches is refused."""
    options: ObserverOptions = field(factory=ObserverOptions)
    notify: Callable[[str], None] | None = None
    """Called from the log's thread with each warning about a server, once."""
    _buffer: FetchBuffer = field(init=False)
    _fetcher: Fetcher = field(init=False)
    _side: SideConnection = field(init=False)
    _snapshots: SnapshotDownload = field(init=False)
    _loop: asyncio.AbstractEventLoop = field(init=False)
    _task: "asyncio.Task[None]" = field(init=False)
    _thread: "threading.Thread" = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._buffer = FetchBuffer(
            name=f"quorum {','.join(map(str, self.servers))}", options=self.options, made_room=self._made_room
        )
        started: Future[None] = Future()
        self._thread = threads.Thread(target=self._run, args=(started,), name="quorum-observer", daemon=True)
        # Readers are synchronous and may be many; one event loop in one thread serves them all.
        self._thread.start()
        # The fetcher and the connections are created on the loop; properties and reads need them. This raises only if
        # that fails: the servers are contacted afterwards, and reads and waits report their errors.
        started.result()

    @property
    def name(self) -> str:
        """The configured servers."""
        return self._buffer.name

    @property
    def leader(self) -> HostPort | None:
        """The leader's address; None while no leader is followed."""
        return self._fetcher.leader

    @property
    def leader_id(self) -> int:
        """The leader's node id; -1 while it is unknown."""
        return self._fetcher.state.leader_id

    @property
    def leader_epoch(self) -> int:
        """The newest known leader epoch; 0 before the first."""
        return self._fetcher.state.leader_epoch

    @property
    def known_cluster_id(self) -> str | None:
        """The cluster that is followed: as configured, or as a controller reported; None before that."""
        return self._fetcher.cluster_id

    @property
    def error(self) -> MetadataError | None:
        """Why no batches arrive at the moment; None while the log is followed."""
        return self._buffer.failure or self._buffer.error

    @property
    def failure(self) -> MetadataError | None:
        """Why no batches will ever arrive again; None while the log can be followed."""
        return self._buffer.failure

    def freshness(self) -> Freshness | None:
        """Return when the leader last answered a fetch; None before the first answer."""
        confirmed = self._buffer.confirmed
        if confirmed is None:
            return None
        seconds = max(elapsed_seconds() - confirmed.request_time, 0.0)
        problem = "" if self.error is None else str(self.error)
        return Freshness(
            seconds=seconds,
            time=current_time_ms() - round(1000 * seconds),
            server=str(confirmed.server),
            problem=problem,
        )

    def start_offset(self) -> int:
        """The first readable offset: 0, the end of `after`, or the end of the newest known snapshot."""
        return self._buffer.start_offset

    def high_watermark(self) -> int:
        """The newest high-water mark that a leader has sent; -1 before the first. It never decreases."""
        return self._buffer.high_watermark

    def read(self, offset: int, max_bytes: int = 1 << 20) -> bytes:
        """Return whole committed batches from the one that holds `offset` (aclog.metalog.committed_log.LogReader.read).

        Waits for the network, at most `read_seconds`.

        Raises:
            LogError: the offset is out of range, the log is closed, or no leader is reached in time.
                CommittedRecordsLostError is final; QuorumRefusedError and LoginError need an operator.
            ConfigError: the security settings are unusable, or the server is too old.
            DecodeError: the leader repeatedly sends damaged bytes.

        """
        batches = self._buffer.read(offset, max_bytes)
        return self._wait_for(fetch_committed(self._side, offset, max_bytes)) if batches is None else batches

    def wait(self, offset: int, timeout: float) -> bool:
        """Wait until the high-water mark is above `offset`; return whether it is.

        Raises:
            LogError, ConfigError: the log cannot be followed, and a retry will not help.

        """
        return self._buffer.wait(offset, timeout)

    def wait_known(self, timeout: float) -> None:
        """Wait until the high-water mark is known.

        Raises:
            MetadataError: it is not known within `timeout` seconds, or cannot become known; the text has the reason.

        """
        self._buffer.wait_known(timeout)

    def latest_snapshot(self) -> CheckpointFile | None:
        """Return the snapshot that ends at `start_offset`, downloaded; None if the log begins at 0.

        The file stays until a newer one is requested or the log is closed.

        Raises:
            LogError: it cannot be downloaded or written.
            CheckpointError: the data of the leader is not a checkpoint.

        """
        return self._wait_for(self._snapshots.newest())

    def checkpoints(self) -> Sequence[CheckpointFile]:
        """Return the snapshot to recover from, if any (snapshots.publisher.recover_log). Raises as latest_snapshot."""
        snapshot = self.latest_snapshot()
        return () if snapshot is None else (snapshot,)

    def close(self) -> None:
        """Close the connections, end the thread and delete the snapshots. May be called again."""
        if self._buffer.close():
            with suppress(RuntimeError):  # the observer has failed, and its event loop is closed already
                self._loop.call_soon_threadsafe(self._task.cancel)
            self._thread.join(_CLOSE_SECONDS)
            if self._snapshots.directory is not None:
                disk.rmtree(self._snapshots.directory, ignore_errors=True)

    def _run(self, started: "Future[None]") -> None:
        """Run the event loop; creating one fails if the process has too many open files."""
        try:
            with asyncio.Runner() as runner:
                runner.get_loop()
                runner.run(self._follow(started))
        except Exception as error:  # noqa: BLE001 - neither the constructor nor readers may wait forever
            cause = (isinstance(error, OSError) and error.strerror) or error
            failure = LogError(f"{self.name}: no event loop: {cause}")
            self._buffer.fail(failure)
            if not started.done():
                started.set_exception(failure)

    async def _follow(self, started: "Future[None]") -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()  # type: ignore[assignment]
        self._fetcher = Fetcher(
            servers=ServerRotation(self.servers),
            connect=self._connect(),
            buffer=self._buffer,
            options=self.options,
            cluster_id=self.cluster_id,
            state=self._begin(),
            identity=self.identity,
            notify=self.notify,
        )
        self._side = SideConnection(self._fetcher)
        self._snapshots = SnapshotDownload(self._side)
        started.set_result(None)
        try:
            await self._fetcher.run()
            # The fetcher has failed for good; stay, since reads of records fetched before still use this loop.
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
        except Exception as error:  # noqa: BLE001 - a bug must not leave readers waiting
            # Not an error to be tried again: a node would serve an old state for good, and report no lag.
            self._buffer.fail(ObserverFailedError(f"{self.name}: the observer failed: {type(error).__name__}: {error}"))
        finally:
            await self._side.close()

    def _begin(self) -> ObserverState:
        if self.after is None:
            return ObserverState()
        self._buffer.start_at(self.after.end_offset)
        return ObserverState(committed_end=self.after.end_offset, committed_epoch=self.after.epoch)

    def _connect(self) -> "partial[Coroutine[Any, Any, Connection]]":
        seconds = self.options.response_seconds
        return partial(connect, security=self.security, client_id=self.client_id, timeout=seconds)

    def _made_room(self) -> None:
        with suppress(RuntimeError):  # as in close
            self._loop.call_soon_threadsafe(self._fetcher.room.set)

    def _wait_for(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine on the event loop, and wait for its result."""
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
            # A loop that ends drops coroutines it has not started: without this check, callers would wait forever.
            while not future.done() and self._thread.is_alive():
                wait((future,), _CHECK_SECONDS)
            return future.result(0)
        except (CancelledError, TimeoutError, RuntimeError):
            work.close()
            raise LogError(f"{self.name}: closed") from None


def _voters_of(snapshot: CheckpointFile) -> KRaftVoters | None:
    """Return the voters in the first batch of a snapshot; None with kraft.version 0."""
    with snapshot.path.open("rb") as file:
        data = file.read(_HEADER_BYTES)
    records = decode_control_batch(data, 0, read_header(data))
    return next((each for each in records if isinstance(each, KRaftVoters)), None)


# The loop of `aclog mirror`: appends the committed records of a quorum to a mirror log, unchanged.


Notify: TypeAlias = Callable[[str], None]
"""Called once for each error, each recovery from one, and each gap in the mirrored records."""

Advance: TypeAlias = Callable[[int, int | None], None]
"""Called with (offset mirrored, high-water mark)."""

_MIRROR_READ_BYTES = 8 << 20
"""How much one fsync makes durable."""
_MIRROR_WAIT_SECONDS = 0.5
_HEADER_BYTES = 1 << 20
"""More than the first batch of a snapshot takes."""


@define(kw_only=True, eq=False)
class QuorumMirror:
    """Runs in the thread that calls `run`. Errors of the network are retried; those of the mirror end it.

    Both logs belong to the caller, who closes the quorum's to stop quickly. `patience` is how many seconds without
    progress are tolerated before an error is raised; None means forever.
    """

    quorum: QuorumLog
    mirror: MirrorLog
    stop: "threading.Event"
    notify: Notify = field(default=lambda _: None)
    advance: Advance = field(default=lambda _done, _total: None)
    patience: float | None = None
    succeeded: Callable[[], None] = field(default=lambda: None)
    """Called whenever the quorum is being followed without errors, at least once a second then."""
    checkpointed: Callable[[Path], None] = field(default=lambda _: None)
    """Called with the checkpoint of a snapshot with which the mirror's log begins."""
    failed: Callable[[str], None] = field(default=lambda _: None)
    """Called with the error whenever it is not."""
    batches: int = field(default=0, init=False)
    """Number of batches appended."""
    size: int = field(default=0, init=False)
    """Bytes appended."""
    _has_high_watermark: bool = field(default=False, init=False)
    """Whether the quorum's high-water mark is known."""
    _notified: set[str] = field(factory=set, init=False)
    """The errors since the last success."""
    _suspect: MetadataError | None = field(default=None, init=False)
    """The log's error when a wait last timed out."""
    _last_success: float = field(factory=clock.monotonic_seconds, init=False)

    @property
    def lag(self) -> int:
        """How many committed records are not mirrored yet."""
        return max(self.quorum.high_watermark() - max(self._mirrored_to(), 0), 0)

    def run(self, *, once: bool) -> None:
        """Mirror until `stop` is set; `once`: up to the first high-water mark.

        Raises:
            FollowingEndedError: the quorum's history differs from the mirror's, or it is another quorum.
            MetadataError: the quorum refuses from the start, or cannot be followed for longer than `patience`.
            LogError: the mirror cannot be written; it is left as it is.

        """
        limit: int | None = None
        while not self.stop.is_set() and (limit is None or self._mirrored_to() < limit):
            try:
                self._step()
            except TransientReadError as transient:
                if not self.stop.is_set():  # a caller that stops the mirror may have closed the log: not an error
                    self._back_off(transient.cause, is_lasting=True)
            if once and limit is None and self._has_high_watermark:
                limit = self.quorum.high_watermark()

    def _mirrored_to(self) -> int:
        return -1 if self.mirror.end is None else self.mirror.end.end_offset

    def _step(self) -> None:
        """Append the next batches, if any arrive in time."""
        if not self._has_high_watermark:
            self._wait_known()
        elif self.mirror.end is None or self._mirrored_to() < self.quorum.start_offset():
            self._begin()
        elif retriable(lambda: self.quorum.wait(self._mirrored_to(), _MIRROR_WAIT_SECONDS)):
            self._append(retriable(lambda: self.quorum.read(self._mirrored_to(), _MIRROR_READ_BYTES)))
        else:
            self._check_error()

    def _wait_known(self) -> None:
        if retriable(lambda: self.quorum.wait(-1, _MIRROR_WAIT_SECONDS)):
            self._bind()
            self._has_high_watermark = True
            self._note_success()
        else:
            self._check_error()

    def _bind(self) -> None:
        cluster_id = self.quorum.known_cluster_id
        if cluster_id is None:
            raise LogError(f"{self.quorum.name}: no cluster id: a new mirror needs ALTER on the cluster once")
        self.mirror.bind(cluster_id)

    def _append(self, batches: bytes) -> None:
        self.batches += self.mirror.append(batches)
        self.size += len(batches)
        self._note_success()
        self.advance(end_offset(batches), self.quorum.high_watermark())

    def _begin(self) -> None:
        """Begin the mirror's log: at 0, or after a snapshot if the quorum's log does not reach back."""
        before = self.mirror.end
        snapshot = retriable(self.quorum.latest_snapshot)
        if before is not None and (snapshot is None or snapshot.end_offset <= before.end_offset):
            return  # another leader, whose log reaches further back: the next batches can be read after all
        if before is not None and snapshot is not None and (voters := _voters_of(snapshot)) is not None:
            known = recover(self.mirror.directory).image.provenance.voters
            check_same_voters(known, voters, snapshot.end_offset)
        archive = self.mirror.begin(snapshot)
        if snapshot is not None:
            self.checkpointed(self.mirror.directory / checkpoint_name(snapshot.end_offset, snapshot.epoch))
            self.advance(snapshot.end_offset, self.quorum.high_watermark())
        after = f"after the snapshot of offset {self._mirrored_to()}"
        if before is not None and archive is not None:
            self.notify(
                f"{self.mirror.name}: the quorum's log begins at offset {self._mirrored_to()} now: the mirror up to "
                f"{before.end_offset} is kept in {archive}, and a new one begins {after}"
            )
        elif snapshot is not None:
            self.notify(f"{self.mirror.name}: begins {after}: the quorum no longer has the records before it")

    def _check_error(self) -> None:
        """After a wait without records: report an error of the log that has lasted since the previous one."""
        suspect, self._suspect = self._suspect, self.quorum.error
        if self._suspect is None:
            if self._has_high_watermark:  # before that, there was no response yet
                self._note_success()
        elif suspect is not None:
            self._back_off(self._suspect, is_lasting=False)

    def _back_off(self, error: MetadataError, *, is_lasting: bool) -> None:
        """Wait before the next step; `is_lasting`: reads raise the error, as no server that is left may respond."""
        refused = is_lasting and isinstance(error, QuorumRefusedError | LoginError | ConfigError)
        self.failed(str(error))
        if refused and not self._has_high_watermark:
            raise error.with_traceback(None)
        if self.patience is not None and clock.monotonic() - self._last_success >= self.patience:
            raise LogError(f"given up after {self.patience:g} s without a usable leader: {error}")
        if str(error) not in self._notified:
            self._notified.add(str(error))
            self.notify(f"{error}; trying again")
        self.stop.wait(_MIRROR_WAIT_SECONDS)

    def _note_success(self) -> None:
        self._last_success = clock.monotonic()
        self.succeeded()
        self._suspect = None
        if self._notified:
            self._notified.clear()
            self.notify(f"{self.quorum.name}: following again from offset {max(self._mirrored_to(), 0)}")
