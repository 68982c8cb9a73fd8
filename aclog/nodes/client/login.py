"""How a connection begins: what the server serves, then who we are (KIP-35, KIP-43, KIP-152)."""

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
"""To connect, and for each answer."""


async def connect(
    address: HostPort, security: ClientSecurity, *, client_id: str = "aclog", timeout: float = DEFAULT_TIMEOUT_S
) -> Connection:
    """A connection that is logged in, and knows what the server serves.

    Raises:
        UnreachableError: nobody answers there, or not in time, or cannot tell yet whether the login is good.
        LoginError: the login failed, or the server is not trusted.
        ConfigError: the security settings cannot be used.
        DecodeError: an answer is none of Kafka's.

    """
    context = client_context(security.tls or TlsSettings()) if security.security_protocol.tls else None
    connection = await Connection.open(address, context, client_id=client_id, timeout=timeout)
    try:
        connection.apis = await _served(connection)
        if security.security_protocol.sasl:
            await _log_in(connection, sasl_client(security))
    except BaseException:
        await connection.close()
        raise
    return connection


async def _served(connection: Connection) -> dict[int, ApiVersion]:
    """Asked in version 0, which every server has, and before the login, which every server allows."""
    try:
        answer = await connection.ask(message_type(API_VERSIONS, 0, "request")())
    except UnreachableError as error:
        raise UnreachableError(f"{error} as the first request was sent: is security.protocol right?") from None
    if answer.error_code:
        raise UnreachableError(f"{connection.address}: ApiVersions is answered with error {int(answer.error_code)}")
    return {api.api_key: ApiVersion(api.api_key, api.min_version, api.max_version) for api in answer.api_keys}


async def _log_in(connection: Connection, client: SaslClient) -> None:
    await _shake_hands(connection, client.mechanism)
    version = connection.version(SASL_AUTHENTICATE, 0, 2)
    request = message_type(SASL_AUTHENTICATE, version, "request")
    try:
        message: bytes | None = client.first()
        while message is not None:
            message = client.step(await _authenticate(connection, request, message))
    except AuthenticationError as error:
        raise LoginError(f"{connection.address}: {error}") from None
    if not client.complete:
        raise LoginError(f"{connection.address}: the server ended the {client.mechanism} login without its proof")


async def _shake_hands(connection: Connection, mechanism: str) -> None:
    answer = await connection.ask(message_type(SASL_HANDSHAKE, 1, "request")(mechanism=mechanism))
    if answer.error_code == UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(answer.mechanisms)
        raise LoginError(f"{connection.address}: SASL mechanism {mechanism} is not enabled there, but {offered}")
    if answer.error_code:
        raise LoginError(f"{connection.address}: SaslHandshake is answered with error {int(answer.error_code)}")


async def _authenticate(connection: Connection, request: Callable[..., Any], message: bytes) -> bytes:
    answer = await connection.ask(request(auth_bytes=message))
    code = int(answer.error_code)
    if code == SASL_AUTHENTICATION_FAILED:
        raise LoginError(f"{connection.address}: {answer.error_message or 'the login failed'}")
    if code:
        what = answer.error_message or f"error {code}"
        raise UnreachableError(f"{connection.address}: the login cannot be judged yet: {what}")
    return bytes(answer.auth_bytes)
