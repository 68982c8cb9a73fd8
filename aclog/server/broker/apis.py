"""APIs that a broker answers from its image, and forwarding of writes to the active controller."""

import asyncio
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, Protocol, TypeAlias
from uuid import UUID

from attrs import evolve, field
from kio.schema.errors import ErrorCode

from aclog.authorizer.codes import AclOperation
from aclog.authorizer.settings import KafkaPrincipal
from aclog.client.connection import Connection, connect
from aclog.client.errors import LoginError, UnreachableError
from aclog.config.node_config import ClientSecurity, HostPort
from aclog.credentials.scram import CredentialInfo, ScramImage
from aclog.credentials.tokens import (
    DELEGATION_TOKEN_AUTH_DISABLED,
    INVALID_PRINCIPAL_TYPE,
    TokenSettings,
    TokensImage,
    all_users,
    token_hmac_bytes,
)
from aclog.metalog.codec import read_frame
from aclog.metalog.errors import ConfigError, DecodeError
from aclog.metalog.records import DelegationTokenRecord, RecordType
from aclog.metalog.values import define, frozen
from aclog.protocol import api_keys, error_codes
from aclog.protocol.acls import describe_tokens_response, token_expiry_response
from aclog.protocol.headers import (
    Handler,
    OutcomeUnknownError,
    Request,
    RequestError,
    RequestHeader,
    decode_response_header,
)
from aclog.protocol.messages import build, build_response, decode_response
from aclog.protocol.responses import (
    AUTHORIZER_NOT_READY,
    CONTROLLER_APIS,
    EnvelopeRequest,
    EnvelopeResponse,
    decode_envelope_response,
    encode_envelope_request,
    encode_principal,
)
from aclog.protocol.session import SecurityProtocol, Session
from aclog.server.apis.acls import (
    BROKER_ENDPOINTS,
    NOT_ALLOWED_TIMESTAMP,
    NOT_ASKED,
    AuthHelper,
    DescribedNode,
    describe_cluster,
    may_use_tokens,
    not_created,
    owner_of,
    renewers_of,
)
from aclog.server.loops import MANY, offload_if
from aclog.snapshots.image import ClusterImage, Image, QuotaEntity, read_quota_key
from aclog.snapshots.publisher import Publisher

# DescribeClientQuotas, from the ClientQuotaRecords that Kafka wrote to the log (ClientQuotasImage.describe).


_ENTITY_TYPES = ("user", "client-id", "ip")
_EXACT, _DEFAULT, _SPECIFIED = 0, 1, 2


@frozen
class _Component:
    """A filter component: matches an entity type with a name, the default entity (None), or any name."""

    entity_type: str
    any_name: bool
    name: str | None

    def matches(self, names: Mapping[str, str | None]) -> bool:
        return self.entity_type in names and (self.any_name or names[self.entity_type] == self.name)


def describe_client_quotas(image: Image, request: Request) -> bytes:
    """Return the encoded response with the quotas that match the filter.

    Raises:
        RequestError: Kafka rejects the filter (42, or 35 for an unsupported entity type).

    """
    version, body = request.header.api_version, request.body
    components = _components(body.components)
    entries = tuple(
        _entry(version, entity, values)
        for entity, values in _quotas(image).items()
        if all(component.matches(dict(entity)) for component in components)
        and (not body.strict or len(entity) == len(components))  # strict: no entity types beyond those in the filter
    )
    return build_response(api_keys.DESCRIBE_CLIENT_QUOTAS, version, entries=entries)


def _components(components: Iterable[Any]) -> list[_Component]:
    by_type: dict[str, _Component] = {}
    for each in components:
        if not each.entity_type:
            raise RequestError(error_codes.INVALID_REQUEST, "Unexpected empty filter component type.")
        if each.entity_type not in _ENTITY_TYPES:
            raise RequestError(error_codes.UNSUPPORTED_VERSION, f"Unsupported entity type {each.entity_type}")
        if each.entity_type in by_type:
            raise RequestError(
                error_codes.INVALID_REQUEST,
                f"Entity type {each.entity_type} cannot appear more than once in the filter.",
            )
        by_type[each.entity_type] = _component(each)
    return list(by_type.values())


