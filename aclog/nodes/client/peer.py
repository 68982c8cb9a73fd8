"""What listens at an address, as far as a stranger is told: Kafka and its security protocol, or something else."""

from collections.abc import Container
from enum import Enum, auto

from attrs import frozen
from cryptography import x509

from aclog.nodes.session import SecurityProtocol
from aclog.nodes.wire.api_keys import FETCH_SNAPSHOT, METADATA


class Service(Enum):
    """What a peer speaks."""

    KAFKA = auto()
    ZOOKEEPER = auto()
    HTTP = auto()
    UNKNOWN = auto()
    """Something that takes connections, and answers none of the questions that we know."""


@frozen(kw_only=True)
class Peer:
    """What a probe has found at an address."""

    service: Service
    tls: bool = False
    sasl: bool = False
    mechanisms: tuple[str, ...] = ()
    """The SASL mechanisms that a listener offers."""
    certificate: x509.Certificate | None = None
    """That of a TLS server; nobody has verified it."""
    wants_certificate: bool = False
    """Whether a TLS server ends connections of clients that have none."""

    @property
    def protocol(self) -> SecurityProtocol | None:
        """A Kafka listener's security protocol; None for another service."""
        if self.service is not Service.KAFKA:
            return None
        if self.tls:
            return SecurityProtocol.SASL_SSL if self.sasl else SecurityProtocol.SSL
        return SecurityProtocol.SASL_PLAINTEXT if self.sasl else SecurityProtocol.PLAINTEXT


class Role(Enum):
    """What a server must be for a request; the value is the flag that names such servers."""

    BROKER = "--bootstrap-server"
    CONTROLLER = "--bootstrap-controller"


def role_of(apis: Container[int]) -> Role | None:
    """Return what a server of these APIs is: brokers serve Metadata, controllers FetchSnapshot; None for neither."""
    if METADATA in apis:
        return Role.BROKER
    return Role.CONTROLLER if FETCH_SNAPSHOT in apis else None
