"""APIs of a controller: brokers, quorum, users, tokens, and forwarded requests; and their table."""

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from concurrent.futures import Future
from datetime import timedelta
from ipaddress import ip_address
from typing import Any, Protocol, TypeAlias

from attrs import evolve, field

from aclog.authorizer.acl import host_address
from aclog.authorizer.audit import api_name
from aclog.authorizer.codes import AclOperation
from aclog.authorizer.interface import AclRequestError, AuthorizerNotReadyError
from aclog.authorizer.settings import Generation
from aclog.config.node_config import HostPort
from aclog.credentials.scram import ScramDeletion, ScramResult, ScramUpsertion, alter_credentials
from aclog.credentials.tokens import TokenCreation, TokenResult, token_hmac_bytes
from aclog.metalog.errors import DecodeError, MetadataError
from aclog.metalog.primitives import ZERO, current_time_ms
from aclog.metalog.records import BrokerEndpoint, BrokerFeature, DelegationTokenRecord, RegisterBrokerRecord
from aclog.metalog.values import define, frozen
from aclog.protocol import api_keys, error_codes
from aclog.protocol.acls import decode_create_acls, token_created_response, token_expiry_response
from aclog.protocol.headers import (
    Handler,
    MalformedRequestError,
    OutcomeUnknownError,
    Request,
    RequestError,
    RequestHeader,
    ShortHandler,
    decode_header,
    response_header,
)
from aclog.protocol.messages import build, build_response, decode_request
from aclog.protocol.responses import (
    CONTROLLER_APIS,
    ApiVersion,
    EnvelopeRequest,
    EnvelopeResponse,
    decode_principal,
    encode_envelope_response,
    error_response,
    served_by,
)
from aclog.protocol.session import Session
from aclog.server.apis.acls import (
    CONTROLLER_ENDPOINTS,
    NOT_ALLOWED_TIMESTAMP,
    AccessSettingsApi,
    AclApis,
    AuthHelper,
    DescribedNode,
    describe_cluster,
    may_use_tokens,
    not_created,
    owner_of,
    renewers_of,
)
from aclog.server.controller.fetch import METADATA_TOPIC, Quorum, ReplicaState, ServingState
from aclog.server.controller.quorum_controller import ControllerResult, Operation
from aclog.server.controller.registrations import (
    MAX_REGISTRATION_BYTES,
    BrokerWriter,
    Heartbeat,
    TokenWriter,
    unregister_controller,
)
from aclog.server.loops import MANY, MANY_BYTES, MANY_ENTRIES_BYTES, committed, offload_if
from aclog.snapshots.image import METADATA_VERSION, Image

# BrokerRegistration, BrokerHeartbeat and UnregisterBroker (KIP-631).


@define
class BrokerRegistrationApis:
    """Registers brokers through the active controller; requests are authorized already."""

    cluster_id: str
    writer: BrokerWriter

    async def register(self, request: Request) -> bytes:
        """Register a broker; responds with its epoch once the record is committed."""
        body, version = request.body, request.header.api_version
        if body.cluster_id != self.cluster_id:
            wrong = f"Expected cluster ID {self.cluster_id}, but got cluster ID {body.cluster_id}"
            raise RequestError(error_codes.INCONSISTENT_CLUSTER_ID, wrong)
        if len(request.frame) > MAX_REGISTRATION_BYTES:
            what = f"request of {len(request.frame)} bytes: expected at most {MAX_REGISTRATION_BYTES}"
            raise RequestError(error_codes.INVALID_REGISTRATION, what)
        epoch = await committed(self.writer.register(_registration(body)))
        return build_response(api_keys.BROKER_REGISTRATION, version, broker_epoch=epoch)

    async def heartbeat(self, request: Request) -> bytes:
        """Renew a broker's session."""
        body = request.body
        beat = Heartbeat(
            broker_id=body.broker_id,
            broker_epoch=body.broker_epoch,
            metadata_offset=body.current_metadata_offset,
            want_fence=body.want_fence,
            want_shut_down=body.want_shut_down,
        )
        reply = await committed(self.writer.heartbeat(beat))
        return build_response(
            api_keys.BROKER_HEARTBEAT,
            request.header.api_version,
            is_caught_up=reply.is_caught_up,
            is_fenced=reply.is_fenced,
            should_shut_down=reply.should_shut_down,
        )

    async def unregister(self, request: Request) -> bytes:
        """Remove a broker's registration."""
        await committed(self.writer.unregister(request.body.broker_id))
        return build_response(api_keys.UNREGISTER_BROKER, request.header.api_version, error_message=None)


