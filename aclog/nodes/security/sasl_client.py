"""SASL on the client's side: PLAIN (RFC 4616) and SCRAM (RFC 5802, RFC 7677; Kafka's ScramSaslClient)."""

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
"""More are refused: a server could keep a client busy for long. Kafka's controllers take no more than 16,384."""

_GS2_HEADER = "n,,"


class SaslClient(Protocol):
    """One login to a server: `first`, then `step` with each answer until `complete`."""

    complete: bool
    """Whether the client is content: with SCRAM, once the server has proved itself."""

    @property
    def mechanism(self) -> str:
        """The name for the SaslHandshake."""
        ...

    def first(self) -> bytes:
        """The message that opens the exchange."""
        ...

    def step(self, challenge: bytes) -> bytes | None:
        """The message that follows this answer of the server; None where nothing is left to be sent.

        Raises:
            AuthenticationError: what came is not an answer of SCRAM, or not of the server that knows the password.

        """
        ...


@define(kw_only=True)
class PlainClient:
    """Says who it is, and its password."""

    username: str
    password: str = field(repr=False)
    mechanism: str = field(default="PLAIN", init=False)
    complete: bool = field(default=False, init=False)

    def first(self) -> bytes:
        """No authorization id, the user, the password."""
        return f"\0{self.username}\0{self.password}".encode()

    def step(self, challenge: bytes) -> bytes | None:  # noqa: ARG002  (the server has nothing to say)
        """All has been said."""
        self.complete = True
        return None


@define(kw_only=True)
class ScramClient:
    """Proves that it knows the password, and wants the same of the server."""

    scram_mechanism: ScramMechanism
    username: str
    password: str = field(repr=False)
    token_auth: bool = False
    nonce: Callable[[], str] = field(default=new_nonce, repr=False)
    complete: bool = field(default=False, init=False)
    _nonce: str = field(default="", init=False, repr=False)
    _signature: bytes | None = field(default=None, init=False, repr=False)
    """What the server must show; None before its challenge."""

    @property
    def mechanism(self) -> str:
        """The name that SASL uses: `SCRAM-SHA-256`."""
        return self.scram_mechanism.mechanism_name

    def first(self) -> bytes:
        """Who it is, and a new nonce."""
        self._nonce, self._signature, self.complete = self.nonce(), None, False
        return (_GS2_HEADER + self._bare()).encode()

    def step(self, challenge: bytes) -> bytes | None:
        """The proof, and then nothing; AuthenticationError for what SaslClient says."""
        try:
            if self._signature is None:
                return self._proof(parse_server_first(challenge), challenge.decode())
            self._check(parse_server_final(challenge), self._signature)
        except DecodeError as error:
            raise AuthenticationError(f"the server's {self.mechanism} message is not right: {error}") from error
        return None

    def _bare(self) -> str:
        return client_first(self.username, self._nonce, token_auth=self.token_auth)

    def _proof(self, server: ServerFirst, text: str) -> bytes:
        mechanism = self.scram_mechanism
        if not server.nonce.startswith(self._nonce) or server.nonce == self._nonce:
            raise AuthenticationError(f"the server's {self.mechanism} nonce does not follow this client's")
        if not scram_keys.MIN_ITERATIONS <= server.iterations <= MAX_ITERATIONS:
            raise AuthenticationError(
                f"the server wants {server.iterations} iterations of {self.mechanism}, "
                f"expected {scram_keys.MIN_ITERATIONS} to {MAX_ITERATIONS}"
            )
        salted = scram_keys.salted_password(mechanism, self.password, server.salt, server.iterations)
        final = client_final(_GS2_HEADER, server.nonce)
        signed = f"{self._bare()},{text},{final}".encode()
        key = scram_keys.client_key(mechanism, salted)
        signature = scram_keys.sign(mechanism, scram_keys.stored_key(mechanism, key), signed)
        self._signature = scram_keys.sign(mechanism, scram_keys.server_key(mechanism, salted), signed)
        return with_proof(final, bytes(k ^ s for k, s in zip(key, signature, strict=True)))

    def _check(self, answer: bytes | str, signature: bytes) -> None:
        if isinstance(answer, str):
            raise AuthenticationError(f"the server refused the {self.mechanism} login: {answer[:200]!r}")
        if not hmac.compare_digest(answer, signature):
            raise AuthenticationError(f"the server does not know the password: its {self.mechanism} signature is wrong")
        self.complete = True


def sasl_client(security: ClientSecurity) -> SaslClient:
    """A new login as configured.

    Raises:
        ConfigError: no such mechanism, or no user name and password for it.

    """
    mechanism, user, password = security.sasl_mechanism, security.username, security.password
    if user is None or password is None:
        raise ConfigError("sasl.jaas.config: a username and a password are needed to log in")
    if mechanism == "PLAIN":
        return PlainClient(username=user, password=password)
    for scram in ScramMechanism:
        if scram.mechanism_name == mechanism:
            return ScramClient(scram_mechanism=scram, username=user, password=password, token_auth=security.token_auth)
    raise ConfigError(f"sasl.mechanism: {mechanism}: expected PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
