"""The controller of a one-voter quorum, whose log is in local files (kafka.server.ControllerServer).

Its periodic work.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from attrs import field

from aclog.authorizer.interface import Authorizer
from aclog.authorizer.standard import StandardAuthorizer
from aclog.config.node_config import HostPort, NodeConfig
from aclog.metalog.committed_log import Log
from aclog.metalog.errors import MetadataError
from aclog.metalog.filelog import FileLog
from aclog.metalog.filelog.committed_mark import read_committed
from aclog.metalog.filelog.files import METADATA_DIRECTORY, CheckpointFile, list_checkpoints, read_epochs
from aclog.metalog.primitives import current_time_ms
from aclog.metalog.values import define
from aclog.server.controller.activation import check_only_voter, complete_activation, open_controller_log, replay
from aclog.server.controller.fetch import LeaderAndEpoch, OpenCheckpoints, Quorum, ServingState
from aclog.server.controller.quorum_controller import QuorumController
from aclog.server.controller.registrations import BrokerWriter, TokenWriter
from aclog.server.controller.snapshot_generator import SnapshotGenerator
from aclog.server.telemetry import Metrics
from aclog.snapshots.image_file import check_mapping
from aclog.snapshots.publisher import Publisher

# An active controller: its QuorumController and its periodic work (expired delegation tokens, silent brokers).


@define(eq=False)
class ActiveController:
    """Created by `activate` on the event loop; ended once, by `stop` or `depose`."""

    controller: QuorumController
    _periodic: "tuple[asyncio.Task[None], ...]" = field(alias="periodic")

    async def stop(self) -> None:
        """Accept no more requests; commit and respond to the pending ones."""
        await self._stop_periodic()
        await self.controller.close()

    async def depose(self, why: MetadataError) -> None:
        """Fail all pending requests; returns once no thread works on the image."""
        await asyncio.gather(self._stop_periodic(), self.controller.depose(why))

    async def _stop_periodic(self) -> None:
        for task in self._periodic:
            task.cancel()
        for task in self._periodic:
            with suppress(asyncio.CancelledError):
                await task


def activate(
    serving: ServingState,
    log: Log,
    publisher: Publisher,
    config: NodeConfig,
    *,
    authorizer: Authorizer | None,
    metrics: Metrics | None,
    on_failure: Callable[[MetadataError], None],
    contested: bool = False,
) -> ActiveController:
    """Start deciding on requests. The publisher must have replayed the log to its end.

    `contested`: other nodes may take over the log (QuorumController).
    """
    serving.controller = controller = QuorumController(
        log=log,
        publisher=publisher,
        loop=asyncio.get_running_loop(),
        on_failure=on_failure,
        contested=contested,
        generation=config.generation,
        cidr=isinstance(authorizer, StandardAuthorizer) and authorizer.cidr,
        metrics=metrics,
    )
    controller.watch(serving.fetching.wake)
    serving.tokens = TokenWriter(settings=config.tokens, controller=controller)
    serving.brokers = BrokerWriter(settings=config.brokers, controller=controller)
    if isinstance(authorizer, StandardAuthorizer):
        authorizer.set_acl_mutator(controller)
    serving.fetching.wake()
    tokens = asyncio.create_task(serving.tokens.run(), name="expired tokens")
    return ActiveController(controller, (tokens, asyncio.create_task(serving.brokers.run(), name="silent brokers")))


# The controller of a one-voter quorum, whose log is in local files (kafka.server.ControllerServer).


_log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class ControllerServer:
    """Owned by a node; created, started and stopped on its event loop.

    Handlers (ControllerApis) work at once: until `start` completes they admit super users only, and raise
    AuthorizerNotReadyError for requests that need the log or the image. `advertised` may be filled in once the ports
    are known. A StandardAuthorizer receives every image and its mutator.
    """

    config: NodeConfig
    cluster_id: str
    directory_id: UUID | None
    authorizer: Authorizer | None
    advertised: Mapping[str, HostPort]
    on_failure: Callable[[MetadataError], None] = lambda _: None
    """Called once when the controller cannot continue: the node must stop."""
    metrics: Metrics | None = None
    publisher: Publisher = field(factory=Publisher)
    notes: tuple[str, ...] = field(default=(), init=False)
    """Findings of recovery to be logged as warnings."""
    serving: ServingState | None = field(default=None, init=False)
    _log: FileLog | None = field(default=None, init=False)
    _files: OpenCheckpoints | None = field(default=None, init=False)
    _generator: SnapshotGenerator | None = field(default=None, init=False)
    _checkpointing: "asyncio.Task[None] | None" = field(default=None, init=False)
    _active: ActiveController | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        authorizer = self.authorizer
        if isinstance(authorizer, StandardAuthorizer):
            self.publisher.subscribe(lambda image: authorizer.load(image.acls))

    @property
    def ready(self) -> bool:
        """Whether the log is replayed completely and writes are accepted."""
        return self._active is not None

    @property
    def active(self) -> bool:
        """Whether this is the active controller, which it is once ready."""
        return self.ready

    async def start(self) -> None:
        """Open the log, serve it, replay it, and accept writes.

        Raises:
            LockedError: Another process holds the log's lock.
            LogError, DecodeError, CheckpointError: The log cannot be opened or replayed; nothing is left open.

        """
        self._log = log = await self._open_log()
        try:
            # Fetch is served before replay: committed bytes are valid whether or not this node has replayed them.
            self.serving = serving = self._serve(log)
            self.notes = await asyncio.to_thread(self._replay_and_activate, log)
            self._activate(log, serving)
        except BaseException:
            await self.stop()
            raise

    async def _open_log(self) -> FileLog:
        """Open the log; if the start is cancelled meanwhile, close it as soon as it is open."""
        opening = asyncio.create_task(asyncio.to_thread(self._opened))
        try:
            # The thread cannot be cancelled: without the shield the log's lock would leak with its result.
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            with suppress(MetadataError):
                (await opening).close()
            raise

    def _opened(self) -> FileLog:
        """Open the log if it has this cluster's committed records, and mark it as this cluster's."""
        if committed := read_committed(Path(self.config.metadata_log_dir) / METADATA_DIRECTORY):
            committed.check_cluster(self.cluster_id)
        log = open_controller_log(self.config)
        try:
            # Before anything is acknowledged: from the first commit on, a log that is gone is missed.
            log.keep_mark(self.cluster_id)
        except BaseException:
            log.close()
            raise
        return log

    def check_files(self) -> None:
        """Check that the log's open files still have their names, and keep the committed mark; called once a second.

        Raises:
            LogError: they do not, the image file in use was overwritten, or the disk fails.

        """
        log = self._log
        if log is not None:
            log.check_files()
            check_mapping(self.publisher.current.acls)
            log.keep_mark()

    def abandon(self, why: MetadataError) -> None:
        """Acknowledge nothing any more: pending and later requests fail, and long polls end."""
        if self._log is not None:
            self._log.abandon(str(why))
        if self.serving is not None:
            self.serving.fetching.close()

    def _serve(self, log: FileLog) -> ServingState:
        leader = LeaderAndEpoch(leader_id=self.config.node_id, epoch=log.leader_epoch)
        quorum = Quorum(
            cluster_id=self.cluster_id,
            node_id=self.config.node_id,
            directory_id=self.directory_id,
            leader=lambda: leader,
            epochs=read_epochs(log.directory) or (),
            advertised=self.advertised,
            listener_names=self.config.controller_listener_names,
            checkpoints=list_checkpoints(log.directory),
        )
        self._files = OpenCheckpoints(directory=log.directory)
        return ServingState.of(log, quorum, self._files, replayed=lambda: self.ready)

    def _replay_and_activate(self, log: FileLog) -> tuple[str, ...]:
        notes = replay(log, self.publisher)
        check_only_voter(log, self.publisher.latest, self.config.node_id)
        complete_activation(
            log,
            self.publisher,
            log.directory,
            current_time_ms,
            min_insync_replicas=self.config.min_insync_replicas,
        )
        self.publisher.observe_high_watermark(log.high_watermark())
        return notes

    def _activate(self, log: FileLog, serving: ServingState) -> None:
        self._active = activate(
            serving,
            log,
            self.publisher,
            self.config,
            authorizer=self.authorizer,
            metrics=self.metrics,
            on_failure=self._fail,
        )
        controller = self._active.controller
        self._generator = SnapshotGenerator(
            directory=log.directory,
            policy=self.config.checkpoints,
            image=lambda: self.publisher.current,
            committed_bytes=lambda: controller.committed_bytes,
            changed=self._checkpoints_changed,
            trim=log.delete_segments_below,
        )
        controller.watch(self._generator.consider)
        self._checkpointing = asyncio.create_task(self._generator.run(), name="checkpoints")
        if isinstance(self.authorizer, StandardAuthorizer):
            self.authorizer.complete_initial_load()

    async def checkpoint(self) -> bool:
        """Write a checkpoint now unless one of this offset exists; return whether it was written."""
        return self._generator is not None and await self._generator.write()

    async def stop(self) -> None:
        """Commit and respond to pending requests, then close the log; idempotent.

        The order matters: checkpoints first, as they trim the log; long polls next, or they would outlive the log; then
        the writer, and the log only after the last append.
        """
        if self._checkpointing is not None and self._generator is not None:
            task, self._checkpointing = self._checkpointing, None
            await self._generator.stop(task)
        serving, self.serving = self.serving, None
        if serving is not None:
            serving.fetching.close()
        if self._active is not None:
            active, self._active = self._active, None
            await active.stop()
        if self._log is not None:
            log, self._log = self._log, None
            await asyncio.to_thread(log.close)
        if self._files is not None:
            self._files.close()

    def _checkpoints_changed(self, checkpoints: tuple[CheckpointFile, ...]) -> None:
        if self.serving is not None:
            self.serving.quorum.checkpoints = checkpoints

    def _fail(self, error: MetadataError) -> None:
        _log.critical("the controller stops: %s", error)
        if self.serving is not None:
            self.serving.fetching.close()
        self.on_failure(error)
