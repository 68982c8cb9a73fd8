"""Requests to a server: ACLs, the cluster, settings, tokens and users."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from attrs import field

from aclog.authorizer.acl import AclBindingFilter, StandardAcl, StandardAclWithId
from aclog.authorizer.acls_image import acl_of_content, columns_of_contents
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.interface import AclCreateResult, AclDeleteResult
from aclog.authorizer.settings import CIDR_FEATURE, KafkaPrincipal, deciding_level
from aclog.client.connection import Connection, connect
from aclog.client.errors import UnreachableError, cut_text
from aclog.config.node_config import ClientSecurity, HostPort
from aclog.credentials.scram import CredentialInfo, UserCredentials
from aclog.metalog.codec import ACL_CONTENT, encode_acl
from aclog.metalog.errors import DecodeError, MetadataError
from aclog.metalog.primitives import ZERO
from aclog.metalog.values import frozen
from aclog.protocol import api_keys, error_codes
from aclog.protocol.acls import FIRST_COMPACT, REQUESTER_SINCE, check_listing, decode_listing, listing_digest
from aclog.protocol.headers import RequestError
from aclog.protocol.messages import MAX_STRING, build, encode_request
from aclog.snapshots.image import KAFKA_VERSION_CONFIG, METADATA_VERSION, NEWEST_METADATA_VERSION

# DescribeAcls, CreateAcls and DeleteAcls requests to a server, ours or Kafka's.


_OLDEST, _WITH_USERS, _NEWEST = 1, 3, 3
"""Version 1 introduced pattern types (KIP-290), version 2 only another encoding, version 3 USER resources (KIP-373)."""


def version_for(connection: Connection, api_key: int, resource_types: Iterable[int]) -> int:
    """Return the version in which to send a request about ACLs on resources of these types.

    A server without USER resources may misread one, so it is never sent any.

    Raises:
        ConfigError: the server is too old.

    """
    oldest = _WITH_USERS if ResourceType.USER in resource_types else _OLDEST
    return connection.version(api_key, oldest, _NEWEST)


async def describe_acls(
    connection: Connection, acl_filter: AclBindingFilter, timeout: float | None = None
) -> list[StandardAcl]:
    """Return the ACLs that match the filter; `timeout` in seconds overrides the connection's.

    Raises:
        RequestError: the server refuses; has its code and message.
        UnreachableError, DecodeError: as Connection.ask; also a response with bytes after its last ACL, or of too many.
        ConfigError: the server is too old.

    """
    version = version_for(connection, api_keys.DESCRIBE_ACLS, [acl_filter.resource_type])
    request = build(api_keys.DESCRIBE_ACLS, version, "request", **_filter_fields(acl_filter))
    response = await connection.ask(request, timeout, whole=True, check=partial(check_listing, version))
    _check(response)
    return [
        StandardAcl(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            pattern_type=resource.pattern_type,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission_type,
        )
        for resource in response.resources
        for acl in resource.acls
    ]


@frozen(kw_only=True)
class AclResponse:
    """The ACLs of a response, by content, as AccessControlEntryRecords have them behind the id.

    `contents` is None if the response has the same bytes as one that the caller knows. `digest` is the SHA-256 of these
    bytes, in hexadecimal, without what differs between equal responses; None from a server before version 2.
    """

    contents: set[bytes] | None
    digest: str | None


async def acl_contents(
    connection: Connection, acl_filter: AclBindingFilter, timeout: float | None = None
) -> set[bytes]:
    """Return the contents of the ACLs that match the filter, as AccessControlEntryRecords have them behind the id.

    Ten times as fast as describe_acls, and raises as it.
    """
    response = await acl_response(connection, acl_filter, timeout)
    return response.contents or set()


async def acl_response(
    connection: Connection, acl_filter: AclBindingFilter, timeout: float | None = None, known: Collection[str] = ()
) -> AclResponse:
    """Do the same, but decode no response whose digest is among `known`, those of earlier ones."""
    version = version_for(connection, api_keys.DESCRIBE_ACLS, [acl_filter.resource_type])
    if version < FIRST_COMPACT:
        acls = await describe_acls(connection, acl_filter, timeout)
        return AclResponse(contents={encode_acl(acl, ZERO)[ACL_CONTENT:] for acl in acls}, digest=None)
    request = encode_request(build(api_keys.DESCRIBE_ACLS, version, "request", **_filter_fields(acl_filter)))
    payload, position = await connection.send(api_keys.DESCRIBE_ACLS, version, request, timeout)
    digest = listing_digest(payload, position)
    if digest in known:
        return AclResponse(contents=None, digest=digest)
    try:
        listing = decode_listing(payload, position)
    except DecodeError as error:
        connection.give_up(UnreachableError(f"{connection.address}: closed after a malformed response: {error}"))
        raise error.at(path=str(connection.address)) from None
    if listing.error_code:
        raise _refusal(listing.error_code, listing.error_message)
    return AclResponse(contents=listing.contents, digest=digest)


async def create_acls(
    connection: Connection, acls: Sequence[StandardAcl], timeout: float | None = None
) -> list[AclCreateResult]:
    """Create ACLs; return one result for each, in order, once they are committed. For the rest see describe_acls."""
    version = version_for(connection, api_keys.CREATE_ACLS, [acl.resource_type for acl in acls])
    creations = tuple(
        build(
            api_keys.CREATE_ACLS,
            version,
            "request",
            "AclCreation",
            resource_type=acl.resource_type,
            resource_name=acl.resource_name,
            resource_pattern_type=acl.pattern_type,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission_type,
        )
        for acl in acls
    )
    response = await connection.ask(build(api_keys.CREATE_ACLS, version, "request", creations=creations), timeout)
    _check_number(connection, "CreateAcls", len(response.results), len(acls))
    return [AclCreateResult(error=_error(each)) for each in response.results]


async def delete_acls(
    connection: Connection, filters: Sequence[AclBindingFilter], timeout: float | None = None
) -> list[AclDeleteResult]:
    """Delete the ACLs that match the filters; return one result for each filter. For the rest see describe_acls."""
    version = version_for(connection, api_keys.DELETE_ACLS, [each.resource_type for each in filters])
    messages = tuple(
        build(api_keys.DELETE_ACLS, version, "request", "DeleteAclsFilter", **_filter_fields(each)) for each in filters
    )
    response = await connection.ask(build(api_keys.DELETE_ACLS, version, "request", filters=messages), timeout)
    _check_number(connection, "DeleteAcls", len(response.filter_results), len(filters))
    return [
        AclDeleteResult(deleted=tuple(map(_deleted, each.matching_acls)), error=_error(each))
        for each in response.filter_results
    ]


def _check_number(connection: Connection, request: str, results: int, expected: int) -> None:
    """Raise DecodeError, and close the connection, unless a response has one result for each ACL or filter."""
    if results == expected:
        return
    problem = f"{request}: {results:,} results for {expected:,} ACLs: expected one each"
    connection.give_up(UnreachableError(f"{connection.address}: closed after a malformed response: {problem}"))
    raise DecodeError(problem, path=str(connection.address))


_SAFE_CHARACTERS = MAX_STRING // 4
"""Strings up to this length fit into a record in any case: UTF-8 takes at most 4 bytes a character."""


def check_contents(contents: Collection[bytes]) -> None:
    """Check the same of ACLs that are given by content, without an object for each."""
    columns, odd = columns_of_contents(contents)
    codes = (columns.resource_type <= ResourceType.ANY) | (columns.pattern_type <= PatternType.MATCH)
    codes |= (columns.operation <= AclOperation.ANY) | (columns.permission_type <= AclPermissionType.ANY)
    if odd or codes.any():
        check_acls(map(acl_of_content, contents))


def check_acls(acls: Iterable[StandardAcl]) -> None:
    """Check that listed ACLs can be recorded. Operations and resource types of a newer Kafka are accepted.

    Raises:
        DecodeError: UNKNOWN, ANY or MATCH, which are for filters only (Kafka's DescribeAclsResponse throws too), or a
            string that is too long for a record.

    """
    for acl in acls:
        for text in (acl.resource_name, acl.principal, acl.host):
            if len(text) > _SAFE_CHARACTERS and len(text.encode()) > MAX_STRING:
                raise DecodeError(f"a string of {len(text)} characters: expected at most {MAX_STRING} bytes")
        if (
            acl.resource_type <= ResourceType.ANY
            or acl.pattern_type <= PatternType.MATCH
            or acl.operation <= AclOperation.ANY
            or acl.permission_type <= AclPermissionType.ANY
        ):
            raise DecodeError(
                f"an ACL of resource type {acl.resource_type}, pattern type {acl.pattern_type}, operation "
                f"{acl.operation} and permission type {acl.permission_type}: expected none of UNKNOWN, ANY and MATCH"
            )


def _filter_fields(acl_filter: AclBindingFilter) -> dict[str, Any]:
    return {
        "resource_type_filter": acl_filter.resource_type,
        "resource_name_filter": acl_filter.resource_name,
        "pattern_type_filter": acl_filter.pattern_type,
        "principal_filter": acl_filter.principal,
        "host_filter": acl_filter.host,
        "operation": acl_filter.operation,
        "permission_type": acl_filter.permission_type,
    }


def _deleted(each: Any) -> StandardAclWithId:
    acl = StandardAcl(
        resource_type=each.resource_type,
        resource_name=each.resource_name,
        pattern_type=each.pattern_type,
        principal=each.principal,
        host=each.host,
        operation=each.operation,
        permission_type=each.permission_type,
    )
    return StandardAclWithId(id=None, acl=acl)


def _error(result: Any) -> RequestError | None:
    return _refusal(int(result.error_code), result.error_message) if result.error_code else None


# Requests about the cluster, the quorum and the features.


BROKERS, CONTROLLERS = 1, 2
"""Endpoint types of DescribeCluster (KIP-919): brokers describe brokers only, controllers controllers only."""

NO_TIMESTAMP = -1

_MOST_OF_ID = 255
"""Characters of a cluster id; Kafka's have 22."""

_FIRST_WITH_ALL_TOPICS, _FIRST_WITH_CLUSTER_ID, _NEWEST_METADATA = 1, 2, 13


@frozen(kw_only=True)
class ClusterNode:
    """A broker or a controller, and whether it is fenced."""

    node_id: int
    address: HostPort
    fenced: bool = False


@frozen(kw_only=True)
class ClusterDescription:
    """A cluster's id, its active controller (a broker may name any broker), and its nodes of one endpoint type."""

    cluster_id: str
    controller_id: int
    nodes: tuple[ClusterNode, ...]
    operations: frozenset[AclOperation] | None = None
    """The operations that the login may perform on the cluster; None if not requested, or not returned."""

    def may(self, operation: AclOperation) -> bool | None:
        """Return whether the login may perform this operation on the cluster; None if unknown."""
        return None if self.operations is None else operation in self.operations


@frozen(kw_only=True)
class ReplicaDescription:
    """A voter or an observer as the leader sees it; timestamps in ms since 1970, -1 if unknown."""

    replica_id: int
    directory_id: UUID | None
    log_end_offset: int
    last_fetch_timestamp: int = NO_TIMESTAMP
    last_caught_up_timestamp: int = NO_TIMESTAMP


@frozen(kw_only=True)
class QuorumDescription:
    """The quorum as its leader sees it (org.apache.kafka.clients.admin.QuorumInfo)."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[ReplicaDescription, ...]
    observers: tuple[ReplicaDescription, ...]
    addresses: Mapping[int, HostPort] = field(factory=dict)
    """The controller address of each voter; empty if the server does not return it (before Kafka 3.9)."""


@frozen(kw_only=True)
class FeaturesDescription:
    """The finalized feature levels and their epoch, and the supported ones as (min, max)."""

    finalized: dict[str, int]
    finalized_epoch: int
    supported: dict[str, tuple[int, int]]

    @property
    def cidr(self) -> bool:
        """Whether the server is a node of ours that decides by CIDR ranges (aclog.cidr.enabled)."""
        return CIDR_FEATURE in self.supported

    @property
    def deciding_level(self) -> int:
        """The level of metadata.version by which the server decides (aclog.authorizer.settings)."""
        return deciding_level(self.supported.get(METADATA_VERSION, (0, 0))[1], has_ranges=self.cidr)

    def upgrade_warning(self, server: HostPort, newest: int = NEWEST_METADATA_VERSION) -> str | None:
        """Return a warning if the cluster could be raised to a metadata.version at which nodes of ours stop.

        `newest` is the highest level that the requesting node supports.
        """
        _, most = self.supported.get(METADATA_VERSION, (0, 0))
        if most <= newest:
            return None
        if newest < NEWEST_METADATA_VERSION:
            return (
                f"{server} supports metadata.version up to {most}, and this node up to {newest}: it stops at a higher "
                f"one. Set {KAFKA_VERSION_CONFIG}=4.4 when the cluster's brokers run Kafka 4.4, before you raise it"
            )
        return (
            f"{server} supports metadata.version up to {most}, and this aclog up to {NEWEST_METADATA_VERSION}: nodes "
            "of aclog stop at a higher one. Upgrade aclog before you raise the cluster's"
        )


async def describe_cluster(
    connection: Connection, endpoint_type: int = BROKERS, *, with_operations: bool = False
) -> ClusterDescription:
    """Return the cluster and its nodes of this endpoint type; with the login's permitted operations, if requested.

    Raises:
        RequestError: the server refuses, or is of the other type; has its code and message.
        UnreachableError, DecodeError: as Connection.ask; ConfigError: the server is too old.

    """
    # Version 1 has endpoint types (KIP-919), version 2 fenced brokers (KIP-1073).
    oldest, newest = (0, 2) if endpoint_type == BROKERS else (1, 1)
    version = connection.version(api_keys.DESCRIBE_CLUSTER, oldest, newest)
    response = await connection.ask(
        build(
            api_keys.DESCRIBE_CLUSTER,
            version,
            "request",
            endpoint_type=endpoint_type,
            include_fenced_brokers=True,
            include_cluster_authorized_operations=with_operations,
        )
    )
    _check(response)
    nodes = tuple(
        ClusterNode(
            node_id=node.broker_id,
            address=HostPort(host=node.host, port=node.port),
            fenced=getattr(node, "is_fenced", False),
        )
        for node in response.brokers
    )
    return ClusterDescription(
        cluster_id=_cluster_id(connection, response),
        controller_id=response.controller_id,
        nodes=nodes,
        operations=_operations(response.cluster_authorized_operations) if with_operations else None,
    )


async def cluster_of_brokers(connection: Connection) -> ClusterDescription:
    """Return the cluster and its brokers by Metadata, for brokers that are too old for DescribeCluster (KIP-700).

    Raises:
        UnreachableError, DecodeError: as Connection.ask; ConfigError: the broker is older than 0.10.1.

    """
    version = connection.version(api_keys.METADATA, _FIRST_WITH_CLUSTER_ID, _NEWEST_METADATA)
    response = await connection.ask(build(api_keys.METADATA, version, "request", topics=()))
    nodes = tuple(
        ClusterNode(node_id=node.node_id, address=HostPort(host=node.host, port=node.port)) for node in response.brokers
    )
    cluster_id = _cluster_id(connection, response)
    return ClusterDescription(cluster_id=cluster_id, controller_id=response.controller_id, nodes=nodes)


def _cluster_id(connection: Connection, response: Any) -> str:
    """Return the cluster id of a response, empty if it has none. Raises DecodeError: no Kafka has one as long."""
    cluster_id: str = response.cluster_id or ""
    if len(cluster_id) > _MOST_OF_ID:
        problem = f"a cluster id of {len(cluster_id):,} characters: expected at most {_MOST_OF_ID}"
        raise DecodeError(problem, path=str(connection.address))
    return cluster_id


def _operations(bits: int) -> frozenset[AclOperation] | None:
    """Return the operations of a bit field; a server that omits it sends the least number."""
    return None if bits < 0 else frozenset(each for each in AclOperation if bits >> each & 1)


async def cluster_id_of(controllers: Sequence[HostPort], security: ClientSecurity) -> str:
    """Return the id of these controllers' cluster, from the first one that responds.

    Raises:
        MetadataError: none responds; the last one's error.

    """
    last: MetadataError = UnreachableError("no controller is known")
    for address in controllers:
        try:
            return await _controller_cluster_id(address, security)
        except MetadataError as error:
            last = error
    raise last


async def broker_cluster_id(connection: Connection) -> str:
    """Return the id of a broker's cluster, by DescribeCluster, or by Metadata if the broker is too old for that.

    Raises:
        RequestError: the broker refuses; has its code and message.
        UnreachableError, DecodeError: as Connection.ask; also if the cluster has no id.
        ConfigError: the broker supports neither request.

    """
    if api_keys.DESCRIBE_CLUSTER in connection.apis:
        cluster_id = (await describe_cluster(connection)).cluster_id
    else:
        cluster_id = (await cluster_of_brokers(connection)).cluster_id
    if not cluster_id:
        raise DecodeError("no cluster id: expected one, as every Kafka has since 0.10.1", path=str(connection.address))
    return str(cluster_id)


async def topic_names(connection: Connection) -> list[str]:
    """Return the names of all topics that a broker shows to the connection's user, internal ones included (Metadata).

    Raises:
        UnreachableError, DecodeError: as Connection.ask; ConfigError: the broker is too old.

    """
    version = connection.version(api_keys.METADATA, _FIRST_WITH_ALL_TOPICS, _NEWEST_METADATA)
    response = await connection.ask(build(api_keys.METADATA, version, "request", topics=None))
    # A topic that the user may not describe is left out, or has an error and perhaps no name.
    return [topic.name for topic in response.topics if topic.error_code == 0 and topic.name]


async def _controller_cluster_id(address: HostPort, security: ClientSecurity) -> str:
    async with await connect(address, security) as connection:
        return (await describe_cluster(connection, CONTROLLERS)).cluster_id


async def describe_quorum(connection: Connection) -> QuorumDescription:
    """Return the quorum as its leader sees it; brokers forward the request to the leader.

    Raises:
        RequestError: as describe_cluster; code 6 (NOT_LEADER_OR_FOLLOWER) from a controller that is not active.
        UnreachableError, DecodeError, ConfigError: as describe_cluster.

    """
    version = connection.version(api_keys.DESCRIBE_QUORUM, 0, 2)
    partition = build(api_keys.DESCRIBE_QUORUM, version, "request", "PartitionData", partition_index=0)
    topic = build(
        api_keys.DESCRIBE_QUORUM,
        version,
        "request",
        "TopicData",
        topic_name="__cluster_metadata",
        partitions=(partition,),
    )
    response = await connection.ask(build(api_keys.DESCRIBE_QUORUM, version, "request", topics=(topic,)))
    _check(response)
    partitions = [partition for topic in response.topics for partition in topic.partitions]
    if len(partitions) != 1:
        raise DecodeError(
            f"a DescribeQuorum response of {len(partitions)} partitions: expected 1", path=str(connection.address)
        )
    partition_data = partitions[0]
    _check(partition_data)
    return QuorumDescription(
        leader_id=partition_data.leader_id,
        leader_epoch=partition_data.leader_epoch,
        high_watermark=partition_data.high_watermark,
        voters=tuple(map(_replica, partition_data.current_voters)),
        observers=tuple(map(_replica, partition_data.observers)),
        addresses={
            int(node.node_id): HostPort(host=first.host, port=first.port)
            for node in getattr(response, "nodes", ())
            for first in node.listeners[:1]
        },
    )


def _replica(replica: Any) -> ReplicaDescription:
    return ReplicaDescription(
        replica_id=replica.replica_id,
        directory_id=getattr(replica, "replica_directory_id", None),
        log_end_offset=replica.log_end_offset,
        last_fetch_timestamp=getattr(replica, "last_fetch_timestamp", NO_TIMESTAMP),
        last_caught_up_timestamp=getattr(replica, "last_caught_up_timestamp", NO_TIMESTAMP),
    )


async def describe_features(connection: Connection) -> FeaturesDescription:
    """Return the cluster's finalized features and the server's supported ones. Raises as describe_cluster."""
    # Features are in the tagged fields of version 3 and later (KIP-584).
    version = connection.version(api_keys.API_VERSIONS, 3, 4)
    response = await connection.ask(
        build(api_keys.API_VERSIONS, version, "request", client_software_name="aclog", client_software_version="0")
    )
    _check(response)
    return FeaturesDescription(
        finalized={feature.name: feature.max_version_level for feature in response.finalized_features},
        finalized_epoch=response.finalized_features_epoch,
        supported={feature.name: (feature.min_version, feature.max_version) for feature in response.supported_features},
    )


def _check(response: Any) -> None:
    if response.error_code:
        raise _refusal(int(response.error_code), getattr(response, "error_message", None))


def _refusal(code: int, message: str | None) -> RequestError:
    return RequestError(code, None if message is None else cut_text(message))


# DescribeConfigs requests: the configuration of a node.


_BROKER = 4
_OLDEST_CONFIGS, _NEWEST_CONFIGS = 1, 4


@frozen(kw_only=True)
class ConfigValue:
    """A property that is set; None for a value that the server hides."""

    value: str | None


async def node_configs(connection: Connection, node_id: int, names: Sequence[str]) -> dict[str, ConfigValue]:
    """Return those of the named properties that this node is configured with, or has a default for.

    Kafka hides the value of every property that it does not define itself: those of its authorizer. It leaves out one
    that is not set.

    Raises:
        RequestError: the server refuses, or is another node.
        UnreachableError, DecodeError: as Connection.ask; ConfigError: the server is too old.

    """
    version = connection.version(api_keys.DESCRIBE_CONFIGS, _OLDEST_CONFIGS, _NEWEST_CONFIGS)
    resource = build(
        api_keys.DESCRIBE_CONFIGS,
        version,
        "request",
        "DescribeConfigsResource",
        resource_type=_BROKER,
        resource_name=str(node_id),
        configuration_keys=tuple(names),
    )
    response = await connection.ask(build(api_keys.DESCRIBE_CONFIGS, version, "request", resources=(resource,)))
    for result in response.results:
        _check(result)
    return {each.name: ConfigValue(value=each.value) for result in response.results for each in result.configs}


# The DescribeUserScramCredentials request to a broker.


async def describe_scram(connection: Connection) -> list[UserCredentials]:
    """Return every user's mechanisms and iterations; Kafka discloses no more.

    Raises:
        RequestError: the server refuses; has its code and message.
        UnreachableError, DecodeError: as Connection.ask; ConfigError: a controller, which does not support it.

    """
    version = connection.version(api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0)
    response = await connection.ask(build(api_keys.DESCRIBE_USER_SCRAM_CREDENTIALS, version, "request", users=None))
    _check(response)
    return [
        UserCredentials(
            user=result.user,
            credential_infos=tuple(
                CredentialInfo(mechanism=info.mechanism, iterations=info.iterations) for info in result.credential_infos
            ),
        )
        for result in response.results
    ]


# Delegation token requests to a broker, ours or Kafka's (KIP-48, KIP-373).


_OLDEST_TOKENS, _NEWEST_TOKENS = (
    1,
    3,
)  # renewing and expiring end at 2: only owners and requesters (KIP-373) came with 3
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = datetime(9999, 12, 31, tzinfo=UTC)
_LAST_MS = (_LAST - _EPOCH) // timedelta(milliseconds=1)

_ERROR_TEXTS = {
    61: "Delegation tokens are not enabled on this cluster (DELEGATION_TOKEN_AUTH_DISABLED)",
    62: "There is no such delegation token (DELEGATION_TOKEN_NOT_FOUND)",
    63: "Only a token's owner and its renewers may use it so (DELEGATION_TOKEN_OWNER_MISMATCH)",
    64: "Not possible over PLAINTEXT, over SSL without a client certificate, or when authenticated by a token "
    "(DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)",
    65: "Not allowed to create tokens for this owner (DELEGATION_TOKEN_AUTHORIZATION_FAILED)",
    66: "The delegation token has expired (DELEGATION_TOKEN_EXPIRED)",
    67: "A renewer's principal type is not User (INVALID_PRINCIPAL_TYPE)",
}
"""By error code: responses about tokens have no message field."""


@frozen(kw_only=True)
class DelegationToken:
    """A token, and the HMAC that serves as its password, which is left out of the repr."""

    token_id: str
    hmac: bytes = field(repr=False)
    owner: KafkaPrincipal
    requester: KafkaPrincipal
    renewers: tuple[KafkaPrincipal, ...]
    issued: datetime
    expires: datetime
    longest: datetime


async def create_token(
    connection: Connection,
    renewers: Sequence[KafkaPrincipal],
    max_lifetime: timedelta,
    owner: KafkaPrincipal | None = None,
) -> DelegationToken:
    """Create a token for the authenticated user or another owner; a negative lifetime means the server's maximum.

    Raises:
        RequestError: the broker refuses; has its code and a text for it.
        UnreachableError, DecodeError, EncodeError: as Connection.ask; ConfigError: the broker is too old.

    """
    key, oldest = api_keys.CREATE_DELEGATION_TOKEN, _OLDEST_TOKENS if owner is None else REQUESTER_SINCE
    version = connection.version(key, oldest, _NEWEST_TOKENS)
    named = tuple(
        build(key, version, "request", "CreatableRenewers", principal_type=each.type, principal_name=each.name)
        for each in renewers
    )
    response = await connection.ask(
        build(
            key,
            version,
            "request",
            owner_principal_type=owner.type if owner else "",
            owner_principal_name=owner.name if owner else "",
            renewers=named,
            max_lifetime=max_lifetime,
        )
    )
    _check_token(response)
    return _token(response, tuple(renewers))


async def renew_token(connection: Connection, hmac: bytes, period: timedelta) -> datetime:
    """Renew a token; return its new expiry time. A negative period: the maximum. Raises as create_token."""
    version = connection.version(api_keys.RENEW_DELEGATION_TOKEN, _OLDEST_TOKENS, _NEWEST_TOKENS - 1)
    response = await connection.ask(
        build(api_keys.RENEW_DELEGATION_TOKEN, version, "request", hmac=hmac, renew_period=period)
    )
    _check_token(response)
    return response.expiry_timestamp  # type: ignore[no-any-return]


async def expire_token(connection: Connection, hmac: bytes, period: timedelta) -> datetime:
    """Change a token's expiry time and return it; a negative period expires the token now. Raises as create_token."""
    version = connection.version(api_keys.EXPIRE_DELEGATION_TOKEN, _OLDEST_TOKENS, _NEWEST_TOKENS - 1)
    response = await connection.ask(
        build(api_keys.EXPIRE_DELEGATION_TOKEN, version, "request", hmac=hmac, expiry_time_period=period)
    )
    _check_token(response)
    return response.expiry_timestamp  # type: ignore[no-any-return]


async def describe_tokens(connection: Connection, owners: Sequence[KafkaPrincipal] | None) -> list[DelegationToken]:
    """Return the visible tokens of these owners, or of all owners for None. Raises as create_token."""
    key = api_keys.DESCRIBE_DELEGATION_TOKEN
    version = connection.version(key, _OLDEST_TOKENS, _NEWEST_TOKENS)
    name = "DescribeDelegationTokenOwner"
    named = (
        None
        if owners is None
        else tuple(
            build(key, version, "request", name, principal_type=each.type, principal_name=each.name) for each in owners
        )
    )
    response = await connection.ask(build(key, version, "request", owners=named))
    _check_token(response)
    return [_token(each, _principals(each.renewers)) for each in response.tokens]


def _token(token: Any, renewers: tuple[KafkaPrincipal, ...]) -> DelegationToken:
    owner = KafkaPrincipal(type=token.principal_type, name=token.principal_name)
    requester = owner  # before version 3 (KIP-373), owner and requester are the same
    if hasattr(token, "token_requester_principal_type"):
        requester = KafkaPrincipal(type=token.token_requester_principal_type, name=token.token_requester_principal_name)
    return DelegationToken(
        token_id=token.token_id,
        hmac=bytes(token.hmac),
        owner=owner,
        requester=requester,
        renewers=renewers,
        issued=_time(token.issue_timestamp),
        expires=_time(token.expiry_timestamp),
        longest=_time(token.max_timestamp),
    )


def _principals(principals: Sequence[Any]) -> tuple[KafkaPrincipal, ...]:
    return tuple(KafkaPrincipal(type=each.principal_type, name=each.principal_name) for each in principals)


def _time(timestamp: datetime | int) -> datetime:
    """Convert a timestamp, which kio decodes in some responses and not in others, up to the year 9999."""
    if isinstance(timestamp, datetime):
        return timestamp
    return _EPOCH + timedelta(milliseconds=min(timestamp, _LAST_MS))


def _check_token(response: Any) -> None:
    code = int(response.error_code)
    if code:
        raise RequestError(code, _ERROR_TEXTS.get(code))


# The features and the authorizer of each node of a cluster, read on a connection of its own.


_SECONDS = 5.0
"""For a connection, and for each response: a node that is down must not keep the others waiting."""
_AT_ONCE = 16
_NO_ACL = AclBindingFilter(principal="", host="")
"""A filter that matches nothing, as no ACL has a principal without a colon."""


@frozen(kw_only=True)
class NodeFeatures:
    """A node's features, and whether it has an authorizer; None for values that it did not return."""

    features: FeaturesDescription | None = None
    authorizer: bool | None = None


async def features_of_nodes(cluster: ClusterDescription, security: ClientSecurity) -> dict[HostPort, NodeFeatures]:
    """Return the result of each node of a cluster."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def ask(address: HostPort) -> NodeFeatures:
        """Query one node."""
        async with slots:
            try:
                async with await connect(address, security, timeout=_SECONDS) as connection:
                    features = await describe_features(connection)
                    return NodeFeatures(features=features, authorizer=await has_authorizer(connection))
            except (MetadataError, RequestError):
                return NodeFeatures()

    addresses = list(dict.fromkeys(node.address for node in cluster.nodes))
    return dict(zip(addresses, await asyncio.gather(*map(ask, addresses)), strict=True))


async def has_authorizer(connection: Connection) -> bool | None:
    """Return whether a server has an authorizer, by its response to DescribeAcls; None without DESCRIBE."""
    try:
        await describe_acls(connection, _NO_ACL)
    except RequestError as error:
        return False if error.code == error_codes.SECURITY_DISABLED else None
    except MetadataError:
        return None
    return True


# The state of a cluster, as `aclog status` shows it.


@frozen(kw_only=True)
class Status:
    """One server's view of its cluster; `cluster.nodes` are controllers if a controller was queried, else brokers."""

    address: HostPort
    controller: bool
    cluster: ClusterDescription
    quorum: QuorumDescription
    features: FeaturesDescription
    cidr: dict[HostPort, bool | None]
    """By node of `cluster`: whether it decides by CIDR ranges; None if unknown."""
    authorizers: dict[HostPort, bool | None]
    """By node of `cluster`: whether it has an authorizer; None if unknown."""
    logged_in: bool = False
    """Whether the connection has a login: without an authorizer it has no effect."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings that need action, as sentences."""
        texts = (self.features.upgrade_warning(self.address), self._cidr_warning(), self._authorizer_warning())
        return tuple(filter(None, texts))

    @property
    def open_nodes(self) -> tuple[HostPort, ...]:
        """The nodes without an authorizer."""
        return tuple(at for at, has_one in self.authorizers.items() if has_one is False)

    def _authorizer_warning(self) -> str | None:
        """Return a warning unless the whole cluster is open to clients without a login, which is probably intended."""
        if not self.open_nodes or not (self.logged_in or True in self.authorizers.values()):
            return None
        return (
            f"no authorizer at {', '.join(map(str, self.open_nodes))}: every client may perform every operation there. "
            "Set authorizer.class.name"
        )

    def _cidr_warning(self) -> str | None:
        on, off = ([str(at) for at, cidr in self.cidr.items() if cidr is enabled] for enabled in (True, False))
        if not on or not off:
            return None
        return (
            f"aclog.cidr.enabled is true at {', '.join(on)} and false at {', '.join(off)}: the same request is decided "
            "differently. Set it to the same value on all nodes, including controllers"
        )


async def describe_status(connection: Connection, security: ClientSecurity, *, controller: bool) -> Status:
    """Query a controller (--bootstrap-controller) or a broker; the quorum is queried at its leader.

    Raises:
        RequestError: a server refuses, for example without DESCRIBE on the cluster; has its code and message.
        UnreachableError, LoginError, ConfigError, DecodeError: as connect and Connection.ask.

    """
    cluster = await describe_cluster(connection, CONTROLLERS if controller else BROKERS)
    nodes = await features_of_nodes(cluster, security)
    return Status(
        address=connection.address,
        controller=controller,
        cidr={at: each.features.cidr if each.features is not None else None for at, each in nodes.items()},
        authorizers={at: each.authorizer for at, each in nodes.items()},
        logged_in=_logs_in(security),
        cluster=cluster,
        quorum=await _quorum(connection, cluster, security),
        features=await describe_features(connection),
    )


def _logs_in(security: ClientSecurity) -> bool:
    tls = security.tls
    return security.sasl_mechanism is not None or bool(tls and (tls.keystore or tls.certificate_chain_pem))


async def _quorum(connection: Connection, cluster: ClusterDescription, security: ClientSecurity) -> QuorumDescription:
    try:
        return await describe_quorum(connection)
    except RequestError as error:
        active = next((node for node in cluster.nodes if node.node_id == cluster.controller_id), None)
        if error.code != error_codes.NOT_LEADER_OR_FOLLOWER or active is None or active.address == connection.address:
            raise
    async with await connect(active.address, security, timeout=connection.timeout) as leader:
        return await describe_quorum(leader)
