"""A cluster as a target: any Kafka, or nodes of ours, by its brokers or controllers."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from itertools import groupby
from typing import Any, TypeVar

from attrs import field

from aclog.authorizer.acl import AclBindingFilter, ResourcePattern, StandardAcl, acl_text, resource_of
from aclog.authorizer.acls_image import acl_of_content, content_of
from aclog.authorizer.codes import WILDCARD, PatternType
from aclog.authorizer.control import filter_value, refusal, unknown_field
from aclog.authorizer.interface import AclDeleteResult
from aclog.authorizer.settings import (
    ALLOW_EVERYONE_CONFIG,
    SUPER_USERS_CONFIG,
    Settings,
    parse_allow_everyone,
    parse_super_users,
)
from aclog.authorizer.standard import KNOWN_AUTHORIZERS, READ_CONFIGS, ClusterSettings, NodeSettings, Premises
from aclog.client.connection import Connection, Role, connect
from aclog.client.errors import UnreachableError
from aclog.client.requests import (
    BROKERS,
    CONTROLLERS,
    ClusterDescription,
    ClusterNode,
    QuorumDescription,
    acl_contents,
    cluster_of_brokers,
    create_acls,
    delete_acls,
    describe_cluster,
    describe_features,
    describe_quorum,
    node_configs,
)
from aclog.config.node_config import ClientSecurity, HostPort
from aclog.metalog.errors import ConfigError, LogError, MetadataError, StaleError, plural
from aclog.metalog.primitives import elapsed_seconds
from aclog.metalog.values import define, frozen
from aclog.planning.plan import ApplyNote, Batching, Completion, PlaceState, RefusedError, Step
from aclog.protocol import api_keys, error_codes
from aclog.protocol.headers import RequestError
from aclog.snapshots.deciding_kafka import DecidingKafka, kafka_of_levels, kafka_with, rules_concern_controllers
from aclog.snapshots.image import Image
from aclog.sources.live import QuorumSource, connect_to_first, live_levels, refusal_text
from aclog.targets.removal_filters import RemovalFilter, removal_filters
from aclog.terminal.output import warn

# The nodes of one cluster, each with a connection of its own.


_HINTS: Mapping[int, str] = {
    error_codes.SECURITY_DISABLED: "a cluster without authorizer.class.name has no ACLs",
}

_LEADERLESS = frozenset({error_codes.NOT_LEADER_OR_FOLLOWER, error_codes.REQUEST_TIMED_OUT, error_codes.NOT_CONTROLLER})
"""Errors of a quorum that is electing a leader."""


@define(eq=False)
class ClusterNodes:
    """Brokers or controllers, found by some of their addresses; owned by one event loop.

    A connection that was lost is opened again by the next call.
    """

    servers: tuple[HostPort, ...]
    security: ClientSecurity
    role: Role
    notify: Callable[[str], None]
    _cluster_id: str | None = field(default=None, init=False)
    """The cluster id of the first node that responded; all others must have the same. None before that."""
    _tells_no_mark: bool = field(default=False, init=False)
    _first: Connection | None = field(default=None, init=False)
    _connections: dict[HostPort, Connection] = field(factory=dict, init=False)

    @property
    def name(self) -> str:
        """The servers that were given."""
        return ",".join(map(str, self.servers))

    async def first(self) -> Connection:
        """Return a connection to the first of the given servers that responds.

        Raises:
            LogError: none responds, one is of the other role, or of another cluster than before.
            RequestError: it does not name its cluster to this login.

        """
        if self._first is None or self._first.failure is not None:
            self._first = await self._responding()
        return self._first

    async def _responding(self) -> Connection:
        for server in self.servers[:-1]:
            try:
                return await self._to(server)
            except UnreachableError:
                continue
        return await self._to(self.servers[-1])

    async def _to(self, server: HostPort) -> Connection:
        return await self._of_this_cluster(await connect_to_first((server,), self.security, self.role))

    async def at(self, address: HostPort) -> Connection:
        """Return a connection to this node. Raises as aclog.client.connection.connect, and as `first`."""
        connection = self._connections.get(address)
        if connection is None or connection.failure is not None:
            connection = self._connections[address] = await self._of_this_cluster(await connect(address, self.security))
        return connection

    async def _of_this_cluster(self, connection: Connection) -> Connection:
        """Return the connection if it leads to the same cluster: a name may resolve to another one meanwhile."""
        try:
            self._check_cluster((await self._describe(connection)).cluster_id, connection.address)
        except BaseException:
            await connection.close()
            raise
        return connection

    def _check_cluster(self, cluster_id: str, address: HostPort) -> None:
        if self._cluster_id not in {None, cluster_id}:
            expected = f"expected one of cluster {self._cluster_id}, as the others"
            raise LogError(f"{address}: a node of cluster {cluster_id}: {expected}")
        self._cluster_id = cluster_id

    async def description(self) -> ClusterDescription:
        """Return the cluster's id and its nodes of this role, fenced ones included. Raises RequestError, LogError."""
        return await self._describe(await self.first())

    async def _describe(self, connection: Connection) -> ClusterDescription:
        try:
            if self.role is Role.BROKER and api_keys.DESCRIBE_CLUSTER not in connection.apis:
                return await cluster_of_brokers(connection)
            return await describe_cluster(connection, BROKERS if self.role is Role.BROKER else CONTROLLERS)
        except RequestError as error:
            # Controllers require a stronger permission for it than brokers do (ControllerApis.handleDescribeCluster).
            right = "DESCRIBE" if self.role is Role.BROKER else "ALTER"
            raise explained(connection, "DescribeCluster", error, right) from None

    async def serving(self) -> tuple[tuple[ClusterNode, Connection], ...]:
        """Return the nodes that are not fenced, each with a connection; of controllers, those that respond.

        No node fences a dead controller. So most of them must respond: no minority has newer records.

        Raises:
            UnreachableError: a broker does not respond, or half of the controllers do not.
            MetadataError: as `description` and `at`.

        """
        nodes = [node for node in (await self.description()).nodes if not node.fenced]
        if not nodes:
            raise UnreachableError(f"{self.name}: the cluster names no {self.role.name.lower()} that is not fenced")
        if len(nodes) == 1:
            return ((nodes[0], await self.first()),)  # by the configured address: it may be the only route
        connections = await asyncio.gather(*(self.at(node.address) for node in nodes), return_exceptions=True)
        serving, failures = [], []
        for node, connection in zip(nodes, connections, strict=True):
            if isinstance(connection, BaseException):
                failures.append(self._unreachable(node, connection))
            else:
                serving.append((node, connection))
        needed = len(nodes) if self.role is Role.BROKER else len(nodes) // 2 + 1
        if len(serving) < needed:
            raise failures[0]
        return tuple(serving)

    def _unreachable(self, node: ClusterNode, error: BaseException) -> BaseException:
        if not isinstance(error, UnreachableError):
            return error
        return UnreachableError(
            f"{error} (node {node.node_id} of {self.name}: the responses of all nodes are compared, so "
            f"{'each broker that serves' if self.role is Role.BROKER else 'most of them'} must be reachable from here)"
        )

    async def writing(self) -> Connection:
        """Return a connection to a node that takes changes: any broker, or the active controller. Raises as `at`."""
        if self.role is Role.BROKER:
            return await self.first()
        description = await self.description()
        active = next((node for node in description.nodes if node.node_id == description.controller_id), None)
        if active is None:
            raise UnreachableError(f"{self.name}: no controller is active now: try again in a few seconds")
        return await (self.first() if len(description.nodes) == 1 else self.at(active.address))

    async def quorum(self) -> QuorumDescription | None:
        """Return the quorum as its leader sees it; None if the cluster has none, or this login may not describe it.

        A login that may describe ACLs in Kafka may also describe the quorum; a hosted service may serve only one of
        the two requests.

        Raises:
            RequestError, LogError: no answer now; UnreachableError if a retry may help.

        """
        connection = await self.writing()
        if api_keys.DESCRIBE_QUORUM not in connection.apis or self._tells_no_mark:
            return None
        try:
            return await describe_quorum(connection)
        except RequestError as error:
            if error.code in {error_codes.CLUSTER_AUTHORIZATION_FAILED, error_codes.UNSUPPORTED_VERSION}:
                self._tells_no_mark = True
                self.notify(
                    f"{connection.address}: does not return the quorum's high-water mark, so its nodes are only "
                    f"compared with one another: {error}"
                )
                return None
            failure = explained(connection, "DescribeQuorum", error, "DESCRIBE")
            raise UnreachableError(str(failure)) if error.code in _LEADERLESS else failure from None

    async def close(self) -> None:
        """Close all connections."""
        connections = [*self._connections.values(), *([] if self._first is None else [self._first])]
        await asyncio.gather(*(connection.close() for connection in connections), return_exceptions=True)


