"""One of several controllers that share a log: standby until elected, active until deposed.

The log itself fences the previous leader once another controller leads (docs/decisions/0010-failover.md).
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import UUID

from attrs import field

from aclog.authorizer.interface import Authorizer
from aclog.authorizer.standard import StandardAuthorizer
from aclog.config.node_config import HostPort, NodeConfig
from aclog.metalog.errors import LogError, MetadataError
from aclog.metalog.filelog.files import CheckpointFile
from aclog.metalog.filelog.locks import WriterLock
from aclog.metalog.values import define
from aclog.server.controller.activation import LOG_DIRECTORY, lock_checkpoints
from aclog.server.controller.fetch import LeaderAndEpoch, OpenCheckpoints, Quorum, ServingState
from aclog.server.controller.leadership import LeadershipTerm, TopicWatch, ensure_checkpoint, open_reader
from aclog.server.controller.shared import (
    ElectionState,
    IdentityKeeper,
    LogEnd,
    SharedLog,
    SharedReader,
    Standby,
    checkpoints_in,
)
from aclog.server.controller.snapshot_generator import SnapshotGenerator
from aclog.server.telemetry import Metrics
from aclog.snapshots.image_file import check_mapping
from aclog.snapshots.publisher import Publisher

_POLL_SECONDS = 0.05
"""How often `start` checks whether the node is ready."""
_RESIGN_SECONDS = 1.0
"""If still elected this long after a failed term, the controller leaves the election in favour of another."""
_REJOIN_SECONDS = 5.0
"""How long a controller that could not check its topic stays out of the election: long enough to elect another one."""

_log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class TopicController:
    """Owned by a node; created, started and stopped on its event loop. Has the interface of ControllerServer."""

    config: NodeConfig
    cluster_id: str
    directory_id: UUID | None
    authorizer: Authorizer | None
    advertised: Mapping[str, HostPort]
    shared: SharedLog
    on_failure: Callable[[MetadataError], None] = lambda _: None
    """Called once when the controller can continue neither as active nor as standby: the node must stop."""
    metrics: Metrics | None = None
    publisher: Publisher = field(factory=Publisher)
    serving: ServingState | None = field(default=None, init=False)
    notes: tuple[str, ...] = field(default=(), init=False)
    _quorum: Quorum = field(init=False)
    _watch: TopicWatch = field(init=False)
    _watching: "asyncio.Task[None] | None" = field(default=None, init=False)
    _reader: SharedReader | None = field(default=None, init=False)
    _standby: Standby | None = field(default=None, init=False)
    _term: LeadershipTerm | None = field(default=None, init=False)
    _main_task: "asyncio.Task[None] | None" = field(default=None, init=False)
    _lock: WriterLock | None = field(default=None, init=False)
    _files: OpenCheckpoints = field(init=False)
    _generator: SnapshotGenerator | None = field(default=None, init=False)
    _checkpointing: "asyncio.Task[None] | None" = field(default=None, init=False)
    _committed_bytes: int = field(default=0, init=False)
    """Bytes read as standby plus bytes committed in earlier terms."""

    def __attrs_post_init__(self) -> None:
        authorizer = self.authorizer
        if isinstance(authorizer, StandardAuthorizer):
            self.publisher.subscribe(lambda image: authorizer.load(image.acls))
        self._files = OpenCheckpoints(directory=self._directory)
        keeper = IdentityKeeper(self.shared, self.config.metadata_log_dir, self._directory)
        self._watch = TopicWatch(keeper=keeper, committed=self._committed_end, on_lost=self._lose)
        if self.metrics is not None:
            self._watch.observe(self.metrics)
        self._quorum = Quorum(
            cluster_id=self.cluster_id,
            node_id=self.config.node_id,
            directory_id=self.directory_id,
            leader=self._leader,
            voters=self.config.voters,
            advertised=self.advertised,
            listener_names=self.config.controller_listener_names,
        )

    @property
    def ready(self) -> bool:
        """Whether everything committed when this node started is replayed, and a first leader has begun the log."""
        return self.publisher.ready and bool(
            len(self.publisher.current.features) or self.publisher.current.end_offset > 1
        )

    @property
    def active(self) -> bool:
        """Whether this is the active controller, as far as it knows."""
        return self._term is not None and self._term.serving is not None

    @property
    def trouble(self) -> str | None:
        """The problem of the log's topic, in one line; None: none known."""
        return self._watch.trouble

    @property
    def leader(self) -> HostPort | None:
        """The address of the active controller, if known."""
        return self._quorum.leader_address(self.config.controller_listener_names[0])

    @property
    def _directory(self) -> Path:
        return self.config.metadata_log_dir / LOG_DIRECTORY

    async def start(self) -> None:
        """Follow the log and join the election; return when this node is ready, as standby or active.

        Raises:
            LockedError: Another process holds the directory's lock.
            ConfigError: The topic is unusable, or not the log that this controller has followed (OtherLogError), or the
                directory contains log segments.
            LogError, DecodeError, CheckpointError: The log cannot be replayed.

        """
        try:
            # Stops a second process with the same configuration: the two would fence each other in turn.
            self._lock = lock_checkpoints(self._directory)
            self._reader = reader = await open_reader(self.shared, self._watch.keeper)
            self._watch.begin()
            self.serving = self._standby_state(reader)
            await ensure_checkpoint(self.config, self.cluster_id, self._directory, reader)
            self._write_checkpoints()
            self._standby = self._new_standby(reader)
            self._watching = asyncio.create_task(self._watch.run(), name="topic watch")
            self._main_task = asyncio.create_task(self._run(reader, self._standby), name="controller")
            # Ready as standby suffices: waiting for leadership would keep the node's listeners closed.
            while not self.ready and not self._main_task.done():
                await asyncio.wait((self._main_task,), timeout=_POLL_SECONDS)
            if self._main_task.done():
                self._main_task.result()
        except BaseException:
            await self.stop()
            raise
        self._main_task.add_done_callback(self._ended)
        if isinstance(self.authorizer, StandardAuthorizer):
            self.authorizer.complete_initial_load()

    async def checkpoint(self) -> bool:
        """Write a checkpoint now unless one of this offset exists; return whether it was written."""
        return self._generator is not None and await self._generator.write()

    def check_files(self) -> None:
        """Check that the directory's lock still has its name; called once a second.

        Raises:
            LogError: the directory was removed, renamed, replaced or mounted over, or its image file overwritten.

        """
        if self._lock is not None:
            self._lock.check()
            check_mapping(self.publisher.current.acls)

    async def stop(self) -> None:
        """Commit and respond to pending requests, then let another controller lead; idempotent.

        The term ends before the node leaves the election: resigning first would let a successor fence the pending
        commits.
        """
        if self._standby is not None:
            self._standby.election.stop()
        if self._checkpointing is not None and self._generator is not None:
            task, self._checkpointing = self._checkpointing, None
            await self._generator.stop(task)
        if self._main_task is not None:
            main_task, self._main_task = self._main_task, None
            await asyncio.gather(main_task, return_exceptions=True)
        if self._standby is not None:
            await self._standby.resign()
        if self._watching is not None:
            watching, self._watching = self._watching, None
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            await self._watch.record()
        serving, self.serving = self.serving, None
        if serving is not None:
            serving.fetching.close()
        if self._reader is not None:
            await asyncio.to_thread(self._reader.close)
        self._files.close()
        if self._lock is not None:
            self._lock.close()

    def _write_checkpoints(self) -> None:
        self._quorum.checkpoints = checkpoints_in(self._directory)
        self._generator = SnapshotGenerator(
            directory=self._directory,
            policy=self.config.checkpoints,
            image=lambda: self.publisher.current,
            committed_bytes=lambda: self._committed_bytes + (self._term.committed_bytes if self._term else 0),
            changed=self._checkpoints_changed,
        )
        self._checkpointing = asyncio.create_task(self._generator.run(), name="checkpoints")

    def _checkpoints_changed(self, _: tuple[CheckpointFile, ...]) -> None:
        self._quorum.checkpoints = checkpoints_in(self._directory)

    def _consider_checkpoint(self, _high_watermark: int = -1) -> None:
        if self._generator is not None:
            self._generator.consider()

    def _new_standby(self, reader: SharedReader) -> Standby:
        return Standby(
            shared=self.shared,
            election=ElectionState(asyncio.get_running_loop()),
            publisher=self.publisher,
            reader=reader,
            directory=self._directory,
            on_read=self._on_read,
            may_lead=lambda: self._watch.trouble is None,
        )

    async def _run(self, reader: SharedReader, standby: Standby) -> None:
        """Alternate between standby and leading until the node stops or cannot continue."""
        try:
            while not standby.election.stopping:
                await standby.run()
                if standby.election.should_lead:
                    if await self._watch.fit_to_lead(lambda: standby.election.should_lead):
                        await self._lead(reader, standby)
                    elif self._watch.trouble is not None:
                        await standby.resign()
                    elif standby.election.should_lead:
                        await standby.resign(_REJOIN_SECONDS)
        except MetadataError:
            raise
        except Exception as error:
            raise LogError(f"{self.shared.name}: {error!r}") from error

    def _ended(self, main_task: "asyncio.Task[None]") -> None:
        error = None if main_task.cancelled() else main_task.exception()
        if isinstance(error, MetadataError):
            _log.critical("the controller stops: %s", error)
            self.on_failure(error)

    def _lose(self, why: LogError) -> None:
        """End the term, if there is one: the topic is not this log any more."""
        if self._term is not None:
            self._term.fail(why)

    def _committed_end(self) -> LogEnd:
        image = self.publisher.current
        return LogEnd(end_offset=image.end_offset, epoch=image.epoch)

    def _on_read(self, size: int) -> None:
        self._committed_bytes += size
        self._consider_checkpoint()

    async def _lead(self, reader: SharedReader, standby: Standby) -> None:
        """Lead for one term; afterwards the image is the committed one."""
        self._term = term = LeadershipTerm(
            shared=self.shared,
            election=standby.election,
            config=self.config,
            publisher=self.publisher,
            authorizer=self.authorizer,
            metrics=self.metrics,
            # From its first change on, a controller has an identity of its log again.
            on_replayed=lambda: self._watch.keeper.record(self._committed_end()),
            on_commit=self._consider_checkpoint,
        )
        try:
            if await term.begin(reader, self._quorum, self._files):
                self.serving = term.serving
                _log.info("active controller of epoch %d", self._quorum.leader().epoch)
                await term.wait_until_over()
        finally:
            # Requests see NOT_CONTROLLER before the term's resources go away.
            self.serving = self._standby_state(reader)
            self._committed_bytes += term.committed_bytes
            self._term = None
            await term.end()
        if not standby.election.stopping:
            _log.warning("no longer the active controller: %s", term.failure or "no longer elected")
        # The election may still favour this node after its log failed (such as a partition between it and the
        # brokers of the topic): retrying forever would leave the cluster without an active controller.
        if term.failure is not None and await standby.election.still_elected(_RESIGN_SECONDS):
            await standby.resign()

    def _standby_state(self, reader: SharedReader) -> ServingState:
        return ServingState.of(reader, self._quorum, self._files, replayed=lambda: self.ready)

    def _leader(self) -> LeaderAndEpoch:
        """Return the leader, as this node sees it.

        An epoch in the log with this node's id but without a running term is an earlier term of its own: no leader.
        """
        # While this node serves a term, that epoch counts: the reader may still lag behind it.
        if self._term is not None and self._term.serving is not None:
            return LeaderAndEpoch(leader_id=self.config.node_id, epoch=self._term.epoch)
        leader = None if self._reader is None else self._reader.leader()
        if leader is None:
            return LeaderAndEpoch()
        leader_id = -1 if leader.node_id == self.config.node_id else leader.node_id
        return LeaderAndEpoch(leader_id=leader_id, epoch=leader.epoch)
