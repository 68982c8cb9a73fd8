"""Who is at the other end of a connection, and how it was made."""

from enum import Enum

from attrs import frozen

from aclog.authorizer.principals import KafkaPrincipal


class SecurityProtocol(Enum):
    """How a listener is secured (org.apache.kafka.common.security.auth.SecurityProtocol)."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def sasl(self) -> bool:
        """Whether clients authenticate by SASL."""
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)

    @property
    def tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)


ANONYMOUS = KafkaPrincipal(type="User", name="ANONYMOUS")
"""Whoever did not have to say who they are (KafkaPrincipal.ANONYMOUS)."""


@frozen(kw_only=True)
class Session:
    """An authenticated connection (RequestContext's connection part).

    `host` is the client's address in Java's getHostAddress form, `address` the same as 4 or 16 bytes.
    """

    listener_name: str
    security_protocol: SecurityProtocol
    host: str
    address: bytes
    principal: KafkaPrincipal = ANONYMOUS
    token_authenticated: bool = False
