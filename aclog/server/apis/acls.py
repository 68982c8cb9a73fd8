"""Requests, handlers and authorization, and the APIs that brokers and controllers share."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import lru_cache
from typing import Any, Final, TypeVar

from attrs import field
from kio.schema.errors import ErrorCode

from aclog.authorizer.acl import AclBindingFilter, ResourcePattern, StandardAcl
from aclog.authorizer.audit import api_name
from aclog.authorizer.codes import CLUSTER_NAME, SUPPORTED_OPERATIONS, AclOperation, ResourceType
from aclog.authorizer.index.base import LONGEST_REMEMBERED
from aclog.authorizer.interface import (
    AclCreateResult,
    Action,
    AuthorizationResult,
    Authorizer,
    AuthorizerSession,
    denied_on_cluster,
    require_on_cluster,
)
from aclog.authorizer.settings import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG, KafkaPrincipal
from aclog.authorizer.standard import AUTHORIZER_CLASS_NAME_CONFIG
from aclog.config.listeners import access_property, has_kafkas_semantics
from aclog.config.node_config import HostPort, NodeConfig
from aclog.credentials.tokens import Renewer
from aclog.metalog.values import define, frozen
from aclog.protocol import api_keys, error_codes
from aclog.protocol.acls import (
    FIRST_COMPACT,
    CreateAclsRequest,
    create_acls_body,
    delete_acls_chunks,
    describe_acls_chunks,
    describe_groups_chunks,
    token_refused_response,
)
from aclog.protocol.headers import MalformedRequestError, Request, RequestError
from aclog.protocol.messages import build, build_response
from aclog.protocol.session import ANONYMOUS, SecurityProtocol
from aclog.server.loops import MANY, committed, offload_if

# Checks of delegation token requests that brokers and controllers share (KafkaApis, ControllerApis).


NOT_ALLOWED_TIMESTAMP = -1
"""The timestamp in a response that refuses the client's connection type or its owner principal."""


def may_use_tokens(request: Request) -> bool:
    """Whether the connection may manage tokens (KafkaApis.allowTokenRequests).

    Denied on PLAINTEXT, on SSL without a client certificate, and to clients that logged in with a token themselves.
    """
    session = request.session
    protocol = session.security_protocol
    unauthenticated = protocol is SecurityProtocol.SSL and session.principal == ANONYMOUS
    return not (session.token_authenticated or protocol is SecurityProtocol.PLAINTEXT or unauthenticated)


def owner_of(request: Request) -> KafkaPrincipal:
    """Return the owner of the token to create: the requester unless the request names another principal.

    Raises:
        RequestError: An owner name without an owner type (-1, as in Kafka).

    """
    body: Any = request.body
    name = getattr(body, "owner_principal_name", None)
    if not name:
        return request.session.principal
    if body.owner_principal_type is None:
        raise RequestError(error_codes.UNKNOWN_SERVER_ERROR)
    return KafkaPrincipal(type=body.owner_principal_type, name=name)


def renewers_of(request: Request) -> tuple[Renewer, ...]:
    """Return the renewers of a CreateDelegationToken request."""
    return tuple(Renewer(type=each.principal_type, name=each.principal_name) for each in request.body.renewers)


def not_created(request: Request, owner: KafkaPrincipal, error_code: int, timestamp: int) -> bytes:
    """Return the response that refuses a CreateDelegationToken request."""
    version, requester = request.header.api_version, str(request.session.principal)
    return token_refused_response(version, str(owner), requester, error_code=error_code, timestamp=timestamp)


# Authorization of requests by the APIs of a node (kafka.server.AuthHelper).


_CLUSTER = ResourceType.CLUSTER, CLUSTER_NAME

_LOGGED, _UNLOGGED = (True, True), (False, False)
"""Whether an allowed and a denied access is logged (Action)."""

_MAX_ACTIONS = 1 << 14
"""To make an action takes three times as long as to decide it, and clients send the same requests again and again. Each
takes 0.5 kB at most: longer names than `LONGEST_REMEMBERED` are not kept."""


