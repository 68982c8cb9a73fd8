"""Metadata and DescribeCluster of a broker (KafkaApis.handleTopicMetadataRequest, handleDescribeCluster)."""

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias
from uuid import UUID

from attrs import define, evolve, field, frozen
from kio.schema.errors import ErrorCode

from aclog.authorizer.acl import AclOperation
from aclog.nodes.apis.authorization import AuthHelper
from aclog.nodes.apis.describe_cluster import BROKER_ENDPOINTS, NOT_ASKED, DescribedNode, describe_cluster
from aclog.nodes.apis.request import Request, RequestError
from aclog.nodes.config.node_config import HostPort
from aclog.nodes.offload import MANY, offload_if
from aclog.nodes.wire.api_keys import METADATA
from aclog.nodes.wire.error_codes import INVALID_REQUEST
from aclog.nodes.wire.message_builder import build, build_response
from aclog.snapshots.cluster import ClusterImage


@frozen(kw_only=True)
class ClusterView:
    """The cluster as clients see it: all brokers that live. `advertised` are this one's addresses by listener name.

    A broker names others only while it is registered itself, in the log that it follows: then that log is of aclog's
    controllers, and says who lives. It is always among those that it names.
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
        found = []
        for broker in image.brokers():
            endpoint = next((each for each in broker.end_points if each.name == listener_name), None)
            here = broker.broker_id == self.node_id
            if endpoint is None or (broker.fenced and not (include_fenced or here)):
                continue
            at = address if here else HostPort(host=endpoint.host, port=endpoint.port)
            found.append(DescribedNode(node_id=broker.broker_id, address=at, rack=broker.rack, fenced=broker.fenced))
        return tuple(found)


_INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")

_Requested: TypeAlias = tuple[str | None, UUID | None]
"""The name of a topic, or its id."""

_TOPIC_IDS = 12
"""The first version of Metadata in which topics may be asked for by id."""

_PIECE = 16
"""Yield to the event loop after this many topics, each of which takes up to 200 us to authorize, with its operations.

In a thread the whole would take as long, and hold up other requests for longer, by the interpreter's lock.
"""


@define
class MetadataApis:
    """Describes the cluster. There are no topics here, so every requested topic is reported as unknown.

    None is created either. A client that would have one created, and may not, is told so, as by a Kafka.
    """

    cluster: ClusterView
    auth: AuthHelper
    auto_create_topics: bool = True
    """auto.create.topics.enable"""

    async def metadata(self, request: Request) -> bytes:
        """Handle Metadata: the brokers that are alive, and an error for each requested topic."""
        body, version = request.body, request.header.api_version
        operations, topics = getattr(body, "include_cluster_authorized_operations", False), []
        pinned = evolve(self, auth=self.auth.pinned())  # the image may change between two pieces
        requested = await offload_if(len(body.topics or ()) > MANY, _requested, request)
        for number, topic in enumerate(pinned._topics(request, requested), 1):
            topics.append(topic)
            if number % _PIECE == 0:
                await asyncio.sleep(0)
        return await offload_if(
            len(topics) > MANY,
            build_response,
            METADATA,
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
            yield build(METADATA, request.header.api_version, "response", "MetadataResponseBroker", **about)

    def _topics(self, request: Request, requested: Iterable[_Requested]) -> Iterator[Any]:
        version, may_create = request.header.api_version, self._may_create(request)
        for name, topic_id in requested:
            error, internal = self._topic_error(request, name, may_create)
            yield build(
                METADATA,
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
        """Return the error, and whether the topic is internal, which clients that may not describe it are not told."""
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
        """Return whether a client may have a missing topic created; true of every topic if it does not ask for that."""
        if not (self.auto_create_topics and getattr(request.body, "allow_auto_topic_creation", True)):
            return lambda _: True
        # A denial is not logged, as in Kafka: the right on the topic is as good.
        on_cluster = cache(lambda: self.auth.on_cluster(request, AclOperation.CREATE, log_if_denied=False))
        return lambda name: on_cluster() or self.auth.on_topic(request, AclOperation.CREATE, name)

    def _topic_operations(self, request: Request, name: str | None, error: ErrorCode) -> int:
        """Return the authorized operations on a topic, if requested and DESCRIBE is allowed."""
        asked = getattr(request.body, "include_topic_authorized_operations", False)
        if name is None or not asked or error is ErrorCode.topic_authorization_failed:
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
        raise RequestError(INVALID_REQUEST, f"Topic IDs are not supported in requests for version {version}")
    return [(None, each) for each in ids] or [(name, None) for name in names]


def _is_topic_name(name: str) -> bool:
    """Whether the name is legal for a topic (org.apache.kafka.common.internals.Topic.validate)."""
    return name not in {".", ".."} and _TOPIC_NAME.fullmatch(name) is not None
