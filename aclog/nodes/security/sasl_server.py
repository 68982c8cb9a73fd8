"""SASL on the server's side: what a connection needs to know of it, whatever the mechanism."""

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
"""The names of all mechanisms there are."""


class SaslServer(Protocol):
    """One login on one connection (javax.security.sasl.SaslServer)."""

    complete: bool
    """Whether the client has logged in; no further step is taken then."""

    @property
    def mechanism(self) -> str:
        """The name that SASL uses."""
        ...

    @property
    def principal(self) -> KafkaPrincipal:
        """Who has logged in; only where `complete`."""
        ...

    @property
    def token_authenticated(self) -> bool:
        """Whether the login was by a delegation token; only where `complete`."""
        ...

    @property
    def expiry_ms(self) -> int | None:
        """When the login runs out, in ms since 1970: a token's expiry; None: never."""
        ...

    def step(self, message: bytes) -> bytes:
        """The answer to the client's next message; it may be empty.

        Raises:
            AuthenticationError: the login failed: its text goes to the client with code 58, and the connection ends.
            AuthenticationNotReadyError: it cannot be judged yet: the client is told to try again.

        """
        ...


def sasl_server(
    mechanism: str, *, listener: Listener, credentials: Credentials, reauthentication: bool = False
) -> SaslServer:
    """A new login by this mechanism on this listener.

    Raises:
        AuthenticationError: the listener does not offer it (which its SaslHandshake answers with code 33 already).

    """
    if mechanism not in listener.sasl_mechanisms or mechanism not in MECHANISMS:
        offered = ", ".join(listener.sasl_mechanisms)
        raise AuthenticationError(f"listener {listener.name} does not offer this SASL mechanism, only: {offered}")
    if mechanism == "PLAIN":
        return PlainServer(users=listener.plain_users, reauthentication=reauthentication)
    return ScramServer(scram_mechanism=_SCRAM[mechanism], credentials=credentials, reauthentication=reauthentication)