@define
class AuthHelper:
    """Authorizes requests; without an authorizer everything is allowed."""

    authorizer: Authorizer | None
    _pinned_for: AuthorizerSession | None = None
    """The decisions on the one request that a pinned authorizer is for; no connection keeps them."""

    def pinned(self, request: Request) -> "AuthHelper":
        """Return an authorizer that decides all of a request by the current image (see Authorizer.pinned)."""
        if self.authorizer is None:
            return self
        pinned, client = self.authorizer.pinned(), request.session
        return AuthHelper(pinned, pinned.session(client.principal_text, client.host))

    def authorize_cluster_operation(self, request: Request, operation: int) -> None:
        """Require that the operation on the cluster is allowed.

        Raises:
            AclRequestError: It is denied (31, CLUSTER_AUTHORIZATION_FAILED).
            AuthorizerNotReadyError, InvalidRequestError: As Authorizer.authorize.

        """
        if self.authorizer is None:
            return
        session = self._pinned_for or request.session.decisions_by(self.authorizer)
        decided = session.decide(operation, *_CLUSTER)
        if decided is None:
            require_on_cluster(self.authorizer, request.context, operation, lambda: _text(request))
        elif not decided:
            raise denied_on_cluster(operation, _text(request))

    def on_cluster(
        self, request: Request, operation: int, *, log_if_allowed: bool = True, log_if_denied: bool = True
    ) -> bool:
        """Whether the operation on the cluster is allowed; raises as Authorizer.authorize."""
        return self._allowed(request, operation, *_CLUSTER, logged=(log_if_allowed, log_if_denied))

    def cluster_operations(self, request: Request) -> int:
        """Return the allowed cluster operations as a bit set; 0 if DESCRIBE is denied."""
        if not self.on_cluster(request, AclOperation.DESCRIBE):
            return 0
        supported: Iterable[AclOperation] = SUPPORTED_OPERATIONS[ResourceType.CLUSTER]
        return sum(1 << each for each in supported if self._allowed(request, each, *_CLUSTER, logged=_UNLOGGED))

    def topic_operations(self, request: Request, name: str) -> int:
        """Return the allowed operations on a topic as a bit set; raises as Authorizer.authorize."""
        supported: Iterable[AclOperation] = SUPPORTED_OPERATIONS[ResourceType.TOPIC]
        return sum(
            1 << each for each in supported if self._allowed(request, each, ResourceType.TOPIC, name, logged=_UNLOGGED)
        )

    def on_topic(self, request: Request, operation: int, name: str) -> bool:
        """Whether the operation on the topic is allowed; raises as Authorizer.authorize."""
        return self._allowed(request, operation, ResourceType.TOPIC, name)

    def on_user(self, request: Request, operation: int, principal: str) -> bool:
        """Whether the operation on a user (the full principal text) is allowed; raises as Authorizer.authorize."""
        return self._allowed(request, operation, ResourceType.USER, principal)

    def on_token(self, request: Request, operation: int, token_id: str) -> bool:
        """Whether the operation on a delegation token is allowed; raises as Authorizer.authorize."""
        return self._allowed(request, operation, ResourceType.DELEGATION_TOKEN, token_id)

    def _allowed(
        self, request: Request, operation: int, resource_type: int, name: str, *, logged: tuple[bool, bool] = _LOGGED
    ) -> bool:
        if self.authorizer is None:
            return True
        session = self._pinned_for
        if session is None:
            session = request.session.decisions_by(self.authorizer)
        decided = session.decide(operation, resource_type, name, log_if_allowed=logged[0], log_if_denied=logged[1])
        if decided is not None:
            return decided
        make = _kept_action if len(name) <= LONGEST_REMEMBERED else _action
        action = make(operation, resource_type, name, *logged)
        return self.authorizer.authorize(request.context, [action])[0] is AuthorizationResult.ALLOWED


def _action(operation: int, resource_type: int, name: str, log_if_allowed: bool, log_if_denied: bool, /) -> Action:
    return Action(
        operation=operation,
        resource_pattern=ResourcePattern(resource_type=resource_type, name=name),
        log_if_allowed=log_if_allowed,
        log_if_denied=log_if_denied,
    )