def explained(connection: Connection, request: str, error: MetadataError, right: str) -> RequestError:
    """Return the error of a request that a server refused, with the server, and with the right that it needs."""
    code = error.code if isinstance(error, RequestError) else -1
    if code == error_codes.CLUSTER_AUTHORIZATION_FAILED:  # a Kafka's own text is the memory address of its request
        what = f"not authorized: the user of --command-config needs {right} on the cluster"
    else:
        hint = _HINTS.get(code)
        what = f"{error}{f' ({hint})' if hint else ''}"
    return RequestError(code, f"{connection.address}: {request}: {what}")


# The authorizer settings that a cluster's nodes return (DescribeConfigs).


_T = TypeVar("_T")

_NOT_ASKED = "controllers do not return settings of brokers; use --bootstrap-server"


async def settings_of(nodes: ClusterNodes) -> ClusterSettings:
    """Return the settings of all serving brokers.

    A node of ours returns all values. Kafka leaves out a property that is not set, and hides the value of one that is,
    since only its authorizer has a definition of the property. So allow.everyone.if.no.acl.found is known where it is
    not set, as nearly everywhere. Controllers are not queried: clients depend on the brokers' settings.

    Raises:
        MetadataError: a broker does not respond.

    """
    if nodes.role is not Role.BROKER:
        return ClusterSettings(nodes=(NodeSettings(node="the brokers", problem=_NOT_ASKED),), serves_acls=True)
    settings = []
    for node, connection in await nodes.serving():
        name = f"broker {node.node_id}"
        try:
            configs = await node_configs(connection, node.node_id, READ_CONFIGS)
        except RequestError as error:
            settings.append(NodeSettings(node=name, problem=refusal_text(error, "DESCRIBE_CONFIGS")))
        else:
            settings.append(NodeSettings(node=name, values={key: config.value for key, config in configs.items()}))
    return ClusterSettings(nodes=tuple(settings), serves_acls=True)


