"""Running clusters.

Bootstrap servers, live nodes, their Kafka and settings, and the states that brokers and controllers return.
"""

import asyncio
import atexit
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Self, TypeVar

from attrs import evolve, field

from aclog.authorizer.acl import AclBindingFilter, ChangePlace
from aclog.authorizer.acls_image import image_of
from aclog.authorizer.settings import RANGES_LEVEL, generation_of_level
from aclog.authorizer.standard import READ_CONFIGS, SET_AUTHORIZER, ClusterSettings, NodeSettings, Premise
from aclog.client.connection import Connection, Peer, Role, Service, connect, probe, role_of
from aclog.client.errors import UnreachableError, WrongRoleError
from aclog.client.fetching import ObserverOptions
from aclog.client.quorum_log import QuorumLog
from aclog.client.requests import (
    CONTROLLERS,
    AclResponse,
    ClusterNode,
    acl_contents,
    acl_response,
    broker_cluster_id,
    cluster_of_brokers,
    describe_cluster,
    describe_features,
    describe_quorum,
    describe_scram,
    node_configs,
    topic_names,
    version_for,
)
from aclog.config.node_config import ClientSecurity, HostPort
from aclog.credentials.scram import ScramImage, UserCredentials
from aclog.metalog.errors import ConfigError, LogError, MetadataError, StaleError
from aclog.metalog.primitives import current_time_ms, elapsed_seconds
from aclog.metalog.values import define, frozen
from aclog.protocol import api_keys, error_codes
from aclog.protocol.headers import RequestError
from aclog.snapshots.deciding_kafka import (
    DecidingKafka,
    NodeKafkas,
    deciding_kafka,
    range_hosts,
    ranges_concern_controllers,
    ranges_text,
    registered_controllers,
    registered_levels,
)
from aclog.snapshots.image import METADATA_VERSION, Freshness, Image, NewerKafka
from aclog.snapshots.moments import Moment, milliseconds, moment_text
from aclog.snapshots.publisher import Progress, Recovered, recover_log
from aclog.sources.notes import Notify, newer_gaps
from aclog.sources.server_flags import check_age, parse_servers, run
from aclog.terminal.notices import STALE_SECONDS
from aclog.terminal.output import utc_text
from aclog.zookeeper.client import StoreError, ZkSettings
from aclog.zookeeper.connect import open_client

if TYPE_CHECKING:
    from aclog.zookeeper.session import ZkClient


# A connection to one of some bootstrap servers.


async def connect_to_first(servers: Sequence[HostPort], security: ClientSecurity, role: Role) -> Connection:
    """Connect to the first server that responds.

    Raises:
        WrongRoleError: it is a controller where a broker was expected, or the reverse.
        MetadataError: what client.connection.connect raises for the last one.

    """
    for server in servers[:-1]:
        try:
            return await _connect(server, security, role)
        except UnreachableError:
            continue
    return await _connect(servers[-1], security, role)


async def _connect(server: HostPort, security: ClientSecurity, role: Role) -> Connection:
    connection = await connect(server, security)
    actual = role_of(connection.apis)
    if actual in (None, role):
        return connection
    await connection.close()
    raise WrongRoleError(
        f"{server}: a {actual.name.lower()}'s listener: expected a {role.name.lower()}'s with {role.value}, or this "
        f"address with {actual.value}"
    )


# The live nodes of a running cluster, each read over a connection of its own.


T = TypeVar("T")

_CONNECT_S = 5.0
"""The timeout of connecting to a node, and of its response: nodes other than the given ones may be unreachable."""