_kept_action = lru_cache(_MAX_ACTIONS)(_action)


def _text(request: Request) -> str:
    """Describe a request for an error message (RequestChannel.Request.toString without its JVM-specific fields)."""
    header = request.header
    return (
        f"Request(apiKey={api_name(header.api_key)}, apiVersion={header.api_version}, "
        f"clientId={header.client_id}, correlationId={header.correlation_id})"
    )


# DescribeAcls, CreateAcls and DeleteAcls for brokers and controllers (kafka.server.AclApis).


_MANY_ACLS = 2_000
"""With more ACLs than this, DescribeAcls searches them in a thread."""

_T = TypeVar("_T")


def _described(version: int, authorizer: Authorizer, acl_filter: AclBindingFilter) -> bytes:
    groups = authorizer.acl_groups(acl_filter) if version >= FIRST_COMPACT else None
    if groups is not None:
        return b"".join(describe_groups_chunks(groups))
    return b"".join(describe_acls_chunks(version, authorizer.acls(acl_filter)))


@define
class AclApis:
    """Lists ACLs from the authorizer's image and changes them through its mutator."""

    auth: AuthHelper

    async def describe_acls(self, request: Request) -> bytes:
        """Return the ACLs that match the filter."""
        acl_filter = _filter(request.body)
        authorizer = self._authorized(request, AclOperation.DESCRIBE)
        version = request.header.api_version
        if authorizer.acl_count() > _MANY_ACLS:
            # A filter that matches nothing scans all ACLs without yielding a chunk, so the loop would get no turn.
            return await asyncio.to_thread(_described, version, authorizer, acl_filter)
        return await _joined(describe_acls_chunks(version, authorizer.acls(acl_filter)))

    async def create_acls(self, request: Request) -> bytes:
        """Create ACLs; responds once they are committed."""
        acls = await creations_of(request)
        authorizer = self._authorized(request, AclOperation.ALTER)
        results = await committed(authorizer.create_acls(request.context, acls))
        version = request.header.api_version
        if len(results) > MANY:
            return await asyncio.to_thread(create_acls_body, version, results)
        return create_acls_body(version, results)

    def begin_create(
        self, request: Request
    ) -> "tuple[Future[list[AclCreateResult]], Callable[[int, list[AclCreateResult]], bytes]] | None":
        """Begin `create_acls` of a common request (ShortHandler): requests to create few ACLs come by the thousand."""
        body = request.body
        if not isinstance(body, CreateAclsRequest):
            return None
        for each in body.creations:
            _refuse_unknown(each)
        authorizer = self._authorized(request, AclOperation.ALTER)
        return authorizer.create_acls(request.context, body.creations), create_acls_body

    async def delete_acls(self, request: Request) -> bytes:
        """Delete the ACLs that match the filters; responds once that is committed."""
        filters = await filters_of(request)
        authorizer = self._authorized(request, AclOperation.ALTER)
        results = await committed(authorizer.delete_acls(request.context, filters))
        many = len(results) > MANY or sum(len(each.deleted) for each in results) > MANY
        return await offload_if(many, b"".join, delete_acls_chunks(request.header.api_version, results))

    def _authorized(self, request: Request, operation: int) -> Authorizer:
        self.auth.authorize_cluster_operation(request, operation)
        if self.auth.authorizer is None:
            raise RequestError(error_codes.SECURITY_DISABLED, "No Authorizer is configured.")
        return self.auth.authorizer


async def creations_of(request: Request) -> Sequence[StandardAcl]:
    """Return the ACLs of a CreateAcls request.

    Raises:
        MalformedRequestError: Kafka rejects the request while parsing it.

    """
    body = request.body
    if isinstance(body, CreateAclsRequest):
        for each in body.creations:
            _refuse_unknown(each)
        return body.creations
    return await _all(_creation, body.creations)


