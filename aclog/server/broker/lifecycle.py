"""A broker's registration and heartbeats (kafka.server.BrokerLifecycleManager, KIP-631).

Unlike in Kafka a broker serves whether or not it is registered: until then it names only itself to clients.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

from attrs import field

from aclog.authorizer.codes import AclOperation
from aclog.authorizer.interface import AuthorizerNotReadyError
from aclog.authorizer.settings import Generation
from aclog.client.fetching import ObserverOptions
from aclog.client.follower import Follower
from aclog.client.quorum_log import QuorumLog
from aclog.config.node_config import BrokerSettings, HostPort, NodeConfig
from aclog.credentials.tokens import TokenSettings
from aclog.metalog.errors import LogError, MetadataError
from aclog.metalog.machine import clock
from aclog.metalog.records import BrokerEndpoint
from aclog.metalog.values import define
from aclog.protocol import api_keys, error_codes
from aclog.protocol.headers import Handler, Request, RequestError
from aclog.protocol.messages import build
from aclog.server.apis.acls import AccessSettingsApi, AclApis, AuthHelper, creations_of, filters_of
from aclog.server.broker.apis import (
    BrokerTokenApis,
    ClusterView,
    ControllerChannel,
    Forwarder,
    MetadataApis,
    describe_client_quotas,
    describe_scram_users,
)
from aclog.server.feature_levels import NEWEST, SUPPORTED_FEATURES
from aclog.server.loops import MANY, offload_if
from aclog.snapshots.publisher import Publisher

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 2.0
_STOP_SECONDS = 2.0
"""How long a stopping broker waits for the controller."""
_REGISTRATION_VERSION = 4

_REASONS = {
    error_codes.CLUSTER_AUTHORIZATION_FAILED: (
        "the controller does not let this broker register: it needs CLUSTER_ACTION"
    ),
    error_codes.DUPLICATE_BROKER_REGISTRATION: "another broker with this node.id is alive, or was until a moment ago",
    error_codes.INCONSISTENT_CLUSTER_ID: "the controller is of another cluster",
    error_codes.INVALID_REGISTRATION: "the controller rejects this registration: does another broker have the same "
    "directory.id in its meta.properties, as a copied data directory has?",
    error_codes.NOT_CONTROLLER: "the controller is not active any more",
    error_codes.STALE_BROKER_EPOCH: "the controller has no such registration: restart this broker to register it again",
    error_codes.UNSUPPORTED_VERSION: "the cluster has finalized features that this version of aclog does not support",
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
    _last_message: str = field(default="", init=False)
    """The last trouble that was logged: each is logged once."""

    def start(self) -> None:
        """Register, and send heartbeats from then on."""
        self._task = asyncio.create_task(self._run(), name="broker registration")

    async def stop(self) -> None:
        """Report the shutdown of this broker to the controller, so that it is fenced at once; idempotent."""
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
        begun, pause = clock.monotonic(), _FIRST_PAUSE_S
        while self.epoch < 0:
            try:
                self.epoch = await self._register()
            except MetadataError as error:
                seconds = self.settings.registration_timeout_ms / 1000
                if clock.monotonic() - begun < seconds:
                    self._say(f"not registered yet: {_text(error)}", logging.WARNING)
                else:
                    self._say(f"not registered within {seconds:g} s: {_text(error)}", logging.ERROR)
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_S)
        _log.info("registered as broker %d with epoch %d", self.node_id, self.epoch)
        await self._send_heartbeats()

    async def _register(self) -> int:
        response = await self.channel.ask(
            api_keys.BROKER_REGISTRATION,
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
                self._last_message = ""
            # A fenced broker is one that has not replayed its registration yet, or whose controller just came back.
            pause = min(2 * pause, interval) if fenced else _FIRST_PAUSE_S
            await asyncio.sleep(min(pause, interval) if fenced else interval)

    async def _beat(self, *, want_shut_down: bool = False) -> Any:
        return await self.channel.ask(
            api_keys.BROKER_HEARTBEAT,
            broker_id=self.node_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self.replayed(),
            want_fence=False,
            want_shut_down=want_shut_down,
        )

    def _say(self, what: str, level: int) -> None:
        if what != self._last_message:
            _log.log(level, "broker %d: %s", self.node_id, what)
        self._last_message = what


def _part(kind: str, /, **fields: Any) -> Any:
    return build(api_keys.BROKER_REGISTRATION, _REGISTRATION_VERSION, "request", kind, **fields)


def _text(error: MetadataError) -> str:
    # These responses have no message.
    return _REASONS.get(error.code, str(error)) if isinstance(error, RequestError) else str(error)


# The broker's follower of the controllers' log (BrokerServer's part of kafka.server.SharedServer).


_CLOSE_SECONDS = 10.0


@define(eq=False, kw_only=True)
class MetadataFollower:
    """Owned by a broker's event loop; the work is done in threads."""

    config: NodeConfig
    publisher: Publisher
    cluster_id: str
    on_failure: Callable[[MetadataError], None]
    """Called once, on the event loop, when the log cannot be replayed further: the node must stop."""
    _log_reader: QuorumLog | None = field(default=None, init=False)
    _follower: Follower | None = field(default=None, init=False)
    _watch: "asyncio.Task[None] | None" = field(default=None, init=False)

    async def start(self) -> None:
        """Start following; returns before anything is replayed."""
        self._log_reader = QuorumLog(
            servers=self.config.controller_quorum,
            security=self.config.controller_client,
            client_id=str(self.config.node_id),
            cluster_id=self.cluster_id,
            options=ObserverOptions(newest_level=NEWEST[self.config.generation]),
            notify=_log.warning,
        )
        self._follower = Follower(log=self._log_reader, publisher=self.publisher, notify=_log.warning)
        self._follower.start()
        self._watch = asyncio.create_task(self._wait_ended(self._follower))

    @property
    def leader(self) -> HostPort | None:
        """The active controller's address, if known."""
        return None if self._log_reader is None else self._log_reader.leader

    @property
    def high_watermark(self) -> int:
        """The known high-water mark; -1 while it is unknown."""
        return -1 if self._log_reader is None else self._log_reader.high_watermark()

    async def stop(self) -> None:
        """Stop following; idempotent."""
        if self._watch is not None:
            self._watch.cancel()
        if self._follower is not None and self._log_reader is not None:
            await asyncio.to_thread(self._stop, self._follower, self._log_reader)

    @staticmethod
    def _stop(follower: Follower, log: QuorumLog) -> None:
        follower.stop(0)
        log.close()  # interrupts a read in progress, so that the follower's thread can end
        follower.wait_ended(_CLOSE_SECONDS)

    async def _wait_ended(self, follower: Follower) -> None:
        ended, loop = asyncio.Event(), asyncio.get_running_loop()

        def end() -> None:
            with suppress(RuntimeError):  # the event loop is closed already
                loop.call_soon_threadsafe(ended.set)

        follower.when_ended(end)
        await ended.wait()
        error = follower.failure
        if error is not None:
            self.on_failure(error if isinstance(error, MetadataError) else LogError(f"replay failed: {error!r}"))


