"""One of several controllers that share a log: it follows until it is elected, and leads until it is deposed.

Whoever leads is fenced by the log itself once another does, whatever either believes (docs/decisions/0010-failover.md).
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import UUID

from attrs import define, field

from authorizer.interface import Authorizer
from authorizer.standard import StandardAuthorizer
from metalog.errors import LogError, MetadataError
from metalog.filelog.locks import WriterLock
from metalog.filelog.names import CheckpointFile
from nodes.config.node_config import HostPort, NodeConfig
from nodes.controller.checkpoint_download import WORTH_A_DOWNLOAD, download_checkpoint
from nodes.controller.checkpointing import Checkpointer
from nodes.controller.fetching import Fetching
from nodes.controller.followed_log import FollowedLog, check_checkpoints, checkpoints_in
from nodes.controller.mandate import Mandate
from nodes.controller.open_checkpoints import OpenCheckpoints
from nodes.controller.quorum import LeaderAndEpoch, Quorum
from nodes.controller.serving import Serving
from nodes.controller.shared_log import Candidacy, SharedLog, SharedReader
from nodes.controller.snapshots import SnapshotFetching
from nodes.controller.starting import LOG_DIRECTORY, lock_checkpoints
from nodes.controller.term import Term
from nodes.observer.follower import Follower
from nodes.watching.metrics import Metrics
from snapshots.merger import Merger
from snapshots.publisher import Publisher

_LOOK_SECONDS = 0.05
"""How often a standby sees how far it has come."""
_AGAIN_SECONDS = 1.0
"""How long to rest before what has failed is tried again."""
_DOWNLOAD_SECONDS = 5.0
_FOLLOWER_SECONDS = 5.0
"""How long a follower has to end by itself before its log is closed."""

_log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class TopicController:
    """Owned by a node; made, started and stopped on its event loop. To the node it is what ControllerServer is."""

    config: NodeConfig
    cluster_id: str
    directory_id: UUID | None
    authorizer: Authorizer | None
    advertised: Mapping[str, HostPort]
    shared: SharedLog
    on_failure: Callable[[MetadataError], None] = lambda _: None
    """Told once when the controller cannot go on, neither as active nor as standby: the node must stop."""
    metrics: Metrics | None = None
    publisher: Publisher = field(factory=Publisher)
    serving: Serving | None = field(default=None, init=False)
    notes: tuple[str, ...] = field(default=(), init=False)
    _mandate: Mandate = field(init=False)
    _quorum: Quorum = field(init=False)
    _reader: SharedReader | None = field(default=None, init=False)
    _first_mark: int = field(default=0, init=False)
    """What was committed when this node started: it does not stand for election before it has replayed that."""
    _candidacy: Candidacy | None = field(default=None, init=False)
    _term: Term | None = field(default=None, init=False)
    _life: "asyncio.Task[None] | None" = field(default=None, init=False)
    _lock: WriterLock | None = field(default=None, init=False)
    _files: OpenCheckpoints = field(init=False)
    _checkpointer: Checkpointer | None = field(default=None, init=False)
    _checkpointing: "asyncio.Task[None] | None" = field(default=None, init=False)
    _committed_bytes: int = field(default=0, init=False)
    """What has been followed, and led in earlier terms."""

    def __attrs_post_init__(self) -> None:
        authorizer = self.authorizer
        if isinstance(authorizer, StandardAuthorizer):
            self.publisher.subscribe(lambda image: authorizer.load(image.acls))
        Merger(publisher=self.publisher)
        self._files = OpenCheckpoints(directory=self._directory)
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
        """Whether all that was committed when this node started is replayed, and a leader has begun the log."""
        return self.publisher.ready and bool(
            len(self.publisher.current.features) or self.publisher.current.end_offset > 1
        )

    @property
    def active(self) -> bool:
        """Whether this is the active controller, as far as it knows."""
        return self._term is not None and self._term.serving is not None

    @property
    def leader(self) -> HostPort | None:
        """Where the active controller is, as far as is known."""
        return self._quorum.leader_address(self.config.controller_listener_names[0])

    @property
    def _directory(self) -> Path:
        return self.config.metadata_log_dir / LOG_DIRECTORY

    async def start(self) -> None:
        """Follow the log, and stand for election; returns when this node is ready, as standby or as active.

        Raises:
            LockedError: another process has the directory.
            ConfigError: the log is not fit, or the directory has a log of its own.
            LogError, DecodeError, CheckpointError: the log cannot be replayed.

        """
        self._mandate = Mandate(asyncio.get_running_loop())
        try:
            self._lock = await asyncio.to_thread(lock_checkpoints, self._directory)
            self._reader = reader = await self._opened()
            self.serving = self._standing_by(reader)
            await self._have_checkpoint(reader)
            self._write_checkpoints()
            self._life = asyncio.create_task(self._live(reader), name="controller")
            while not self.ready and not self._life.done():
                await asyncio.wait((self._life,), timeout=_LOOK_SECONDS)
            if self._life.done():
                self._life.result()
        except BaseException:
            await self.stop()
            raise
        if isinstance(self.authorizer, StandardAuthorizer):
            self.authorizer.complete_initial_load()

    async def checkpoint(self) -> bool:
        """Write a checkpoint now, unless there is one of this offset; tells whether it did. Raises as Checkpointer."""
        return self._checkpointer is not None and await self._checkpointer.write()

    async def stop(self) -> None:
        """Commit and answer what waits, then let another lead; a second stop is nothing."""
        self._mandate.stop()
        if self._checkpointing is not None and self._checkpointer is not None:
            task, self._checkpointing = self._checkpointing, None
            await self._checkpointer.stop(task)
        if self._life is not None:
            life, self._life = self._life, None
            await asyncio.gather(life, return_exceptions=True)
        await self._resign()
        serving, self.serving = self.serving, None
        if serving is not None:
            serving.fetching.close()
        if self._reader is not None:
            await asyncio.to_thread(self._reader.close)
        self._files.close()
        if self._lock is not None:
            self._lock.close()

    async def _opened(self) -> SharedReader:
        """A reader of the log, once its mark is known: brokers that do not answer are waited for."""
        reader = None
        try:
            while True:
                try:
                    if reader is None:
                        await asyncio.to_thread(self.shared.ensure)
                        reader = await asyncio.to_thread(self.shared.open_reader)
                    await asyncio.to_thread(reader.wait_known, _AGAIN_SECONDS)
                except LogError as error:
                    _log.warning("%s; trying again", error)
                    await asyncio.sleep(_AGAIN_SECONDS)
                else:
                    self._first_mark = reader.high_watermark()
                    return reader
        except BaseException:
            if reader is not None:
                reader.close()
            raise

    async def _have_checkpoint(self, reader: SharedReader) -> None:
        """See to it that there is a checkpoint to begin with, where the log is long; it can do without."""
        await asyncio.to_thread(check_checkpoints, self._directory, reader)
        newest = max((each.end_offset for each in checkpoints_in(self._directory)), default=0)
        if reader.high_watermark() - newest < WORTH_A_DOWNLOAD:
            return
        try:
            found = await asyncio.to_thread(
                download_checkpoint, self.config, self.cluster_id, self._directory, seconds=_DOWNLOAD_SECONDS
            )
        except MetadataError as error:
            _log.warning("no checkpoint from another controller: %s; the log is read from offset %d", error, newest)
        else:
            _log.info("begins with a checkpoint of another controller: %s", found and found.path.name)

    def _write_checkpoints(self) -> None:
        self._quorum.checkpoints = checkpoints_in(self._directory)
        self._checkpointer = Checkpointer(
            directory=self._directory,
            policy=self.config.checkpoints,
            image=lambda: self.publisher.current,
            committed_bytes=lambda: self._committed_bytes + (self._term.committed_bytes if self._term else 0),
            changed=self._checkpoints_changed,
        )
        self._checkpointing = asyncio.create_task(self._checkpointer.run(), name="checkpoints")

    def _checkpoints_changed(self, _: tuple[CheckpointFile, ...]) -> None:
        self._quorum.checkpoints = checkpoints_in(self._directory)

    def _consider_checkpoint(self, _high_watermark: int = -1) -> None:
        if self._checkpointer is not None:
            self._checkpointer.consider()

    async def _live(self, reader: SharedReader) -> None:
        """Stand by and lead in turn, until the node stops, or until neither can be."""
        try:
            while not self._mandate.stopping:
                await self._stand_by(reader)
                if self._mandate.given:
                    await self._lead(reader)
        except Exception as error:
            failure = error if isinstance(error, MetadataError) else LogError(f"{self.shared.name}: {error!r}")
            _log.critical("the controller stops: %s", failure)
            self.on_failure(failure)
            raise failure from error

    async def _stand_by(self, reader: SharedReader) -> None:
        """Follow, and stand for election once all that there was is replayed; until this node is to lead."""
        loop, follower = asyncio.get_running_loop(), None
        log = FollowedLog(
            reader=reader,
            directory=self._directory,
            on_read=lambda size: loop.call_soon_threadsafe(self._have_followed, size),
        )
        try:
            while not (self._mandate.elected or self._mandate.stopping):
                if follower is None and reader.high_watermark() > 1:  # more than an epoch that has only begun
                    follower = Follower(log=log, publisher=self.publisher, notify=_log.warning)
                    follower.start()
                if follower is not None and follower.wait_ended(0):
                    raise follower.failure or LogError(f"{self.shared.name}: following has ended")
                if self._candidacy is None and self._caught_up(reader, follower):
                    self._candidacy = await asyncio.to_thread(
                        self.shared.stand, self._mandate.elect, self._mandate.depose
                    )
                await self._mandate.wait(_LOOK_SECONDS)
        finally:
            if follower is not None:
                await asyncio.to_thread(_end, follower, reader)

    def _caught_up(self, reader: SharedReader, follower: Follower | None) -> bool:
        if follower is None:
            return reader.high_watermark() <= 1
        return self.publisher.applier.next_offset >= self._first_mark

    def _have_followed(self, size: int) -> None:
        self._committed_bytes += size
        self._consider_checkpoint()

    async def _lead(self, reader: SharedReader) -> None:
        """One term, from its beginning to its end; the image is what is committed afterwards, and never goes back."""
        self._term = term = Term(
            shared=self.shared,
            mandate=self._mandate,
            config=self.config,
            publisher=self.publisher,
            authorizer=self.authorizer,
            metrics=self.metrics,
            on_commit=self._consider_checkpoint,
        )
        try:
            if await term.begin(reader, self._quorum, self._files):
                self.serving = term.serving
                _log.info("active controller of epoch %d", self._quorum.leader().epoch)
                await term.last()
        finally:
            self.serving = self._standing_by(reader)
            self._committed_bytes += term.committed_bytes
            self._term = None
            await term.end()
        if not self._mandate.stopping:
            _log.warning("not the active controller any more: %s", term.failure or "another is elected, or none")
        if term.failure is not None and await self._mandate.still_elected(_AGAIN_SECONDS):
            await self._resign()

    async def _resign(self) -> None:
        """Stand no more, so that another may be elected."""
        if self._candidacy is not None:
            candidacy, self._candidacy = self._candidacy, None
            await asyncio.to_thread(candidacy.close)

    def _standing_by(self, reader: SharedReader) -> Serving:
        return Serving(
            log=reader,
            replayed=lambda: self.ready,
            quorum=self._quorum,
            fetching=Fetching(log=reader, quorum=self._quorum),
            snapshots=SnapshotFetching(quorum=self._quorum, files=self._files),
        )

    def _leader(self) -> LeaderAndEpoch:
        """As this node knows it; what led in its name before is none: it was another term."""
        if self._term is not None and self._term.serving is not None:
            return LeaderAndEpoch(leader_id=self.config.node_id, epoch=self._term.epoch)
        found = None if self._reader is None else self._reader.leader()
        if found is None:
            return LeaderAndEpoch()
        leader_id = -1 if found.node_id == self.config.node_id else found.node_id
        return LeaderAndEpoch(leader_id=leader_id, epoch=found.epoch)


def _end(follower: Follower, reader: SharedReader) -> None:
    """Have a follower end; no other thread may touch the image before."""
    follower.stop(0)
    while not follower.wait_ended(_FOLLOWER_SECONDS):
        _log.warning("%s: waiting for a read to end", reader.name)
