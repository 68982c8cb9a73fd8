"""Opening an authenticated connection: ApiVersions, then SASL (KIP-35, KIP-43, KIP-152)."""

import asyncio
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any

from aclog.nodes.client.connection import Connection
from aclog.nodes.client.diagnosis import PROPERTIES, mismatch, no_login_wanted, tls_failure
from aclog.nodes.client.errors import AbsentError, LoginError, SilentError, StrangerError, UnreachableError
from aclog.nodes.client.probe import probe
from aclog.nodes.config.node_config import ClientSecurity, HostPort, TlsSettings
from aclog.nodes.security.errors import AuthenticationError
from aclog.nodes.security.sasl_client import sasl_client
from aclog.nodes.security.tls import client_context
from aclog.nodes.wire.api_keys import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from aclog.nodes.wire.api_versions import ApiVersion
from aclog.nodes.wire.error_codes import ILLEGAL_SASL_STATE, SASL_AUTHENTICATION_FAILED, UNSUPPORTED_SASL_MECHANISM
from aclog.nodes.wire.messages import message_type

DEFAULT_TIMEOUT_S = 10.0
"""For the connection, and for each response."""
_PATIENCE_S = 1.0
"""After this long without a connection, or a response to the first request, who is there is looked at."""


async def connect(
    address: HostPort, security: ClientSecurity, *, client_id: str = "aclog", timeout: float = DEFAULT_TIMEOUT_S
) -> Connection:
    """Open an authenticated connection that knows the server's API versions.

    If something else than a Kafka listener of this security protocol is there, the error says what, and what to change.

    Raises:
        UnreachableError: nobody listens or responds in time, or the server cannot verify the login yet.
        LoginError: the login failed, or the server is not trusted.
        ConfigError: the security settings are unusable.
        DecodeError: a response is malformed.

    """
    opening = asyncio.create_task(_open(address, security, client_id, timeout))
    try:
        # A server that is silent may wait for something else: who that is need not be waited for.
        await asyncio.wait((opening,), timeout=min(_PATIENCE_S, timeout / 2))
        if not opening.done():
            await _refuse_stranger(opening, address, security)
        return await opening
    except asyncio.CancelledError:
        opening.cancel()
        [found] = await asyncio.gather(opening, return_exceptions=True)
        if isinstance(found, Connection):  # opened just now, and known to nobody else
            await found.close()
        raise
    except (AbsentError, StrangerError):
        raise
    except (UnreachableError, LoginError) as error:
        raise await _explained(error, address, security) from None
    finally:
        if not opening.done():
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)


async def _open(address: HostPort, security: ClientSecurity, client_id: str, timeout: float) -> Connection:
    context = client_context(security.tls or TlsSettings()) if security.security_protocol.tls else None
    connection = await Connection.open(address, context, client_id=client_id, timeout=timeout)
    try:
        connection.apis = await _api_versions(connection)
        if security.security_protocol.sasl:
            await _log_in(connection, security)
        else:
            # A listener that wants a login answers ApiVersions, and ends the connection at any other request.
            connection.explain = partial(_explained_loss, address=address, security=security)
    except BaseException:
        await connection.close()
        raise
    return connection


async def _refuse_stranger(opening: "asyncio.Task[Connection]", address: HostPort, security: ClientSecurity) -> None:
    """Look who is there, while the connection is being opened; return when it is, or if nothing is wrong with them.

    Raises:
        StrangerError: it is no Kafka listener, or not one of this security protocol.

    """
    looking = asyncio.create_task(probe(address))
    try:
        await asyncio.wait((opening, looking), return_when=asyncio.FIRST_COMPLETED)
        if not opening.done() and (wrong := mismatch(security, looking.result())):
            raise StrangerError(f"{address}: {wrong}")
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


async def _explained(
    error: UnreachableError | LoginError, address: HostPort, security: ClientSecurity
) -> UnreachableError | LoginError:
    """Return the error with what listens there and what to change, if that can be found out soon."""
    tls, cause = security.tls or TlsSettings(), error.__cause__
    if isinstance(error, LoginError) and not isinstance(cause, ssl.SSLError):
        return error  # the server has said what is wrong with the login
    if isinstance(error, SilentError):
        # Whoever is there has been looked at already.
        return SilentError(f"{error}: it takes connections, but does not answer: is the port right, does it hang?")
    peer = await probe(address)
    unverified = isinstance(cause, ssl.SSLCertVerificationError)  # whatever else is wrong, this is
    if not unverified and (wrong := mismatch(security, peer)):
        kind = LoginError if isinstance(error, LoginError) else StrangerError
        return kind(f"{address}: {wrong}")
    if isinstance(cause, ssl.SSLError):
        return LoginError(f"{address}: {tls_failure(cause, address, tls, peer)}")
    return error


async def _explained_loss(error: UnreachableError, address: HostPort, security: ClientSecurity) -> UnreachableError:
    found = await _explained(error, address, security)
    return found if isinstance(found, UnreachableError) else UnreachableError(str(found))


async def _api_versions(connection: Connection) -> dict[int, ApiVersion]:
    """Ask for the server's API versions, in version 0, which every server supports, also before the login."""
    response = await connection.ask(message_type(API_VERSIONS, 0, "request")())
    if response.error_code:
        raise UnreachableError(f"{connection.address}: ApiVersions failed with error {int(response.error_code)}")
    return {api.api_key: ApiVersion(api.api_key, api.min_version, api.max_version) for api in response.api_keys}


async def _log_in(connection: Connection, security: ClientSecurity) -> None:
    client = sasl_client(security)
    await _handshake(connection, client.mechanism, security)
    version = connection.version(SASL_AUTHENTICATE, 0, 2)
    request = message_type(SASL_AUTHENTICATE, version, "request")
    try:
        message: bytes | None = client.first()
        while message is not None:
            message = client.step(await _authenticate(connection, request, message, security))
    except AuthenticationError as error:
        raise LoginError(f"{connection.address}: {error}") from None
    # SCRAM is mutual: a server that skips its last message has not proved that it knows the password.
    if not client.complete:
        raise LoginError(
            f"{connection.address}: the server ended the {client.mechanism} login without proving its identity"
        )


async def _handshake(connection: Connection, mechanism: str, security: ClientSecurity) -> None:
    response = await connection.ask(message_type(SASL_HANDSHAKE, 1, "request")(mechanism=mechanism))
    if response.error_code == UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(response.mechanisms)
        raise LoginError(
            f"{connection.address}: SASL mechanism {mechanism} is not enabled; the server offers {offered}: "
            f"expected one of these as sasl.mechanism in {PROPERTIES}"
        )
    if response.error_code == ILLEGAL_SASL_STATE:
        raise LoginError(f"{connection.address}: {no_login_wanted(security)}")
    if response.error_code:
        raise LoginError(f"{connection.address}: SaslHandshake failed with error {int(response.error_code)}")


async def _authenticate(
    connection: Connection, request: Callable[..., Any], message: bytes, security: ClientSecurity
) -> bytes:
    response = await connection.ask(request(auth_bytes=message))
    code = int(response.error_code)
    if code == SASL_AUTHENTICATION_FAILED:
        said = response.error_message or "the login failed"
        raise LoginError(
            f"{connection.address}: {said} (as {security.username}): expected a user and password in sasl.jaas.config "
            f"that the server knows for {security.sasl_mechanism}"
        )
    if code:
        # Such as from a node that has not replayed its credentials yet: it says nothing about the password.
        what = response.error_message or f"error {code}"
        raise UnreachableError(f"{connection.address}: the server cannot verify the login yet: {what}")
    return bytes(response.auth_bytes)
