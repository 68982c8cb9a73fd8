"""Dispatch of requests: decode a frame, call the API's handler, turn errors into responses (KafkaApis.handle)."""

import asyncio
import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from attrs import define, field, frozen

from aclog.authorizer.api_keys import api_name
from aclog.authorizer.errors import AclRequestError, AuthorizerNotReadyError
from aclog.metalog.errors import DecodeError, MetadataError
from aclog.nodes.apis.request import Handler, MalformedRequestError, OutcomeUnknownError, Request, RequestError
from aclog.nodes.offload import MANY_BYTES, MANY_ENTRIES_BYTES, offload_if
from aclog.nodes.session import Session
from aclog.nodes.telemetry.metrics import Metrics
from aclog.nodes.wire.acl_requests import decode_create_acls
from aclog.nodes.wire.api_keys import (
    API_VERSIONS,
    CREATE_ACLS,
    DESCRIBE_ACLS,
    DESCRIBE_CLUSTER,
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    ENVELOPE,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
)
from aclog.nodes.wire.api_versions import ApiVersion, Features, api_versions_response
from aclog.nodes.wire.envelope import AUTHORIZER_NOT_READY, decode_envelope_request
from aclog.nodes.wire.error_codes import (
    ILLEGAL_SASL_STATE,
    INVALID_REQUEST,
    REBOOTSTRAP_REQUIRED,
    UNKNOWN_SERVER_ERROR,
    UNSUPPORTED_VERSION,
)
from aclog.nodes.wire.error_responses import error_response
from aclog.nodes.wire.headers import RequestHeader, decode_header, response_header
from aclog.nodes.wire.messages import decode_request, warm_up

NOT_READY = "AUTHORIZER_NOT_READY"
"""The start of the error message if the authorizer is not ready: Kafka has no error code for it outside KIP-801."""

_BUILT_IN_APIS = (API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE)
_SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""The valid client software names and versions (KIP-511)."""

_NOT_READY_BY_CLOSING = {DESCRIBE_ACLS: (0, 1, 2), DESCRIBE_USER_SCRAM_CREDENTIALS: (0,), DESCRIBE_CLUSTER: (2,)}
"""The versions in which a client must not be sent an error. The connection is closed, and clients try again.

