"""A node's configuration as values (KafkaConfig)."""

from collections.abc import Mapping
from enum import Enum
from pathlib import Path

from attrs import field

from aclog.authorizer.settings import Generation
from aclog.credentials.tokens import TokenSettings
from aclog.metalog.topiclog.settings import TopicSettings
from aclog.metalog.values import frozen
from aclog.protocol.session import SecurityProtocol


class Role(Enum):
    """A role of a node (process.roles)."""

    CONTROLLER = "controller"
    BROKER = "broker"


class LogKind(Enum):
    """Where the metadata log is (metadata.log.kind)."""

    FILE = "file"
    TOPIC = "topic"
    """One partition of a real Kafka, shared by several controllers, one of them active."""
    QUORUM = "quorum"
    """A real Kafka's controllers, whose log this node follows."""


class ClientAuth(Enum):
    """Whether clients must present a certificate (ssl.client.auth)."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


@frozen(kw_only=True)
class HostPort:
    """An address to listen on or to connect to; an empty host means all interfaces."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@frozen(kw_only=True)
class TlsSettings:
    """Certificates and keys (ssl.*). Stores are PEM, PKCS12 or JKS files, or PEM text in the properties.

    The `_pem` fields are the texts of ssl.keystore.certificate.chain, ssl.keystore.key and ssl.truststore.certificates.
    Secrets are left out of the repr.
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
    """One listener with its effective settings, overrides by `listener.name.<name>.` included.

    `sasl_mechanisms` are SASL's names; `plain_users` are the user_<name> options of PLAIN's JAAS line.
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
    """How long a login by each mechanism is valid (connections.max.reauth.ms); without an entry, forever."""
    tls: TlsSettings | None = None


@frozen(kw_only=True)
class ClientSecurity:
    """How this node or a command authenticates to a server."""

    security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    sasl_mechanism: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token_auth: bool = False
    tls: TlsSettings | None = None


@frozen(kw_only=True)
class Limits:
    """How much of a node's resources clients may use."""

    frame_bytes: int = 100 << 20
    """socket.request.max.bytes; sasl.server.max.receive.size before authentication."""
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
    """The delay of a failed login's response: connection.failed.authentication.delay.ms. It slows down guessing."""
    in_flight_requests: int = 500
    """queued.max.requests: over all connections, each of which has at most one"""
    in_flight_bytes: int = 256 << 20
    """queued.max.request.bytes"""
    request_seconds: float = 30.0
    """request.timeout.ms"""


@frozen(kw_only=True)
class CheckpointPolicy:
    """When a controller writes a checkpoint and deletes old ones and the log below them."""

    bytes_between: int = 20 << 20
    """metadata.log.max.record.bytes.between.snapshots"""
    interval_ms: int = 3_600_000
    """metadata.log.max.snapshot.interval.ms; 0: not by time"""
    retention_bytes: int = 100 << 20
    """metadata.max.retention.bytes; -1: unlimited"""
    retention_ms: int = 7 * 24 * 3_600_000
    """metadata.max.retention.ms; -1: unlimited"""
    segment_bytes: int = 1 << 30
    """metadata.log.segment.bytes, internal.metadata.log.segment.bytes"""


@frozen(kw_only=True)
class BrokerSettings:
    """How brokers register with the active controller, and how it detects a failed one (KIP-631)."""

    session_timeout_ms: int = 9000
    """broker.session.timeout.ms, of controllers: a broker that is silent for longer is fenced."""
    heartbeat_interval_ms: int = 2000
    """broker.heartbeat.interval.ms, of brokers"""
    registration_timeout_ms: int = 60_000
    """initial.broker.registration.timeout.ms, of brokers: when a registration that keeps failing becomes an error"""
    rack: str | None = None
    """broker.rack, of brokers"""
    auto_create_topics: bool = True
    """auto.create.topics.enable, of brokers: whether Metadata of a missing topic also needs the right to create it"""


@frozen(kw_only=True)
class NodeConfig:
    """A node's checked configuration. `properties` are the raw ones, for an authorizer's `configure`."""

    roles: frozenset[Role]
    node_id: int
    metadata_log_dir: Path
    """The directory of meta.properties and __cluster_metadata-0 (metadata.log.dir, or the first of log.dirs)."""
    log_dirs: tuple[Path, ...] = ()
    """log.dirs or log.dir; formatting writes a meta.properties to each."""
    listeners: tuple[Listener, ...]
    inter_broker_listener_name: str | None = None
    controller_listener_names: tuple[str, ...] = ()
    controller_quorum: tuple[HostPort, ...] = ()
    """Where to find the leader: controller.quorum.bootstrap.servers, or the addresses in controller.quorum.voters."""
    voters: Mapping[int, HostPort] = field(factory=dict)
    """controller.quorum.voters (kraft.version 0); empty if the voters are in the log (kraft.version 1)."""
    log_kind: LogKind = LogKind.FILE
    topic: TopicSettings | None = None
    """The topic of a log of kind topic; None for other kinds."""
    controller_client: ClientSecurity = field(factory=ClientSecurity)
    """How a broker, or one of several controllers, authenticates to the controllers."""
    authorizer_class_name: str | None = None
    generation: Generation = Generation.V4_3
    """The Kafka whose levels of metadata.version the node supports, and whose checks it makes: aclog.kafka.version."""
    cidr: bool = False
    """Whether the host of an ACL may be a CIDR range: by `generation`, or aclog.cidr.enabled."""
    min_insync_replicas: int = 1
    """min.insync.replicas, which a new log holds where eligible leader replicas are enabled."""
    limits: Limits = field(factory=Limits)
    checkpoints: CheckpointPolicy = field(factory=CheckpointPolicy)
    tokens: TokenSettings = field(factory=TokenSettings)
    scram_decoy_secret: str | None = field(default=None, repr=False)
    """aclog.scram.decoy.secret: the key that the salts of unknown users are derived from, the same on all nodes."""
    brokers: BrokerSettings = field(factory=BrokerSettings)
    http: HostPort | None = None
    """The address of /metrics, /healthz and /readyz: aclog.http.listener."""
    usage_index: Path | None = None
    """The directory of the index of last use that the node keeps of its own decisions: aclog.usage.index."""
    properties: Mapping[str, str] = field(factory=dict, repr=lambda values: f"{len(values)} properties")
    notes: tuple[str, ...] = ()
    """Messages to log: unused and unknown keys."""

    @property
    def voter_ids(self) -> tuple[int, ...]:
        """The ids in controller.quorum.voters."""
        return tuple(self.voters)

    @property
    def is_controller(self) -> bool:
        """Whether this node is a controller."""
        return Role.CONTROLLER in self.roles

    @property
    def is_broker(self) -> bool:
        """Whether this node is a broker."""
        return Role.BROKER in self.roles
