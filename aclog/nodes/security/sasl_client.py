"""Client side of SASL PLAIN (RFC 4616) and SCRAM (RFC 5802, RFC 7677; ScramSaslClient)."""

import hmac
from collections.abc import Callable
from typing import Protocol

from attrs import define, field

from aclog.credentials import scram_keys
from aclog.credentials.scram import ScramMechanism
from aclog.metalog.errors import ConfigError, DecodeError
from aclog.nodes.config.node_config import ClientSecurity
from aclog.nodes.security.errors import AuthenticationError
from aclog.nodes.security.scram_messages import (
    ServerFirst,
    client_final,
    client_first,
    parse_server_final,
    parse_server_first,
    with_proof,
)
from aclog.nodes.security.scram_server import new_nonce

MAX_ITERATIONS = 1 << 20
"""The most iterations a server may demand, against denial of service. Kafka's controllers store at most 16,384."""

_GS2_HEADER = "n,,"


class SaslClient(Protocol):
    """One login to a server: `first`, then `step` with each challenge until `complete`."""

    complete: bool
    """Whether the exchange is complete; with SCRAM, after the server's signature has been verified."""

    @property
    def mechanism(self) -> str:
        """The mechanism name for SaslHandshake."""
        ...

    def first(self) -> bytes:
        """Return the initial message."""
        ...

    def step(self, challenge: bytes) -> bytes | None:
        """Process the server's challenge; return the next message, None at the end of the exchange.

        Raises:
            AuthenticationError: The message is malformed, or the server does not prove knowledge of the password.

        """
        ...


@define(kw_only=True)
class PlainClient:
    """Client side of PLAIN."""

    username: str
    password: str = field(repr=False)
    mechanism: str = field(default="PLAIN", init=False)
    complete: bool = field(default=False, init=False)

    def first(self) -> bytes:
        """Return user and password, without an authorization id."""
        return f"\0{self.username}\0{self.password}".encode()

    def step(self, challenge: bytes) -> bytes | None:  # noqa: ARG002 - the server's message is empty
        """Complete the exchange."""
        self.complete = True
        return None


@define(kw_only=True)
class ScramClient:
    """Client side of SCRAM, with mutual authentication."""

    scram_mechanism: ScramMechanism
    username: str
    password: str = field(repr=False)
    token_auth: bool = False
    nonce: Callable[[], str] = field(default=new_nonce, repr=False)
    complete: bool = field(default=False, init=False)
    _nonce: str = field(default="", init=False, repr=False)
    _signature: bytes | None = field(default=None, init=False, repr=False)
    """The expected server signature; None before the server's first message."""

    @property
    def mechanism(self) -> str:
        """The SASL mechanism name, such as `SCRAM-SHA-256`."""
        return self.scram_mechanism.mechanism_name

    def first(self) -> bytes:
        """Return the user and a new nonce."""
        self._nonce, self._signature, self.complete = self.nonce(), None, False
        return (_GS2_HEADER + self._bare()).encode()

    def step(self, challenge: bytes) -> bytes | None:
        """Return the proof, then None; raises as SaslClient.step."""
        try:
            if self._signature is None:
                return self._proof(parse_server_first(challenge), challenge.decode())
            self._check(parse_server_final(challenge), self._signature)
        except DecodeError as error:
            raise AuthenticationError(f"invalid {self.mechanism} message from the server: {error}") from error
        return None

    def _bare(self) -> str:
        return client_first(self.username, self._nonce, token_auth=self.token_auth)

    def _proof(self, server: ServerFirst, text: str) -> bytes:
        mechanism = self.scram_mechanism
        # The server must extend our nonce (RFC 5802, section 5.1); a replayed message would not.
        if not server.nonce.startswith(self._nonce) or server.nonce == self._nonce:
            raise AuthenticationError(f"the server's {self.mechanism} nonce does not extend the client's")
        if not scram_keys.MIN_ITERATIONS <= server.iterations <= MAX_ITERATIONS:
            raise AuthenticationError(
                f"the server demands {server.iterations} iterations of {self.mechanism}, "
                f"expected {scram_keys.MIN_ITERATIONS} to {MAX_ITERATIONS}"
            )
        salted = scram_keys.salted_password(mechanism, self.password, server.salt, server.iterations)
        final = client_final(_GS2_HEADER, server.nonce)
        signed = f"{self._bare()},{text},{final}".encode()
        key = scram_keys.client_key(mechanism, salted)
        signature = scram_keys.sign(mechanism, scram_keys.stored_key(mechanism, key), signed)
        self._signature = scram_keys.sign(mechanism, scram_keys.server_key(mechanism, salted), signed)
        return with_proof(final, bytes(k ^ s for k, s in zip(key, signature, strict=True)))

    def _check(self, final: bytes | str, signature: bytes) -> None:
        if isinstance(final, str):
            raise AuthenticationError(f"the server rejected the {self.mechanism} login: {final[:200]!r}")
        if not hmac.compare_digest(final, signature):
            raise AuthenticationError(f"the server does not know the password: its {self.mechanism} signature is wrong")
        self.complete = True


def sasl_client(security: ClientSecurity) -> SaslClient:
    """Return a new login as configured.

    Raises:
        ConfigError: Unknown mechanism, or no username and password.

    """
    mechanism, user, password = security.sasl_mechanism, security.username, security.password
    if user is None or password is None:
        raise ConfigError("sasl.jaas.config: expected a username and a password")
    if mechanism == "PLAIN":
        return PlainClient(username=user, password=password)
    for scram in ScramMechanism:
        if scram.mechanism_name == mechanism:
            return ScramClient(scram_mechanism=scram, username=user, password=password, token_auth=security.token_auth)
    raise ConfigError(f"sasl.mechanism: {mechanism}: expected PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