@frozen(kw_only=True)
class LiveNodes:
    """The nodes of a cluster in one role."""

    cluster_id: str
    role: Role
    nodes: Sequence[ClusterNode]
    security: ClientSecurity
    first: Connection | None = None
    """To the server that named the nodes, if it is in `nodes`."""

    @classmethod
    async def brokers(cls, connection: Connection, security: ClientSecurity) -> Self:
        """Return the brokers that are alive. Raises RequestError: the broker does not list them."""
        if api_keys.DESCRIBE_CLUSTER in connection.apis:
            described = await describe_cluster(connection)
        else:
            described = await cluster_of_brokers(connection)
        alive = [node for node in described.nodes if not node.fenced]
        return cls(cluster_id=described.cluster_id, role=Role.BROKER, nodes=alive, first=connection, security=security)

    @classmethod
    async def controllers(cls, connection: Connection, security: ClientSecurity) -> Self:
        """Return the controllers. Raises RequestError: the controller does not list them."""
        described = await describe_cluster(connection, CONTROLLERS)
        return cls(
            cluster_id=described.cluster_id,
            role=Role.CONTROLLER,
            nodes=described.nodes,
            first=connection,
            security=security,
        )

    async def ask(self, question: Callable[[Connection, ClusterNode], Awaitable[T]]) -> list[T | str]:
        """Return the response of each node, all read at the same time; or why a node cannot be read."""
        if self.first is not None and len(self.nodes) == 1:  # the address that was given may be the only way to it
            return [await question(self.first, self.nodes[0])]
        return list(await asyncio.gather(*(self._ask(node, question) for node in self.nodes)))

    async def _ask(self, node: ClusterNode, question: Callable[[Connection, ClusterNode], Awaitable[T]]) -> T | str:
        try:
            async with await connect(node.address, self.security, timeout=_CONNECT_S) as connection:
                if await self._id_at(connection) == self.cluster_id:
                    return await question(connection, node)
        except MetadataError as error:
            return str(error)
        return f"{node.address} leads to another cluster from here"

    async def _id_at(self, connection: Connection) -> str:
        if self.role is Role.BROKER:
            return await broker_cluster_id(connection)
        return (await describe_cluster(connection, CONTROLLERS)).cluster_id


# The Kafka versions of a running cluster's nodes, by the features that each supports (ApiVersions).


@frozen(kw_only=True)
class LiveLevels:
    """The newest level by which each node decides, by id: None for a node that does not answer.

    It is 0 for one without metadata.version, before Kafka 3.3.
    """

    brokers: Mapping[int, int | None]
    """The levels of the live brokers; empty if they cannot be listed."""
    controllers: Mapping[int, int | None] | None = None
    """None if they were not read, or cannot be listed."""


async def live_levels(servers: Sequence[HostPort], security: ClientSecurity, *, controllers: bool) -> LiveLevels:
    """Return the versions of a cluster's brokers, and, if it matters, of its controllers.

    Raises:
        MetadataError: none of the servers responds.

    """
    async with await connect_to_first(servers, security, Role.BROKER) as connection:
        try:
            live = await LiveNodes.brokers(connection, security)
        except RequestError:
            return LiveLevels(brokers={})
        brokers = await _levels(live)
        also = await _of_quorum(connection, security, live.cluster_id, brokers) if controllers else None
        least = await _finalized(connection)
    return LiveLevels(brokers=_at_least(least, brokers), controllers=None if also is None else _at_least(least, also))


async def live_controller_levels(servers: Sequence[HostPort], security: ClientSecurity) -> dict[int, int | None] | None:
    """Return the versions of a cluster's controllers; None if they cannot be listed.

    Raises:
        MetadataError: none of the servers responds.

    """
    async with await connect_to_first(servers, security, Role.CONTROLLER) as connection:
        try:
            return await _levels(await LiveNodes.controllers(connection, security))
        except RequestError:
            return None


async def _of_quorum(
    connection: Connection, security: ClientSecurity, cluster_id: str, brokers: Mapping[int, int | None]
) -> dict[int, int | None] | None:
    """Return the versions of the controllers of a cluster's brokers: all voters of the quorum that a broker names.

    A controller with the id of a broker is the same process. Others are contacted at their advertised addresses, with
    the login of the brokers. None if the broker does not name them.
    """
    if api_keys.DESCRIBE_QUORUM not in connection.apis:  # with ZooKeeper, one of the brokers is the controller
        return dict(brokers)
    try:
        quorum = await describe_quorum(connection)
    except MetadataError:
        return None
    voters = sorted(each.replica_id for each in quorum.voters)
    places = ((voter, quorum.addresses.get(voter)) for voter in voters if voter not in brokers)
    levels: dict[int, int | None] = {voter: brokers.get(voter) for voter in voters}
    levels |= await _levels(
        LiveNodes(
            cluster_id=cluster_id,
            role=Role.CONTROLLER,
            nodes=[ClusterNode(node_id=voter, address=at) for voter, at in places if at is not None],
            security=security,
        )
    )
    return levels


