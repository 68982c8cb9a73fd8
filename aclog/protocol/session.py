"""A client's session, and the context of its requests."""

from enum import Enum

from attrs import field

from aclog.authorizer.interface import Authorizer, AuthorizerSession
from aclog.authorizer.settings import KafkaPrincipal
from aclog.metalog.values import frozen

# A client's session, and the context of its requests.


class SecurityProtocol(Enum):
    """The security protocol of a listener (org.apache.kafka.common.security.auth.SecurityProtocol)."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def id(self) -> int:
        """The protocol's number in a broker's registration."""
        return list(SecurityProtocol).index(self)

    @property
    def sasl(self) -> bool:
        """Whether clients authenticate with SASL."""
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)

    @property
    def tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)


ANONYMOUS = KafkaPrincipal(type="User", name="ANONYMOUS")
"""The principal of unauthenticated clients (KafkaPrincipal.ANONYMOUS)."""


@frozen(kw_only=True)
class Session:
    """An authenticated connection (the connection part of Kafka's RequestContext).

    `host` is the client address in the form of Java's getHostAddress, `address` is the same address as 4 or 16 bytes.
    """

    listener_name: str
    security_protocol: SecurityProtocol
    host: str
    address: bytes
    principal: KafkaPrincipal = ANONYMOUS
    token_authenticated: bool = False
    principal_text: str = field(init=False, repr=False)
    """The principal as `Type:name`, made once for all requests."""

    _decisions: tuple[Authorizer, AuthorizerSession] | None = field(default=None, init=False, eq=False, repr=False)

    def decisions_by(self, authorizer: Authorizer) -> AuthorizerSession:
        """Return the decisions of an authorizer on this client's requests: one handle for the connection."""
        cached = self._decisions
        if cached is None or cached[0] is not authorizer:
            cached = authorizer, authorizer.session(self.principal_text, self.host)
            object.__setattr__(self, "_decisions", cached)
        return cached[1]

    @principal_text.default
    def _principal_text(self) -> str:
        return str(self.principal)