# The handler of each broker API: served from the image, or forwarded to the controller (kafka.server.KafkaApis).


FORWARDED = (api_keys.ALTER_USER_SCRAM_CREDENTIALS, api_keys.DESCRIBE_QUORUM, api_keys.UNREGISTER_BROKER)
"""The APIs that are forwarded unchecked; the controller authorizes them."""

FORWARDED_SINCE_4_4 = (api_keys.UNREGISTER_CONTROLLER,)
"""More of them, by a broker of Kafka 4.4."""

UNSUPPORTED = {
    api_keys.ALTER_CLIENT_QUOTAS: "aclog enforces no client quotas, and shows only those that a Kafka wrote",
    api_keys.LIST_GROUPS: "aclog has no consumer groups",
}
"""The APIs that are served with an error alone: administration tools send them and would take a closed connection for a
broken broker, and an empty response for the state. DescribeConfigs is another one, except for AccessSettingsApi's
properties."""

BEFORE_REPLAY = frozenset(
    {
        *FORWARDED,
        *FORWARDED_SINCE_4_4,
        api_keys.CREATE_ACLS,
        api_keys.DELETE_ACLS,
        api_keys.CREATE_DELEGATION_TOKEN,
        api_keys.RENEW_DELEGATION_TOKEN,
        api_keys.EXPIRE_DELEGATION_TOKEN,
        api_keys.METADATA,
        api_keys.DESCRIBE_CLUSTER,
    }
)
"""The APIs that are served before the log is replayed, to super users: answered by the controller, or without a look at
rules, users, tokens and quotas. Every other API waits for the first complete image."""


