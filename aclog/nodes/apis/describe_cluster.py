"""DescribeCluster for brokers and controllers (kafka.server.AuthHelper.computeDescribeClusterResponse)."""

from collections.abc import Iterable
from typing import Any

from attrs import frozen
from kio.schema.errors import ErrorCode

from aclog.nodes.apis.authorization import AuthHelper
from aclog.nodes.apis.request import Request
from aclog.nodes.config.node_config import HostPort
from aclog.nodes.wire.api_keys import DESCRIBE_CLUSTER
from aclog.nodes.wire.message_builder import build, build_response

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
    wanted = getattr(body, "endpoint_type", BROKER_ENDPOINTS)
    if wanted != endpoint_type:
        return _mismatched(version, wanted, endpoint_type)
    asked = body.include_cluster_authorized_operations
    return build_response(
        DESCRIBE_CLUSTER,
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
        cluster_authorized_operations=auth.pinned().cluster_operations(request) if asked else NOT_ASKED,
    )


def _node(version: int, **about: Any) -> Any:
    return build(DESCRIBE_CLUSTER, version, "response", "DescribeClusterBroker", **about)


def _mismatched(version: int, wanted: int, served: int) -> bytes:
    """Return the error response for a request sent to the wrong kind of node (the texts are Kafka's)."""
    kinds = {BROKER_ENDPOINTS: "BROKER", CONTROLLER_ENDPOINTS: "CONTROLLER"}
    if wanted in kinds:
        error = ErrorCode.mismatched_endpoint_type if version else ErrorCode.invalid_request
        message = (
            f"The request was sent to an endpoint of type {kinds[served]}, "
            f"but we wanted an endpoint of type {kinds[wanted]}"
        )
    else:
        error = ErrorCode.unsupported_endpoint_type
        message = f"Unsupported endpoint type {wanted}"
    return build_response(
        DESCRIBE_CLUSTER,
        version,
        error_code=error,
        error_message=message,
        cluster_id="",
        controller_id=-1,
        brokers=(),
        cluster_authorized_operations=NOT_ASKED,
    )
