"""A KRaft quorum's metadata log, ours or Kafka's, read over the network (aclog.metalog.log.LogReader)."""

import asyncio
import shutil
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from attrs import define, field

from aclog.metalog.clock import current_time_ms, elapsed_seconds
from aclog.metalog.closeable import Closeable
from aclog.metalog.errors import LogError, MetadataError
from aclog.metalog.filelog.file_names import CheckpointFile
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.login import connect
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.nodes.observer.fetch_buffer import FetchBuffer
from aclog.nodes.observer.fetch_messages import EpochEnd
from aclog.nodes.observer.fetch_options import ObserverOptions
from aclog.nodes.observer.fetch_response_handler import ObserverState
from aclog.nodes.observer.fetcher import Fetcher
from aclog.nodes.observer.historical_reads import fetch_committed
from aclog.nodes.observer.log_identity import LogIdentity
from aclog.nodes.observer.server_selection import ServerRotation
from aclog.nodes.observer.side_connection import SideConnection
from aclog.nodes.observer.snapshot_download import SnapshotDownload
from aclog.snapshots.freshness import Freshness

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
    """The end of what the caller already has: the log starts there, and a leader that lacks it is refused."""
    identity: LogIdentity = field(factory=LogIdentity)
    """What the caller has, if it can tell: a leader whose batches are others is refused."""
    options: ObserverOptions = field(factory=ObserverOptions)
    notify: Callable[[str], None] | None = None
    """Called from the log's thread with each warning about a server, once."""
    _buffer: FetchBuffer = field(init=False)
    _fetcher: Fetcher = field(init=False)
    _side: SideConnection = field(init=False)
    _snapshots: SnapshotDownload = field(init=False)
    _loop: asyncio.AbstractEventLoop = field(init=False)
    _task: "asyncio.Task[None]" = field(init=False)
    _thread: threading.Thread = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._buffer = FetchBuffer(
            name=f"quorum {','.join(map(str, self.servers))}", options=self.options, made_room=self._made_room
        )
        started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(started,), name="quorum-observer", daemon=True)
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
        seconds = max(elapsed_seconds() - confirmed.asked, 0.0)
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
        """Return whole committed batches from the one that holds `offset` (aclog.metalog.log.LogReader.read).

        Waits for the network, at most `read_seconds`.

        Raises:
            LogError: the offset is out of range, the log is closed, or no leader is reached in time.
                CommittedRecordsLostError is final; QuorumRefusedError and LoginError need an operator.
            ConfigError: the security settings are unusable, or the server is too old.
            DecodeError: the leader repeatedly sends damaged bytes.

        """
        found = self._buffer.read(offset, max_bytes)
        return self._wait_for(fetch_committed(self._side, offset, max_bytes)) if found is None else found

    def wait(self, offset: int, timeout: float) -> bool:
        """Wait until the high-water mark is above `offset`; return whether it is.

        Raises:
            LogError, ConfigError: the log cannot be followed, and a retry will not help.

        """
        return self._buffer.wait(offset, timeout)

    def wait_known(self, timeout: float) -> None:
        """Wait until the high-water mark is known.

        Raises:
            MetadataError: it is not known within `timeout` seconds, or cannot become known; says why.

        """
        self._buffer.wait_known(timeout)

    def latest_snapshot(self) -> CheckpointFile | None:
        """Return the snapshot that ends at `start_offset`, downloaded; None if the log begins at 0.

        The file stays until a newer one is requested or the log is closed.

        Raises:
            LogError: it cannot be downloaded or written.
            CheckpointError: what the leader sends is not a checkpoint.

        """
        return self._wait_for(self._snapshots.newest())

    def checkpoints(self) -> Sequence[CheckpointFile]:
        """Return the snapshot to recover from, if any (snapshots.recovery.recover_log). Raises as latest_snapshot."""
        found = self.latest_snapshot()
        return () if found is None else (found,)

    def close(self) -> None:
        """Close the connections, end the thread and delete the snapshots. May be called again."""
        if self._buffer.close():
            with suppress(RuntimeError):  # the observer has failed, and its event loop is closed already
                self._loop.call_soon_threadsafe(self._task.cancel)
            self._thread.join(_CLOSE_SECONDS)
            if self._snapshots.directory is not None:
                shutil.rmtree(self._snapshots.directory, ignore_errors=True)

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
            # The fetcher has failed for good; stay, since reads of what it has followed still use this loop.
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
        except Exception as error:  # noqa: BLE001 - a bug must not leave readers waiting
            self._buffer.fail(LogError(f"{self.name}: the observer failed: {type(error).__name__}: {error}"))
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