@define(kw_only=True)
class BrokerApis:
    """Serves reads from the published image, and forwards writes."""

    publisher: Publisher
    replayed: Callable[[], bool]
    """Whether the image covers everything that was committed when this node started."""
    auth: AuthHelper
    cluster: ClusterView
    forwarder: Forwarder
    tokens: TokenSettings = field(factory=TokenSettings)
    auto_create_topics: bool = True
    """auto.create.topics.enable"""
    generation: Generation = Generation.V4_3
    """The Kafka whose APIs are served."""
    settings: Mapping[str, str] = field(factory=dict)
    """The returned properties of its authorizer (access_settings)."""

    def handlers(self) -> Mapping[int, Handler]:
        """Return a handler for every API of BROKER_APIS except those that a connection handles itself."""
        return {
            api_key: handler if api_key in BEFORE_REPLAY else self._when_replayed(handler)
            for api_key, handler in self._handlers().items()
        }

    def _when_replayed(self, handler: Handler) -> Handler:
        """Return a handler that needs a complete image: a partial one would be returned as if it were the whole state.

        Early-start listeners admit super users before that (KIP-801).
        """

        async def gated(request: Request) -> bytes:
            """Require a complete image, then handle."""
            if not self.replayed():
                raise AuthorizerNotReadyError("this broker has not replayed the metadata log yet")
            return await handler(request)

        return gated

    def _handlers(self) -> Mapping[int, Handler]:
        metadata = MetadataApis(self.cluster, self.auth, auto_create_topics=self.auto_create_topics)
        tokens = BrokerTokenApis(
            publisher=self.publisher, auth=self.auth, forwarder=self.forwarder, settings=self.tokens
        )
        own = AccessSettingsApi(auth=self.auth, node_id=self.cluster.node_id, settings=self.settings)
        return {
            api_keys.METADATA: metadata.metadata,
            api_keys.DESCRIBE_CLUSTER: metadata.describe_cluster,
            api_keys.DESCRIBE_ACLS: AclApis(self.auth).describe_acls,
            api_keys.DESCRIBE_CLIENT_QUOTAS: self._describe_client_quotas,
            api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS: self._describe_scram,
            **{api_key: _refused(why) for api_key, why in UNSUPPORTED.items()},
            api_keys.DESCRIBE_CONFIGS: own.describe_configs,
            **dict.fromkeys(FORWARDED, self.forwarder.forward),
            **(
                {} if self.generation is Generation.V4_3 else dict.fromkeys(FORWARDED_SINCE_4_4, self.forwarder.forward)
            ),
            api_keys.CREATE_ACLS: self._create_acls,
            api_keys.DELETE_ACLS: self._delete_acls,
            api_keys.CREATE_DELEGATION_TOKEN: tokens.create,
            api_keys.RENEW_DELEGATION_TOKEN: tokens.change,
            api_keys.EXPIRE_DELEGATION_TOKEN: tokens.change,
            api_keys.DESCRIBE_DELEGATION_TOKEN: tokens.describe,
        }

    async def _create_acls(self, request: Request) -> bytes:
        # Rejected here as malformed, which closes the connection; from an Envelope it would come back as an error.
        await creations_of(request)
        return await self.forwarder.forward(request)

    async def _delete_acls(self, request: Request) -> bytes:
        await filters_of(request)
        return await self.forwarder.forward(request)

    async def _describe_client_quotas(self, request: Request) -> bytes:
        self._require(request, AclOperation.DESCRIBE_CONFIGS)
        image = self.publisher.current
        return await offload_if(len(image.opaque) > MANY, describe_client_quotas, image, request)

    async def _describe_scram(self, request: Request) -> bytes:
        self._require(request, AclOperation.DESCRIBE)
        scram = self.publisher.current.scram
        many = len(scram) + len(request.body.users or ()) > MANY
        return await offload_if(many, describe_scram_users, scram, request)

    def _require(self, request: Request, operation: int) -> None:
        if not self.auth.on_cluster(request, operation):
            raise RequestError(error_codes.CLUSTER_AUTHORIZATION_FAILED)


def _refused(why: str) -> Handler:
    async def refuse(_: Request) -> bytes:
        raise RequestError(error_codes.UNSUPPORTED_VERSION, why)

    return refuse