async def _finalized(connection: Connection) -> int:
    """Return the level at which the cluster is finalized: all of its nodes support it. 0 if that is unknown."""
    try:
        return (await describe_features(connection)).finalized.get(METADATA_VERSION, 0)
    except MetadataError:
        return 0


def _at_least(level: int, levels: Mapping[int, int | None]) -> dict[int, int | None]:
    """Return the levels with that of the cluster for nodes that did not answer, if it states their generation."""
    floor = level if level >= RANGES_LEVEL else None
    return {node: floor if reported is None else reported for node, reported in levels.items()}


async def _levels(live: LiveNodes) -> dict[int, int | None]:
    levels = await live.ask(_level)
    return {
        node.node_id: None if isinstance(level, str) else level for node, level in zip(live.nodes, levels, strict=True)
    }


async def _level(connection: Connection, _node: ClusterNode) -> int | None:
    try:
        return (await describe_features(connection)).deciding_level
    except ConfigError:
        return 0  # ApiVersions has no features: a Kafka before 2.4
    except MetadataError:
        return None


# The settings of the authorizer of a running cluster, as far as its nodes answer (DescribeConfigs).


_OF_BROKERS = "a controller does not return the settings of a broker in another process; use --bootstrap-server"


async def broker_settings(servers: Sequence[HostPort], security: ClientSecurity) -> ClusterSettings:
    """Return the settings of every live broker; one of them has described ACLs.

    Raises:
        MetadataError: none of the servers responds.

    """
    async with await connect_to_first(servers, security, Role.BROKER) as connection:
        try:
            brokers = await LiveNodes.brokers(connection, security)
        except RequestError as error:
            return ClusterSettings(nodes=(NodeSettings(node="the brokers", problem=refusal_text(error, "DESCRIBE")),))
        return ClusterSettings(nodes=await _settings(brokers), serves_acls=True)


async def controller_settings(
    servers: Sequence[HostPort], security: ClientSecurity, brokers: Iterable[int]
) -> ClusterSettings:
    """Return the settings of these brokers as far as the controllers return them.

    A controller answers for its own process only, which is a broker as well if both have the same id. Without brokers
    it is the settings of the controllers themselves.

    Raises:
        MetadataError: none of the servers responds.

    """
    async with await connect_to_first(servers, security, Role.CONTROLLER) as connection:
        try:
            live = await LiveNodes.controllers(connection, security)
        except RequestError as error:
            return ClusterSettings(nodes=(NodeSettings(node="the controllers", problem=refusal_text(error, "ALTER")),))
        controllers = await _settings(live)
    by_id = {node.node_id: answer for node, answer in zip(live.nodes, controllers, strict=False)}
    lacking = any(each.authorizer == "" for each in controllers)
    alive = sorted(brokers)
    if not alive:
        return ClusterSettings(nodes=controllers)
    return ClusterSettings(
        nodes=tuple(
            by_id.get(each) or NodeSettings(node=f"broker {each}", problem=_OF_BROKERS, may_lack_authorizer=lacking)
            for each in alive
        )
    )


def refuse_without_authorizer(settings: ClusterSettings, name: str) -> None:
    """Raise RequestError, as a broker answers it, if no node of the cluster has an authorizer."""
    if settings.has_no_authorizer:
        raise RequestError(
            error_codes.SECURITY_DISABLED,
            f"{name}: DescribeConfigs: no node has an authorizer (a cluster without authorizer.class.name has no ACLs, "
            "and allows everything)",
        )