def _registration(body: Any) -> RegisterBrokerRecord:
    """Return the record of a BrokerRegistrationRequest, without an epoch."""
    return RegisterBrokerRecord(
        broker_id=body.broker_id,
        is_migrating_zk_broker=getattr(body, "is_migrating_zk_broker", False),
        incarnation_id=body.incarnation_id or ZERO,
        broker_epoch=-1,
        end_points=tuple(
            BrokerEndpoint(name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol)
            for each in body.listeners
        ),
        features=tuple(
            BrokerFeature(
                name=each.name,
                min_supported_version=each.min_supported_version,
                max_supported_version=each.max_supported_version,
            )
            for each in body.features
        ),
        rack=body.rack,
        # kio reads a zero uuid as None.
        log_dirs=tuple(each or ZERO for each in getattr(body, "log_dirs", ())),
    )


# DescribeQuorum: leader, voters, observers and their log end offsets (KIP-595, KIP-836, KIP-853).


@frozen(kw_only=True)
class QuorumDescription:
    """The quorum as this controller sees it at `now`, in ms since 1970.

    A controller that is not the leader responds with NOT_LEADER_OR_FOLLOWER and the leader it knows. Controllers that
    share a log on a topic are all reported as voters, since any may lead; the offsets of the others are unknown (-1).
    """

    quorum: Quorum
    high_watermark: int
    end_offset: int
    now: int

    def encoded(self, request: Request) -> bytes:
        """Return the encoded body of the DescribeQuorumResponse (versions 0 to 2) on the metadata partition."""
        version = request.header.api_version
        topic = _part(version, "TopicData", topic_name=METADATA_TOPIC, partitions=(self._partition(version),))
        return build_response(
            api_keys.DESCRIBE_QUORUM, version, topics=(topic,), nodes=self._nodes(version) if version >= 2 else ()
        )

    def _partition(self, version: int) -> Any:
        return self._led(version) if self.quorum.leads else self._refused(version)

    def _refused(self, version: int) -> Any:
        leader = self.quorum.leader()
        return _part(
            version,
            "PartitionData",
            partition_index=0,
            error_code=error_codes.NOT_LEADER_OR_FOLLOWER,
            error_message="This node does not lead the metadata log.",
            leader_id=leader.leader_id,
            leader_epoch=leader.epoch,
        )

    def _led(self, version: int) -> Any:
        quorum = self.quorum
        # The leader reports itself as caught up now, as in LeaderState.describeReplicaState.
        leader = ReplicaState(
            replica_id=quorum.node_id,
            directory_id=quorum.directory_id,
            log_end_offset=self.end_offset,
            last_fetch_timestamp=self.now,
            last_caught_up_timestamp=self.now,
        )
        others = [_not_known(voter_id) for voter_id in sorted(quorum.voters.keys() - {quorum.node_id})]
        return _part(
            version,
            "PartitionData",
            partition_index=0,
            leader_id=quorum.node_id,
            leader_epoch=quorum.leader().epoch,
            high_watermark=self.high_watermark,
            current_voters=tuple(_replica(version, each) for each in (leader, *others)),
            observers=tuple(_replica(version, each) for each in quorum.observers(self.now)),
        )

    def _nodes(self, version: int) -> tuple[Any, ...]:
        """Return the voters' endpoints: this node's controller listeners, and the others' configured addresses."""
        quorum = self.quorum
        if not quorum.leads:
            return ()
        first = quorum.listener_names[0]
        nodes = {voter: {first: at} for voter, at in quorum.voters.items()}
        nodes[quorum.node_id] = {name: at for name, at in quorum.advertised.items() if name in quorum.listener_names}
        return tuple(_node(version, node_id, nodes[node_id]) for node_id in sorted(nodes))


