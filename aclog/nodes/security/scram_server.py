"""Server side of SASL SCRAM (RFC 5802, RFC 7677; ScramSaslServer).

An unknown user gets the same exchange and the same failure as a wrong password, with a salt that stays the same, on
every node of the cluster (nodes.security.decoy_key), so that user names cannot be probed. (In Kafka an unknown user
fails one message earlier.)
"""

import hmac
import secrets
from collections.abc import Callable

from attrs import define, field, frozen

from aclog.authorizer.principals import KafkaPrincipal
from aclog.credentials import scram_keys
from aclog.credentials.scram import ScramMechanism
from aclog.metalog.errors import DecodeError
from aclog.metalog.records import UserScramCredentialRecord
from aclog.nodes.security.decoy_key import decoy_salt
from aclog.nodes.security.errors import AuthenticationError, AuthenticationNotReadyError, invalid_credentials
from aclog.nodes.security.login_credentials import Credentials
from aclog.nodes.security.plain_server import other_authorization_id
from aclog.nodes.security.scram_messages import (
    ClientFinal,
    ClientFirst,
    ServerFirst,
    parse_client_final,
    parse_client_first,
    server_final,
)


def new_nonce() -> str:
    """Return 32 random characters that are valid in a message."""
    return secrets.token_urlsafe(24)


@frozen(kw_only=True)
class _Exchange:
    """The state between the two messages of the client."""

    client_first: ClientFirst
    server_first: ServerFirst
    credential: UserScramCredentialRecord
    principal: KafkaPrincipal | None
    """None for an unknown user: the login fails whatever the proof."""
    expiry_ms: int | None = None


@define(kw_only=True)
class ScramServer:
    """One SCRAM login on one connection: two messages, two responses."""

    scram_mechanism: ScramMechanism
    credentials: Credentials = field(repr=False)
    reauthentication: bool = False
    nonce: Callable[[], str] = field(default=new_nonce, repr=False)
    complete: bool = field(default=False, init=False)
    _exchange: _Exchange | None = field(default=None, init=False, repr=False)
    _failed: bool = field(default=False, init=False)

    @property
    def mechanism(self) -> str:
        """The SASL mechanism name, such as `SCRAM-SHA-256`."""
        return self.scram_mechanism.mechanism_name

    @property
    def principal(self) -> KafkaPrincipal:
        """The user, or the token's owner; only once `complete`."""
        if not self.complete or self._exchange is None or self._exchange.principal is None:
            raise AuthenticationError("the login is not complete")
        return self._exchange.principal

    @property
    def token_authenticated(self) -> bool:
        """Whether the client authenticated with a delegation token."""
        return self.complete and self._exchange is not None and self._exchange.client_first.token_auth

    @property
    def expiry_ms(self) -> int | None:
        """The token's expiry in ms since 1970; None for a user."""
        return self._exchange.expiry_ms if self._exchange is not None else None

    def step(self, message: bytes) -> bytes:
        """Process the client's next message; return the server's.

        Raises:
            AuthenticationError: The login failed; unknown user, wrong password and malformed message have one text.
            AuthenticationNotReadyError: The credentials are not replayed yet.

        """
        if self.complete or self._failed:
            raise self._invalid()
        try:
            return self._challenge(message) if self._exchange is None else self._verify(self._exchange, message)
        except DecodeError as error:
            self._failed = True
            raise self._invalid() from error
        except (AuthenticationError, AuthenticationNotReadyError):
            self._failed = True
            raise

    def _challenge(self, message: bytes) -> bytes:
        client = parse_client_first(message)
        # Token ids and user names are separate namespaces; `tokenauth=true` selects which one (KIP-48).
        if client.token_auth and not self.credentials.tokens_enabled:
            raise AuthenticationError("Authentication failed: delegation tokens are not enabled")
        if client.authorization_id not in ("", client.user):
            raise other_authorization_id()
        if not self.credentials.ready:
            raise AuthenticationNotReadyError(
                "this node has not replayed its credentials yet: retry the SCRAM login later"
            )
        principal, credential, expiry_ms = self._credential(client)
        server = ServerFirst(nonce=client.nonce + self.nonce(), salt=credential.salt, iterations=credential.iterations)
        self._exchange = _Exchange(
            client_first=client, server_first=server, credential=credential, principal=principal, expiry_ms=expiry_ms
        )
        return server.text.encode()

    def _credential(self, client: ClientFirst) -> tuple[KafkaPrincipal | None, UserScramCredentialRecord, int | None]:
        """Return the claimed principal, its credential and expiry; for an unknown user None and a fake credential."""
        fake = self._fake(client.user)  # computed for every user, so that timing does not reveal who is unknown
        if client.token_auth:
            token = self.credentials.token(client.user, self.scram_mechanism)
            if token is not None and self._usable(token.credential):
                return token.owner, token.credential, token.expiry_ms
        else:
            credential = self.credentials.scram(client.user, self.scram_mechanism)
            if credential is not None and self._usable(credential):
                return KafkaPrincipal(type="User", name=client.user), credential, None
        return None, fake, None

    def _usable(self, credential: UserScramCredentialRecord) -> bool:
        size = scram_keys.key_size(self.scram_mechanism)
        sizes = {len(credential.stored_key), len(credential.server_key)}
        return credential.iterations >= scram_keys.MIN_ITERATIONS and sizes == {size}

    def _fake(self, user: str) -> UserScramCredentialRecord:
        """Return a credential without a password, stable per user."""
        salt = decoy_salt(self.credentials.decoy_key, self.scram_mechanism, user)
        key = bytes(scram_keys.key_size(self.scram_mechanism))
        return UserScramCredentialRecord(
            name=user,
            mechanism=self.scram_mechanism,
            salt=salt,
            stored_key=key,
            server_key=key,
            iterations=scram_keys.MIN_ITERATIONS,
        )

    def _verify(self, exchange: _Exchange, message: bytes) -> bytes:
        final = parse_client_final(message)
        bound = final.binding == exchange.client_first.gs2_header.encode()
        same_nonce = final.nonce == exchange.server_first.nonce
        signed = f"{exchange.client_first.bare},{exchange.server_first.text},{final.signed}".encode()
        # All checks are made before any result is used: which one failed must not show in the response time.
        proved = self._proved(exchange.credential, signed, final)
        signature = scram_keys.sign(self.scram_mechanism, exchange.credential.server_key, signed)
        if not (proved and bound and same_nonce and exchange.principal is not None):
            raise self._invalid()
        self.complete = True
        return server_final(signature)

    def _proved(self, credential: UserScramCredentialRecord, signed: bytes, final: ClientFinal) -> bool:
        """Whether the proof reveals the client key, which it masks with a signature by the stored key."""
        signature = scram_keys.sign(self.scram_mechanism, credential.stored_key, signed)
        if len(final.proof) != len(signature):
            return False
        client_key = bytes(p ^ s for p, s in zip(final.proof, signature, strict=True))
        return hmac.compare_digest(scram_keys.stored_key(self.scram_mechanism, client_key), credential.stored_key)

    def _invalid(self) -> AuthenticationError:
        return invalid_credentials(self.mechanism, reauthentication=self.reauthentication)
