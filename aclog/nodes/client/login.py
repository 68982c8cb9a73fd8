"""Opening an authenticated connection: ApiVersions, then SASL (KIP-35, KIP-43, KIP-152)."""

from collections.abc import Callable
from typing import Any

from aclog.nodes.client.connection import Connection
from aclog.nodes.client.errors import LoginError, UnreachableError
from aclog.nodes.config.node_config import ClientSecurity, HostPort, TlsSettings
from aclog.nodes.security.errors import AuthenticationError
from aclog.nodes.security.sasl_client import SaslClient, sasl_client
from aclog.nodes.security.tls import client_context
from aclog.nodes.wire.api_keys import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from aclog.nodes.wire.api_versions import ApiVersion
from aclog.nodes.wire.error_codes import SASL_AUTHENTICATION_FAILED, UNSUPPORTED_SASL_MECHANISM
from aclog.nodes.wire.messages import message_type

DEFAULT_TIMEOUT_S = 10.0
"""For the connection, and for each response."""


async def connect(
    address: HostPort, security: ClientSecurity, *, client_id: str = "aclog", timeout: float = DEFAULT_TIMEOUT_S
) -> Connection:
    """Open an authenticated connection that knows the server's API versions.

    Raises:
        UnreachableError: nobody listens or responds in time, or the server cannot verify the login yet.
        LoginError: the login failed, or the server is not trusted.
        ConfigError: the security settings are unusable.
        DecodeError: a response is malformed.

    """
    context = client_context(security.tls or TlsSettings()) if security.security_protocol.tls else None
    connection = await Connection.open(address, context, client_id=client_id, timeout=timeout)
    try:
        connection.apis = await _api_versions(connection)
        if security.security_protocol.sasl:
            await _log_in(connection, sasl_client(security))
    except BaseException:
        await connection.close()
        raise
    return connection


async def _api_versions(connection: Connection) -> dict[int, ApiVersion]:
    """Ask for the server's API versions, in version 0, which every server supports, also before the login."""
    try:
        response = await connection.ask(message_type(API_VERSIONS, 0, "request")())
    except UnreachableError as error:
        raise UnreachableError(f"{error} on the first request: is security.protocol right?") from None
    if response.error_code:
        raise UnreachableError(f"{connection.address}: ApiVersions failed with error {int(response.error_code)}")
    return {api.api_key: ApiVersion(api.api_key, api.min_version, api.max_version) for api in response.api_keys}


async def _log_in(connection: Connection, client: SaslClient) -> None:
    await _handshake(connection, client.mechanism)
    version = connection.version(SASL_AUTHENTICATE, 0, 2)
    request = message_type(SASL_AUTHENTICATE, version, "request")
    try:
        message: bytes | None = client.first()
        while message is not None:
            message = client.step(await _authenticate(connection, request, message))
    except AuthenticationError as error:
        raise LoginError(f"{connection.address}: {error}") from None
    # SCRAM is mutual: a server that skips its last message has not proved that it knows the password.
    if not client.complete:
        raise LoginError(
            f"{connection.address}: the server ended the {client.mechanism} login without proving its identity"
        )


async def _handshake(connection: Connection, mechanism: str) -> None:
    response = await connection.ask(message_type(SASL_HANDSHAKE, 1, "request")(mechanism=mechanism))
    if response.error_code == UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(response.mechanisms)
        raise LoginError(
            f"{connection.address}: SASL mechanism {mechanism} is not enabled; the server offers {offered}"
        )
    if response.error_code:
        raise LoginError(f"{connection.address}: SaslHandshake failed with error {int(response.error_code)}")


async def _authenticate(connection: Connection, request: Callable[..., Any], message: bytes) -> bytes:
    response = await connection.ask(request(auth_bytes=message))
    code = int(response.error_code)
    if code == SASL_AUTHENTICATION_FAILED:
        raise LoginError(f"{connection.address}: {response.error_message or 'the login failed'}")
    if code:
        # Such as from a node that has not replayed its credentials yet: it says nothing about the password.
        what = response.error_message or f"error {code}"
        raise UnreachableError(f"{connection.address}: the server cannot verify the login yet: {what}")
    return bytes(response.auth_bytes)