def names_metadata_partition(request: Request) -> bool:
    """Whether a DescribeQuorum request names the metadata partition and no other."""
    topics = [topic for topic in request.body.topics if topic.partitions]
    return (
        len(topics) == 1
        and topics[0].topic_name == METADATA_TOPIC
        and [each.partition_index for each in topics[0].partitions] == [0]
    )


def unknown_partitions(request: Request) -> bytes:
    """Return the encoded response to a request that names another partition: all are unknown then, as in Kafka."""
    version = request.header.api_version
    return build_response(
        api_keys.DESCRIBE_QUORUM, version, topics=tuple(_unknown(version, each) for each in request.body.topics)
    )


def _not_known(voter_id: int) -> ReplicaState:
    return ReplicaState(
        replica_id=voter_id,
        directory_id=None,
        log_end_offset=-1,
        last_fetch_timestamp=-1,
        last_caught_up_timestamp=-1,
    )


def _node(version: int, node_id: int, addresses: Mapping[str, HostPort]) -> Any:
    listeners = tuple(
        _part(version, "Listener", name=name, host=at.host, port=at.port) for name, at in addresses.items()
    )
    return _part(version, "Node", node_id=node_id, listeners=listeners)


def _unknown(version: int, topic: Any) -> Any:
    partitions = tuple(
        _part(
            version,
            "PartitionData",
            partition_index=each.partition_index,
            error_code=error_codes.UNKNOWN_TOPIC_OR_PARTITION,
            error_message="This server does not host this topic-partition.",
        )
        for each in topic.partitions
    )
    return _part(version, "TopicData", topic_name=topic.topic_name, partitions=partitions)


def _replica(version: int, state: ReplicaState) -> Any:
    return _part(
        version,
        "ReplicaState",
        replica_id=state.replica_id,
        replica_directory_id=state.directory_id,
        log_end_offset=state.log_end_offset,
        last_fetch_timestamp=state.last_fetch_timestamp,
        last_caught_up_timestamp=state.last_caught_up_timestamp,
    )


def _part(version: int, structure: str, /, **values: Any) -> Any:
    return build(api_keys.DESCRIBE_QUORUM, version, "response", structure, **values)


# Envelope: requests that brokers forward for their clients (KIP-590; kafka.server.EnvelopeUtils).
#
# The principal inside is trusted, so permission to send an Envelope (CLUSTER_ACTION) is permission to act as anyone.


_log = logging.getLogger(__name__)


@define(kw_only=True)
class EnvelopeHandler:
    """Unwraps Envelopes and handles the embedded requests as if their clients had sent them here.

    `handlers` are the forwardable APIs, `apis` their served versions.
    """

    handlers: Mapping[int, Handler]
    apis: Collection[ApiVersion]

    async def handle(self, request: Request) -> bytes:
        """Return the body of the Envelope response (versions 0 and 1); the sender is authorized already.

        Errors of the embedded request go into the embedded response, except two that concern the broker: NOT_CONTROLLER
        (41), after which it looks for the active controller (RequestChannel.Request.buildResponseSend), and an
        authorizer that is not ready, after which it tries again (KIP-801).

        Raises:
            RequestError: Of the envelope itself: 42 for an invalid address or API, 97 for an unreadable principal, 35
                for an unreadable request, 41.
            AuthorizerNotReadyError: The log is not replayed yet.

        """
        data = await self._answered(await self._opened(request))
        return encode_envelope_response(request.header.api_version, EnvelopeResponse(response_data=data))

    async def _opened(self, request: Request) -> Request:
        """Decode the embedded request."""
        envelope: EnvelopeRequest = request.body
        session = _session(request.session, envelope)
        frame = envelope.request_data
        try:
            header, position = decode_header(frame)
        except DecodeError as error:
            raise RequestError(error_codes.UNSUPPORTED_VERSION, str(error)) from None
        if header.api_key not in self.handlers:
            raise RequestError(error_codes.INVALID_REQUEST, f"API {header.api_key} is not eligible for forwarding")
        if not any(api.api_key == header.api_key and header.api_version in api for api in self.apis):
            raise RequestError(error_codes.UNSUPPORTED_VERSION, f"API {header.api_key} version {header.api_version}")
        try:
            much = len(frame) > MANY_BYTES
            body = await offload_if(much, _decoded, header, frame, position)
        except DecodeError as error:
            raise RequestError(error_codes.UNSUPPORTED_VERSION, str(error)) from None
        return Request(header=header, body=body, session=session, frame=frame)

    async def _answered(self, inner: Request) -> bytes:
        """Handle the embedded request; return its response with header."""
        header = inner.header
        try:
            body = await self.handlers[header.api_key](inner)
        except OutcomeUnknownError:
            raise
        except (RequestError, AclRequestError) as error:
            if error.code == error_codes.NOT_CONTROLLER:
                raise RequestError(error_codes.NOT_CONTROLLER, error.message) from None
            body = await _error(inner, error.code, error.message)
        except AuthorizerNotReadyError:
            raise
        except MalformedRequestError as error:
            raise RequestError(error_codes.UNSUPPORTED_VERSION, str(error)) from None
        except MetadataError as error:
            _log.error("%s in an Envelope failed: %s", api_name(header.api_key), error)
            body = await _error(inner, error_codes.UNKNOWN_SERVER_ERROR, None)
        except Exception:  # noqa: BLE001 - becomes the embedded response
            _log.exception("%s in an Envelope failed", api_name(header.api_key))
            body = await _error(inner, error_codes.UNKNOWN_SERVER_ERROR, None)
        return _header(header) + body


