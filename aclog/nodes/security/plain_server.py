"""Server side of SASL PLAIN (RFC 4616; PlainSaslServer)."""

import hmac
from collections.abc import Mapping
from hashlib import sha256

from attrs import define, field

from aclog.authorizer.principals import KafkaPrincipal
from aclog.nodes.security.errors import AuthenticationError, invalid_credentials

_TOKENS = 3
"""The number of tokens in the message; Kafka splits off at most one more, which its error text counts."""


@define(kw_only=True)
class PlainServer:
    """One PLAIN login on one connection: one message, an empty response."""

    users: Mapping[str, str] = field(repr=False)
    """Passwords by user, from the `user_<name>` entries of the listener's sasl.jaas.config."""
    reauthentication: bool = False
    mechanism: str = field(default="PLAIN", init=False)
    token_authenticated: bool = field(default=False, init=False)
    expiry_ms: int | None = field(default=None, init=False)
    complete: bool = field(default=False, init=False)
    _principal: KafkaPrincipal | None = field(default=None, init=False)

    @property
    def principal(self) -> KafkaPrincipal:
        """The authenticated user; only once `complete`."""
        if self._principal is None:
            raise AuthenticationError("the login is not complete")
        return self._principal

    def step(self, message: bytes) -> bytes:
        """Verify `[authorization id] NUL user NUL password`.

        Raises:
            AuthenticationError: Wrong password, unknown user, or malformed message.

        """
        authorization_id, user, password = self._parsed(message)
        for what, text in (("username", user), ("password", password)):
            if not text:
                raise AuthenticationError(f"Authentication failed: {what} not specified")
        if not _equal(password, self.users.get(user)):
            raise AuthenticationError("Authentication failed: Invalid username or password")
        if authorization_id not in ("", user):
            raise other_authorization_id()
        self._principal = KafkaPrincipal(type="User", name=user)
        self.complete = True
        return b""

    def _parsed(self, message: bytes) -> tuple[str, str, str]:
        if self.complete:
            raise invalid_credentials(self.mechanism, reauthentication=self.reauthentication)
        parts = message.decode(errors="replace").split("\0", _TOKENS)
        if len(parts) != _TOKENS:
            raise AuthenticationError(f"Invalid SASL/PLAIN response: expected {_TOKENS} tokens, got {len(parts)}")
        return parts[0], parts[1], parts[2]


def other_authorization_id() -> AuthenticationError:
    """Return the error for an authorization id other than the user (the text is Kafka's)."""
    return AuthenticationError(
        "Authentication failed: Client requested an authorization id that is different from username"
    )


def _equal(password: str, expected: str | None) -> bool:
    """Compare in constant time, whatever the lengths and whether or not the user exists."""
    digests = (sha256(text.encode("utf-8", "surrogatepass")).digest() for text in (password, expected or ""))
    return hmac.compare_digest(*digests) and expected is not None