def no_authorizer_text(settings: ClusterSettings, name: str) -> str | None:
    """Return that nodes which were read have no authorizer, so that ACLs have no effect; None if they have one."""
    if not (settings.has_no_authorizer or any(each.may_lack_authorizer for each in settings.nodes)):
        return None
    return (
        f"{name}: no node that responded has an authorizer: every client may perform every operation, and ACLs have "
        f"no effect; {SET_AUTHORIZER}"
    )


async def _settings(live: LiveNodes) -> tuple[NodeSettings, ...]:
    """Return the response of each node."""
    kind = live.role.name.lower()
    if not live.nodes:
        return (NodeSettings(node="the cluster", problem=f"it names no {kind} that is alive"),)

    async def ask(connection: Connection, node: ClusterNode) -> NodeSettings:
        return await _answered(f"{kind} {node.node_id}", connection, node.node_id)

    answers = await live.ask(ask)
    return tuple(
        NodeSettings(node=f"{kind} {node.node_id}", problem=answer) if isinstance(answer, str) else answer
        for node, answer in zip(live.nodes, answers, strict=True)
    )


async def _answered(name: str, connection: Connection, node_id: int) -> NodeSettings:
    try:
        configs = await node_configs(connection, node_id, READ_CONFIGS)
    except RequestError as error:
        return NodeSettings(node=name, problem=refusal_text(error, "DESCRIBE_CONFIGS"))
    except MetadataError as error:
        return NodeSettings(node=name, problem=str(error))
    return NodeSettings(node=name, values={key: config.value for key, config in configs.items()})


def refusal_text(error: RequestError, right: str) -> str:
    """Return why a node does not answer, as a clause; `right`: the operation that the question takes."""
    if (
        error.code == error_codes.CLUSTER_AUTHORIZATION_FAILED
    ):  # a Kafka's own text is the memory address of its request
        return f"the user of --command-config needs {right} on the cluster"
    return str(error)


# The service at an address to which a client of another library cannot connect.


def opened_zookeeper(settings: ZkSettings) -> "ZkClient":
    """Open a client, as aclog.zookeeper.connect.open_client; the error names the service if it is another one."""
    try:
        return open_client(settings)
    except StoreError as error:
        if problem := _stranger(settings):
            raise StoreError(f"{settings.where}: {problem}") from error
        raise


def check_brokers(servers: Sequence[HostPort], security: ClientSecurity) -> None:
    """Log in to the first broker that responds: librdkafka retries for half a minute, without an error.

    Raises:
        MetadataError: as aclog.sources.live.connect_to_first.

    """

    async def check() -> None:
        async with await connect_to_first(servers, security, Role.BROKER) as connection:
            with suppress(RequestError):  # any response is fine: a listener that requires a login closes the connection
                await broker_cluster_id(connection)

    asyncio.run(check())


def _stranger(settings: ZkSettings) -> str | None:
    try:
        address, *_ = parse_servers("zookeeper.connect", settings.connect.partition("/")[0])
    except (ConfigError, ValueError):
        return None
    with ThreadPoolExecutor(1) as pool:  # this thread may run a loop already, as a notebook's does
        peer: Peer = pool.submit(asyncio.run, probe(address)).result()
    if peer.service is Service.KAFKA:
        return "a Kafka listener is there: expected ZooKeeper's address; a cluster is read with --bootstrap-server"
    if peer.service is Service.HTTP:
        return "an HTTP server is there: expected ZooKeeper's client port"
    return None


# The state source of a running cluster, read through its admin API (aclog.snapshots.image).


_RESPONSE_SECONDS = 120.0
"""How long a response with all ACLs may take: a broker needs a second or two for a hundred thousand."""

_HINTS = {
    error_codes.CLUSTER_AUTHORIZATION_FAILED: "the user of --command-config needs DESCRIBE on the cluster",
    error_codes.SECURITY_DISABLED: "a cluster without authorizer.class.name has no ACLs",
}


