"""Writes to broker registrations, and the sessions of brokers (org.apache.kafka.controller.BrokerHeartbeatManager).

Sessions are soft state: a controller that becomes active gives every unfenced broker a whole session.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future

from attrs import define, field

from aclog.authorizer.config import CIDR_CONFIG
from aclog.metalog.errors import MetadataError
from aclog.metalog.records import RegisterBrokerRecord
from aclog.nodes.apis.request import RequestError
from aclog.nodes.config.node_config import BrokerSettings
from aclog.nodes.controller.write_path.broker_control import (
    Heartbeat,
    HeartbeatReply,
    fence,
    heartbeat,
    register,
    unregister,
    writes_registrations,
)
from aclog.nodes.controller.write_path.quorum_controller import QuorumController
from aclog.nodes.controller.write_path.write_event import ControllerResult
from aclog.nodes.offload import committed
from aclog.nodes.storage.feature_levels import decides_by_ranges
from aclog.snapshots.image import Image

_CHECKS_PER_SESSION = 8
"""How often within a session timeout expired sessions are looked for, as in Kafka."""

_log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class BrokerWriter:
    """The only writer of registrations; created on the event loop when the controller becomes active."""

    settings: BrokerSettings
    controller: QuorumController
    clock: Callable[[], float] = time.monotonic
    """Seconds."""
    _sessions: dict[int, tuple[int, float]] = field(factory=dict, init=False)
    """Broker epoch and time of the last contact, by broker id."""

    def __attrs_post_init__(self) -> None:
        for broker in self.controller.publisher.latest.cluster.brokers():
            if not broker.fenced:
                self._touch(broker.broker_id, broker.broker_epoch)

    def register(self, wanted: RegisterBrokerRecord) -> "Future[int]":
        """Register a broker (broker_control.register); the future holds its epoch."""
        cidr = decides_by_ranges(wanted)
        if cidr is not self.controller.cidr:
            _log.warning(
                "broker %d has %s %s, this controller %s: the same request is decided differently",
                *(wanted.broker_id, CIDR_CONFIG, cidr, self.controller.cidr),
            )

        def operation(image: Image) -> ControllerResult[int]:
            """See Operation."""
            existing = image.cluster.get(wanted.broker_id)
            alive = existing is not None and self._is_alive(existing.broker_id, existing.broker_epoch)
            record = register(image, wanted, has_session=alive)
            # Before the commit: a second process with this id must not take the registration over at once.
            self._touch(record.broker_id, record.broker_epoch)
            return ControllerResult(records=(record,), response=record.broker_epoch)

        return self.controller.write(operation)

    def heartbeat(self, beat: Heartbeat) -> "Future[HeartbeatReply]":
        """Renew a broker's session, and fence or unfence it (broker_control.heartbeat)."""

        def operation(image: Image) -> ControllerResult[HeartbeatReply]:
            """See Operation."""
            record, reply = heartbeat(image, beat)
            self._touch(beat.broker_id, beat.broker_epoch)
            return ControllerResult(records=() if record is None else (record,), response=reply)

        # Nearly all heartbeats change nothing. They do not go through the write path, where on a shared log each would
        # cost a NoOpRecord: a reply says nothing about the state that a deposed controller must not say.
        if self.controller.failure is None:
            unchanged: Future[HeartbeatReply] = Future()
            try:
                result = operation(self.controller.publisher.current)
            except RequestError as error:
                unchanged.set_exception(error)
                return unchanged
            if not result.records:
                unchanged.set_result(result.response)
                return unchanged
        return self.controller.write(operation)

    def unregister(self, broker_id: int) -> "Future[None]":
        """Remove a registration (broker_control.unregister)."""

        def operation(image: Image) -> ControllerResult[None]:
            """See Operation."""
            record = unregister(image, broker_id)
            self._sessions.pop(broker_id, None)
            return ControllerResult(records=(record,), response=None)

        return self.controller.write(operation)

    def fence_silent(self) -> "Future[list[int]]":
        """Fence every broker whose session has expired; the future holds their ids."""

        def operation(image: Image) -> ControllerResult[list[int]]:
            """See Operation."""
            for broker_id, (epoch, _) in list(self._sessions.items()):
                if not self._is_alive(broker_id, epoch):
                    del self._sessions[broker_id]
            if not writes_registrations(image.features):
                return ControllerResult(records=(), response=[])
            # Of the image's brokers, not of the sessions': a registration that failed may have left one with its epoch.
            brokers = ((each.broker_id, each.broker_epoch) for each in image.cluster.brokers())
            records = [
                fence(image, broker_id, epoch) for broker_id, epoch in brokers if not self._is_alive(broker_id, epoch)
            ]
            written = [record for record in records if record is not None]
            return ControllerResult(records=written, response=[record.broker_id for record in written])

        return self.controller.write(operation)

    async def run(self) -> None:
        """Fence silent brokers until cancelled or the controller fails."""
        session = self.settings.session_timeout_ms / 1000
        last = self.clock()
        while True:
            await asyncio.sleep(session / _CHECKS_PER_SESSION)
            last, before = self.clock(), last
            if last - before > session / 2:
                # This process was paused: it does not know who was silent meanwhile.
                self._sessions = {broker_id: (epoch, last) for broker_id, (epoch, _) in self._sessions.items()}
            if all(self._is_alive(broker_id, epoch) for broker_id, (epoch, _) in self._sessions.items()):
                continue
            try:
                for broker_id in await committed(self.fence_silent()):
                    _log.warning("broker %d is fenced: it sent no heartbeat for %g s", broker_id, session)
            except MetadataError as error:
                _log.error("cannot fence silent brokers: %s", error)
                return

    def _touch(self, broker_id: int, broker_epoch: int) -> None:
        self._sessions[broker_id] = broker_epoch, self.clock()

    def _is_alive(self, broker_id: int, broker_epoch: int) -> bool:
        epoch, last = self._sessions.get(broker_id, (-1, 0.0))
        return epoch == broker_epoch and self.clock() - last < self.settings.session_timeout_ms / 1000