def super_users_of(settings: ClusterSettings) -> frozenset[str] | None:
    """Return super.users as all nodes show it; None if one does not, or shows others."""
    return _alike(settings, SUPER_USERS_CONFIG, parse_super_users)


def allow_everyone_of(settings: ClusterSettings) -> bool | None:
    """Return allow.everyone.if.no.acl.found as all nodes show it; None if one does not, or shows another."""
    return _alike(settings, ALLOW_EVERYONE_CONFIG, parse_allow_everyone)


def _alike(settings: ClusterSettings, name: str, parse: Callable[[str], _T]) -> _T | None:
    values: set[_T | None] = set()
    for node in settings.nodes:
        value = node.values.get(name, "")
        if node.authorizer not in KNOWN_AUTHORIZERS or value is None:  # the defaults of other authorizers are unknown
            return None
        try:
            values.add(parse(value))
        except MetadataError:  # a value that this Kafka's authorizer reads in another way
            return None
    return values.pop() if len(values) == 1 else None


# Reads all ACLs of a cluster from every serving node, so that a stale node is detected.


PATIENCE_S = 20.0
"""How long nodes may take to agree: longer than a cluster needs to fence a broker that died (9 s by default)."""
RESPONSE_S = 120.0
"""How long a response with all ACLs may take: a broker needs a second or two for a hundred thousand."""
_PAUSE_S = 0.1
_AT_ONCE = 4
"""Nodes that are read at the same time: a hundred brokers with a hundred thousand rules each must not fill memory."""
_UNKNOWN_OFFSET = -1
_WITH_FEATURES = 3
"""The first version of ApiVersions that returns a broker's offset (KIP-584)."""


@frozen(kw_only=True)
class ClusterState:
    """The ACLs that all serving nodes returned."""

    contents: set[bytes]
    end_offset: int | None
    """The quorum's high-water mark when they were read; None if there is no quorum."""