@define(eq=False)
class AdminSource:
    """ACLs without ids and SCRAM users without keys, of any cluster that speaks Kafka's protocol; no history."""

    servers: tuple[HostPort, ...]
    security: ClientSecurity
    notify: Notify
    command_config: str | None = None
    """The file that `security` comes from."""
    max_age: float | None = None
    """The longest read of a state, in seconds; a slower one is refused."""
    filters: tuple[AclBindingFilter, ...] = field(default=(), init=False)
    """The returned states have only the ACLs that match one of these, and no users; all of both if it is empty."""
    _notified: set[str] = field(factory=set, init=False)
    _read: tuple[str, float] | None = field(default=None, init=False)
    """The broker of the newest state, and the time of the request (aclog.metalog.primitives.elapsed_seconds)."""
    _closed: bool = field(default=False, init=False)

    log: None = field(default=None, init=False)
    """None: there is no log to follow."""

    @property
    def name(self) -> str:
        """The servers that were given."""
        return ",".join(map(str, self.servers))

    @property
    def change_place(self) -> ChangePlace:
        """These servers."""
        return ChangePlace(bootstrap_server=self.name, command_config=self.command_config)

    def image(self) -> Image:
        """Return the current state, requested on each call.

        Raises:
            StaleError: the response took longer than `max_age`.
            MetadataError: no server responds, or one refuses, with the missing permission; or the source is closed.

        """
        if self._closed:
            raise LogError(f"{self.name}: closed")
        rules, users = run(self._request())
        if self.max_age is not None:
            check_age(self.freshness(), self.max_age)
        image = Image(acls=image_of(rules), scram=ScramImage(keyless=users))
        if next(range_hosts(image.acls), None) is None:
            return image  # every Kafka decides alike
        controllers = ranges_concern_controllers(image.acls)
        levels = run(live_levels(self.servers, self.security, controllers=controllers))
        return evolve(image, live_levels=levels.brokers, live_controllers=levels.controllers)

    def topic_names(self) -> list[str]:
        """Return the topics that the login may describe, requested on each call. Raises as `image`."""

        async def ask() -> list[str]:
            async with await connect_to_first(self.servers, self.security, Role.BROKER) as connection:
                return await topic_names(connection)

        return run(ask())

    def cluster_settings(self) -> ClusterSettings:
        """Return the authorizer settings of the brokers, read on each call. Raises as `image`."""
        return run(broker_settings(self.servers, self.security))

    def image_at(self, moment: Moment) -> Image:
        """Raise ConfigError: an admin API has no history."""
        raise ConfigError(
            f"{self.name}: as of {moment_text(moment)}: an admin API has the newest state only; "
            "`aclog sync` records its changes from now on, `aclog mirror` copies a quorum's log"
        )

    def freshness(self) -> Freshness | None:
        """Return when the newest state was requested; None before the first."""
        if self._read is None:
            return None
        server, requested_at = self._read
        seconds = max(elapsed_seconds() - requested_at, 0.0)
        time = current_time_ms() - round(1000 * seconds)
        return Freshness(seconds=seconds, time=time, server=server, followed=False)

    def close(self) -> None:
        """Refuse further requests; no connection is kept."""
        self._closed = True

    async def _request(self) -> tuple[set[bytes], tuple[UserCredentials, ...]]:
        async with await connect_to_first(self.servers, self.security, Role.BROKER) as connection:
            requested_at = elapsed_seconds()
            contents = await _contents(connection, self.filters)
            users = () if self.filters else await self._users(connection)
            self._read = str(connection.address), requested_at
            return contents, users

    async def _users(self, connection: Connection) -> tuple[UserCredentials, ...]:
        try:
            return await describe_scram_users(connection)
        except (RequestError, ConfigError) as error:
            # The ACLs are useful without the users, which brokers before 2.7 cannot describe.
            self._notify_once(f"SCRAM users are left out: {error}")
            return ()

    def _notify_once(self, text: str) -> None:
        if text not in self._notified:
            self._notified.add(text)
            self.notify(text)


