"""Envelope: requests that brokers forward for their clients (KIP-590; kafka.server.EnvelopeUtils).

The principal inside is trusted, so permission to send an Envelope (CLUSTER_ACTION) is permission to act as anyone.
"""

import logging
from collections.abc import Collection, Mapping
from ipaddress import ip_address
from typing import Any

from attrs import define, evolve

from aclog.authorizer.api_keys import api_name
from aclog.authorizer.errors import AclRequestError, AuthorizerNotReadyError
from aclog.authorizer.hosts import host_address
from aclog.metalog.errors import DecodeError, MetadataError
from aclog.nodes.apis.request import Handler, MalformedRequestError, OutcomeUnknownError, Request, RequestError
from aclog.nodes.offload import MANY_BYTES, MANY_ENTRIES_BYTES, offload_if
from aclog.nodes.session import Session
from aclog.nodes.wire.acl_requests import decode_create_acls
from aclog.nodes.wire.api_keys import CREATE_ACLS
from aclog.nodes.wire.api_versions import ApiVersion
from aclog.nodes.wire.envelope import (
    EnvelopeRequest,
    EnvelopeResponse,
    decode_principal,
    encode_envelope_response,
)
from aclog.nodes.wire.error_codes import (
    INVALID_REQUEST,
    NOT_CONTROLLER,
    PRINCIPAL_DESERIALIZATION_FAILURE,
    UNKNOWN_SERVER_ERROR,
    UNSUPPORTED_VERSION,
)
from aclog.nodes.wire.error_responses import error_response
from aclog.nodes.wire.headers import RequestHeader, decode_header, response_header
from aclog.nodes.wire.messages import decode_request

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
            raise RequestError(UNSUPPORTED_VERSION, str(error)) from None
        if header.api_key not in self.handlers:
            raise RequestError(INVALID_REQUEST, f"API {header.api_key} is not eligible for forwarding")
        if not any(api.api_key == header.api_key and header.api_version in api for api in self.apis):
            raise RequestError(UNSUPPORTED_VERSION, f"API {header.api_key} version {header.api_version}")
        try:
            much = len(frame) > MANY_BYTES
            body = await offload_if(much, _decoded, header, frame, position)
        except DecodeError as error:
            raise RequestError(UNSUPPORTED_VERSION, str(error)) from None
        return Request(header=header, body=body, session=session, frame=frame)

    async def _answered(self, inner: Request) -> bytes:
        """Handle the embedded request; return its response with header."""
        header = inner.header
        try:
            body = await self.handlers[header.api_key](inner)
        except OutcomeUnknownError:
            raise
        except (RequestError, AclRequestError) as error:
            if error.code == NOT_CONTROLLER:
                raise RequestError(NOT_CONTROLLER, error.message) from None
            body = await _error(inner, error.code, error.message)
        except AuthorizerNotReadyError:
            raise
        except MalformedRequestError as error:
            raise RequestError(UNSUPPORTED_VERSION, str(error)) from None
        except MetadataError as error:
            _log.error("%s in an Envelope failed: %s", api_name(header.api_key), error)
            body = await _error(inner, UNKNOWN_SERVER_ERROR, None)
        except Exception:  # noqa: BLE001 - becomes the embedded response
            _log.exception("%s in an Envelope failed", api_name(header.api_key))
            body = await _error(inner, UNKNOWN_SERVER_ERROR, None)
        return _header(header) + body


def _decoded(header: RequestHeader, frame: bytes, position: int) -> Any:
    if header.api_key == CREATE_ACLS:
        common = decode_create_acls(header.api_version, frame, position)
        if common is not None:
            return common
    return decode_request(header.api_key, header.api_version, frame, position)


def _session(sender: Session, envelope: EnvelopeRequest) -> Session:
    if envelope.request_principal is None:
        raise RequestError(PRINCIPAL_DESERIALIZATION_FAILURE, "Failed to deserialize client principal from envelope")
    try:
        principal, token_authenticated = decode_principal(envelope.request_principal)
    except DecodeError as error:
        raise RequestError(PRINCIPAL_DESERIALIZATION_FAILURE, str(error)) from None
    address = envelope.client_host_address
    if len(address) not in {4, 16}:
        raise RequestError(INVALID_REQUEST, f"Failed to parse client address from envelope: {len(address)} bytes")
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
