"""Everything a node was told, as values (KafkaConfig)."""

from collections.abc import Mapping
from enum import Enum
from pathlib import Path

from attrs import field, frozen

from aclog.credentials.token_control import TokenSettings
from aclog.metalog.topiclog.settings import TopicSettings
from aclog.nodes.session import SecurityProtocol


class Role(Enum):
    """What a node does (process.roles)."""

    CONTROLLER = "controller"
    BROKER = "broker"


class LogKind(Enum):
    """Where the metadata log lives (metadata.log.kind)."""

    FILE = "file"
    TOPIC = "topic"
    """One partition of a real Kafka; several controllers, of which one is active."""
    QUORUM = "quorum"
    """A real Kafka's own controllers have it; this node follows them."""


class ClientAuth(Enum):
    """Whether clients must show a certificate (ssl.client.auth)."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


@frozen(kw_only=True)
class HostPort:
    """An address to listen on or to connect to; an empty host stands for all of this machine's."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@frozen(kw_only=True)
class TlsSettings:
    """Where certificates and keys are (ssl.*). Stores are PEM, PKCS12 or JKS files, or PEM text in the properties.

    `keystore` and `truststore` are paths or None; the `_pem` fields are texts from ssl.keystore.certificate.chain,
    ssl.keystore.key and ssl.truststore.certificates. Secrets are left out of the repr.
    """

    keystore: Path | None = None
    keystore_type: str = "JKS"
    keystore_password: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    certificate_chain_pem: str | None = None
    key_pem: str | None = field(default=None, repr=False)
    truststore: Path | None = None
    truststore_type: str = "JKS"
    truststore_password: str | None = field(default=None, repr=False)
    truststore_pem: str | None = None
    client_auth: ClientAuth = ClientAuth.NONE
    protocols: tuple[str, ...] = ("TLSv1.2", "TLSv1.3")
    cipher_suites: tuple[str, ...] = ()
    endpoint_identification: bool = True
    principal_mapping_rules: str = "DEFAULT"


@frozen(kw_only=True)
class Listener:
    """One listener with all that holds for it, overrides by `listener.name.<name>.` taken in.

    `sasl_mechanisms` are the names that SASL uses; `plain_users` are the user_<name> entries of PLAIN's JAAS line.
    """

    name: str
    bind: HostPort
    advertised: HostPort
    security_protocol: SecurityProtocol
    controller: bool = False
    early_start: bool = False
    sasl_mechanisms: tuple[str, ...] = ()
    plain_users: Mapping[str, str] = field(factory=dict, repr=lambda users: f"{len(users)} users")
    session_lifetimes_ms: Mapping[str, int] = field(factory=dict)
    """How long a login by a mechanism holds (connections.max.reauth.ms); one that is not there, for ever."""
    tls: TlsSettings | None = None


@frozen(kw_only=True)
class ClientSecurity:
    """How this node, or a command, authenticates to a server."""

    security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    sasl_mechanism: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token_auth: bool = False
    tls: TlsSettings | None = None


@frozen(kw_only=True)
class Limits:
    """How much of a node its clients may take."""

    frame_bytes: int = 100 << 20
    """socket.request.max.bytes; before a connection is authenticated sasl.server.max.receive.size holds instead."""
    unauthenticated_frame_bytes: int = 512 << 10
    connections: int = 10_000
    """max.connections"""
    connections_per_ip: int = 10_000
    """max.connections.per.ip"""
    idle_seconds: float = 600.0
    """connections.max.idle.ms"""
    authentication_seconds: float = 30.0
    """How long a connection may take to authenticate: aclog.authentication.timeout.ms"""
    failed_authentication_seconds: float = 0.1
    """Until a client hears that its login failed: connection.failed.authentication.delay.ms. Guessing is slow."""
    in_flight_requests: int = 500
    """queued.max.requests: of all connections together, one each at a time"""
    in_flight_bytes: int = 256 << 20
    """queued.max.request.bytes"""
    request_seconds: float = 30.0
    """request.timeout.ms"""


@frozen(kw_only=True)
class CheckpointPolicy:
    """When a controller writes a checkpoint and lets go of what lies below one."""

    bytes_between: int = 20 << 20
    """metadata.log.max.record.bytes.between.snapshots"""
    interval_ms: int = 3_600_000
    """metadata.log.max.snapshot.interval.ms; 0: never by time"""
    retention_bytes: int = 100 << 20
    """metadata.max.retention.bytes; -1: without bound"""
    retention_ms: int = 7 * 24 * 3_600_000
    """metadata.max.retention.ms; -1: without bound"""
    segment_bytes: int = 1 << 30
    """metadata.log.segment.bytes, internal.metadata.log.segment.bytes"""


@frozen(kw_only=True)
class NodeConfig:
    """A node's configuration, checked. `properties` are the raw ones, for an authorizer's `configure`."""

    roles: frozenset[Role]
    node_id: int
    metadata_log_dir: Path
    """Where meta.properties and __cluster_metadata-0 are (metadata.log.dir, or the first of log.dirs)."""
    log_dirs: tuple[Path, ...] = ()
    """log.dirs, or log.dir: each gets a meta.properties when it is formatted."""
    listeners: tuple[Listener, ...]
    inter_broker_listener_name: str | None = None
    controller_listener_names: tuple[str, ...] = ()
    controller_quorum: tuple[HostPort, ...] = ()
    """Where to ask for the leader: controller.quorum.bootstrap.servers, or controller.quorum.voters' addresses."""
    voters: Mapping[int, HostPort] = field(factory=dict)
    """Who stands in controller.quorum.voters (kraft.version 0); empty: voters stand in the log (kraft.version 1)."""
    log_kind: LogKind = LogKind.FILE
    topic: TopicSettings | None = None
    """Where the log of kind topic is; None of any other."""
    controller_client: ClientSecurity = field(factory=ClientSecurity)
    """How a broker, or one of several controllers, authenticates to the controllers."""
    authorizer_class_name: str | None = None
    limits: Limits = field(factory=Limits)
    checkpoints: CheckpointPolicy = field(factory=CheckpointPolicy)
    tokens: TokenSettings = field(factory=TokenSettings)
    http: HostPort | None = None
    """Where /metrics, /healthz and /readyz are served: aclog.http.listener."""
    properties: Mapping[str, str] = field(factory=dict, repr=lambda values: f"{len(values)} properties")
    notes: tuple[str, ...] = ()
    """Lines for the log: keys of Kafka's that are not used here, and keys that nobody knows."""

    @property
    def voter_ids(self) -> tuple[int, ...]:
        """The ids in controller.quorum.voters."""
        return tuple(self.voters)

    @property
    def is_controller(self) -> bool:
        """Whether this node writes the log."""
        return Role.CONTROLLER in self.roles

    @property
    def is_broker(self) -> bool:
        """Whether this node serves clients."""
        return Role.BROKER in self.roles