async def describe_cluster_id(connection: Connection) -> str:
    """Return the id of the broker's cluster. Raises as aclog.client.requests.broker_cluster_id."""
    try:
        return await broker_cluster_id(connection)
    except RequestError as error:
        raise _explained(connection, "DescribeCluster", error) from None


async def describe_all(connection: Connection, known: Collection[str]) -> AclResponse:
    """Return the contents of all ACLs of the cluster (DescribeAcls; aclog.authorizer.acls_image.content_of).

    They are not decoded if the digest of the response is among `known`.

    Raises:
        RequestError: the broker has no authorizer or denies the request; with its code and the missing permission.
        UnreachableError: no response, or one of more than 256 MiB; DecodeError: a malformed response.
        ConfigError: the server is too old.

    """
    try:
        return await acl_response(connection, AclBindingFilter(), _RESPONSE_SECONDS, known)
    except RequestError as error:
        raise _explained(connection, "DescribeAcls", error) from None


async def _contents(connection: Connection, filters: Sequence[AclBindingFilter]) -> set[bytes]:
    """Return the ACLs that match a filter, or all without a filter, as image_of takes them.

    All are requested from a server that is too old for a filter. Raises as describe_all.
    """
    try:
        version_for(connection, api_keys.DESCRIBE_ACLS, [each.resource_type for each in filters])
    except ConfigError:
        filters = ()
    contents = set[bytes]()
    for each in filters or (AclBindingFilter(),):
        try:
            contents |= await acl_contents(connection, each, _RESPONSE_SECONDS)
        except RequestError as error:
            raise _explained(connection, "DescribeAcls", error) from None
    return contents


async def describe_scram_users(connection: Connection) -> tuple[UserCredentials, ...]:
    """Return all SCRAM users, without keys (DescribeUserScramCredentials). Raises as describe_all."""
    try:
        users = await describe_scram(connection)
    except RequestError as error:
        raise _explained(connection, "DescribeUserScramCredentials", error) from None
    return tuple(sorted(users, key=lambda each: each.user))


def _explained(connection: Connection, request: str, error: RequestError) -> RequestError:
    hint = _HINTS.get(error.code)
    return RequestError(error.code, f"{connection.address}: {request}: {error}{f' ({hint})' if hint else ''}")


# The state source of a running quorum, whose log is followed by Fetch (aclog.snapshots.image).


_KNOWN_SECONDS = 30.0
"""How long to wait for a leader with a known high-water mark."""
_READ_BYTES = 16 << 20