def _decoded(header: RequestHeader, frame: bytes, position: int) -> Any:
    if header.api_key == api_keys.CREATE_ACLS:
        common = decode_create_acls(header.api_version, frame, position)
        if common is not None:
            return common
    return decode_request(header.api_key, header.api_version, frame, position)


def _session(sender: Session, envelope: EnvelopeRequest) -> Session:
    if envelope.request_principal is None:
        raise RequestError(
            error_codes.PRINCIPAL_DESERIALIZATION_FAILURE, "Failed to deserialize client principal from envelope"
        )
    try:
        principal, token_authenticated = decode_principal(envelope.request_principal)
    except DecodeError as error:
        raise RequestError(error_codes.PRINCIPAL_DESERIALIZATION_FAILURE, str(error)) from None
    address = envelope.client_host_address
    if len(address) not in {4, 16}:
        raise RequestError(
            error_codes.INVALID_REQUEST, f"Failed to parse client address from envelope: {len(address)} bytes"
        )
    return evolve(
        sender,
        principal=principal,
        token_authenticated=token_authenticated,
        host=host_address(str(ip_address(address))),
        address=address,
    )


def _header(header: RequestHeader) -> bytes:
    return response_header(header.api_key, header.api_version, header.correlation_id)


async def _error(inner: Request, code: int, message: str | None) -> bytes:
    key, version, much = inner.header.api_key, inner.header.api_version, len(inner.frame) > MANY_ENTRIES_BYTES
    return await offload_if(much, error_response, inner.body, key, version, code, message=message)


# AlterUserScramCredentials (KIP-554).


SCRAM_SINCE = 11
"""The feature level of metadata.version 3.5-IV2, the first with SCRAM credentials."""


class Writer(Protocol):
    """The write path that ScramApis needs (QuorumController)."""

    def write(self, operation: Operation[Any], *, offload: bool = False) -> Any:
        """See QuorumController.write."""
        ...


@define
class ScramApis:
    """Changes SCRAM credentials through the controller."""

    auth: AuthHelper
    controller: Writer

    async def alter(self, request: Request) -> bytes:
        """Alter credentials, one result per user; responds once the records are committed."""
        self.auth.authorize_cluster_operation(request, AclOperation.ALTER)
        many = len(request.body.deletions) + len(request.body.upsertions) > MANY
        deletions, upsertions = await offload_if(many, _alterations, request.body)

        def operation(image: Image) -> ControllerResult[tuple[ScramResult, ...]]:
            """See Operation."""
            level = image.features.level(METADATA_VERSION)
            supported = level == 0 or level >= SCRAM_SINCE
            altered = alter_credentials(image.scram, deletions, upsertions, supported=supported)
            return ControllerResult(records=altered.records, response=altered.results)

        results: tuple[ScramResult, ...] = await committed(self.controller.write(operation, offload=many))
        return await offload_if(many, _encoded, request.header.api_version, results)


