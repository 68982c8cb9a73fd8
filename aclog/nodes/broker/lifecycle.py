"""A broker's registration and heartbeats (kafka.server.BrokerLifecycleManager, KIP-631).

Unlike in Kafka a broker serves whether or not it is registered: until then it names only itself to clients.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

from attrs import define, field

from aclog.authorizer.generation import Generation
from aclog.metalog.errors import MetadataError
from aclog.metalog.records import BrokerEndpoint
from aclog.nodes.apis.request import RequestError
from aclog.nodes.broker.controller_channel import ControllerChannel
from aclog.nodes.config.node_config import BrokerSettings
from aclog.nodes.storage.feature_levels import SUPPORTED_FEATURES
from aclog.nodes.wire.api_keys import BROKER_HEARTBEAT, BROKER_REGISTRATION
from aclog.nodes.wire.error_codes import (
    CLUSTER_AUTHORIZATION_FAILED,
    DUPLICATE_BROKER_REGISTRATION,
    INCONSISTENT_CLUSTER_ID,
    INVALID_REGISTRATION,
    NOT_CONTROLLER,
    STALE_BROKER_EPOCH,
    UNSUPPORTED_VERSION,
)
from aclog.nodes.wire.message_builder import build

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 2.0
_STOP_SECONDS = 2.0
"""How long a stopping broker waits for the controller."""
_REGISTRATION_VERSION = 4

_REASONS = {
    CLUSTER_AUTHORIZATION_FAILED: "the controller does not let this broker register: it needs CLUSTER_ACTION",
    DUPLICATE_BROKER_REGISTRATION: "another broker with this node.id is alive, or was until a moment ago",
    INCONSISTENT_CLUSTER_ID: "the controller is of another cluster",
    INVALID_REGISTRATION: "the controller refuses what this broker registers with: does another broker have the same "
    "directory.id in its meta.properties, as a copied data directory has?",
    NOT_CONTROLLER: "the controller is not active any more",
    STALE_BROKER_EPOCH: "the controller does not know this registration: restart this broker to register it again",
    UNSUPPORTED_VERSION: "the cluster has finalized features that this version of aclog does not support",
}

_log = logging.getLogger(__name__)


@define(eq=False, kw_only=True)
class BrokerLifecycle:
    """Owned by a node's event loop: `start` once all listeners are open, `stop` before they close."""

    channel: ControllerChannel
    settings: BrokerSettings
    node_id: int
    cluster_id: str
    incarnation_id: UUID
    log_dirs: Sequence[UUID]
    endpoints: Callable[[], Sequence[BrokerEndpoint]]
    """This broker's advertised addresses."""
    replayed: Callable[[], int]
    """Returns the last replayed offset."""
    features: Mapping[str, tuple[int, int]] = field(factory=lambda: SUPPORTED_FEATURES[Generation.V4_3])
    """The lowest and highest level of each feature that this node supports."""
    epoch: int = field(default=-1, init=False)
    """The broker epoch; -1 until registered."""
    _task: "asyncio.Task[None] | None" = field(default=None, init=False)
    _said: str = field(default="", init=False)
    """The last trouble that was logged: each is logged once."""

    def start(self) -> None:
        """Register, and send heartbeats from then on."""
        self._task = asyncio.create_task(self._run(), name="broker registration")

    async def stop(self) -> None:
        """Tell the controller that this broker shuts down, so that it is fenced at once; idempotent."""
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        if self.epoch >= 0:
            with suppress(MetadataError, TimeoutError):
                async with asyncio.timeout(_STOP_SECONDS):
                    await self._beat(want_shut_down=True)
        await self.channel.close()

    async def _run(self) -> None:
        begun, pause = time.monotonic(), _FIRST_PAUSE_S
        while self.epoch < 0:
            try:
                self.epoch = await self._register()
            except MetadataError as error:
                seconds = self.settings.registration_timeout_ms / 1000
                if time.monotonic() - begun < seconds:
                    self._say(f"not registered yet: {_text(error)}", logging.WARNING)
                else:
                    self._say(f"not registered within {seconds:g} s: {_text(error)}", logging.ERROR)
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_S)
        _log.info("registered as broker %d with epoch %d", self.node_id, self.epoch)
        await self._send_heartbeats()

    async def _register(self) -> int:
        response = await self.channel.ask(
            BROKER_REGISTRATION,
            broker_id=self.node_id,
            cluster_id=self.cluster_id,
            incarnation_id=self.incarnation_id,
            listeners=tuple(
                _part("Listener", name=at.name, host=at.host, port=at.port, security_protocol=at.security_protocol)
                for at in self.endpoints()
            ),
            features=tuple(
                _part("Feature", name=name, min_supported_version=least, max_supported_version=most)
                for name, (least, most) in self.features.items()
            ),
            rack=self.settings.rack,
            log_dirs=tuple(self.log_dirs),
        )
        return int(response.broker_epoch)

    async def _send_heartbeats(self) -> None:
        interval, pause = self.settings.heartbeat_interval_ms / 1000, _FIRST_PAUSE_S
        while True:
            try:
                fenced = (await self._beat()).is_fenced
            except MetadataError as error:
                fenced = True
                self._say(f"no heartbeat: {_text(error)}", logging.WARNING)
            else:
                self._said = ""
            # A fenced broker is one that has not replayed its registration yet, or whose controller just came back.
            pause = min(2 * pause, interval) if fenced else _FIRST_PAUSE_S
            await asyncio.sleep(min(pause, interval) if fenced else interval)

    async def _beat(self, *, want_shut_down: bool = False) -> Any:
        return await self.channel.ask(
            BROKER_HEARTBEAT,
            broker_id=self.node_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self.replayed(),
            want_fence=False,
            want_shut_down=want_shut_down,
        )

    def _say(self, what: str, level: int) -> None:
        if what != self._said:
            _log.log(level, "broker %d: %s", self.node_id, what)
        self._said = what


def _part(kind: str, /, **fields: Any) -> Any:
    return build(BROKER_REGISTRATION, _REGISTRATION_VERSION, "request", kind, **fields)


def _text(error: MetadataError) -> str:
    # These responses have no message.
    return _REASONS.get(error.code, str(error)) if isinstance(error, RequestError) else str(error)