def _component(component: Any) -> _Component:
    kind = {_EXACT: "MATCH_TYPE_EXACT", _DEFAULT: "MATCH_TYPE_DEFAULT", _SPECIFIED: "MATCH_TYPE_SPECIFIED"}
    name = kind.get(component.match_type)
    if name is None:
        raise RequestError(error_codes.INVALID_REQUEST, f"Unknown match type {component.match_type}")
    if component.match_type == _EXACT and component.match is None:
        raise RequestError(error_codes.INVALID_REQUEST, f"Request specified {name}, but set match string to null.")
    if component.match_type != _EXACT and component.match is not None:
        raise RequestError(error_codes.INVALID_REQUEST, f"Request specified {name}, but also specified a match string.")
    return _Component(component.entity_type, component.match_type == _SPECIFIED, component.match)


def _entry(version: int, entity: QuotaEntity, values: Mapping[str, float]) -> Any:
    return build(
        api_keys.DESCRIBE_CLIENT_QUOTAS,
        version,
        "response",
        "EntryData",
        entity=tuple(
            build(
                api_keys.DESCRIBE_CLIENT_QUOTAS, version, "response", "EntityData", entity_type=kind, entity_name=name
            )
            for kind, name in entity
        ),
        values=tuple(
            build(api_keys.DESCRIBE_CLIENT_QUOTAS, version, "response", "ValueData", key=key, value=value)
            for key, value in values.items()
        ),
    )


def _quotas(image: Image) -> dict[QuotaEntity, dict[str, float]]:
    quotas: dict[QuotaEntity, dict[str, float]] = {}
    for entity, key, value in _records(image):
        quotas.setdefault(entity, {})[key] = value
    return quotas


def _records(image: Image) -> Iterator[tuple[QuotaEntity, str, float]]:
    """Yield the ClientQuotaRecords (version 0) of an image; replay has validated them."""
    for record in image.opaque.values():
        api_key, _version, at = read_frame(record)
        if api_key != RecordType.CLIENT_QUOTA_RECORD:
            continue
        entity, key, at = read_quota_key(record, at)
        (value,) = struct.unpack_from(">d", record, at)
        yield entity, key, value


# Metadata and DescribeCluster of a broker (KafkaApis.handleTopicMetadataRequest, handleDescribeCluster).


@frozen(kw_only=True)
class ClusterView:
    """The cluster as clients see it: all live brokers. `advertised` are this one's addresses by listener name.

    A broker names others only while it is registered itself, in the log that it follows: then that log is of aclog's
    controllers, and has the live ones. It is always among those that it names.
    """

    cluster_id: str
    node_id: int
    advertised: Mapping[str, HostPort] = field(factory=dict)
    rack: str | None = None
    incarnation_id: UUID | None = None
    """This process's id in its registration."""
    registered: Callable[[], ClusterImage] = lambda: ClusterImage.EMPTY

    def brokers(self, listener_name: str, *, include_fenced: bool = False) -> tuple[DescribedNode, ...]:
        """Return the brokers that clients of a listener reach, by ascending id (MetadataCache.getAliveBrokerNodes)."""
        image = self.registered()
        own = image.get(self.node_id)
        address = self.advertised[listener_name]
        if own is None or own.incarnation_id != self.incarnation_id:
            return (DescribedNode(node_id=self.node_id, address=address, rack=self.rack),)
        nodes = []
        for broker in image.brokers():
            endpoint = next((each for each in broker.end_points if each.name == listener_name), None)
            here = broker.broker_id == self.node_id
            if endpoint is None or (broker.fenced and not (include_fenced or here)):
                continue
            at = address if here else HostPort(host=endpoint.host, port=endpoint.port)
            nodes.append(DescribedNode(node_id=broker.broker_id, address=at, rack=broker.rack, fenced=broker.fenced))
        return tuple(nodes)


_INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")

_Requested: TypeAlias = tuple[str | None, UUID | None]
"""The name of a topic, or its id."""

_TOPIC_IDS = 12
"""The first version of Metadata in which topics may be requested by id."""

_PIECE = 16
"""Yield to the event loop after this many topics, each of which takes up to 200 us to authorize, with its operations.

In a thread the whole would take as long, and hold up other requests for longer, by the interpreter's lock.
"""