def _alterations(body: Any) -> tuple[list[ScramDeletion], list[ScramUpsertion]]:
    deletions = [ScramDeletion(name=each.name, mechanism=each.mechanism) for each in body.deletions]
    upsertions = [
        ScramUpsertion(
            name=each.name,
            mechanism=each.mechanism,
            iterations=each.iterations,
            salt=bytes(each.salt),
            salted_password=bytes(each.salted_password),
        )
        for each in body.upsertions
    ]
    return deletions, upsertions


def _encoded(version: int, results: tuple[ScramResult, ...]) -> bytes:
    return build_response(
        api_keys.ALTER_USER_SCRAM_CREDENTIALS,
        version,
        throttle_time=timedelta(0),
        results=tuple(
            build(
                api_keys.ALTER_USER_SCRAM_CREDENTIALS,
                version,
                "response",
                "AlterUserScramCredentialsResult",
                user=each.user,
                error_code=each.error_code,
                error_message=each.error_message,
            )
            for each in results
        ),
    )


# CreateDelegationToken, RenewDelegationToken and ExpireDelegationToken (ControllerApis; KIP-48, KIP-373).


_Change: TypeAlias = Callable[[bytes, str, int], "Future[TokenResult]"]
"""Changes the token with an HMAC on behalf of a requester, for a period in ms."""

_ERROR_TIMESTAMP = 0
"""The timestamp in error responses of Kafka's controller."""


@define
class TokenApis:
    """Changes tokens through the controller; responds once the records are committed."""

    auth: AuthHelper
    writer: TokenWriter

    async def create(self, request: Request) -> bytes:
        """Create a token for the client itself, or for an owner on which it has CREATE_TOKENS."""
        owner, requester = owner_of(request), request.session.principal
        if not may_use_tokens(request):
            return not_created(request, owner, error_codes.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, NOT_ALLOWED_TIMESTAMP)
        if owner != requester and not self.auth.on_user(request, AclOperation.CREATE_TOKENS, str(owner)):
            return not_created(request, owner, error_codes.DELEGATION_TOKEN_AUTHORIZATION_FAILED, NOT_ALLOWED_TIMESTAMP)
        renewers = await offload_if(len(request.body.renewers) > MANY, renewers_of, request)
        creation = TokenCreation(
            owner=str(owner),
            requester=str(requester),
            renewers=renewers,
            max_lifetime_ms=_ms(request.body.max_lifetime),
        )
        result = await committed(self.writer.create(creation))
        for record in result.records:
            if isinstance(record, DelegationTokenRecord):
                secret = token_hmac_bytes(self.writer.settings.secret or "", record.token_id)
                return token_created_response(request.header.api_version, record, secret)
        return not_created(request, owner, result.error_code, _ERROR_TIMESTAMP)

    async def renew(self, request: Request) -> bytes:
        """Extend a token's expiry; allowed to its owner and renewers."""
        return await self._change(request, self.writer.renew, request.body.renew_period)

    async def expire(self, request: Request) -> bytes:
        """Bring forward a token's expiry or remove the token; allowed to its owner and renewers."""
        return await self._change(request, self.writer.expire, request.body.expiry_time_period)

    async def _change(self, request: Request, change: _Change, period: timedelta) -> bytes:
        version = request.header.api_version
        if not may_use_tokens(request):
            return token_expiry_response(
                version, error_codes.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, NOT_ALLOWED_TIMESTAMP
            )
        result = await committed(change(bytes(request.body.hmac), str(request.session.principal), _ms(period)))
        return token_expiry_response(version, result.error_code, result.expiry_ms)


def _ms(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)


# The handler of each controller API and its authorization (kafka.server.ControllerApis).


FORWARDABLE = (
    api_keys.CREATE_ACLS,
    api_keys.DELETE_ACLS,
    api_keys.ALTER_USER_SCRAM_CREDENTIALS,
    api_keys.CREATE_DELEGATION_TOKEN,
    api_keys.RENEW_DELEGATION_TOKEN,
    api_keys.EXPIRE_DELEGATION_TOKEN,
    api_keys.DESCRIBE_QUORUM,
    api_keys.UNREGISTER_BROKER,
)
"""The APIs that an Envelope may carry."""

