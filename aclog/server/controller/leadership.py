"""Leadership of a shared log: catching up, terms, and the watch over the identity of its topic."""

import asyncio
import logging
import shutil
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from attrs import field

from aclog.authorizer.interface import Authorizer
from aclog.client.quorum_log import QuorumLog
from aclog.config.node_config import NodeConfig
from aclog.metalog.committed_log import EpochStart
from aclog.metalog.errors import ConfigError, FencedError, LogError, MetadataError, ReplayError
from aclog.metalog.filelog.files import METADATA_DIRECTORY, CheckpointFile, log_error, written_whole
from aclog.metalog.machine import clock, disk, threads
from aclog.metalog.primitives import current_time_ms
from aclog.metalog.values import define
from aclog.server.controller.activation import catch_up, complete_activation
from aclog.server.controller.controller_server import ActiveController, activate
from aclog.server.controller.fetch import OpenCheckpoints, Quorum, ServingState
from aclog.server.controller.shared import (
    ElectionState,
    FencedLog,
    IdentityKeeper,
    LogEnd,
    SharedLog,
    SharedReader,
    checkpoints_in,
)
from aclog.server.telemetry import Metrics
from aclog.snapshots.publisher import Publisher

# Catching up with a shared log at startup: a reader with a known high-water mark, and a checkpoint.


WORTH_A_DOWNLOAD = 10_000
"""Below this many records, reading the log is faster than downloading a checkpoint."""

_RETRY_SECONDS = 1.0
_DOWNLOAD_SECONDS = 5.0

_log = logging.getLogger(__name__)


async def open_reader(shared: SharedLog, keeper: IdentityKeeper) -> SharedReader:
    """Open a reader of the log and wait until its high-water mark is known, however long brokers are unavailable.

    Raises:
        ConfigError: The topic or the client configuration is unusable; OtherLogError if the topic is not the log that
            this controller has followed.
        DecodeError: The topic does not contain a metadata log.
        LogError: The reader can never follow the log: its messages were removed, for example.

    """
    reader, last_error = None, ""
    try:
        while True:
            try:
                if reader is None:
                    await asyncio.to_thread(keeper.establish)
                    reader = shared.open_reader()
                await asyncio.to_thread(reader.wait_known, _RETRY_SECONDS)
                await asyncio.to_thread(keeper.check_contents, reader)
            except LogError as error:
                if reader is not None and reader.failure is not None:
                    raise reader.failure from None  # its thread has ended: nothing would ever arrive
                if str(error) != last_error:
                    last_error = str(error)
                    _log.warning("%s; retrying", last_error)
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return reader
    except BaseException:
        if reader is not None:
            reader.close()
        raise


async def ensure_checkpoint(config: NodeConfig, cluster_id: str, directory: Path, reader: SharedReader) -> None:
    """Download a checkpoint from another controller if reading the log would take long; failing that, continue."""
    newest = max((each.end_offset for each in checkpoints_in(directory)), default=0)
    if reader.high_watermark() - newest < WORTH_A_DOWNLOAD:
        return
    try:
        checkpoint = await asyncio.to_thread(
            download_checkpoint, config, cluster_id, directory, seconds=_DOWNLOAD_SECONDS
        )
    except MetadataError as error:
        _log.warning("no checkpoint from another controller: %s; reading the log from offset %d", error, newest)
    else:
        if checkpoint is not None:
            _log.info("starting from another controller's checkpoint: %s", checkpoint.path.name)


def download_checkpoint(
    config: NodeConfig, cluster_id: str, directory: Path, *, seconds: float
) -> CheckpointFile | None:
    """Download the active controller's newest checkpoint into `directory`; None if it has none. Blocks.

    The active controller is searched at the other voters' addresses, for `seconds` at most.

    Raises:
        MetadataError: No controller is active or serves a checkpoint, or the file cannot be written.

    """
    others = tuple(address for voter, address in config.voters.items() if voter != config.node_id)
    if not others:
        return None
    with QuorumLog(
        servers=others, security=config.controller_client, client_id=str(config.node_id), cluster_id=cluster_id
    ) as log:
        log.wait_known(seconds)
        checkpoint = log.latest_snapshot()
        return None if checkpoint is None else _copied(checkpoint, directory)