@define(eq=False)
class QuorumSource:
    """The log of a running quorum; each `image` continues from the one before."""

    controllers: tuple[HostPort, ...]
    security: ClientSecurity
    notify: Notify
    progress: Progress | None = None
    command_config: str | None = None
    """The file that `security` comes from."""
    max_age: float | None = None
    """The oldest state that is returned, in seconds."""
    _log: QuorumLog | None = field(default=None, init=False)
    _closed: bool = field(default=False, init=False)
    _newest: Recovered | None = field(default=None, init=False)

    @property
    def name(self) -> str:
        """The controllers that were given."""
        return ",".join(map(str, self.controllers))

    @property
    def change_place(self) -> ChangePlace:
        """These controllers."""
        return ChangePlace(bootstrap_controller=self.name, command_config=self.command_config)

    @property
    def log(self) -> QuorumLog:
        """The log, connected to on first use.

        Raises:
            MetadataError: no controller can be followed, or the source is closed.

        """
        if self._closed:
            raise LogError(f"{self.name}: closed")
        if self._log is None:
            options = ObserverOptions(wait_for_servers=False)
            log = QuorumLog(servers=self.controllers, security=self.security, options=options)
            try:
                log.wait_known(_KNOWN_SECONDS)
            except BaseException:
                log.close()
                raise
            self._log = log
            # Commands do not close their source: the fetcher thread must end before the interpreter is torn down.
            atexit.register(log.close)
        return self._log

    def image(self) -> Image:
        """Return the newest known committed state; `freshness` has its age.

        Raises:
            StaleError: it is older than `max_age`.
            MetadataError: the log cannot be followed or replayed, or the source is closed.

        """
        image = self._caught_up()
        if self.max_age is None:
            return image
        freshness = self.freshness()
        # The confirmation of the first replay: the age is that of the returned state.
        image = self._caught_up()
        check_age(freshness, self.max_age)
        return image

    def cluster_settings(self) -> ClusterSettings:
        """Return the controllers' settings for those brokers that are not fenced now.

        Read on each call. Raises as `image`.
        """
        registered = list(self._caught_up().cluster.brokers())
        alive = [broker.broker_id for broker in registered if not broker.fenced]
        brokers = alive or [broker.broker_id for broker in registered]
        return run(controller_settings(self.controllers, self.security, brokers))

    def gaps(self) -> tuple[Premise, ...]:
        """Return the gaps of the newest state: records of a newer Kafka."""
        return () if self._newest is None else newer_gaps(self._newest.applier.newer)

    def freshness(self) -> Freshness | None:
        """Return when the leader last answered; None before the first state."""
        return None if self._log is None else self._log.freshness()

    def _caught_up(self) -> Image:
        log = self.log
        newest = self._newest
        while newest is None or newest.applier.next_offset < log.high_watermark():
            # The leader may have deleted the next offset by retention: start again from its newest snapshot.
            if newest is None or newest.applier.next_offset < log.start_offset():
                self._newest = newest = self._recover(None)
            else:
                newest.applier.apply(log.read(newest.applier.next_offset, _READ_BYTES))
        if log.failure is not None:  # the log that was followed is lost: its last state is no longer valid
            raise log.failure.with_traceback(None)
        return newest.applier.image

    def image_at(self, moment: Moment) -> Image:
        """Return the state at a moment, as far back as the quorum's log reaches.

        Raises:
            StaleError: a time that a cluster which no longer answers has not confirmed.
            MetadataError: as `image`.

        """
        self._refuse_unconfirmed(moment)
        image = self._recover(moment).image
        if self.max_age is not None:
            check_age(self.freshness(), self.max_age)
        return image

    def close(self) -> None:
        """Close the connection; images remain valid. Idempotent."""
        self._closed = True
        if self._log is not None:
            self._log.close()
            atexit.unregister(self._log.close)  # a process may open many sources

    def _refuse_unconfirmed(self, moment: Moment) -> None:
        """Refuse a time after which a silent cluster may have changed: the state is unknown then."""
        freshness = self.freshness()
        if freshness is None or freshness.seconds < STALE_SECONDS or not isinstance(moment, datetime):
            return
        if milliseconds(moment) > freshness.time:
            raise StaleError(
                f"{freshness.server}: as of {moment_text(moment)}: the state is unknown: nothing was confirmed since "
                f"{utc_text(freshness.time)}{f': {freshness.problem}' if freshness.problem else ''}"
            )

    def _recover(self, moment: Moment | None) -> Recovered:
        newer = NewerKafka(strict=False)
        recovered = recover_log(self.log, self.log.checkpoints(), moment, newer=newer, progress=self.progress)
        for note in recovered.notes:
            self.notify(note)
        return recovered


# Which Kafka each node of a running cluster runs, brokers and controllers, and whether that makes decisions differ.