_Serve: TypeAlias = Callable[[ServingState, Request], Awaitable[bytes]]


@define(kw_only=True)
class ControllerApis:
    """Handles requests with the controller's current serving state; `serving` returns None until the log is open.

    Before the log is replayed, only requests that need no image are served, and only to super users: for all others
    else the authorizer raises AuthorizerNotReadyError. Early-start listeners exist for this (KIP-801).
    """

    auth: AuthHelper
    node_id: int
    serving: Callable[[], ServingState | None]
    contested: bool = False
    """Whether other controllers share the log: until this one is active, changes are sent to them."""
    generation: Generation = Generation.V4_3
    """The Kafka whose APIs are served."""
    settings: Mapping[str, str] = field(factory=dict)
    """The returned properties of its authorizer (access_settings)."""

    def handlers(self) -> dict[int, Handler]:
        """Return a handler for every API of CONTROLLER_APIS except those that a connection handles itself."""
        acls = AclApis(self.auth)
        own = AccessSettingsApi(auth=self.auth, node_id=self.node_id, settings=self.settings)
        handlers: dict[int, Handler] = {
            api_keys.FETCH: self._for(
                AclOperation.CLUSTER_ACTION, lambda serving, request: serving.fetching.fetch(request)
            ),
            api_keys.FETCH_SNAPSHOT: self._for(
                AclOperation.CLUSTER_ACTION, lambda serving, request: serving.snapshots.fetch(request)
            ),
            api_keys.DESCRIBE_QUORUM: self._for(AclOperation.DESCRIBE, _describe_quorum),
            api_keys.DESCRIBE_CLUSTER: self._for(AclOperation.ALTER, self._describe_cluster),
            api_keys.DESCRIBE_ACLS: self._when_replayed(acls.describe_acls),
            api_keys.DESCRIBE_CONFIGS: self._when_replayed(own.describe_configs),
            api_keys.CREATE_ACLS: self._when_active(acls.create_acls),
            api_keys.DELETE_ACLS: self._when_active(acls.delete_acls),
            api_keys.ALTER_USER_SCRAM_CREDENTIALS: self._when_active(self._alter_scram),
            api_keys.CREATE_DELEGATION_TOKEN: self._when_active(lambda request: self._tokens().create(request)),
            api_keys.RENEW_DELEGATION_TOKEN: self._when_active(lambda request: self._tokens().renew(request)),
            api_keys.EXPIRE_DELEGATION_TOKEN: self._when_active(lambda request: self._tokens().expire(request)),
            api_keys.UNREGISTER_BROKER: self._authorized(
                AclOperation.ALTER, self._of_brokers(BrokerRegistrationApis.unregister)
            ),
            **{
                key: self._authorized(AclOperation.CLUSTER_ACTION, handler)
                for key, handler in self.own_broker().items()
            },
        }
        forwardable = {key: handlers[key] for key in FORWARDABLE}
        if self.generation is not Generation.V4_3:
            handlers[api_keys.UNREGISTER_CONTROLLER] = forwardable[api_keys.UNREGISTER_CONTROLLER] = self._authorized(
                AclOperation.ALTER, self._when_active(self._unregister_controller)
            )
        versions = [api for api in served_by(CONTROLLER_APIS, self.generation) if api.api_key in forwardable]
        envelopes = EnvelopeHandler(handlers=forwardable, apis=versions)
        handlers[api_keys.ENVELOPE] = self._authorized(AclOperation.CLUSTER_ACTION, envelopes.handle)
        return handlers

    def short_handlers(self) -> dict[int, ShortHandler]:
        """Return those of small requests (ShortHandler), each beside its handler."""
        acls = AclApis(self.auth)

        def create_acls(request: Request) -> "tuple[Future[Any], Callable[[int, Any], bytes]] | None":
            """Require the active controller, then begin."""
            self._check_active()
            return acls.begin_create(request)

        return {api_keys.CREATE_ACLS: create_acls}

    def _authorized(self, operation: int, handler: Handler) -> Handler:
        async def authorized(request: Request) -> bytes:
            """Authorize, then handle."""
            self.auth.authorize_cluster_operation(request, operation)
            return await handler(request)

        return authorized

    def _for(self, operation: int, serve: _Serve) -> Handler:
        """Return a handler that is served as soon as the log is open."""

        async def handler(request: Request) -> bytes:
            return await serve(self._serving(), request)

        return self._authorized(operation, handler)

    def _when_replayed(self, handler: Handler) -> Handler:
        """Return a handler that needs a complete image; it authorizes the request itself."""

        async def gated(request: Request) -> bytes:
            """Require a complete image, then handle."""
            self._serving().check_replayed()
            return await handler(request)

        return gated

    def _when_active(self, handler: Handler) -> Handler:
        """Return a handler that only the active controller serves; it authorizes the request itself."""

        async def gated(request: Request) -> bytes:
            """Require the active controller, then handle."""
            self._check_active()
            return await handler(request)

        return gated

    def own_broker(self) -> dict[int, Handler]:
        """Return the handlers for the broker in the same process, which needs no permission to register."""
        return {
            api_keys.BROKER_REGISTRATION: self._of_brokers(BrokerRegistrationApis.register),
            api_keys.BROKER_HEARTBEAT: self._of_brokers(BrokerRegistrationApis.heartbeat),
        }

    def _of_brokers(self, serve: Callable[[BrokerRegistrationApis, Request], Awaitable[bytes]]) -> Handler:
        """Return a handler of the active controller for an API of broker registrations."""

        async def handler(request: Request) -> bytes:
            """Handle with the registrations' writer."""
            serving = self._serving()
            assert serving.brokers is not None  # noqa: S101 - see _when_active
            return await serve(BrokerRegistrationApis(serving.quorum.cluster_id, serving.brokers), request)

        return self._when_active(handler)

    def _check_active(self) -> None:
        serving = self.serving()
        # Kafka's clients try the active controller on NOT_CONTROLLER, and give up on an error of KIP-801.
        if self.contested and (serving is None or serving.controller is None):
            raise RequestError(error_codes.NOT_CONTROLLER, "This node is not the active controller.")
        self._serving().active()

    def _serving(self) -> ServingState:
        serving = self.serving()
        if serving is None:
            raise AuthorizerNotReadyError("the controller has not opened its log yet")
        return serving

    async def _alter_scram(self, request: Request) -> bytes:
        return await ScramApis(self.auth, self._serving().active()).alter(request)

    async def _unregister_controller(self, request: Request) -> bytes:
        serving, controller_id = self._serving(), request.body.controller_id

        def operation(image: Image) -> ControllerResult[None]:
            """See Operation."""
            record = unregister_controller(image, controller_id, active=serving.quorum.node_id)
            return ControllerResult(records=(record,), response=None)

        await committed(serving.active().write(operation))
        return build_response(api_keys.UNREGISTER_CONTROLLER, request.header.api_version, error_message=None)

    def _tokens(self) -> TokenApis:
        writer = self._serving().tokens
        assert writer is not None  # noqa: S101 - see _when_active
        return TokenApis(self.auth, writer)

    async def _describe_cluster(self, serving: ServingState, request: Request) -> bytes:
        """Describe the controllers; with no known leader, this node names itself and rejects writes.

        Kafka's Admin 4.3.1 never retries if the response names no controller, but does on NOT_CONTROLLER.
        """
        quorum, leader_id = serving.quorum, serving.quorum.leader().leader_id
        return describe_cluster(
            request,
            self.auth,
            endpoint_type=CONTROLLER_ENDPOINTS,
            cluster_id=quorum.cluster_id,
            controller_id=quorum.node_id if leader_id < 0 else leader_id,
            nodes=(
                DescribedNode(node_id=node_id, address=address)
                for node_id, address in quorum.addresses(request.session.listener_name).items()
            ),
        )


async def _describe_quorum(serving: ServingState, request: Request) -> bytes:
    if not names_metadata_partition(request):
        return await offload_if(len(request.frame) > MANY_ENTRIES_BYTES, unknown_partitions, request)
    log, now = serving.log, current_time_ms()
    mark = log.high_watermark()
    end = mark if serving.controller is None else serving.controller.log.end_offset()
    return QuorumDescription(quorum=serving.quorum, high_watermark=mark, end_offset=end, now=now).encoded(request)