async def filters_of(request: Request) -> list[AclBindingFilter]:
    """Return the filters of a DeleteAcls request.

    Raises:
        MalformedRequestError: Kafka rejects the request while parsing it.

    """
    return await _all(_filter, request.body.filters)


async def _all(convert: Callable[[Any], _T], entries: Sequence[Any]) -> list[_T]:
    return await offload_if(len(entries) > MANY, lambda: [convert(each) for each in entries])


async def _joined(pieces: Iterator[bytes]) -> bytes:
    """Join the chunks of a response, yielding to the event loop after each."""
    chunks = []
    for piece in pieces:
        chunks.append(piece)
        await asyncio.sleep(0)
    return b"".join(chunks)


def _creation(each: Any) -> StandardAcl:
    acl = StandardAcl(
        resource_type=each.resource_type,
        resource_name=each.resource_name,
        pattern_type=each.resource_pattern_type,
        principal=each.principal,
        host=each.host,
        operation=each.operation,
        permission_type=each.permission_type,
    )
    _refuse_unknown(acl)
    return acl


def _filter(each: Any) -> AclBindingFilter:
    acl_filter = AclBindingFilter(
        resource_type=each.resource_type_filter,
        resource_name=each.resource_name_filter,
        pattern_type=each.pattern_type_filter,
        principal=each.principal_filter,
        host=each.host_filter,
        operation=each.operation,
        permission_type=each.permission_type,
    )
    _refuse_unknown(acl_filter)
    return acl_filter


def _refuse_unknown(binding: StandardAcl | AclBindingFilter) -> None:
    """Reject code 0 (UNKNOWN), on which Kafka's request classes throw; other unknown codes pass."""
    if not (binding.resource_type and binding.pattern_type and binding.operation and binding.permission_type):
        raise MalformedRequestError("ACL or filter with a field of code 0 (UNKNOWN)")


# DescribeCluster for brokers and controllers (kafka.server.AuthHelper.computeDescribeClusterResponse).


BROKER_ENDPOINTS, CONTROLLER_ENDPOINTS = 1, 2
"""The endpoint types of DescribeCluster (EndpointType, KIP-919)."""

NOT_ASKED = -(2**31)
"""Authorized operations that were not requested (the schema default, Integer.MIN_VALUE)."""


@frozen(kw_only=True)
class DescribedNode:
    """A broker or a controller, and how clients reach it."""

    node_id: int
    address: HostPort
    rack: str | None = None
    fenced: bool = False


def describe_cluster(
    request: Request,
    auth: AuthHelper,
    *,
    endpoint_type: int,
    cluster_id: str,
    controller_id: int,
    nodes: Iterable[DescribedNode],
) -> bytes:
    """Return the encoded DescribeClusterResponse for nodes of `endpoint_type`.

    `controller_id` is -1 if unknown. A request for the other endpoint type gets MISMATCHED_ENDPOINT_TYPE.
    """
    body, version = request.body, request.header.api_version
    requested_type = getattr(body, "endpoint_type", BROKER_ENDPOINTS)
    if requested_type != endpoint_type:
        return _mismatched(version, requested_type, endpoint_type)
    operations = NOT_ASKED
    if body.include_cluster_authorized_operations:
        operations = auth.pinned(request).cluster_operations(request)
    return build_response(
        api_keys.DESCRIBE_CLUSTER,
        version,
        endpoint_type=endpoint_type,
        cluster_id=cluster_id,
        controller_id=controller_id,
        brokers=tuple(
            _node(
                version,
                broker_id=each.node_id,
                host=each.address.host,
                port=each.address.port,
                rack=each.rack,
                is_fenced=each.fenced,
            )
            for each in nodes
        ),
        cluster_authorized_operations=operations,
    )


def _node(version: int, **about: Any) -> Any:
    return build(api_keys.DESCRIBE_CLUSTER, version, "response", "DescribeClusterBroker", **about)