@frozen(kw_only=True)
class ClusterKafka:
    """The software of a cluster's nodes. Levels are those by which a node decides (`deciding_level`), by its id."""

    brokers: Mapping[int, int | None] = field(factory=dict)
    """None for one that did not answer."""
    controllers: Mapping[int, int | None] = field(factory=dict)
    problem: str = ""
    """Why nodes are missing, as a clause; empty if all are there."""
    deciding: DecidingKafka | None = None
    """The authorizer of the current ACLs; None if they could not be read."""

    @property
    def nodes(self) -> NodeKafkas:
        """The nodes by version."""
        return NodeKafkas.of_levels(self.brokers, self.controllers)

    @property
    def decides_alike(self) -> bool | None:
        """Whether all nodes decide every request alike; None if unknown."""
        if self.deciding is None:
            is_one = self.nodes.only is not None and self.brokers and self.controllers and not self.problem
            return True if is_one else None
        if self.deciding.is_known:
            return True
        return False if self.deciding.nodes.difference() else None

    def text(self) -> str:
        """Return the versions of the nodes, in a line; empty if none is known."""
        nodes = self.nodes
        if nodes.only is not None:
            what = "nodes" if self.brokers and self.controllers else "brokers" if self.brokers else "controllers"
            versions = f"all {what} run {nodes.only}"
        else:
            runs = (f"{ids} {ids.verb('runs', 'run')} {each}" for each, ids in nodes.of_generation.items())
            versions = nodes.difference() or "".join(runs)
        text = "; ".join(filter(None, (versions, nodes.gap(), self.problem)))
        if self.decides_alike and nodes.only is None:
            why = "no ACL with a CIDR range as host makes nodes decide differently"
            return f"{text or 'no node has registered its Kafka version'}; this does not matter, as {why}"
        return text

    def warning(self) -> str | None:
        """Return as a sentence that nodes decide requests differently, or may; None if they do not."""
        if self.decides_alike:
            return None
        if self.deciding is None:
            difference = self.nodes.difference()
            return (
                f"{difference}; whether they decide alike is unknown, as the ACLs were not read" if difference else None
            )
        what = "decide the same request differently" if self.decides_alike is False else "may decide differently"
        return f"{self.deciding.reason()}, and {ranges_text(self.deciding.hosts)}: nodes {what}"


def cluster_kafka(source: AdminSource | QuorumSource, image: Image | None = None) -> ClusterKafka:
    """Return which Kafka the nodes of a cluster run.

    Brokers are queried, and with --bootstrap-server also the controllers that they name. With --bootstrap-controller
    the controllers are queried; the versions of brokers are those of their registrations. `image`: the state of the
    source, if it was read already.

    Raises:
        MetadataError: no server responds.

    """
    if isinstance(source, AdminSource):
        return _over_brokers(source, image)
    return _over_controllers(source, image)


def of_registrations(image: Image) -> ClusterKafka:
    """Return which Kafka the nodes of a log run, as they registered."""
    return ClusterKafka(
        brokers=registered_levels(image.cluster),
        controllers=registered_controllers(image),
        deciding=deciding_kafka(image, None),
    )


def _over_brokers(source: AdminSource, image: Image | None) -> ClusterKafka:
    levels = run(live_levels(source.servers, source.security, controllers=True))
    problem = "the brokers do not list the controllers" if levels.controllers is None else ""
    kafka = ClusterKafka(brokers=levels.brokers, controllers=levels.controllers or {}, problem=problem)
    if kafka.decides_alike:
        return kafka  # for any ACLs
    try:
        image = source.image() if image is None else image
    except MetadataError as error:
        return evolve(kafka, problem=_and(problem, f"the ACLs cannot be read: {error}"))
    return evolve(kafka, deciding=_deciding(image, levels))


def _over_controllers(source: QuorumSource, image: Image | None) -> ClusterKafka:
    controllers = run(live_controller_levels(source.controllers, source.security))
    problem = "the controllers do not list each other" if controllers is None else ""
    try:
        image = source.image() if image is None else image
    except MetadataError as error:
        what = f"the versions of the brokers are unknown, since their registrations cannot be read: {error}"
        return ClusterKafka(controllers=controllers or {}, problem=_and(problem, what))
    levels = LiveLevels(brokers=registered_levels(image.cluster), controllers=controllers)
    return ClusterKafka(
        brokers=levels.brokers, controllers=controllers or {}, problem=problem, deciding=_deciding(image, levels)
    )


def _deciding(image: Image, levels: LiveLevels) -> DecidingKafka:
    live = evolve(image, live_levels=levels.brokers, live_controllers=levels.controllers)
    return deciding_kafka(live, None)


def _and(first: str, second: str) -> str:
    return f"{first}; {second}" if first else second


def level_text(level: int | None) -> str:
    """Return the version of a node by its level, such as `Kafka 4.4`."""
    return "its Kafka version is unknown" if level is None else str(generation_of_level(level))