def _copied(checkpoint: CheckpointFile, directory: Path) -> CheckpointFile:
    path = directory / checkpoint.path.name
    try:
        with (
            checkpoint.path.open("rb") as original,
            written_whole(path) as fd,
            disk.fdopen(fd, "wb", closefd=False) as copy,
        ):
            shutil.copyfileobj(original, copy)
    except OSError as error:
        raise log_error(error, path, "cannot write") from error
    return CheckpointFile(end_offset=checkpoint.end_offset, epoch=checkpoint.epoch, path=path)


# One term of leadership over a shared log: from election until deposed, fenced, or stopped.


_POLL_SECONDS = 0.5
"""How often a leader checks whether the log has a newer epoch."""
_GRACE_SECONDS = 5.0
"""Time to commit and respond to pending requests when a node stops."""

_T = TypeVar("_T")


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
    """Why the term must end regardless of the election: the log failed, or another controller fenced this one."""
    _abandoned: "threading.Event" = field(factory=threads.event, init=False)
    """Set to give up opening the log."""
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
            opening = asyncio.to_thread(self.shared.open, reader, self.fail, self._abandoned)
            self._log = log = await self._while_leading(opening, self._abandoned.set)
            # The epoch's LeaderChange is the last record so far, so the epoch starts right below the log's end.
            quorum.epochs = (EpochStart(epoch=log.leader_epoch, start_offset=log.end_offset() - 1),)
            activating = asyncio.to_thread(self._replay_and_activate, log)
            await self._while_leading(activating, lambda: log.abandon("deposed"))
        except LogError as error:
            self.failure = self.failure or error
        if self.should_continue:
            self._serve(log, quorum, files)
        return self.should_continue

    async def _while_leading(self, work: Coroutine[Any, Any, _T], give_up: Callable[[], None]) -> _T:
        """Await work in a thread; `give_up` unblocks it: a controller that is deposed or stops must not wait for it."""
        working = asyncio.ensure_future(work)
        while not working.done():
            await self.election.wait(_POLL_SECONDS, working)
            if not self.should_continue:
                give_up()
        return working.result()

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
            min_insync_replicas=self.config.min_insync_replicas,
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
        """End the term if the log, as other controllers see it, requires that."""
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


# The watch over a log's topic while a controller runs: is it there, is it the same, can it hold a log?


_RECORD_SECONDS = 1.0
_LOOK_SECONDS = 5.0
_SETTINGS_SECONDS = 60.0
_WATCH_RETRY_SECONDS = 0.2
_ANSWER_SECONDS = 10.0
"""How long an elected controller waits for the answers to its checks, before it leaves the election to another one."""
IDENTITY, SETTINGS = "identity", "settings"