@define(eq=False)
class ReplicaComparison:
    """One read: rounds over all nodes, until they agree or the time is up.

    While another client writes, no two nodes may ever return the same set. So a rule that differs in one round must
    agree in a later one, even if others differ there: a rule that differs in all rounds is one that a node misses.
    """

    nodes: ClusterNodes
    patience: float = PATIENCE_S
    _disputed: set[bytes] | None = field(default=None, init=False)

    async def read(self) -> ClusterState:
        """Return the ACLs of the cluster.

        Raises:
            StaleError: a node is behind the quorum's high-water mark, or nodes answer differently, for too long.
            UnreachableError: a serving node does not respond.
            RequestError: one refuses; with the right that is missing.
            MetadataError: as aclog.client.connection.connect and acl_contents.

        """
        until = elapsed_seconds() + self.patience
        while True:
            try:
                return await self._round(until)
            except (StaleError, UnreachableError):
                if elapsed_seconds() > until:
                    raise
            await asyncio.sleep(_PAUSE_S)

    async def _round(self, until: float) -> ClusterState:
        quorum = await self.nodes.quorum()
        mark = None if quorum is None else quorum.high_watermark
        if mark is not None and mark < 0:
            raise StaleError(f"{self.nodes.name}: the quorum has a new leader without a high-water mark yet: try again")
        serving = await self.nodes.serving()
        slots, distinct = asyncio.Semaphore(_AT_ONCE), list[set[bytes]]()

        async def contents_of(node: ClusterNode, connection: Connection) -> set[bytes]:
            """Return the ACLs of a node: the same object as another node's, if they are equal."""
            async with slots:
                answer = await self._answer(node, connection, mark, until)
                if answer not in distinct:
                    distinct.append(answer)
                return distinct[distinct.index(answer)]

        answers = await asyncio.gather(*(contents_of(*each) for each in serving), return_exceptions=True)
        replies: list[set[bytes]] = []
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            replies.append(answer)
        self._compare([node for node, _ in serving], replies)
        return ClusterState(contents=replies[0], end_offset=mark)

    async def _answer(self, node: ClusterNode, connection: Connection, mark: int | None, until: float) -> set[bytes]:
        if mark is not None and self.nodes.role is Role.BROKER:
            await caught_up(connection, mark, until, f"broker {node.node_id}")
        try:
            return await acl_contents(connection, AclBindingFilter(), RESPONSE_S)
        except RequestError as error:
            raise explained(connection, "DescribeAcls", error, "DESCRIBE") from None

    def _compare(self, nodes: Sequence[ClusterNode], answers: Sequence[set[bytes]]) -> None:
        first = answers[0]
        differing = set().union(*(first ^ other for other in answers[1:] if other is not first))
        self._disputed = differing if self._disputed is None else self._disputed & differing
        if self._disputed:
            raise StaleError(f"{self.nodes.name}: {_difference(nodes, answers, self._disputed)}")


async def caught_up(connection: Connection, mark: int, until: float, name: str = "the broker") -> None:
    """Wait until a broker has applied the log up to the high-water mark, by the epoch of its finalized features.

    A controller returns it only when its features changed, and a broker before 2.7 never: for those this returns at
    once.

    Raises:
        StaleError: it is behind at the moment `until`; with the `name` of the broker.
        UnreachableError, DecodeError: no response, or one that cannot be decoded.

    """
    served = connection.apis.get(api_keys.API_VERSIONS)
    if served is None or served.max_version < _WITH_FEATURES:
        return
    while True:
        applied = (await describe_features(connection)).finalized_epoch
        if applied == _UNKNOWN_OFFSET or applied >= mark - 1:
            return
        if elapsed_seconds() > until:
            raise StaleError(
                f"{connection.address}: {name} is behind: it has applied the metadata log up to offset "
                f"{applied}, and {mark - 1} is committed: is it healthy, and does it reach the controllers?"
            )
        await asyncio.sleep(_PAUSE_S / 2)


def _difference(nodes: Sequence[ClusterNode], answers: Sequence[set[bytes]], disputed: set[bytes]) -> str:
    """Return the number of rules per node, and one rule that only some have."""
    counts = ", ".join(
        f"node {node.node_id} at {node.address} {len(answer):,}" for node, answer in zip(nodes, answers, strict=True)
    )
    example = min(disputed)
    having = [str(node.node_id) for node, answer in zip(nodes, answers, strict=True) if example in answer]
    return (
        f"the nodes answer with different rules, and one of them may be behind or just started: rules: {counts}; "
        f"{len(disputed):,} differ, such as {acl_text(acl_of_content(example))}, which only node "
        f"{', '.join(having)} has: wait until they agree"
    )


# Filters of requests about specific ACLs.


