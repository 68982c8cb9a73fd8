"""Messages of Kafka 4.4 that kio does not have yet, in the form of its classes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar

from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32, i32Timedelta

from aclog.nodes.wire.api_keys import API_VERSIONS, UNREGISTER_CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsRequest:
    """Version 5 (KIP-1242): it names the cluster and the node that the client means to reach."""

    __type__: ClassVar = EntityType.request
    __version__: ClassVar[i16] = i16(5)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(API_VERSIONS)
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader
    client_software_name: str = field(metadata={"kafka_type": "string"})
    client_software_version: str = field(metadata={"kafka_type": "string"})
    cluster_id: str | None = field(metadata={"kafka_type": "string"}, default=None)
    node_id: i32 = field(metadata={"kafka_type": "int32"}, default=i32(-1))


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterControllerRequest:
    """Version 0 (KIP-1312)."""

    __type__: ClassVar = EntityType.request
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(UNREGISTER_CONTROLLER)
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader
    controller_id: i32 = field(metadata={"kafka_type": "int32"})


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterControllerResponse:
    """Version 0. The error code is a number: kio's enum ends before 136."""

    __type__: ClassVar = EntityType.response
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(UNREGISTER_CONTROLLER)
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader
    throttle_time: i32Timedelta = field(metadata={"kafka_type": "timedelta_i32"})
    error_code: i16 = field(metadata={"kafka_type": "int16"})
    error_message: str | None = field(metadata={"kafka_type": "string"}, default=None)


NEWER_MESSAGES: Mapping[tuple[int, int, str], type[Any]] = MappingProxyType(
    {
        (API_VERSIONS, 5, "request"): ApiVersionsRequest,
        (UNREGISTER_CONTROLLER, 0, "request"): UnregisterControllerRequest,
        (UNREGISTER_CONTROLLER, 0, "response"): UnregisterControllerResponse,
    }
)
"""By API key, version and kind."""

SAME_AS: Mapping[tuple[int, int, str], int] = MappingProxyType({(API_VERSIONS, 5, "response"): 4})
"""The version that kio has and that a newer one does not differ from."""
