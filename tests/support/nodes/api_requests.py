"""A valid request for each API that needs a right."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from attrs import frozen

from aclog.authorizer.settings import KafkaPrincipal
from aclog.protocol import api_keys
from aclog.protocol.headers import decode_response_header
from aclog.protocol.messages import build
from aclog.protocol.responses import EnvelopeRequest, encode_principal
from aclog.server.controller.fetch import METADATA_TOPIC, METADATA_TOPIC_ID
from tests.support.nodes.node_requests import answer, frame

_EMBEDDED = 2
"""The version of the request in an Envelope."""


@frozen(kw_only=True)
class RequestValues:
    """What requests are about: a number that none had before, a token, and a registered broker."""

    number: int
    hmac: bytes
    broker_id: int = -1
    broker_epoch: int = -1


def valid_request(listener: str, api_key: int, version: int, values: RequestValues) -> Any:
    """The message, whatever it takes to be a valid one."""
    if api_key == api_keys.DESCRIBE_CLUSTER:
        return build(api_key, version, "request", endpoint_type=1 if listener == "broker" else 2)
    make = _REQUESTS.get(api_key)
    return build(api_key, version, "request") if make is None else make(values, version)


def _of(api_key: int, structure: str, version: int, **values: Any) -> Any:
    return build(api_key, version, "request", structure, **values)


def _metadata(_: RequestValues, version: int) -> Any:
    topic = _of(api_keys.METADATA, "MetadataRequestTopic", version, name="orders")
    return build(api_keys.METADATA, version, "request", topics=(topic,), allow_auto_topic_creation=False)


def _acl_filter(_: RequestValues, version: int) -> Any:
    kinds = ("resource_type_filter", "pattern_type_filter", "operation", "permission_type")
    texts = ("resource_name_filter", "principal_filter", "host_filter")
    return build(29, version, "request", **dict.fromkeys(kinds, 1), **dict.fromkeys(texts))


def _creation(values: RequestValues, version: int) -> Any:
    one = _of(
        30, "AclCreation", version, resource_type=2, resource_pattern_type=3, host="*", operation=3, permission_type=3,
        resource_name=f"t{values.number}", principal="User:x",
    )  # fmt: skip
    return build(30, version, "request", creations=(one,))


def _deletion(_: RequestValues, version: int) -> Any:
    one = _of(
        31, "DeleteAclsFilter", version, resource_type_filter=2, pattern_type_filter=3, operation=3, permission_type=3,
        resource_name_filter="none", principal_filter="User:x", host_filter="*",
    )  # fmt: skip
    return build(31, version, "request", filters=(one,))


def _token(_: RequestValues, version: int) -> Any:
    # Only since version 3 can a request name an owner.
    owner = {"owner_principal_type": "User", "owner_principal_name": "owner"} if version >= 3 else {}
    return build(38, version, "request", max_lifetime=timedelta(milliseconds=-1), **owner)


def _renewal(values: RequestValues, version: int) -> Any:
    return build(39, version, "request", hmac=values.hmac, renew_period=timedelta(milliseconds=-1))


def _expiry(values: RequestValues, version: int) -> Any:
    return build(40, version, "request", hmac=values.hmac, expiry_time_period=timedelta(hours=1))


def _tokens(_: RequestValues, version: int) -> Any:
    return build(41, version, "request", owners=None)


def _credential(values: RequestValues, version: int) -> Any:
    password = {"mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": bytes(32)}
    user = _of(51, "ScramCredentialUpsertion", version, name=f"s{values.number}", **password)
    return build(51, version, "request", upsertions=(user,))


def _configs(_: RequestValues, version: int) -> Any:
    keys = ("super.users", "allow.everyone.if.no.acl.found", "authorizer.class.name")
    one = _of(32, "DescribeConfigsResource", version, resource_type=4, resource_name="1", configuration_keys=keys)
    return build(32, version, "request", resources=(one,))


def _quota(_: RequestValues, version: int) -> Any:
    entity = _of(49, "EntityData", version, entity_type="user", entity_name="a")
    rate = _of(49, "OpData", version, key="producer_byte_rate", value=1.0, remove=False)
    return build(49, version, "request", entries=(_of(49, "EntryData", version, entity=(entity,), ops=(rate,)),))


def _quorum(_: RequestValues, version: int) -> Any:
    topic = _of(55, "TopicData", version, topic_name=METADATA_TOPIC, partitions=(_of(55, "PartitionData", version),))
    return build(55, version, "request", topics=(topic,))


def _fetch(_: RequestValues, version: int) -> Any:
    partition = _of(1, "FetchPartition", version, current_leader_epoch=1, fetch_offset=0, last_fetched_epoch=0)
    topic = _of(1, "FetchTopic", version, topic_id=METADATA_TOPIC_ID, partitions=(partition,))
    observer = (
        {"replica_state": _of(1, "ReplicaState", version, replica_id=-1)} if version >= 15 else {"replica_id": -1}
    )
    return build(1, version, "request", topics=(topic,), cluster_id=None, max_bytes=1 << 20, **observer)


def _fetch_snapshot(_: RequestValues, version: int) -> Any:
    partition = _of(
        59, "PartitionSnapshot", version, current_leader_epoch=1,
        snapshot_id=_of(59, "SnapshotId", version, end_offset=0, epoch=0),
    )  # fmt: skip
    topic = _of(59, "TopicSnapshot", version, name=METADATA_TOPIC, partitions=(partition,))
    return build(59, version, "request", topics=(topic,), max_bytes=1 << 20, cluster_id=None)


def _registration(values: RequestValues, version: int) -> Any:
    number = values.number
    levels = {"min_supported_version": 0, "max_supported_version": 30}
    return build(
        62, version, "request", broker_id=number, cluster_id="a-cluster", incarnation_id=UUID(int=number),
        listeners=(_of(62, "Listener", version, name="BROKER", host="b", port=9092),),
        features=tuple(_of(62, "Feature", version, name=name, **levels) for name in _FEATURES),
        rack=None, log_dirs=(UUID(int=number),),
    )  # fmt: skip


_FEATURES = (
    "metadata.version", "transaction.version", "group.version", "share.version", "streams.version",
    "eligible.leader.replicas.version",
)  # fmt: skip


def _heartbeat(values: RequestValues, version: int) -> Any:
    return build(63, version, "request", broker_id=values.broker_id, broker_epoch=values.broker_epoch, want_fence=True)


def _unregistration(values: RequestValues, version: int) -> Any:
    return build(64, version, "request", broker_id=values.broker_id)


def envelope(user: str, values: RequestValues) -> EnvelopeRequest:
    """A DescribeQuorum request, embedded in the name of a user."""
    return EnvelopeRequest(
        request_data=frame(api_keys.DESCRIBE_QUORUM, _EMBEDDED, _quorum(values, _EMBEDDED), correlation_id=9),
        request_principal=encode_principal(KafkaPrincipal(type="User", name=user)),
        client_host_address=bytes((10, 0, 0, 5)),
    )


def embedded(response: Any) -> Any:
    """The DescribeQuorum response in the answer to an Envelope."""
    _, position = decode_response_header(api_keys.DESCRIBE_QUORUM, _EMBEDDED, response.response_data)
    return answer(api_keys.DESCRIBE_QUORUM, _EMBEDDED, response.response_data[position:])


def _envelope(values: RequestValues, _: int) -> Any:
    return envelope("admin", values)


_REQUESTS: dict[int, Callable[[RequestValues, int], Any]] = {
    api_keys.FETCH: _fetch,
    api_keys.METADATA: _metadata,
    api_keys.DESCRIBE_ACLS: _acl_filter,
    api_keys.CREATE_ACLS: _creation,
    api_keys.DELETE_ACLS: _deletion,
    api_keys.DESCRIBE_CONFIGS: _configs,
    api_keys.ALTER_CLIENT_QUOTAS: _quota,
    api_keys.CREATE_DELEGATION_TOKEN: _token,
    api_keys.RENEW_DELEGATION_TOKEN: _renewal,
    api_keys.EXPIRE_DELEGATION_TOKEN: _expiry,
    api_keys.DESCRIBE_DELEGATION_TOKEN: _tokens,
    api_keys.ALTER_USER_SCRAM_CREDENTIALS: _credential,
    api_keys.DESCRIBE_QUORUM: _quorum,
    api_keys.ENVELOPE: _envelope,
    api_keys.FETCH_SNAPSHOT: _fetch_snapshot,
    api_keys.BROKER_REGISTRATION: _registration,
    api_keys.BROKER_HEARTBEAT: _heartbeat,
    api_keys.UNREGISTER_BROKER: _unregistration,
}