@define
class MetadataApis:
    """Describes the cluster. There are no topics here, so every requested topic is reported as unknown.

    None is created either. A client that requests creation without the permission gets the error of Kafka.
    """

    cluster: ClusterView
    auth: AuthHelper
    auto_create_topics: bool = True
    """auto.create.topics.enable"""

    async def metadata(self, request: Request) -> bytes:
        """Handle Metadata: the brokers that are alive, and an error for each requested topic."""
        body, version = request.body, request.header.api_version
        operations, topics = getattr(body, "include_cluster_authorized_operations", False), []
        pinned = evolve(self, auth=self.auth.pinned(request))  # the image may change between two pieces
        requested = await offload_if(len(body.topics or ()) > MANY, _requested, request)
        for number, topic in enumerate(pinned._topics(request, requested), 1):
            topics.append(topic)
            if number % _PIECE == 0:
                await asyncio.sleep(0)
        return await offload_if(
            len(topics) > MANY,
            build_response,
            api_keys.METADATA,
            version,
            brokers=tuple(self._brokers(request)),
            cluster_id=self.cluster.cluster_id,
            controller_id=self.cluster.node_id,
            topics=tuple(topics),
            cluster_authorized_operations=pinned.auth.cluster_operations(request) if operations else NOT_ASKED,
        )

    async def describe_cluster(self, request: Request) -> bytes:
        """Handle DescribeCluster: the brokers; a request for controller endpoints is an error."""
        include_fenced = getattr(request.body, "include_fenced_brokers", False)
        return describe_cluster(
            request,
            self.auth,
            endpoint_type=BROKER_ENDPOINTS,
            cluster_id=self.cluster.cluster_id,
            controller_id=self.cluster.node_id,
            nodes=self.cluster.brokers(request.session.listener_name, include_fenced=include_fenced),
        )

    def _brokers(self, request: Request) -> Iterator[Any]:
        for each in self.cluster.brokers(request.session.listener_name):
            about = {"node_id": each.node_id, "host": each.address.host, "port": each.address.port, "rack": each.rack}
            yield build(api_keys.METADATA, request.header.api_version, "response", "MetadataResponseBroker", **about)

    def _topics(self, request: Request, requested: Iterable[_Requested]) -> Iterator[Any]:
        version, may_create = request.header.api_version, self._may_create(request)
        for name, topic_id in requested:
            error, internal = self._topic_error(request, name, may_create)
            yield build(
                api_keys.METADATA,
                version,
                "response",
                "MetadataResponseTopic",
                error_code=error,
                name=name,
                topic_id=topic_id,
                is_internal=internal,
                partitions=(),
                topic_authorized_operations=self._topic_operations(request, name, error),
            )

    def _topic_error(
        self, request: Request, name: str | None, may_create: Callable[[str], bool]
    ) -> tuple[ErrorCode, bool]:
        """Return the error, and whether the topic is internal, which clients without DESCRIBE may not know."""
        if name is None:
            return ErrorCode.unknown_topic_id, False
        if not self.auth.on_topic(request, AclOperation.DESCRIBE, name):
            return ErrorCode.topic_authorization_failed, False
        if not may_create(name):
            error = ErrorCode.topic_authorization_failed
        else:
            error = ErrorCode.unknown_topic_or_partition if _is_topic_name(name) else ErrorCode.invalid_topic_exception
        return error, name in _INTERNAL_TOPICS

    def _may_create(self, request: Request) -> Callable[[str], bool]:
        """Return whether a client may have a missing topic created; true of every topic if it does not request that."""
        if not (self.auto_create_topics and getattr(request.body, "allow_auto_topic_creation", True)):
            return lambda _: True
        # A denial is not logged, as in Kafka: the right on the topic is as good.
        on_cluster = cache(lambda: self.auth.on_cluster(request, AclOperation.CREATE, log_if_denied=False))
        return lambda name: on_cluster() or self.auth.on_topic(request, AclOperation.CREATE, name)

    def _topic_operations(self, request: Request, name: str | None, error: ErrorCode) -> int:
        """Return the authorized operations on a topic, if requested and DESCRIBE is allowed."""
        include_operations = getattr(request.body, "include_topic_authorized_operations", False)
        if name is None or not include_operations or error is ErrorCode.topic_authorization_failed:
            return NOT_ASKED
        return self.auth.topic_operations(request, name)


def _requested(request: Request) -> Iterable[_Requested]:
    """Return the name or the id of each requested topic, once; if there are ids, names do not count.

    Raises:
        RequestError: An id, or no name, in version 10 or 11, which have room for that (42, INVALID_REQUEST).

    """
    topics, version = request.body.topics or (), request.header.api_version
    ids = dict.fromkeys(each.topic_id for each in topics if getattr(each, "topic_id", None) is not None)
    names = dict.fromkeys(each.name for each in topics)
    if version < _TOPIC_IDS and (ids or None in names):
        raise RequestError(
            error_codes.INVALID_REQUEST, f"Topic IDs are not supported in requests for version {version}"
        )
    return [(None, each) for each in ids] or [(name, None) for name in names]