librdkafka takes an error of DescribeAcls for an empty list (Java sends newer versions); one of
DescribeUserScramCredentials corrupts its memory. After one of DescribeCluster, Java's Admin asks the same controller
until its timeout, after a lost connection the next one; aclog's commands, which show the error, send older versions.
"""

_IDENTITY_SINCE = 5
"""The first version of ApiVersions that names the cluster and the node."""

_WARM_OLDER_VERSIONS = 1
"""How many versions before the newest are warmed up at the start; the others when an older client first asks."""

_log = logging.getLogger(__name__)


@frozen(kw_only=True)
class NodeIdentity:
    """The cluster and the node id of a broker."""

    cluster_id: str
    node_id: int

    def is_meant(self, cluster_id: str, node_id: int) -> bool:
        """Return whether a client that names these means this broker."""
        return (cluster_id, node_id) == (self.cluster_id, self.node_id)


@define(eq=False, kw_only=True)
class Dispatcher:
    """Handles the requests of authenticated clients of one kind of listener, on the event loop's thread.

    The `apis` that have a handler are served and advertised; ApiVersions and the SASL APIs are served here.
    `features` is evaluated for each ApiVersions request.
    """

    handlers: Mapping[int, Handler]
    apis: Iterable[ApiVersion]
    metrics: Metrics
    features: Callable[[], Features] = Features
    identity: NodeIdentity | None = None
    """That of a broker, which tells clients that mean another cluster or node (KIP-1242)."""
    _served: dict[int, ApiVersion] = field(init=False)
    _versions: dict[int, tuple[Features, bytes]] = field(factory=dict, init=False)
    """The last ApiVersions response by version: clients send the request once or twice per connection."""
    _timers: dict[int, Callable[[float], None]] = field(init=False)
    _warm: set[tuple[int, int]] = field(init=False)
    """The API keys and versions whose messages are imported."""

    def __attrs_post_init__(self) -> None:
        self._served = {
            api.api_key: api for api in self.apis if api.api_key in self.handlers or api.api_key in _BUILT_IN_APIS
        }
        self._timers = {key: self.metrics.requests.labels(api_name(key)).observe for key in self._served}
        self._warm = {
            (api.api_key, version)
            for api in self._served.values()
            for version in range(max(api.min_version, api.max_version - _WARM_OLDER_VERSIONS), api.max_version + 1)
        }
        warm_up(self._warm)

    async def handle(self, payload: bytes, session: Session) -> tuple[bytes, bytes]:
        """Handle a frame; return the header and the body of the response.

        Raises:
            DecodeError, MalformedRequestError: Not a valid or served request: close the connection.
            OutcomeUnknownError: The request may or may not have been applied: close the connection.

        """
        start = time.perf_counter()
        header, position = decode_header(payload)
        key, version = header.api_key, header.api_version
        # Any version of ApiVersions must be answered, unsupported ones with error 35 (KIP-511).
        if key == API_VERSIONS:
            body, has_versions = self.api_versions(header, payload, position)
            if has_versions:
                body = self._misdirected(header, payload, position) or body
        else:
            if version not in self._served.get(key, ()):
                raise DecodeError(f"API key {key} version {version}: not served on this listener")
            body = await self._call_handler(header, payload, position, session)
        self._timers[key](time.perf_counter() - start)
        return response_header(key, version, header.correlation_id), body

    def api_versions(self, header: RequestHeader, payload: bytes, position: int) -> tuple[bytes, bool]:
        """Return the body of the ApiVersions response, and whether it holds versions rather than an error.

        Raises:
            DecodeError: The body is malformed.

        """
        version = header.api_version
        if version not in self._served.get(API_VERSIONS, ()):
            return error_response(None, API_VERSIONS, version, UNSUPPORTED_VERSION), False
        request = decode_request(API_VERSIONS, version, payload, position)
        if version >= 3 and not (
            _SOFTWARE_NAME.fullmatch(request.client_software_name)
            and _SOFTWARE_NAME.fullmatch(request.client_software_version)
        ):
            return error_response(request, API_VERSIONS, version, INVALID_REQUEST), False
        features = self.features()
        # The finalized epoch changes with each commit, so the cached response is compared, not merely looked up.
        known = self._versions.get(version)
        if known is None or known[0] != features:
            body = api_versions_response(version, self._served.values(), features)
            self._versions[version] = known = features, body
        return known[1], True

    def _misdirected(self, header: RequestHeader, payload: bytes, position: int) -> bytes | None:
        """Return the error for a client that means another cluster or node; None for any other.

        Like Kafka's, only once a client is authenticated: without a login, that is at once. Raises DecodeError.
        """
        version = header.api_version
        if self.identity is None or version < _IDENTITY_SINCE:
            return None
        request = decode_request(API_VERSIONS, version, payload, position)
        if request.cluster_id is None or self.identity.is_meant(request.cluster_id, request.node_id):
            return None
        return error_response(request, API_VERSIONS, version, REBOOTSTRAP_REQUIRED)

    async def _call_handler(self, header: RequestHeader, payload: bytes, position: int, session: Session) -> bytes:
        key, version = header.api_key, header.api_version
        if (key, version) not in self._warm:
            await self._warm_up(self._served[key])
        if len(payload) > MANY_BYTES:
            body = await asyncio.to_thread(_decoded, key, version, payload, position)
        else:
            body = _decoded(key, version, payload, position)
        request = Request(header=header, body=body, session=session, frame=payload)
        if key in _BUILT_IN_APIS:
            text = "SaslAuthenticate request received after successful authentication"
            return await self._error(request, ILLEGAL_SASL_STATE, text)
        try:
            return await self.handlers[key](request)
        except (RequestError, AclRequestError) as error:
            return await self._error(request, error.code, error.message)
        except AuthorizerNotReadyError as error:
            if version in _NOT_READY_BY_CLOSING.get(key, ()):
                raise OutcomeUnknownError(f"{NOT_READY}: {error}") from None
            # KIP-801's code has a place in Envelopes only: the broker that sent one tries again.
            code = AUTHORIZER_NOT_READY if key == ENVELOPE else UNKNOWN_SERVER_ERROR
            return await self._error(request, code, f"{NOT_READY}: {error}")
        except (MalformedRequestError, OutcomeUnknownError):
            raise
        except MetadataError as error:
            _log.error("%s failed: %s", api_name(key), error, extra=_log_context(session))
            return await self._error(request, UNKNOWN_SERVER_ERROR, None)
        except Exception:  # noqa: BLE001 - the client gets a response whatever the handler failed on
            _log.exception("%s failed", api_name(key), extra=_log_context(session))
            return await self._error(request, UNKNOWN_SERVER_ERROR, None)

    async def _warm_up(self, api: ApiVersion) -> None:
        """Import the messages of all versions of an API in a thread, as that takes up to 50 ms."""
        versions = [(api.api_key, version) for version in range(api.min_version, api.max_version + 1)]
        await asyncio.to_thread(warm_up, versions)
        self._warm.update(versions)

    async def _error(self, request: Request, code: int, message: str | None) -> bytes:
        key, version = request.header.api_key, request.header.api_version
        self.metrics.request_errors.labels(api_name(key), str(code)).inc()
        much = len(request.frame) > MANY_ENTRIES_BYTES
        return await offload_if(much, error_response, request.body, key, version, code, message=message)


def _log_context(session: Session) -> dict[str, str]:
    return {"client": str(session.principal), "host": session.host}


def _decoded(api_key: int, version: int, payload: bytes, position: int) -> Any:
    """Decode a request body; Envelope is decoded by hand because kio lacks its version 1."""
    if api_key == ENVELOPE:
        return decode_envelope_request(payload, position)
    if api_key == CREATE_ACLS and (common := decode_create_acls(version, payload, position)) is not None:
        return common
    return decode_request(api_key, version, payload, position)