def exactly(acl: StandardAcl) -> AclBindingFilter:
    """Return the filter that matches this ACL, and no other, present or future.

    Raises:
        ConfigError: the ACL has ANY, MATCH or an unknown code, with which a filter would match others.

    """
    wide = filter_value(acl) or (f"{unknown_field(acl)} is unknown" if unknown_field(acl) else None)
    if wide is not None:
        raise ConfigError(f"{acl!r}: {wide}: expected one rule, not a filter that may match several")
    return AclBindingFilter.of(acl)


def covering(acls: Sequence[StandardAcl]) -> AclBindingFilter:
    """Return a filter that matches all of these ACLs, and of others as few as a filter can: only for reading."""
    first = exactly(acls[0])
    alike = {
        name: getattr(first, name)
        for name in (
            "resource_type",
            "resource_name",
            "pattern_type",
            "principal",
            "host",
            "operation",
            "permission_type",
        )
        if all(getattr(acl, name) == getattr(first, name) for acl in acls)
    }
    return AclBindingFilter(**alike)


_MOST_READS = 16


def _covering_few(acls: Sequence[StandardAcl]) -> list[AclBindingFilter]:
    """Return filters that match all of these ACLs: of a few principals or resources one each, else a wide one.

    A cluster compares a filter with all of its ACLs much faster than it sends those that a wide one matches.
    """
    for part in ("principal", "resource_name"):
        groups: dict[str, list[StandardAcl]] = {}
        for acl in acls:
            groups.setdefault(getattr(acl, part), []).append(acl)
        if len(groups) <= _MOST_READS:
            return [covering(group) for group in groups.values()]
    return [covering(acls)]


# Parts of a change that may be sent in one request to a server that processes them in an order of its own.
#
# Kafka's controller writes the ACLs of CreateAcls in the order of the request, but removes those of DeleteAcls in the
# order of a HashSet (AclControlManager); a broker with ZooKeeper goes through the resources of either in any order.


def independent_runs(acls: Iterable[StandardAcl]) -> list[list[StandardAcl]]:
    """Return the ACLs in runs: within a run no two cover a name in common, and those that do keep their order.

    So the order within a run is not observable.
    """
    runs: list[list[StandardAcl]] = []
    last: dict[ResourcePattern, int] = {}
    for acl in acls:
        pattern = resource_of(acl)
        run = max((number + 1 for other, number in last.items() if _meet(pattern, other)), default=0)
        if run == len(runs):
            runs.append([])
        runs[run].append(acl)
        last[pattern] = run
    return runs


def _meet(one: ResourcePattern, other: ResourcePattern) -> bool:
    """Return whether the two patterns cover a name in common; True if they may."""
    if one.resource_type != other.resource_type:
        return False
    prefixed, other_prefixed = (each.pattern_type == PatternType.PREFIXED for each in (one, other))
    if prefixed and other_prefixed:
        return one.name.startswith(other.name) or other.name.startswith(one.name)
    if prefixed:
        return other.name == WILDCARD or other.name.startswith(one.name)
    if other_prefixed:
        return one.name == WILDCARD or one.name.startswith(other.name)
    return WILDCARD in (one.name, other.name) or one.name == other.name


# Applies the steps of a plan to a cluster, in requests that hold its controller for a short time each.


MOST_FILTERS = 250
"""The most filters of a DeleteAcls request."""
_HELD_S = 0.5
"""How long one DeleteAcls request may hold a Kafka's controller, which compares each filter with every ACL, and serves
no other request meanwhile: brokers whose heartbeats wait for 9 s are fenced."""
_FIRST_COMPARISONS = 800_000
"""Filters times ACLs of the first request: half a second at the slowest controller that was measured."""
_CHANGE_S = 60.0
"""How long a change may take until it is committed: as long as brokers retry at the controllers."""


