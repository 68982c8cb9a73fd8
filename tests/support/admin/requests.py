"""Requests of the admin script, and its steps, as values."""

import hashlib
from datetime import timedelta
from typing import Any
from uuid import UUID

from attrs import evolve, field, frozen

from tests.support.nodes.wire_client import encode_request, nested, request_header

FETCH, METADATA, HANDSHAKE, API_VERSIONS, DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS = 1, 3, 17, 18, 29, 30, 31
AUTHENTICATE, QUOTAS, DESCRIBE_SCRAM, ALTER_SCRAM, QUORUM, ENVELOPE, DESCRIBE_CLUSTER = 36, 48, 50, 51, 55, 58, 60
WRITES = (CREATE_ACLS, DELETE_ACLS, ALTER_SCRAM)
BOTH = ("broker", "controller")


@frozen(kw_only=True)
class Send:
    """One request. `body` follows a proper header; or `frame` is all that follows the length; or `raw` is all bytes.

    `decode_as` is the API and version of the answer, None for an answer that is only measured; `inner` those of the
    answer within an envelope's.
    """

    api_key: int = -1
    version: int = 0
    body: bytes = b""
    flexible: bool | None = None
    frame: bytes | None = None
    raw: bytes | None = None
    decode_as: tuple[int, int] | None = None
    inner: tuple[int, int] | None = None


@frozen(kw_only=True)
class Step:
    """Requests on one connection: a user's own, kept open over the script, or, with no user, a new one."""

    name: str
    listener: str = "broker"
    user: str | None = "admin"
    sends: tuple[Send, ...] = field(factory=tuple)
    scram: tuple[str, str, str] | None = None
    """A login by SCRAM: mechanism, user, password."""

    @property
    def only_writes(self) -> bool:
        """Whether its answers do not depend on whether earlier writes can be seen yet."""
        return self.user == "admin" and all(send.api_key in WRITES for send in self.sends) and bool(self.sends)


def send(api_key: int, version: int, /, **fields: Any) -> Send:
    """A request by kio's field names."""
    body = encode_request(api_key, version, **fields)
    return Send(api_key=api_key, version=version, body=body, decode_as=(api_key, version))


def handshake(mechanism: str = "PLAIN", version: int = 1) -> Send:
    return send(HANDSHAKE, version, mechanism=mechanism)


def authenticate(token: bytes, version: int = 2) -> Send:
    return send(AUTHENTICATE, version, auth_bytes=token)


def versions(version: int, name: str = "admin-script", number: str = "1.0") -> Send:
    return send(API_VERSIONS, version, client_software_name=name, client_software_version=number)


def unknown(api_key: int, version: int, body: bytes = b"", *, flexible: bool, decode_as: tuple[int, int]) -> Send:
    """A request that kio has no schema for."""
    return Send(api_key=api_key, version=version, body=body, flexible=flexible, decode_as=decode_as)


def fresh(name: str, *sends: Send, listener: str = "broker") -> Step:
    return Step(name=name, listener=listener, user=None, sends=sends)


def metadata(version: int, names: tuple[str, ...] | None) -> Send:
    topics = names and tuple(
        nested(METADATA, version, "MetadataRequestTopic", topic_id=None, name=name) for name in names
    )
    flags = (
        "allow_auto_topic_creation",
        "include_topic_authorized_operations",
        "include_cluster_authorized_operations",
    )
    options = dict.fromkeys(flags, True) | {"allow_auto_topic_creation": False}
    return send(METADATA, version, topics=topics, **options)


def cluster(endpoint: int, *, fenced: bool = False, operations: bool = True) -> dict[str, Any]:
    flags = {"include_cluster_authorized_operations": operations, "include_fenced_brokers": fenced}
    return {"endpoint_type": endpoint, **flags}


def rule(**changes: Any) -> dict[str, Any]:
    base = {"resource_type": 2, "resource_name": "orders", "resource_pattern_type": 3, "principal": "User:alice"}
    return base | {"host": "*", "operation": 3, "permission_type": 3} | changes