def _is_topic_name(name: str) -> bool:
    """Whether the name is legal for a topic (org.apache.kafka.common.internals.Topic.validate)."""
    return name not in {".", ".."} and _TOPIC_NAME.fullmatch(name) is not None


# DescribeUserScramCredentials (ScramImage.describe, KafkaApis.handleDescribeUserScramCredentialsRequest).


_API = api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS
_TWICE = "Cannot describe SCRAM credentials for the same user twice in a single request: "
_ABSENT = "Attempt to describe a user credential that does not exist: "


def describe_scram_users(scram: ScramImage, request: Request) -> bytes:
    """Return the encoded response with mechanisms and iterations of the named users; of all users if none is named."""
    credentials = {each.user: each.credential_infos for each in scram.describe()}
    counts = Counter(each.name for each in request.body.users or ()) or Counter(list(credentials))
    return build_response(
        _API,
        request.header.api_version,
        results=tuple(_result(user, times, credentials.get(user, ())) for user, times in counts.items()),
    )


def _result(user: str, times: int, infos: tuple[CredentialInfo, ...]) -> Any:
    error, message = 0, ""
    if times > 1:
        error, message, infos = ErrorCode.duplicate_resource, _TWICE + user, ()
    elif not infos:
        error, message = ErrorCode.resource_not_found, _ABSENT + user
    return build(
        _API,
        0,
        "response",
        "DescribeUserScramCredentialsResult",
        user=user,
        error_code=error,
        error_message=message,
        credential_infos=tuple(
            build(_API, 0, "response", "CredentialInfo", mechanism=each.mechanism, iterations=each.iterations)
            for each in infos
        ),
    )


# The way of a broker's own requests to the active controller (kafka.server.NodeToControllerChannelManager).


_NEWEST = {api.api_key: api.max_version for api in CONTROLLER_APIS}
_OURS = 1
"""The version of Envelope that only aclog's controllers have (docs/format.md)."""


_NOBODY = Session(
    listener_name="", security_protocol=SecurityProtocol.PLAINTEXT, host="127.0.0.1", address=bytes((127, 0, 0, 1))
)
"""The sender of requests that are not authorized."""


class ControllerChannel(Protocol):
    """Sends requests about this broker to the active controller, one at a time."""

    async def ask(self, api_key: int, **fields: Any) -> Any:
        """Return the response to a request with these fields.

        Raises:
            RequestError: The controller refuses.
            ConfigError: Requests of this kind must not be sent to this controller.
            MetadataError: There is no response.

        """
        ...

    async def close(self) -> None:
        """Close the connection; idempotent."""
        ...


@define
class LocalChannel:
    """To the controller in the same process (ControllerApis.own_broker)."""

    handlers: Mapping[int, Handler]

    async def ask(self, api_key: int, **fields: Any) -> Any:
        """See ControllerChannel."""
        version = _NEWEST[api_key]
        header = RequestHeader(api_key=api_key, api_version=version, correlation_id=0, client_id="")
        body = build(api_key, version, "request", **fields)
        request = Request(header=header, body=body, session=_NOBODY, frame=b"")
        return decode_response(api_key, version, await self.handlers[api_key](request), 0)

    async def close(self) -> None:
        """Do nothing."""