@define(eq=False)
class ClusterChanges:
    """Adds and removes ACLs of one stage; owned by a ServerPlace."""

    _nodes: ClusterNodes
    present: set[bytes] = field(factory=set, init=False)
    """The contents of the cluster's ACLs, as far as known: those that were read, and added since."""
    _closed: bool | None = field(default=None, init=False)
    _removed_at_once: int = field(default=0, init=False)
    """How many filters the next DeleteAcls request has; 0 before the first."""

    async def add(self, acls: Sequence[StandardAcl]) -> None:
        """Add ACLs, and wait until they are committed. Raises as ServerPlace.write."""
        connection = await self._nodes.writing()
        in_order = api_keys.DESCRIBE_QUORUM in connection.apis or await self.closed_by_default()
        self.present.update(map(content_of, acls))
        for run in [acls] if in_order else independent_runs(acls):
            results = await create_acls(connection, run, _CHANGE_S)
            _check_results(connection, "CreateAcls", run, [each.error for each in results])

    async def remove(self, acls: Sequence[StandardAcl]) -> None:
        """Remove exactly these ACLs, and wait until that is committed. Raises as ServerPlace.write."""
        for run in [acls] if await self.closed_by_default() else independent_runs(acls):
            await self._remove_in_any_order(run)

    async def closed_by_default(self) -> bool:
        """Return whether no state within a stage denies what both ends allow, in any order of its ACLs.

        That is so unless the first ACL on a resource closes it to everyone (allow.everyone.if.no.acl.found).
        """
        if self._closed is None:
            self._closed = allow_everyone_of(await settings_of(self._nodes)) is False
        return self._closed

    async def _remove_in_any_order(self, acls: Sequence[StandardAcl]) -> None:
        connection, done = await self._nodes.writing(), 0
        for acl in acls:
            exactly(acl)  # raises ConfigError: no filter names it
        filters = removal_filters(acls, self.present)
        while done < len(filters):
            most = self._removed_at_once or max(1, _FIRST_COMPARISONS // max(len(self.present), 1))
            some = filters[done : done + most]
            begin = elapsed_seconds()
            results = await delete_acls(connection, [each.filter for each in some], _CHANGE_S)
            seconds = elapsed_seconds() - begin
            firsts = [each.acls[0] for each in some]
            # First what is to be undone: a filter that was refused does not keep the others from removing.
            await self._restore_others(connection, some, results)
            _check_results(connection, "DeleteAcls", firsts, [each.error for each in results])
            self.present.difference_update(content_of(acl) for each in some for acl in each.acls)
            # Never more than twice as many: the first ones may have been quick because the controller was idle.
            fitting = int(len(some) * _HELD_S / max(seconds, 0.001))
            self._removed_at_once = max(1, min(fitting, 2 * most, MOST_FILTERS))
            done += len(some)

    async def _restore_others(
        self, connection: Connection, filters: Sequence[RemovalFilter], results: Sequence[AclDeleteResult]
    ) -> None:
        """Add again what the filters removed besides: ACLs that another writer added since the cluster was read.

        Raises:
            RefusedError: there are some.

        """
        targets = {acl for each in filters for acl in each.acls}
        others = list(dict.fromkeys(rule.acl for each in results for rule in each.deleted if rule.acl not in targets))
        if not others:
            return
        restored = await create_acls(connection, others, _CHANGE_S)
        _check_results(connection, "CreateAcls", others, [each.error for each in restored])
        raise RefusedError(
            f"{self._nodes.name}: another writer added {acl_text(others[0])} since the ACLs were read, and a filter "
            f"removed it: {plural(len(others), 'ACL')} added again"
        )


def _check_results(
    connection: Connection, request: str, acls: Sequence[StandardAcl], errors: Sequence[MetadataError | None]
) -> None:
    """Raise the first error of a request's results, with its ACL."""
    refused = [(acl, error) for acl, error in zip(acls, errors, strict=True) if error is not None]
    if not refused:
        return
    acl, error = refused[0]
    failure = explained(connection, request, error, "ALTER")
    others = f" ({len(refused):,} of the request's {len(acls):,} rules were refused)" if len(acls) > 1 else ""
    raise RequestError(failure.code, f"{failure}: {acl_text(acl)}{others}")


# A cluster as a target: any Kafka, or nodes of ours, by its brokers or its controllers.


MOST_ADDED = 2000
"""ACLs of one CreateAcls request: Kafka's controllers take 10,000."""
MOST_REMOVED = 250
"""Filters by which ACLs are deleted before the cluster is checked for them."""
_RETRY_PAUSE_S = 0.02


@contextmanager
def open_server_place(
    servers: Sequence[HostPort], security: ClientSecurity, role: Role, notify: Callable[[str], None]
) -> Iterator["ServerPlace"]:
    """Open a cluster by the addresses of some of its brokers or controllers; `notify` gets a text on missing answers.

    Raises:
        MetadataError: no server responds, or one is of the other role.

    """
    with asyncio.Runner() as runner:
        nodes = ClusterNodes(tuple(servers), security, role, notify)
        try:
            runner.run(nodes.first())
            yield ServerPlace(runner, nodes)
        finally:
            runner.run(nodes.close())


@define(eq=False)
class ServerPlace:
    """An open cluster, owned by one command (aclog.planning.plan.WritablePlace)."""

    _runner: asyncio.Runner
    _nodes: ClusterNodes
    patience: float = PATIENCE_S
    """How long, in seconds, its nodes may take to agree, and to show a write."""
    _written: dict[StandardAcl, bool] = field(factory=dict, init=False)
    """The last write, and whether it is visible since."""
    _settings: ClusterSettings | None = field(default=None, init=False)
    """The settings that the brokers returned last."""
    _changes: ClusterChanges = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._changes = ClusterChanges(self._nodes)

    @property
    def name(self) -> str:
        """The servers that were given."""
        return self._nodes.name

    @property
    def batching(self) -> Batching:
        """One ACL: a Kafka publishes each record of a request by itself."""
        return Batching.RULE

    def identity(self) -> str | None:
        """Return the cluster id. Raises as WritablePlace.identity."""
        return self._run(self._nodes.description()).cluster_id or None

    def fingerprint(self, end_offset: int) -> str | None:  # noqa: ARG002  # as the protocol has it
        """Return None: a cluster has an identity."""
        return None

    def premises(self, properties: AbstractSet[str]) -> Premises:
        """Return the settings that brokers do not all return alike, as `settings` read them last.

        Raises as `settings`.

        """
        settings = self._settings or self._run(settings_of(self._nodes))
        values = {SUPER_USERS_CONFIG: super_users_of(settings), ALLOW_EVERYONE_CONFIG: allow_everyone_of(settings)}
        return settings.premises(properties | {name for name, value in values.items() if value is not None})

    def settings(self) -> Settings | None:
        """Return the settings if all brokers return the same allow.everyone.if.no.acl.found; None if it is unknown.

        Unknown super users count as none. Raises as WritablePlace.settings.
        """
        settings = self._settings = self._run(settings_of(self._nodes))
        allow_everyone = allow_everyone_of(settings)
        if allow_everyone is None:
            return None
        return Settings(super_users=super_users_of(settings) or frozenset(), allow_everyone=allow_everyone)

    def kafka(self, ranges: Collection[StandardAcl]) -> DecidingKafka:
        """Return the Kafka version from the nodes that decide, or from the controllers' log; any, if neither has it.

        Raises as WritablePlace.kafka.
        """
        if self._nodes.role is not Role.BROKER:
            return kafka_with(self._registered(), ranges)
        controllers = rules_concern_controllers(ranges)
        live = self._run(live_levels(self._nodes.servers, self._nodes.security, controllers=controllers))
        levels = (live.controllers or {}) if controllers else None
        return kafka_of_levels(live.brokers, (acl.host for acl in ranges), levels)

    def _registered(self) -> Image:
        """Return the state that the quorum's log has; an empty one if this login may not follow it."""
        quorum = QuorumSource(self._nodes.servers, self._nodes.security, self._nodes.notify)
        try:
            return quorum.image()
        except MetadataError as error:
            self._nodes.notify(f"version of the brokers unknown: {error}")
            return Image.EMPTY
        finally:
            quorum.close()

    def read(self) -> PlaceState:
        """Return the ACLs of every serving node, once they agree and none is behind.

        Raises:
            StaleError: a node is behind, or the nodes return different ACLs, for longer than `patience`.
            MetadataError: one does not respond, or refuses.

        """
        state = self._run(ReplicaComparison(self._nodes, self.patience).read())
        self._changes.present = set(state.contents)
        return PlaceState(contents=state.contents, end_offset=state.end_offset)

    def note_begin(self, note: ApplyNote) -> None:
        """Do nothing: a cluster keeps no record of applies."""

    def note_done(self, note: ApplyNote) -> None:
        """Do nothing."""

    def noted(self, plan: str) -> ApplyNote | None:  # noqa: ARG002  # as the protocol has it
        """Return None: a cluster keeps no record of applies."""
        return None

    def was_noted(self, apply: str) -> bool:  # noqa: ARG002  # as the protocol has it
        """Return False."""
        return False

    def completion(self, apply: str) -> Completion | None:  # noqa: ARG002  # as the protocol has it
        """Return None: a cluster keeps no record of applies."""
        return None

    def check(self, steps: Sequence[Step]) -> None:
        """Raise ConfigError: a step that the cluster would refuse, or that no filter names exactly."""
        for step in steps:
            _check(step)

    def pieces(self, steps: Sequence[Step]) -> Iterator[Sequence[Step]]:
        """Yield runs of steps of one stage: no ALLOW is sent before every DENY is known to be in effect.

        Raises:
            ConfigError: as `check`, before the first run: nothing of such a plan is ever sent.

        """
        self.check(steps)
        grouped = any(not step.adds for step in steps) and self._run(self._changes.closed_by_default())
        return _pieces(self._grouped(steps) if grouped else [(step,) for step in steps])

    def _grouped(self, steps: Sequence[Step]) -> Iterator[tuple[Step, ...]]:
        """Yield the steps in order of their stages, those together that one filter removes."""
        for _, run in groupby(steps, key=lambda step: step.stage):
            staged = {step.acl: step for step in run}
            if next(iter(staged.values())).adds:
                yield from ((step,) for step in staged.values())
                continue
            for each in removal_filters(list(staged), self._changes.present):
                yield tuple(staged[acl] for acl in each.acls)

    def write(self, piece: Sequence[Step]) -> None:
        """Make these steps, all adds or all removes, and wait until they are committed.

        Raises:
            RequestError: the cluster refuses one; those before it in the piece may be made, and some after it.
            UnreachableError: no answer: it may be made, or not. MetadataError: as aclog.client.connection.connect.

        """
        self._written = {step.acl: step.adds for step in piece}
        acls = [step.acl for step in piece]
        try:
            self._run(self._changes.add(acls) if piece[0].adds else self._changes.remove(acls))
        except KeyboardInterrupt:
            warn(
                f"{self.name}: a request is in flight, and may still be applied: make a new plan from the current state"
            )
            raise

    def read_back(self, acls: Sequence[StandardAcl]) -> set[StandardAcl]:
        """Return which of these ACLs the last-used broker has, once it shows the last write.

        A broker forwards to the controller, and applies the change itself a moment later. If it does not show the write
        within `patience`, its current ACLs are returned. Raises as `read`.
        """
        written = {acl: self._written[acl] for acl in acls if acl in self._written}
        return self._run(self._read_back(acls, written)) if acls else set()

    async def _read_back(self, acls: Sequence[StandardAcl], written: dict[StandardAcl, bool]) -> set[StandardAcl]:
        until = elapsed_seconds() + self.patience
        while True:
            try:
                there = await self._there(acls, until)
            except UnreachableError:  # another of the servers may respond
                if elapsed_seconds() > until:
                    raise
            else:
                if all((acl in there) is present for acl, present in written.items()) or elapsed_seconds() > until:
                    return there
            await asyncio.sleep(_RETRY_PAUSE_S)

    async def _there(self, acls: Sequence[StandardAcl], until: float) -> set[StandardAcl]:
        connection = await self._nodes.first()
        quorum = await self._nodes.quorum() if self._nodes.role is Role.BROKER else None
        if quorum is not None:  # otherwise many rules would be listed in vain
            await caught_up(connection, quorum.high_watermark, until)
        try:
            contents = set[bytes]().union(
                *[await acl_contents(connection, each, RESPONSE_S) for each in _covering_few(acls)]
            )
        except RequestError as error:
            raise explained(connection, "DescribeAcls", error, "DESCRIBE") from None
        return {acl for acl in acls if content_of(acl) in contents}

    def _run(self, work: Coroutine[Any, Any, _T]) -> _T:
        return self._runner.run(work)


def _pieces(groups: Iterable[tuple[Step, ...]]) -> Iterator[Sequence[Step]]:
    """Yield runs of groups of one stage: as many as are made before the cluster is checked for them."""
    for _, run in groupby(groups, key=lambda group: group[0].stage):
        piece, filters = list[Step](), 0
        for group in run:
            most = MOST_ADDED if group[0].adds else MOST_REMOVED
            if piece and (filters == most or len(piece) + len(group) > max(MOST_ADDED, most)):
                yield piece
                piece, filters = [], 0
            piece += group
            filters += 1
        yield piece


def _check(step: Step) -> None:
    exactly(step.acl)
    why = refusal(step.acl) if step.adds else None
    if why is not None:
        raise ConfigError(f"{acl_text(step.acl)}: the cluster would refuse it: {why}")
