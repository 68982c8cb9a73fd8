"""Server side of SASL, independent of the mechanism (javax.security.sasl.SaslServer)."""

from typing import Protocol

from aclog.authorizer.principals import KafkaPrincipal
from aclog.credentials.scram import ScramMechanism
from aclog.nodes.config.node_config import Listener
from aclog.nodes.security.errors import AuthenticationError, AuthenticationNotReadyError
from aclog.nodes.security.login_credentials import Credentials, TokenCredential
from aclog.nodes.security.plain_server import PlainServer
from aclog.nodes.security.scram_server import ScramServer

__all__ = [
    "MECHANISMS",
    "AuthenticationError",
    "AuthenticationNotReadyError",
    "Credentials",
    "SaslServer",
    "TokenCredential",
    "sasl_server",
]

_SCRAM = {mechanism.mechanism_name: mechanism for mechanism in ScramMechanism}
MECHANISMS = ("PLAIN", *_SCRAM)
"""The names of the supported mechanisms."""


class SaslServer(Protocol):
    """One login on one connection."""

    complete: bool
    """Whether the client is authenticated; no further step is allowed then."""

    @property
    def mechanism(self) -> str:
        """The SASL mechanism name."""
        ...

    @property
    def principal(self) -> KafkaPrincipal:
        """The authenticated principal; only once `complete`."""
        ...

    @property
    def token_authenticated(self) -> bool:
        """Whether the client authenticated with a delegation token; only once `complete`."""
        ...

    @property
    def expiry_ms(self) -> int | None:
        """The token's expiry in ms since 1970; None for a login without a token."""
        ...

    def step(self, message: bytes) -> bytes:
        """Process the client's next message; return the challenge, which may be empty.

        Raises:
            AuthenticationError: The login failed; the text is sent to the client with code 58.
            AuthenticationNotReadyError: The credentials are not replayed yet; the client should retry.

        """
        ...


def sasl_server(
    mechanism: str, *, listener: Listener, credentials: Credentials, reauthentication: bool = False
) -> SaslServer:
    """Return a new login with this mechanism on this listener.

    Raises:
        AuthenticationError: The listener does not offer the mechanism (SaslHandshake answers this with code 33).

    """
    if mechanism not in listener.sasl_mechanisms or mechanism not in MECHANISMS:
        offered = ", ".join(listener.sasl_mechanisms)
        raise AuthenticationError(f"listener {listener.name} does not offer this SASL mechanism, only: {offered}")
    if mechanism == "PLAIN":
        return PlainServer(users=listener.plain_users, reauthentication=reauthentication)
    return ScramServer(scram_mechanism=_SCRAM[mechanism], credentials=credentials, reauthentication=reauthentication)