@define(eq=False, kw_only=True)
class RemoteChannel:
    """To a controller over the network; follows the leadership. Owned by one event loop."""

    leader: Callable[[], HostPort | None]
    """Returns the active controller's address, if known."""
    security: ClientSecurity
    client_id: str
    seconds: float
    """How long a controller may take to answer; another one may be active by then."""
    _connection: Connection | None = field(default=None, init=False)

    async def ask(self, api_key: int, **fields: Any) -> Any:
        """See ControllerChannel."""
        connection = await self._connected()
        _check_ours(connection)  # of every request: the connection is kept, so as not to log in again and again
        version = connection.version(api_key, 0, _NEWEST[api_key])
        response = await connection.ask(build(api_key, version, "request", **fields), self.seconds)
        if response.error_code == error_codes.NOT_CONTROLLER:
            await self.close()
        if response.error_code:
            raise RequestError(int(response.error_code), getattr(response, "error_message", None))
        return response

    async def close(self) -> None:
        """Close the connection; idempotent."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()  # a wait for a dead controller would delay the next request

    async def _connected(self) -> Connection:
        address, connection = self.leader(), self._connection
        if connection is not None and connection.failure is None and address in (None, connection.address):
            return connection
        await self.close()
        if address is None:
            raise UnreachableError("no known controller")
        self._connection = connection = await connect(
            address, self.security, client_id=self.client_id, timeout=self.seconds
        )
        return connection


def _check_ours(connection: Connection) -> None:
    """Require a controller of aclog that registers brokers: a real Kafka would place partitions on this broker.

    Raises:
        ConfigError: it is Kafka's, or an aclog of before.

    """
    envelope = connection.apis.get(api_keys.ENVELOPE)
    if envelope is None or _OURS not in envelope:
        raise ConfigError(
            f"{connection.address}: not a controller of aclog: this broker does not register with it, and names no "
            "other broker to clients; set metadata.log.kind=quorum to follow a Kafka's controllers"
        )
    if not {api_keys.BROKER_REGISTRATION, api_keys.BROKER_HEARTBEAT} <= connection.apis.keys():
        raise ConfigError(f"{connection.address}: this controller's version of aclog does not register brokers yet")


# Forwarding of writes from a broker to the active controller (kafka.server.ForwardingManager, KIP-590).
#
# A request is retried until its timeout while no controller is known, while it certainly has not reached one, and
# after AUTHORIZER_NOT_READY or NOT_CONTROLLER, which mean that nothing was done. If the controller disappears after
# the request was sent, or does not respond in time, the outcome is unknown and a retry could apply it twice: the
# client's connection is closed, as if this broker had crashed, and the client decides.


FORWARD_SECONDS = 60.0
"""The timeout for sending a request, as in Kafka's NodeToControllerChannelManager, and that for its response."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 1.0
_LEADER_CHECK_S = 1.0
"""Interval for checking whether a controller that has not responded is still the active one."""

CONNECTIONS = 64
"""The most connections to the controller. A connection carries one request at a time until it is committed, so this
bounds how many forwarded requests share a group commit."""


class Forwarder(Protocol):
    """Passes requests to the active controller."""

    async def forward(self, request: Request) -> bytes:
        """Return the encoded body of the controller's response, without a header; raises as a Handler."""
        ...

    async def close(self) -> None:
        """Close the connections; idempotent."""
        ...


@define
class LocalForwarder:
    """Forwards to the controller in the same process."""

    handlers: Mapping[int, Handler]

    async def forward(self, request: Request) -> bytes:
        """See Forwarder."""
        return await self.handlers[request.header.api_key](request)

    async def close(self) -> None:
        """Do nothing."""


class _NotSentError(Exception):
    """The request has not reached a controller, so sending it again is safe."""


