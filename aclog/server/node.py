"""A node's merger: a process of its own for large merges, with metrics and log lines."""

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from attrs import evolve, field

from aclog.authorizer.acl import AclBindingFilter, StandardAcl
from aclog.authorizer.audit import AuditHook
from aclog.authorizer.codes import (
    CLUSTER_NAME,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from aclog.authorizer.interface import Authorizer
from aclog.authorizer.settings import (
    ALLOW_EVERYONE_CONFIG,
    CIDR_CONFIG,
    SUPER_USERS_CONFIG,
    KafkaPrincipal,
    parse_allow_everyone,
    parse_super_users,
)
from aclog.authorizer.standard import StandardAuthorizer, load_authorizer_class
from aclog.config.listeners import (
    EVERYBODY_ADMINISTERS,
    NO_ADMINISTRATOR,
    AccessWarning,
    access_property,
    configured_warnings,
    has_kafkas_semantics,
    without_authorizer,
)
from aclog.config.node_config import HostPort, Listener, LogKind, NodeConfig
from aclog.config.properties import SslPrincipalMapper
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.metalog.filelog.meta_properties import MetaProperties
from aclog.metalog.machine import clock, randomness
from aclog.metalog.primitives import random_uuid
from aclog.metalog.records import BrokerEndpoint
from aclog.metalog.values import define
from aclog.protocol.headers import Handler, ShortHandler
from aclog.protocol.responses import BROKER_APIS, CONTROLLER_APIS, ApiVersion, Features, served_by
from aclog.protocol.session import ANONYMOUS
from aclog.security.principals import Credentials, peer_principal
from aclog.security.sasl import PublishedCredentials
from aclog.security.tls import CertificateWatcher, ServerContext, client_context, server_context
from aclog.server.apis.acls import AuthHelper, access_settings
from aclog.server.broker.apis import (
    ClusterView,
    ControllerChannel,
    EnvelopeForwarder,
    Forwarder,
    LocalChannel,
    LocalForwarder,
    RemoteChannel,
)
from aclog.server.broker.lifecycle import BrokerApis, BrokerLifecycle, MetadataFollower
from aclog.server.controller.apis import ControllerApis
from aclog.server.controller.controller_server import ControllerServer
from aclog.server.controller.shared import KafkaTopic
from aclog.server.controller.topic_controller import TopicController
from aclog.server.feature_levels import KRAFT_VERSION, NEWEST, supported_features
from aclog.server.http_endpoint import HttpEndpoint
from aclog.server.loops import running_loop
from aclog.server.network.admission import Admission
from aclog.server.network.dispatch import Dispatcher, NodeIdentity
from aclog.server.network.listeners import ListenerServer
from aclog.server.storage import check_unchanged, watch_storage
from aclog.server.telemetry import CountingAuthorizer, Metrics
from aclog.snapshots.applier import Applier
from aclog.snapshots.compaction import FoldInProcess
from aclog.snapshots.image import NewerKafka
from aclog.snapshots.publisher import Merger, MergeReport, Publisher

if TYPE_CHECKING:
    from aclog.server.usage_index import UsageKeeper


_log = logging.getLogger(__name__)


def merger_of(publisher: Publisher, metrics: Metrics) -> Merger:
    """Return the merger of a node's images, which the node must close."""

    def report(merge: MergeReport) -> None:
        """Count a merge, and log it."""
        what = f"{merge.changes} changes into the index of {merge.rules} ACLs"
        if merge.failure is not None:
            metrics.merge_failures.inc()
            # Decisions are still right: they take the changes from the overlay.
            _log.warning("could not merge %s (tried again later): %s", what, merge.failure)
            return
        metrics.merges.observe(merge.seconds)
        _log.debug("merged %s in %.2f s", what, merge.seconds)

    metrics.overlay.set_function(lambda: publisher.current.acls.overlay_size)
    return Merger(publisher=publisher, folder=FoldInProcess(), report=report)


# The listeners of a node, built from its configuration.


@define(eq=False, kw_only=True)
class NodeListeners:
    """Opens listeners in two phases: early-start listeners first, the others once the node is ready (KIP-801).

    `advertised` receives the advertised address of each listener as it opens; port 0 is replaced by the bound port.
    """

    config: NodeConfig
    controller: Dispatcher | None
    broker: Dispatcher | None
    admission: Admission
    credentials: Credentials
    advertised: dict[str, HostPort]
    _open: list[ListenerServer] = field(factory=list, init=False)
    _contexts: dict[str, ServerContext] = field(factory=dict, init=False)
    """TLS contexts by listener name."""
    _watchers: list["asyncio.Task[None]"] = field(factory=list, init=False)

    async def open(self, *, early: bool) -> None:
        """Open the early-start listeners of this node, or all others.

        Raises:
            ConfigError: An address cannot be bound, or a certificate is unusable.

        """
        # All contexts are built before the first socket opens: a bad certificate must not leave a node half open.
        self._contexts = self._contexts or listener_contexts(self.config)
        for listener in self.config.listeners:
            dispatcher = self.controller if listener.controller else self.broker
            if dispatcher is not None and listener.early_start is early:
                await self._start(listener, dispatcher)

    async def _start(self, listener: Listener, dispatcher: Dispatcher) -> None:
        context, principal_of = self._tls(listener)
        server = ListenerServer(
            listener=listener,
            dispatcher=dispatcher,
            admission=self.admission,
            credentials=self.credentials,
            tls=context,
            certificate_principal=principal_of,
        )
        await server.start()
        self._open.append(server)
        at = listener.advertised
        self.advertised[listener.name] = at = at if at.port else evolve(at, port=server.port)
        early = " (early start: super users only until the log is replayed)" if listener.early_start else ""
        protocol = listener.security_protocol.value
        _log.info("listener %s: %s on port %d, advertised as %s%s", listener.name, protocol, server.port, at, early)

    def _tls(self, listener: Listener) -> "tuple[ssl.SSLContext | None, Callable[[object], KafkaPrincipal]]":
        settings, context = listener.tls, self._contexts.get(listener.name)
        if settings is None or context is None:
            return None, lambda _: ANONYMOUS
        watcher = CertificateWatcher(context=context, settings=settings)
        self._watchers.append(asyncio.create_task(watcher.run(partial(_report, listener.name))))
        rules = SslPrincipalMapper.parse(settings.principal_mapping_rules)
        return context, lambda connection: peer_principal(connection, rules)

    async def close(self, grace: float) -> None:
        """Stop accepting, give in-flight requests `grace` seconds to complete, then close."""
        for watcher in self._watchers:
            watcher.cancel()
        servers, self._open = self._open, []
        await asyncio.gather(*(server.stop(grace) for server in servers))

    @property
    def ports(self) -> Mapping[str, int]:
        """The bound port of each open listener, by name."""
        return {server.listener.name: server.port for server in self._open}


def listener_contexts(config: NodeConfig) -> dict[str, ServerContext]:
    """Read the key and trust stores of all TLS listeners; return their contexts by listener name.

    Raises:
        ConfigError: A certificate or key is unusable; the text names the listener.

    """
    contexts = {}
    for listener in config.listeners:
        if listener.tls is not None and listener.security_protocol.tls:
            try:
                contexts[listener.name] = server_context(listener.tls)
            except ConfigError as error:
                raise ConfigError(f"listener {listener.name}: {error}") from error
    return contexts


def check_certificates(config: NodeConfig) -> None:
    """Read every certificate that the node uses, including its client certificate, before it starts.

    Raises:
        ConfigError: A certificate or key is unusable.

    """
    listener_contexts(config)
    client = config.controller_client
    if client.security_protocol.tls and client.tls is not None:
        try:
            client_context(client.tls)
        except ConfigError as error:
            raise ConfigError(f"controller client: {error}") from error


def _report(name: str, error: ConfigError | None) -> None:
    if error is None:
        _log.info("listener %s: certificates reloaded", name)
    else:
        _log.error("listener %s: cannot reload certificates, keeping the previous ones: %s", name, error)


# Whether a node is open, or locked, by mistake: its settings and its ACLs together, in the log and as metrics.


_ON_CLUSTER = AclBindingFilter(
    resource_type=ResourceType.CLUSTER, resource_name=CLUSTER_NAME, pattern_type=PatternType.MATCH
)
_ADMINISTERS = (AclOperation.ALTER, AclOperation.ALL)


@define(eq=False, kw_only=True)
class AccessCheck:
    """Logs warnings about settings at the start, and shows them in `metrics` while they last. Owned by a node.

    Nothing is refused: Kafka starts with all of these settings, and each of them may be intended.
    """

    config: NodeConfig
    authorizer: Authorizer | None
    publisher: Publisher
    metrics: Metrics
    _configured: tuple[AccessWarning, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._configured = tuple(configured_warnings(self.config))
        for warning in self._configured:
            self.metrics.access_warning.labels(warning.kind).set(1)

    def say_configured(self) -> None:
        """Log the warnings that do not depend on ACLs; before the first listener opens."""
        _say(self._configured)

    def watch(self) -> None:
        """Log the warnings about these settings and the ACLs, and measure them from now on; after the replay."""
        _say(self.of_acls())
        for kind in (NO_ADMINISTRATOR, EVERYBODY_ADMINISTERS):  # that of no authorizer is set already
            self.metrics.access_warning.labels(kind).set_function(
                lambda kind=kind: any(each.kind == kind for each in self.of_acls())  # type: ignore[misc]
            )

    def of_acls(self) -> Iterator[AccessWarning]:
        """Yield the warnings about the current ACLs."""
        if self.authorizer is None:
            if count := len(self.publisher.current.acls):
                yield without_authorizer([f"the log holds {count} ACL{'' if count == 1 else 's'}"])
        # Brokers pass changes of ACLs on, and controllers decide them, by settings of their own.
        elif self.config.is_controller and has_kafkas_semantics(self.config):
            yield from self._administration(self.authorizer)

    def _administration(self, authorizer: Authorizer) -> Iterator[AccessWarning]:
        users = parse_super_users(access_property(self.config, SUPER_USERS_CONFIG))
        everyone = parse_allow_everyone(access_property(self.config, ALLOW_EVERYONE_CONFIG))
        if users and not everyone:
            return  # without a look at the ACLs, which may be many
        acls = [each.acl for each in authorizer.acls(_ON_CLUSTER)]
        if everyone and not acls:
            yield AccessWarning(
                kind=EVERYBODY_ADMINISTERS,
                text=f"{ALLOW_EVERYONE_CONFIG} is true, and no ACL is on the cluster: every client may change ACLs. "
                "Expected an ACL that allows ALTER on the cluster to administrators only",
            )
        elif not users and not _somebody(acls):
            yield AccessWarning(
                kind=NO_ADMINISTRATOR,
                text=f"no client may change ACLs: {SUPER_USERS_CONFIG} is empty, and no ACL allows ALTER on the "
                f"cluster. Expected {SUPER_USERS_CONFIG}=User:NAME",
            )


def _somebody(acls: Iterable[StandardAcl]) -> bool:
    """Whether ACLs on the cluster allow any principal to change ACLs."""
    rules = [each for each in acls if each.operation in _ADMINISTERS]
    allowed = any(each.permission_type == AclPermissionType.ALLOW for each in rules)
    return allowed and not any(
        each.permission_type == AclPermissionType.DENY
        and each.principal == WILDCARD_PRINCIPAL
        and each.host == WILDCARD
        for each in rules
    )


def _say(warnings: Iterable[AccessWarning]) -> None:
    for each in warnings:
        _log.warning("%s", each.text, extra={"warning": each.kind})


# A node: a controller, a broker, or both in one process (kafka.server.KafkaRaftServer).


GRACE_SECONDS = 5.0
"""Time for in-flight requests to complete when a node stops."""


@define(eq=False, kw_only=True)
class Node:
    """A node. Created and run once, on one event loop.

    `audit` receives every authorization decision. `serving` is set once all listeners are open.
    """

    config: NodeConfig
    meta: MetaProperties
    audit: AuditHook | None = None
    metrics: Metrics = field(factory=Metrics)
    publisher: Publisher = field(init=False)
    serving: asyncio.Event = field(factory=asyncio.Event, init=False)
    advertised: dict[str, HostPort] = field(factory=dict, init=False)
    _authorizer: Authorizer | None = field(init=False)
    _access: AccessCheck = field(init=False)
    _controller: ControllerServer | TopicController | None = field(default=None, init=False)
    _topic_controller: TopicController | None = field(default=None, init=False)
    """The same object as `_controller` if the log is shared: another controller may be active."""
    _follower: MetadataFollower | None = field(default=None, init=False)
    _lifecycle: BrokerLifecycle | None = field(default=None, init=False)
    """The broker's registration; None for one that follows a real Kafka's quorum, which must not know the broker."""
    _own_broker: Mapping[int, Handler] = field(factory=dict, init=False)
    """The handlers of the controller in this process for its broker, if there is one that is always active."""
    _failure: "asyncio.Future[None]" = field(init=False)
    _usage: "UsageKeeper | None" = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.publisher = Publisher(applier=Applier(newer=NewerKafka(newest=NEWEST[self.config.generation])))
        self._authorizer = authorizer_of(self.config, self.audit)
        if self.config.usage_index is not None:
            from aclog.server.usage_keeping import usage_keeper  # noqa: PLC0415  # needs pyarrow

            self._usage = usage_keeper(
                self.config, self.meta.cluster_id, self._authorizer, self.publisher, self.metrics
            )
        self._access = AccessCheck(
            config=self.config, authorizer=self._authorizer, publisher=self.publisher, metrics=self.metrics
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set.

        Raises:
            MetadataError: The node cannot start, or cannot continue.

        """
        self._failure = asyncio.get_running_loop().create_future()
        # The stack unwinds in reverse: listeners close first, while the controller still commits their requests;
        # the log closes after its last writer, and the authorizer last, since requests are authorized until then.
        async with AsyncExitStack() as stack:
            if self._authorizer is not None:
                stack.push_async_callback(asyncio.to_thread, self._authorizer.close)
            if self._usage is not None:
                # Closed after the last authorizer, so that its last decisions are also written.
                self._usage.start()
                stack.push_async_callback(asyncio.to_thread, self._usage.close)
            self._watch()
            # Stopped after the publisher: from then on no merge is needed.
            merger = merger_of(self.publisher, self.metrics)
            stack.push_async_callback(asyncio.to_thread, merger.close)
            self._access.say_configured()
            if self.config.http is not None:
                http = self._http(self.config.http)
                await http.start()
                stack.push_async_callback(http.stop)
            listeners = self._build(stack)
            stack.push_async_callback(listeners.close, GRACE_SECONDS)
            watching = asyncio.create_task(watch_storage(self._check_storage, self._lose_storage), name="storage")
            stack.callback(watching.cancel)
            if self._lifecycle is not None:
                # Before its listeners close, so that the other brokers name this one to no more clients.
                stack.push_async_callback(self._lifecycle.stop)
            await self._serve(listeners, stop)
            _log.info("stopping")

    async def _serve(self, listeners: NodeListeners, stop: asyncio.Event) -> None:
        """Open all listeners, then wait until the node is stopped or fails."""
        opening, stopping = asyncio.create_task(self._open(listeners)), asyncio.create_task(stop.wait())
        try:
            waiting: set[asyncio.Future[Any]] = {opening, stopping, self._failure}
            while not stopping.done():
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for each in done:
                    each.result()
        finally:
            opening.cancel()
            stopping.cancel()
            await asyncio.gather(opening, stopping, return_exceptions=True)

    async def _open(self, listeners: NodeListeners) -> None:
        # Early-start listeners open before replay: observers and other controllers can fetch while this node is still
        # loading; all but super users get AUTHORIZER_NOT_READY until then (KIP-801).
        await listeners.open(early=True)
        begun = clock.monotonic()
        await self._replay()
        image = self.publisher.current
        took = clock.monotonic() - begun
        self._access.watch()
        _log.info("replayed to offset %d in %.1f s: %d ACLs", image.end_offset, took, len(image.acls))
        await listeners.open(early=False)
        self.serving.set()
        _log.info("serving")
        if self._lifecycle is not None:
            self._lifecycle.start()

    async def _replay(self) -> None:
        if self._controller is not None:
            await self._controller.start()
            for note in self._controller.notes:
                _log.warning("%s", note)
            return
        if self._follower is not None:
            await self._follower.start()
            while not await asyncio.to_thread(self.publisher.wait_ready, 0.5):
                pass
        if isinstance(self._authorizer, StandardAuthorizer):
            self._authorizer.complete_initial_load()

    def _replayed(self) -> bool:
        """Whether the image covers everything that was committed when this node started."""
        return self.publisher.ready if self._controller is None else self._controller.ready

    def _build(self, stack: AsyncExitStack) -> NodeListeners:
        """Build the components of this node's roles without starting them."""
        counted = self._authorizer and CountingAuthorizer(authorizer=self._authorizer, decisions=self.metrics.decisions)
        auth, controller, forwarder = AuthHelper(counted), None, None
        if self.config.is_controller:
            apis = self._make_controller(stack, auth)
            handlers = apis.handlers()
            controller = self._dispatcher(handlers, CONTROLLER_APIS, None, apis.short_handlers())
            if self._topic_controller is None:
                # Same process, single controller: no Envelope. On a shared log the active controller may be elsewhere.
                forwarder = LocalForwarder(handlers)
        broker = self._make_broker(stack, auth, forwarder) if self.config.is_broker else None
        return NodeListeners(
            config=self.config,
            controller=controller,
            broker=broker,
            admission=Admission(limits=self.config.limits, metrics=self.metrics),
            credentials=PublishedCredentials(
                publisher=self.publisher,
                replayed=self._replayed,
                cluster_id=self.meta.cluster_id,
                token_secret=self.config.tokens.secret,
                decoy_secret=self.config.scram_decoy_secret,
            ),
            advertised=self.advertised,
        )

    def _make_controller(self, stack: AsyncExitStack, auth: AuthHelper) -> ControllerApis:
        common: dict[str, Any] = {
            "config": self.config,
            "cluster_id": self.meta.cluster_id,
            "directory_id": self.meta.directory_id,
            "authorizer": self._authorizer,
            "advertised": self.advertised,
            "on_failure": self._fail,
            "metrics": self.metrics,
            "publisher": self.publisher,
        }
        topic, node_id = self.config.topic, self.config.node_id
        if topic is None:
            server: ControllerServer | TopicController = ControllerServer(**common)
        else:
            shared = KafkaTopic(settings=topic, node_id=node_id, voters=self.config.voter_ids)
            server = self._topic_controller = TopicController(**common, shared=shared)
        self._controller = server
        stack.push_async_callback(server.stop)
        apis = ControllerApis(
            auth=auth,
            node_id=node_id,
            serving=lambda: server.serving,
            contested=topic is not None,
            generation=self.config.generation,
            settings=access_settings(self.config),
        )
        if topic is None:
            self._own_broker = apis.own_broker()
        return apis

    def _make_broker(self, stack: AsyncExitStack, auth: AuthHelper, forwarder: Forwarder | None) -> Dispatcher:
        channel: ControllerChannel = LocalChannel(self._own_broker)
        if forwarder is None:
            leader = self._topic_controller or self._follow(stack)
            security, name = self.config.controller_client, str(self.config.node_id)
            forwarder = EnvelopeForwarder(leader=lambda: leader.leader, security=security, client_id=name)
            channel = RemoteChannel(
                leader=lambda: leader.leader,
                security=security,
                client_id=name,
                # As Kafka's: requests that a paused controller holds reach its successor before the session ends.
                seconds=self.config.brokers.session_timeout_ms / 2000,
            )
            stack.push_async_callback(forwarder.close)
        incarnation_id = random_uuid(randomness.token_bytes)
        if self.config.log_kind is not LogKind.QUORUM:
            self._lifecycle = self._make_lifecycle(channel, incarnation_id)
        cluster = ClusterView(
            cluster_id=self.meta.cluster_id,
            node_id=self.config.node_id,
            advertised=self.advertised,
            rack=self.config.brokers.rack,
            incarnation_id=incarnation_id,
            registered=lambda: self.publisher.current.cluster,
        )
        apis = BrokerApis(
            publisher=self.publisher,
            replayed=self._replayed,
            auth=auth,
            cluster=cluster,
            forwarder=forwarder,
            tokens=self.config.tokens,
            auto_create_topics=self.config.brokers.auto_create_topics,
            generation=self.config.generation,
            settings=access_settings(self.config),
        )
        identity = NodeIdentity(cluster_id=self.meta.cluster_id, node_id=self.config.node_id)
        return self._dispatcher(apis.handlers(), BROKER_APIS, identity)

    def _make_lifecycle(self, channel: ControllerChannel, incarnation_id: UUID) -> BrokerLifecycle:
        listeners = [listener for listener in self.config.listeners if not listener.controller]
        return BrokerLifecycle(
            channel=channel,
            settings=self.config.brokers,
            node_id=self.config.node_id,
            cluster_id=self.meta.cluster_id,
            incarnation_id=incarnation_id,
            # A directory that a Kafka before 3.7 formatted has no id; nothing is stored under it here.
            log_dirs=(self.meta.directory_id or random_uuid(randomness.token_bytes),),
            features=supported_features(self.config.generation, cidr=self.config.cidr),
            endpoints=lambda: [
                BrokerEndpoint(name=each.name, host=at.host, port=at.port, security_protocol=each.security_protocol.id)
                for each in listeners
                for at in (self.advertised[each.name],)
            ],
            replayed=lambda: self.publisher.current.end_offset - 1,
        )

    def _follow(self, stack: AsyncExitStack) -> MetadataFollower:
        authorizer = self._authorizer
        if isinstance(authorizer, StandardAuthorizer):
            self.publisher.subscribe(lambda image: authorizer.load(image.acls))
        cluster_id = self.meta.cluster_id
        self._follower = follower = MetadataFollower(
            config=self.config, publisher=self.publisher, cluster_id=cluster_id, on_failure=self._fail
        )
        stack.push_async_callback(follower.stop)
        return follower

    def _dispatcher(
        self,
        handlers: Mapping[int, Handler],
        apis: Iterable[ApiVersion],
        identity: NodeIdentity | None,
        short_handlers: Mapping[int, ShortHandler] | None = None,
    ) -> Dispatcher:
        return Dispatcher(
            handlers=handlers,
            short_handlers=short_handlers or {},
            apis=served_by(apis, self.config.generation),
            metrics=self.metrics,
            features=self._features,
            identity=identity,
        )

    def _features(self) -> Features:
        supported = supported_features(self.config.generation, cidr=self.config.cidr)
        if not self._replayed():
            return Features(supported=supported)  # the levels of a partial image would be wrong ones
        image = self.publisher.current
        finalized = {record.name: record.feature_level for record in image.features.records()}
        if image.provenance.kraft_version:
            finalized[KRAFT_VERSION] = image.provenance.kraft_version
        return Features(supported=supported, finalized=finalized, finalized_epoch=image.end_offset - 1)

    def _check_storage(self) -> None:
        """Check that the directory still holds the open files of this node. Raises ConfigError, LogError."""
        check_unchanged(self.config.metadata_log_dir, self.meta)
        if self._controller is not None:
            self._controller.check_files()

    def _lose_storage(self, error: MetadataError) -> None:
        if isinstance(self._controller, ControllerServer):
            self._controller.abandon(error)
        self._fail(error)

    def _fail(self, error: MetadataError) -> None:
        if not self._failure.done():
            self._failure.set_exception(error)

    def _http(self, address: HostPort) -> HttpEndpoint:
        return HttpEndpoint(
            address=address,
            metrics=self.metrics.text,
            healthy=lambda: str(self._failure.exception()) if self._failure.done() else None,
            ready=self._unready,
        )

    def _unready(self) -> str | None:
        """Return why no clients should be routed here; None if they may."""
        if not self.serving.is_set():
            return "the log has not been replayed yet"
        return None if self._topic_controller is None else self._topic_controller.trouble

    def _watch(self) -> None:
        """Register callbacks for the gauges; they are evaluated when /metrics is read."""
        metrics, publisher = self.metrics, self.publisher
        if self._authorizer is not None:
            metrics.watch_acl_count(self._authorizer.acl_count)
        metrics.cidr.set(self.config.cidr)
        metrics.event_loop.labels(running_loop()).set(1)
        metrics.ready.set_function(self.serving.is_set)
        metrics.active.set_function(lambda: self._controller is not None and self._controller.active)
        metrics.applied_offset.set_function(lambda: publisher.current.end_offset - 1)
        metrics.committed_offset.set_function(lambda: self._high_watermark() - 1)
        metrics.lag_records.set_function(lambda: max(self._high_watermark() - publisher.current.end_offset, 0))
        metrics.lag.set_function(lambda: self._lag_seconds(clock.time()))

    def _high_watermark(self) -> int:
        if self._follower is not None:
            return self._follower.high_watermark
        serving = self._controller.serving if self._controller is not None else None
        return serving.log.high_watermark() if serving is not None else -1

    def _lag_seconds(self, now: float) -> float:
        image = self.publisher.current
        behind = image.end_offset < self._high_watermark()
        return max(now - max(image.timestamp, 0) / 1000, 0.0) if behind else 0.0


def authorizer_of(config: NodeConfig, audit: AuditHook | None) -> Authorizer | None:
    """Return the configured authorizer; None if authorizer.class.name is not set.

    Raises:
        ConfigError: there is no such class, it refuses its properties, or it has no CIDR ranges and they are enabled.

    """
    if not config.authorizer_class_name:
        return None
    authorizer = load_authorizer_class(config.authorizer_class_name)()
    has_ranges = isinstance(authorizer, StandardAuthorizer)  # one of another class decides on hosts as it likes
    if config.cidr and not has_ranges and not config.generation.has_ranges:
        raise ConfigError(f"{CIDR_CONFIG}: {config.authorizer_class_name} has no CIDR ranges: expected false")
    authorizer.configure(
        {**config.properties, CIDR_CONFIG: "true"} if config.cidr and has_ranges else config.properties
    )
    set_audit = getattr(authorizer, "set_audit", None)  # optional for plugins
    if set_audit is not None and audit is not None:
        set_audit(audit)
    return authorizer