def _mismatched(version: int, requested_type: int, served: int) -> bytes:
    """Return the error response for a request sent to the wrong kind of node (the texts are Kafka's)."""
    kinds = {BROKER_ENDPOINTS: "BROKER", CONTROLLER_ENDPOINTS: "CONTROLLER"}
    if requested_type in kinds:
        error = ErrorCode.mismatched_endpoint_type if version else ErrorCode.invalid_request
        message = (
            f"The request was sent to an endpoint of type {kinds[served]}, "
            f"but we wanted an endpoint of type {kinds[requested_type]}"
        )
    else:
        error = ErrorCode.unsupported_endpoint_type
        message = f"Unsupported endpoint type {requested_type}"
    return build_response(
        api_keys.DESCRIBE_CLUSTER,
        version,
        error_code=error,
        error_message=message,
        cluster_id="",
        controller_id=-1,
        brokers=(),
        cluster_authorized_operations=NOT_ASKED,
    )


# DescribeConfigs, limited to a node's own authorizer settings, requested by its name.


ACCESS_PROPERTIES = frozenset({SUPER_USERS_CONFIG, ALLOW_EVERYONE_CONFIG, AUTHORIZER_CLASS_NAME_CONFIG})
"""The properties that are returned; Kafka hides all of them except the class, as it does not define them."""

_BROKER = 4
_STATIC, _STRING = 4, 2
"""A value from server.properties, and its type (DescribeConfigsResponse)."""

NO_OTHER_CONFIGS: Final = "aclog keeps no dynamic configuration: see each node's server.properties"
"""Why no other properties are returned."""


@frozen(kw_only=True)
class AccessSettingsApi:
    """Answers DescribeConfigs about this node: of a broker and of a controller, which may be one process."""

    auth: AuthHelper
    node_id: int
    settings: Mapping[str, str] = field(factory=dict)
    """The returned properties of its authorizer (access_settings)."""

    async def describe_configs(self, request: Request) -> bytes:
        """Return the encoded response.

        Raises:
            RequestError: the client lacks DESCRIBE_CONFIGS on the cluster, or requests other properties.

        """
        if not asks_for_access_settings(request, self.node_id):
            raise RequestError(error_codes.UNSUPPORTED_VERSION, NO_OTHER_CONFIGS)
        if not self.auth.on_cluster(request, AclOperation.DESCRIBE_CONFIGS):
            raise RequestError(error_codes.CLUSTER_AUTHORIZATION_FAILED)
        return describe_access_settings(self.settings, request)


def access_settings(config: NodeConfig) -> dict[str, str]:
    """Return those of the properties that are set, with the values that the authorizer uses."""
    name = config.authorizer_class_name
    settings = {AUTHORIZER_CLASS_NAME_CONFIG: name}
    if has_kafkas_semantics(config):
        settings |= {key: access_property(config, key) for key in (SUPER_USERS_CONFIG, ALLOW_EVERYONE_CONFIG)}
    return {key: value for key, value in settings.items() if value is not None}


def asks_for_access_settings(request: Request, node_id: int) -> bool:
    """Return whether a request names only returned properties of this node."""
    return all(
        each.resource_type == _BROKER
        and each.resource_name == str(node_id)
        and each.configuration_keys is not None
        and set(each.configuration_keys) <= ACCESS_PROPERTIES
        for each in request.body.resources
    )


def describe_access_settings(settings: Mapping[str, str], request: Request) -> bytes:
    """Return the encoded response; a property that is not set is left out, as by Kafka."""
    version = request.header.api_version

    def result(resource: Any) -> Any:
        """Return the answer for a resource, which is this node."""
        configs = tuple(
            build(
                api_keys.DESCRIBE_CONFIGS,
                version,
                "response",
                "DescribeConfigsResourceResult",
                name=key,
                value=settings[key],
                read_only=True,
                config_source=_STATIC,
                config_type=_STRING,
            )
            for key in sorted(set(resource.configuration_keys) & settings.keys())
        )
        return build(
            api_keys.DESCRIBE_CONFIGS,
            version,
            "response",
            "DescribeConfigsResult",
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=configs,
        )

    return build_response(api_keys.DESCRIBE_CONFIGS, version, results=tuple(map(result, request.body.resources)))