def create(version: int, *rules: dict[str, Any]) -> Send:
    return send(
        CREATE_ACLS, version, creations=tuple(nested(CREATE_ACLS, version, "AclCreation", **row) for row in rules)
    )


def matching(**changes: Any) -> dict[str, Any]:
    base = {"resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1, "principal_filter": None}
    return base | {"host_filter": None, "operation": 1, "permission_type": 1} | changes


def describe(version: int, **changes: Any) -> Send:
    return send(DESCRIBE_ACLS, version, **matching(**changes))


def delete(version: int, *filters: dict[str, Any]) -> Send:
    rows = tuple(nested(DELETE_ACLS, version, "DeleteAclsFilter", **row) for row in filters)
    return send(DELETE_ACLS, version, filters=rows)


def exactly(row: dict[str, Any]) -> dict[str, Any]:
    """The filter that means one rule."""
    renamed = {"resource_type": "resource_type_filter", "resource_name": "resource_name_filter"}
    renamed |= {"resource_pattern_type": "pattern_type_filter", "principal": "principal_filter", "host": "host_filter"}
    return {renamed.get(name, name): value for name, value in row.items()}


def envelope(inner: Send, user: str | None = "admin", host: bytes = b"\x7f\0\0\1", frame: bytes | None = None) -> Send:
    principal = None if user is None else b"\0\0\5User" + bytes([len(user) + 1]) + user.encode() + b"\0\0"
    data = request_header(inner.api_key, inner.version, 99, flexible=inner.flexible) + inner.body
    fields = {"request_principal": principal, "client_host_address": host}
    request = send(ENVELOPE, 0, request_data=data if frame is None else frame, **fields)
    return evolve(request, inner=(inner.api_key, inner.version))


def quorum_topic(version: int, name: str = "__cluster_metadata", partition: int = 0) -> Any:
    part = nested(QUORUM, version, "PartitionData", partition_index=partition)
    return nested(QUORUM, version, "TopicData", topic_name=name, partitions=(part,))


def fetch(version: int, *, epoch: int, offset: int = 0, last: int = 0, partition: int = 0, **changes: Any) -> Send:
    where = {"partition": partition, "current_leader_epoch": epoch, "fetch_offset": offset, "log_start_offset": -1}
    where |= {"last_fetched_epoch": last, "partition_max_bytes": 1 << 20}
    part = nested(FETCH, version, "FetchPartition", **where)
    topic_id = changes.pop("topic_id", UUID(int=1))
    topic = nested(FETCH, version, "FetchTopic", topic="__cluster_metadata", topic_id=topic_id, partitions=(part,))
    fields = {"topics": (topic,), "forgotten_topics_data": (), "max_wait": timedelta(0), "min_bytes": 0}
    return send(FETCH, version, replica_id=-1, **(fields | changes))


def upsert(name: str, secret: str = "secret", mechanism: int = 1, iterations: int = 4096, **changes: Any) -> Any:
    digest = "sha512" if mechanism == 2 else "sha256"
    salted = hashlib.pbkdf2_hmac(digest, secret.encode(), b"salt-of-script", max(iterations, 1))
    about = {"name": name, "mechanism": mechanism, "iterations": iterations, "salt": b"salt-of-script"}
    return nested(ALTER_SCRAM, 0, "ScramCredentialUpsertion", **(about | {"salted_password": salted} | changes))


def removal(name: str, mechanism: int = 1) -> Any:
    return nested(ALTER_SCRAM, 0, "ScramCredentialDeletion", name=name, mechanism=mechanism)


def alter(deletes: tuple[Any, ...] = (), upserts: tuple[Any, ...] = ()) -> Send:
    return send(ALTER_SCRAM, 0, deletions=deletes, upsertions=upserts)


def described(users: tuple[str, ...] | None) -> Send:
    names = users and tuple(nested(DESCRIBE_SCRAM, 0, "UserName", name=name) for name in users)
    return send(DESCRIBE_SCRAM, 0, users=names)
