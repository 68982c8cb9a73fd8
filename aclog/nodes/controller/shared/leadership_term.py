"""One term of leadership over a shared log: from election until deposed, fenced, or stopped."""

import asyncio
import logging
from collections.abc import Callable

from attrs import define, field

from aclog.authorizer.interface import Authorizer
from aclog.metalog.clock import current_time_ms
from aclog.metalog.errors import FencedError, LogError, MetadataError, ReplayError
from aclog.metalog.filelog.file_names import METADATA_DIRECTORY
from aclog.metalog.log import EpochStart
from aclog.nodes.config.node_config import NodeConfig
from aclog.nodes.controller.active_controller import ActiveController, activate
from aclog.nodes.controller.apis.fetch_snapshot import OpenCheckpoints
from aclog.nodes.controller.apis.quorum_state import Quorum
from aclog.nodes.controller.apis.serving_state import ServingState
from aclog.nodes.controller.shared.election_state import ElectionState
from aclog.nodes.controller.shared.fenced_log import FencedLog, SharedLog, SharedReader
from aclog.nodes.controller.write_path.activation import catch_up, complete_activation
from aclog.nodes.telemetry.metrics import Metrics
from aclog.snapshots.publisher import Publisher

_POLL_SECONDS = 0.5
"""How often a leader checks whether the log has a newer epoch."""
_GRACE_SECONDS = 5.0
"""Time to commit and respond to pending requests when a node stops."""

_log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class LeadershipTerm:
    """`begin`, `wait_until_over` and `end` are called once, in this order, on the node's event loop."""

    shared: SharedLog
    election: ElectionState
    config: NodeConfig
    publisher: Publisher
    authorizer: Authorizer | None
    metrics: Metrics | None
    on_replayed: Callable[[], None]
    """Called in a thread once the log's end is replayed, before anything is acknowledged. May raise LogError."""
    on_commit: Callable[[int], None]
    """Called with the high-water mark after each commit."""
    serving: ServingState | None = field(default=None, init=False)
    """The serving state while this node is active."""
    failure: MetadataError | None = field(default=None, init=False)
    """Why the term must end whatever the election says: the log failed, or another controller fenced this one."""
    _log: FencedLog | None = field(default=None, init=False)
    _active: ActiveController | None = field(default=None, init=False)
    _reader: SharedReader | None = field(default=None, init=False)

    @property
    def epoch(self) -> int:
        """The leader epoch; 0 before there is one."""
        return 0 if self._log is None else self._log.leader_epoch

    @property
    def committed_bytes(self) -> int:
        """The bytes committed for requests in this term."""
        return 0 if self._active is None else self._active.controller.committed_bytes

    @property
    def should_continue(self) -> bool:
        """Whether this node should continue to lead."""
        return self.election.should_lead and self.failure is None

    async def begin(self, reader: SharedReader, quorum: Quorum, files: OpenCheckpoints) -> bool:
        """Take over the log, replay it to its end, and serve; return False if this node must no longer lead.

        Raises:
            DecodeError, CheckpointError: The log cannot be replayed or has lost its end, or bootstrap.checkpoint is
                incomplete.
            LogError: The reader can never follow the log again, so nothing could be acknowledged.
            ConfigError: The log cannot be opened as configured.

        """
        self._reader = reader
        if reader.failure is not None:
            raise reader.failure
        try:
            self._log = log = await asyncio.to_thread(self.shared.open, reader, self.fail)
            # The epoch's LeaderChange is the last record so far, so the epoch starts right below the log's end.
            quorum.epochs = (EpochStart(epoch=log.leader_epoch, start_offset=log.end_offset() - 1),)
            activating = asyncio.ensure_future(asyncio.to_thread(self._replay_and_activate, log))
            while not activating.done():
                await self.election.wait(_POLL_SECONDS, activating)
                if not self.should_continue:
                    # Unblocks the replaying thread; it must not keep a deposed controller busy.
                    log.abandon("deposed")
            activating.result()
        except LogError as error:
            self.failure = self.failure or error
        if self.should_continue:
            self._serve(log, quorum, files)
        return self.should_continue

    def _replay_and_activate(self, log: FencedLog) -> None:
        """Replay to the log's end, then write the activation records."""
        mark, replayed = log.high_watermark(), self.publisher.applier.next_offset
        if mark < replayed:
            # Truncation after the fact, such as unclean leader election of the topic: leading now would fork the log.
            what = f"{log.name} ends at {mark}, below what this node has replayed: the log has lost its end"
            raise ReplayError(what, offset=replayed)
        catch_up(log, self.publisher)
        complete_activation(
            log,
            self.publisher,
            self.config.metadata_log_dir / METADATA_DIRECTORY,
            current_time_ms,
            min_insync_replicas=self.config.elr_min_insync_replicas,
        )
        self.publisher.observe_high_watermark(log.high_watermark())
        self.on_replayed()

    def _serve(self, log: FencedLog, quorum: Quorum, files: OpenCheckpoints) -> None:
        serving = ServingState.of(log, quorum, files, replayed=lambda: True)
        self._active = activate(
            serving,
            log,
            self.publisher,
            self.config,
            authorizer=self.authorizer,
            metrics=self.metrics,
            on_failure=self.fail,
            contested=True,
        )
        self._active.controller.watch(self.on_commit)
        self.serving = serving

    async def wait_until_over(self) -> None:
        """Wait until the term is over: deposed, failed, stopping, or another controller has a newer epoch."""
        while self.should_continue:
            await self.election.wait(_POLL_SECONDS)
            if self._reader is not None:
                self._heed(self._reader)

    def _heed(self, reader: SharedReader) -> None:
        """End the term if the log as others see it says so."""
        if reader.failure is not None:
            self.fail(reader.failure)
        # The election may lag behind the log: an epoch above ours means that this controller is fenced already.
        leader = reader.leader()
        if leader is not None and leader.epoch > self.epoch:
            self.fail(FencedError(f"{self.shared.name}: node {leader.node_id} leads epoch {leader.epoch}"))

    async def end(self) -> None:
        """Fail pending requests, close the log, and go back to the committed image.

        On an orderly stop while still leading, pending requests are committed and answered first.
        """
        serving, self.serving = self.serving, None
        if self._active is not None:
            if self.election.stopping and self.election.elected and self.failure is None:
                await self._finish(self._active)
            await self._active.depose(self.failure or LogError("deposed"))
        if serving is not None:
            serving.fetching.close()
        if self._log is not None:
            self._log.abandon("deposed")
            await asyncio.to_thread(self._log.close)
        # Drops the images staged ahead of the commit; `current` never showed them, so readers see no step back.
        self.publisher.replace(self.publisher.current)

    def fail(self, why: MetadataError) -> None:
        """Record why the term must end. Called from any thread."""
        self.failure = self.failure or why
        self.election.wake()

    async def _finish(self, active: ActiveController) -> None:
        try:
            async with asyncio.timeout(_GRACE_SECONDS):
                await active.stop()
        except TimeoutError:
            _log.warning("%s: requests were still uncommitted after %g s", self.shared.name, _GRACE_SECONDS)