@define(eq=False, kw_only=True)
class EnvelopeForwarder:
    """Forwards to a remote controller in Envelopes, one at a time per connection. Owned by one event loop.

    Concurrent requests share the controller's group commits, as if their clients were connected to it directly.
    """

    leader: Callable[[], HostPort | None]
    """Returns the active controller's address, if known."""
    security: ClientSecurity
    client_id: str
    seconds: float = FORWARD_SECONDS
    """How long a request may take to be sent, and how long its response may take after that.

    So a client waits at most twice as long, and for what `client.connection` takes to find out why a connection was
    lost, at most 5 s.
    """
    _idle: list[Connection] = field(factory=list, init=False)
    """Idle authenticated connections."""
    _busy: dict[Connection, float] = field(factory=dict, init=False)
    """The connections that wait for a response, and since when."""
    _check: asyncio.TimerHandle | None = field(default=None, init=False)
    """The next check of the leader; None while no connection is busy."""
    _connection_slots: asyncio.Semaphore = field(factory=lambda: asyncio.Semaphore(CONNECTIONS), init=False)

    async def forward(self, request: Request) -> bytes:
        """See Forwarder.

        Raises:
            RequestError: REQUEST_TIMED_OUT: no controller accepted the request in time; nothing was done.
            OutcomeUnknownError: The request was sent, and the response was lost, or did not arrive in time.

        """
        pause, last, seconds = _FIRST_PAUSE_S, "no connection to the controller", self.seconds
        ends = asyncio.get_running_loop().time() + seconds
        try:
            async with asyncio.timeout_at(ends) as until_sent:
                while True:
                    try:
                        response = await self._send(request, until_sent)
                    except _NotSentError as error:
                        last = str(error)
                    else:
                        if response.error_code not in (AUTHORIZER_NOT_READY, error_codes.NOT_CONTROLLER):
                            return _unwrap(request, response)
                        last = f"the controller returned error {response.error_code}"
                        if response.error_code == error_codes.NOT_CONTROLLER:
                            # A deposed controller keeps its connections open: drop the idle ones, so that the
                            # retry connects to whichever controller is active by then.
                            self._drop_idle()
                    until_sent.reschedule(ends)
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, _LONGEST_PAUSE_S)
        except TimeoutError:
            raise RequestError(error_codes.REQUEST_TIMED_OUT, f"Not forwarded within {seconds:g} s: {last}") from None

    async def close(self) -> None:
        """Close the idle connections; idempotent."""
        self._drop_idle()

    def _drop_idle(self) -> None:
        while self._idle:
            self._idle.pop().abort()

    async def _send(self, request: Request, until_sent: asyncio.Timeout) -> EnvelopeResponse:
        # Taken while connecting as well: a controller that comes back must not be met by a flood of logins.
        async with self._connection_slots:
            connection = await self._take_connection()
            try:
                until_sent.reschedule(None)  # a sent request must not end as one that was not; `send` has its own limit
                response = await self._exchange(connection, request)
            except BaseException as error:
                connection.abort()  # a response may still be due on it, or the peer may be dead
                if isinstance(error, OutcomeUnknownError):
                    # After a power loss of the controller, an idle connection fails only once a request is sent on it.
                    self._drop_idle()
                raise
            self._idle.append(connection)
            return response

    async def _exchange(self, connection: Connection, request: Request) -> EnvelopeResponse:
        # Nothing has been written up to here, so the request may be retried; from `send` on it may not.
        if connection.failure is not None:  # since the last response of its login
            raise _NotSentError(str(connection.failure))
        try:
            version = connection.version(api_keys.ENVELOPE, 0, 1)
        except ConfigError as error:
            raise _NotSentError(str(error)) from None
        session = request.session
        envelope = EnvelopeRequest(
            request_data=request.frame,
            request_principal=encode_principal(session.principal, token_authenticated=session.token_authenticated),
            client_host_address=session.address,
        )
        try:
            body = encode_envelope_request(envelope)
            payload, position = await self._unless_deposed(connection, version, body)
            return decode_envelope_response(payload, position)
        except (UnreachableError, DecodeError) as error:
            raise OutcomeUnknownError(f"forwarded, but the controller's response was lost: {error}") from None

    async def _unless_deposed(self, connection: Connection, version: int, body: bytes) -> tuple[bytes, int]:
        """Send and wait for the response, unless another controller becomes active first.

        A paused or partitioned controller keeps the TCP connection open without ever responding.
        """
        loop = asyncio.get_running_loop()
        self._busy[connection] = loop.time()
        if self._check is None:
            self._check = loop.call_later(_LEADER_CHECK_S, self._check_leader)
        try:
            return await connection.send(api_keys.ENVELOPE, version, body, self.seconds)
        finally:
            del self._busy[connection]

    def _check_leader(self) -> None:
        """Give up the connections to a former leader that have waited for a while. One timer serves all requests."""
        loop, leader = asyncio.get_running_loop(), self.leader()
        waited = loop.time() - _LEADER_CHECK_S
        for connection, since in self._busy.items():
            if since <= waited and leader not in (None, connection.address):
                what = f"{connection.address}: no response, and {leader} is the active controller"
                connection.give_up(UnreachableError(what))
        self._check = loop.call_later(_LEADER_CHECK_S, self._check_leader) if self._busy else None

    async def _take_connection(self) -> Connection:
        """Take an idle connection to the active controller, or open one."""
        address = self.leader()
        # Idle connections to a former leader are of no use, and a failed one must not be handed out.
        while self._idle:
            connection = self._idle.pop()
            if connection.failure is None and address in (None, connection.address):
                return connection
            connection.abort()
        if address is None:
            raise _NotSentError("no known controller")
        try:
            return await connect(address, self.security, client_id=self.client_id)
        except (UnreachableError, LoginError, DecodeError) as error:
            raise _NotSentError(str(error)) from None