@define(eq=False, kw_only=True)
class TopicWatch:
    """Owned by a controller; all but the properties runs on its event loop.

    The result of a check stands until a later one replaces it. A check without a response has no result: readers and
    writers report whether the log can be reached.
    """

    keeper: IdentityKeeper
    committed: Callable[[], LogEnd]
    """How far this node has published the committed records."""
    on_lost: Callable[[LogError], None]
    """Called when the topic is found to be missing or another one."""
    _problems: dict[str, str | None] = field(factory=dict, init=False)
    """The problem, by check; None: none."""
    _checked: dict[str, float] = field(factory=dict, init=False)
    """When a check was answered last, by time.monotonic."""
    _unanswered: dict[str, str] = field(factory=dict, init=False)
    """Why a check was not answered the last time, if it was not."""
    _passed_on: str = field(default="", init=False)
    """Why this controller did not lead when it was elected last, if it did not."""
    _one_at_a_time: asyncio.Lock = field(factory=asyncio.Lock, init=False)

    @property
    def trouble(self) -> str | None:
        """The problem of the topic, in one line; None: none known."""
        return self._problems.get(IDENTITY) or self._problems.get(SETTINGS)

    def observe(self, metrics: Metrics) -> None:
        """Show the checks in metrics."""
        for check in (IDENTITY, SETTINGS):
            metrics.topic_wrong.labels(check).set_function(partial(self._wrong, check))
            metrics.topic_check_age.labels(check).set_function(partial(self._age, check))

    def begin(self) -> None:
        """Both checks have just passed, as the controller started."""
        for check in (IDENTITY, SETTINGS):
            self._problems[check], self._checked[check] = None, clock.monotonic()

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            await asyncio.sleep(_RECORD_SECONDS)
            await self.record()
            if self._age(IDENTITY) >= _LOOK_SECONDS:
                await self._check(IDENTITY, self.keeper.look)
            # A problem is checked more often, so that its fix is noticed soon.
            if self._age(SETTINGS) >= (_LOOK_SECONDS if self._problems.get(SETTINGS) else _SETTINGS_SECONDS):
                await self._check(SETTINGS, self.keeper.shared.check_settings)

    async def fit_to_lead(self, still_wanted: Callable[[], bool]) -> bool:
        """Check everything before a takeover, until brokers have answered or the takeover is not wanted any more.

        False also if they have not answered for 10 s. They may refuse this controller alone, or be unreachable for it
        alone: the election would keep it, and no other controller could lead.
        """
        deadline = clock.monotonic() + _ANSWER_SECONDS
        while still_wanted():
            answered = await self._check(IDENTITY, self.keeper.look)
            if answered and await self._check(SETTINGS, self.keeper.shared.check_settings):
                self._passed_on = ""
                return self.trouble is None
            if clock.monotonic() > deadline:
                self._pass_on()
                return False
            await asyncio.sleep(_WATCH_RETRY_SECONDS)
        return False

    def _pass_on(self) -> None:
        why = "; ".join(_unchecked(check, error) for check, error in self._unanswered.items())
        if why != self._passed_on:
            _log.warning("not leading: %s; leaving the election for another controller", why)
        self._passed_on = why

    async def record(self) -> None:
        """Record how far the log is committed, if the topic is known to be the right one."""
        if self._problems.get(IDENTITY) is not None:
            return
        try:
            async with self._one_at_a_time:
                await asyncio.to_thread(self.keeper.record, self.committed())
        except LogError as error:
            _log.warning("%s; trying again", error)

    async def _check(self, check: str, look: Callable[[], None]) -> bool:
        """Make one check; return whether it was answered."""
        try:
            async with self._one_at_a_time:
                await asyncio.to_thread(look)
        except ConfigError as error:
            self._note(check, str(error))
        except MetadataError as error:
            if str(error) != self._unanswered.get(check):
                _log.warning("%s; trying again", _unchecked(check, str(error)))
            self._unanswered[check] = str(error)
            return False
        else:
            self._note(check, None)
        return True

    def _note(self, check: str, wrong: str | None) -> None:
        self._unanswered.pop(check, None)
        before, self._problems[check] = self._problems.get(check), wrong
        self._checked[check] = clock.monotonic()
        if wrong is not None and wrong != before:
            _log.critical("%s", wrong)
        if wrong is None and before is not None:
            _log.info("%s: the topic's %s is right again", self.keeper.shared.name, check)
        if wrong is not None and check == IDENTITY:
            self.on_lost(LogError(wrong))

    def _wrong(self, check: str) -> bool:
        return self._problems.get(check) is not None

    def _age(self, check: str) -> float:
        return clock.monotonic() - self._checked.get(check, 0.0)


def _unchecked(check: str, error: str) -> str:
    return f"the topic's {check} cannot be checked: {error}"
