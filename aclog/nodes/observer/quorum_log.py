"""A KRaft quorum's metadata log, ours or Kafka's, read over the network (aclog.metalog.log.LogReader)."""

import asyncio
import shutil
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import CancelledError, wait
from functools import partial
from types import TracebackType
from typing import Any, Self, TypeVar

from attrs import define, field

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
from aclog.nodes.observer.historical_reads import fetch_committed, fetch_leader_batch
from aclog.nodes.observer.server_selection import ServerRotation
from aclog.nodes.observer.side_connection import SideConnection
from aclog.nodes.observer.snapshot_download import SnapshotDownload

_T = TypeVar("_T")

_CLOSE_SECONDS = 5.0
_CHECK_SECONDS = 0.5
"""How often a waiting thread sees whether the event loop has ended."""


@define(kw_only=True, eq=False)
class QuorumLog:
    """Follows the leader in a thread of its own, as an observer whom the quorum does not count. Safe for many threads.

    It holds what comes in until it is read, within bounds; what is no longer held is fetched anew. Cuts, changes of the
    leader and silence are overcome; while they last, what is committed may lie beyond `high_watermark`.
    """

    servers: tuple[HostPort, ...]
    security: ClientSecurity = field(factory=ClientSecurity)
    client_id: str = "aclog-observer"
    cluster_id: str | None = None
    """Where it is known, another cluster is refused."""
    after: EpochEnd | None = None
    """The end of what is known of this log already: it begins there, and a leader must have what lies below it."""
    options: ObserverOptions = field(factory=ObserverOptions)
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
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), name="quorum-observer", daemon=True)
        self._thread.start()
        started.wait()
        if self._buffer.failure is not None:
            raise self._buffer.failure

    @property
    def name(self) -> str:
        """The servers that were given."""
        return self._buffer.name

    @property
    def leader(self) -> HostPort | None:
        """Who is followed; None while nobody is."""
        return self._fetcher.leader

    @property
    def leader_id(self) -> int:
        """The node id of the leader, -1 while it is not known."""
        return self._fetcher.state.leader_id

    @property
    def leader_epoch(self) -> int:
        """The newest epoch that is known; 0 while none is."""
        return self._fetcher.state.leader_epoch

    @property
    def known_cluster_id(self) -> str | None:
        """Of the cluster that is followed: as given, or as a controller has told; None where none has."""
        return self._fetcher.cluster_id

    @property
    def error(self) -> MetadataError | None:
        """Why nothing comes, while nothing does."""
        return self._buffer.failure or self._buffer.error

    def start_offset(self) -> int:
        """The first offset that can be read: 0, or `after`, or where the newest known snapshot ends."""
        return self._buffer.start_offset

    def high_watermark(self) -> int:
        """The newest mark that a leader has told; -1 before the first. It never goes back."""
        return self._buffer.high_watermark

    def read(self, offset: int, max_bytes: int = 1 << 20) -> bytes:
        """Whole committed batches from the one that holds `offset` (aclog.metalog.log.LogReader.read).

        Waits for the network, but not for ever.

        Raises:
            LogError: outside of the log, closed, or out of reach; CommittedRecordsLostError, QuorumRefusedError and
                LoginError are for good, or until somebody does something.
            ConfigError: the security settings cannot be used, or the server is too old.
            DecodeError: the leader gives damaged bytes, again and again.

        """
        found = self._buffer.read(offset, max_bytes)
        return self._wait_for(fetch_committed(self._side, offset, max_bytes)) if found is None else found

    def leader_batch(self, offset: int) -> bytes | None:
        """The batch that holds `offset`, below the mark, as the leader has it now; None where its log begins later.

        Raises as `read`.
        """
        return self._wait_for(fetch_leader_batch(self._side, offset))

    def wait(self, offset: int, timeout: float) -> bool:
        """Wait until the high-water mark is above `offset`; tell whether it is.

        Raises:
            LogError, ConfigError: the log cannot be followed, and that will not pass by itself.

        """
        return self._buffer.wait(offset, timeout)

    def wait_known(self, timeout: float) -> None:
        """Wait until the high-water mark is known.

        Raises:
            MetadataError: it is not within `timeout` seconds, or will not be; why.

        """
        self._buffer.wait_known(timeout)

    def latest_snapshot(self) -> CheckpointFile | None:
        """The snapshot that `start_offset` is the end of, downloaded; None where the log begins at 0.

        The file stays until a later one is asked for, or the log is closed.

        Raises:
            LogError: it cannot be had, or not be written.
            CheckpointError: what the leader gives is no checkpoint.

        """
        return self._wait_for(self._snapshots.newest())

    def checkpoints(self) -> Sequence[CheckpointFile]:
        """The one that is needed, if one is, as snapshots.recovery.recover_log wants it. Raises as latest_snapshot."""
        found = self.latest_snapshot()
        return () if found is None else (found,)

    def close(self) -> None:
        """Let go of the connections, the thread and the snapshots; a second close is nothing."""
        if self._buffer.close():
            self._loop.call_soon_threadsafe(self._task.cancel)
            self._thread.join(_CLOSE_SECONDS)
            if self._snapshots.directory is not None:
                shutil.rmtree(self._snapshots.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, started: threading.Event) -> None:
        """The thread; an event loop needs files, of which there may be too many open."""
        try:
            with asyncio.Runner() as runner:
                runner.get_loop()
                runner.run(self._follow(started))
        except OSError as error:
            self._buffer.fail(LogError(f"{self.name}: no event loop: {error.strerror or error}"))
        finally:
            started.set()

    async def _follow(self, started: threading.Event) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()  # type: ignore[assignment]
        self._fetcher = Fetcher(
            servers=ServerRotation(self.servers),
            connect=self._connect(),
            buffer=self._buffer,
            options=self.options,
            cluster_id=self.cluster_id,
            state=self._begin(),
        )
        self._side = SideConnection(self._fetcher)
        self._snapshots = SnapshotDownload(self._side)
        started.set()
        try:
            await self._fetcher.run()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
        except Exception as error:  # noqa: BLE001 - a mistake of ours must not leave readers waiting
            self._buffer.fail(LogError(f"{self.name}: following broke off: {type(error).__name__}: {error}"))
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
        self._loop.call_soon_threadsafe(self._fetcher.room.set)

    def _wait_for(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Have the event loop do something, and wait for it."""
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
            while not future.done() and self._thread.is_alive():
                wait((future,), _CHECK_SECONDS)
            return future.result(0)
        except (CancelledError, TimeoutError, RuntimeError):
            work.close()
            raise LogError(f"{self.name}: closed") from None