def _unwrap(request: Request, response: EnvelopeResponse) -> bytes:
    """Return the embedded response body.

    CLUSTER_AUTHORIZATION_FAILED on the envelope concerns this broker's principal; the client must not take it for its
    own, so it becomes UNKNOWN_SERVER_ERROR, as in Kafka.
    """
    if response.error_code == error_codes.CLUSTER_AUTHORIZATION_FAILED:
        raise RequestError(error_codes.UNKNOWN_SERVER_ERROR, "The controller does not let this broker forward requests")
    if response.error_code or response.response_data is None:
        raise RequestError(response.error_code or error_codes.UNKNOWN_SERVER_ERROR)
    header = request.header
    _, position = decode_response_header(header.api_key, header.api_version, response.response_data)
    return response.response_data[position:]


# Delegation token APIs of a broker: describe locally, check and forward writes (kafka.server.KafkaApis).


_CREATED = bytes(2)
"""Error code 0 at the start of a response body."""

_REPLAY_SECONDS, _POLL_SECONDS = 1.0, 0.002


@define(kw_only=True)
class BrokerTokenApis:
    """Describes tokens from the published image, and forwards writes of clients that may make them."""

    publisher: Publisher
    auth: AuthHelper
    forwarder: Forwarder
    settings: TokenSettings

    async def create(self, request: Request) -> bytes:
        """Forward a token creation that the client may make; responds once the token can be used on this broker."""
        owner = owner_of(request)
        if error_code := await self._creation_error(request, owner):
            return not_created(request, owner, error_code, NOT_ALLOWED_TIMESTAMP)
        body = await self.forwarder.forward(request)
        if body.startswith(_CREATED):
            version = request.header.api_version
            await self._wait_until_replayed(
                decode_response(api_keys.CREATE_DELEGATION_TOKEN, version, body, 0).token_id
            )
        return body

    async def _wait_until_replayed(self, token_id: str) -> None:
        """Wait up to a second until the token is replayed here: clients log in with it as soon as they have it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_REPLAY_SECONDS):
                while self.publisher.current.tokens.get(token_id) is None:
                    await asyncio.sleep(_POLL_SECONDS)

    async def _creation_error(self, request: Request, owner: KafkaPrincipal) -> int:
        if not may_use_tokens(request):
            return error_codes.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        another = owner != request.session.principal
        if another and not self.auth.on_user(request, AclOperation.CREATE_TOKENS, str(owner)):
            return error_codes.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        renewers = await offload_if(len(request.body.renewers) > MANY, renewers_of, request)
        return 0 if all_users(renewers) else INVALID_PRINCIPAL_TYPE

    async def change(self, request: Request) -> bytes:
        """Forward the renewal or expiry of a token."""
        if not may_use_tokens(request):
            version = request.header.api_version
            return token_expiry_response(
                version, error_codes.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, NOT_ALLOWED_TIMESTAMP
            )
        return await self.forwarder.forward(request)

    async def describe(self, request: Request) -> bytes:
        """Describe the tokens of the requested owners that the client may see; all owners if the list is null."""
        version, secret = request.header.api_version, self.settings.secret
        if not may_use_tokens(request):
            return describe_tokens_response(version, (), error_codes.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
        if not secret:
            return describe_tokens_response(version, (), DELEGATION_TOKEN_AUTH_DISABLED)
        tokens, pinned = self.publisher.current.tokens, evolve(self, auth=self.auth.pinned(request))
        many = len(tokens) + len(request.body.owners or ()) > MANY
        return await offload_if(many, pinned._described, request, tokens, secret)

    def _described(self, request: Request, tokens: TokensImage, secret: str) -> bytes:
        owners = request.body.owners
        records = (
            tokens.records()
            if owners is None
            else tokens.owned_by(f"{owner.principal_type}:{owner.principal_name}" for owner in owners)
        )
        visible = ((each, token_hmac_bytes(secret, each.token_id)) for each in records if self._may_see(request, each))
        return describe_tokens_response(request.header.api_version, visible)

    def _may_see(self, request: Request, token: DelegationTokenRecord) -> bool:
        if str(request.session.principal) in (token.owner, token.requester, *token.renewers):
            return True
        return self.auth.on_token(request, AclOperation.DESCRIBE, token.token_id) or self.auth.on_user(
            request, AclOperation.DESCRIBE_TOKENS, token.owner
        )
