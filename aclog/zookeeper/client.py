"""The ZooKeeper client: settings, znodes, transactions and retries."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from attrs import field

from aclog.metalog.errors import ConfigError, MetadataError
from aclog.metalog.values import frozen

# Znodes as read by a client, and the operations of a transaction (org.apache.zookeeper.Op).


ANY_VERSION = -1
"""Expected version of an unconditional operation (ZkVersion.MatchAnyVersion)."""


@frozen(kw_only=True)
class Node:
    """A znode: its data, data version, creation time in ms, and number of children.

    A new znode has version 0, and each write increments it.
    """

    data: bytes
    version: int
    created_ms: int
    child_count: int = 0


@frozen(kw_only=True)
class Children:
    """The names of a znode's children, unordered, and how many were ever created: the next sequence number."""

    names: Sequence[str]
    ever_created: int


@frozen(kw_only=True)
class CreateNode:
    """Create a znode, whose parent must exist; with `sequence`, ZooKeeper appends ten digits to its name."""

    path: str
    data: bytes
    sequence: bool = False


@frozen(kw_only=True)
class SetNode:
    """Write a znode if it has this version."""

    path: str
    data: bytes
    version: int = ANY_VERSION


@frozen(kw_only=True)
class DeleteNode:
    """Delete a znode without children if it has this version."""

    path: str
    version: int = ANY_VERSION


Operation: TypeAlias = CreateNode | SetNode | DeleteNode


def operation_to(data: bytes | None, *, path: str, node: Node | None) -> Operation | None:
    """Return the conditional operation that makes a znode, read as `node`, hold `data`; None if it already does.

    `data` is None if the znode is to be deleted.
    """
    if node is None:
        return None if data is None else CreateNode(path=path, data=data)
    if data is None:
        return DeleteNode(path=path, version=node.version)
    return None if node.data == data else SetNode(path=path, data=data, version=node.version)


# Settings of a ZooKeeper client, from a server's `zookeeper.*` properties (kafka.server.KafkaConfig).


_NAMES = """
clientCnxnSocket connect connection.timeout.ms max.in.flight.requests session.timeout.ms set.acl ssl.client.enable
ssl.crl.enable ssl.endpoint.identification.algorithm ssl.keystore.location ssl.keystore.password ssl.keystore.type
ssl.ocsp.enable ssl.truststore.location ssl.truststore.type url
"""
KEYS = frozenset(f"zookeeper.{name}" for name in _NAMES.split())
"""The properties that are read, each also with a prefix."""

_DEFAULT_SESSION_MS = 18_000
_DEFAULT_IN_FLIGHT = 10


@frozen(kw_only=True)
class ZkTls:
    """PEM files of TLS connections. None means no client certificate, or the system's authorities.

    `checks_host` is whether the server's certificate must be valid for the host of `connect`.
    """

    keystore: str | None = None
    key_password: str | None = field(default=None, repr=False)
    truststore: str | None = None
    checks_host: bool = True


@frozen(kw_only=True)
class ZkSettings:
    """Address, timeouts in seconds, and security of a ZooKeeper connection.

    `connect` is HOST:PORT[,HOST:PORT]*[/chroot]. A missing chroot is created if `make_chroot` is set. With
    `secure_acls`, new znodes belong to the client's authenticated identity (zookeeper.set.acl).
    """

    connect: str
    session_timeout: float = _DEFAULT_SESSION_MS / 1000
    connection_timeout: float = _DEFAULT_SESSION_MS / 1000
    in_flight: int = _DEFAULT_IN_FLIGHT
    secure_acls: bool = False
    make_chroot: bool = True
    tls: ZkTls | None = None

    @property
    def where(self) -> str:
        """The address, for messages."""
        return f"ZooKeeper at {self.connect}"


def zk_settings(properties: Mapping[str, str], *, prefix: str = "") -> ZkSettings:
    """Parse a server's zookeeper.* properties; those with the prefix, such as `authorizer.`, take precedence.

    Raises:
        ConfigError: no zookeeper.connect, or an invalid or unsupported value.

    """
    reader = _Reader(properties, prefix)
    connect = reader.text("zookeeper.url" if prefix else "zookeeper.connect") or reader.text("zookeeper.connect")
    if not connect:
        raise ConfigError("zookeeper.connect is missing: expected HOST:PORT[,HOST:PORT]*[/chroot]")
    session = reader.milliseconds("zookeeper.session.timeout.ms", _DEFAULT_SESSION_MS)
    # Kafka demands the Netty socket for TLS, so properties that worked there have it; kazoo has its own.
    reader.refuse("zookeeper.clientCnxnSocket", "org.apache.zookeeper.ClientCnxnSocketNetty")
    return ZkSettings(
        connect=_checked_connect(connect),
        session_timeout=session,
        connection_timeout=reader.milliseconds("zookeeper.connection.timeout.ms", int(session * 1000)),
        in_flight=reader.positive("zookeeper.max.in.flight.requests", _DEFAULT_IN_FLIGHT),
        secure_acls=reader.flag("zookeeper.set.acl"),
        tls=_tls(reader) if reader.flag("zookeeper.ssl.client.enable") else None,
    )


@frozen
class _Reader:
    """Properties; one with the prefix wins over one without it."""

    properties: Mapping[str, str]
    prefix: str

    def text(self, key: str) -> str:
        return self._entry(key)[1]

    def _entry(self, key: str) -> tuple[str, str]:
        for name in (f"{self.prefix}{key}", key):
            value = self.properties.get(name, "").strip()
            if value:
                return name, value
        return key, ""

    def is_empty(self, key: str) -> bool:
        """Return whether a property is set to nothing, which disables a default."""
        values = [self.properties.get(name) for name in (f"{self.prefix}{key}", key)]
        return next((not value.strip() for value in values if value is not None), False)

    def positive(self, key: str, default: int) -> int:
        """Return a positive 32-bit integer; the default if it is not set."""
        name, value = self._entry(key)
        if not value:
            return default
        if not (value.isascii() and value.isdigit()) or int(value) < 1 or int(value) > 2**31 - 1:
            raise ConfigError(f"{name} {value!r}: expected a number of 1 to 2147483647")
        return int(value)

    def milliseconds(self, key: str, default: int) -> float:
        """Return a property in milliseconds as seconds."""
        return self.positive(key, default) / 1000

    def flag(self, key: str) -> bool:
        """Return a boolean; false if it is not set."""
        name, value = self._entry(key)
        if value.lower() not in {"", "true", "false"}:
            raise ConfigError(f"{name} {value!r}: expected true or false")
        return value.lower() == "true"

    def refuse(self, key: str, *accepted: str) -> None:
        """Raise ConfigError if the property has a value that is not accepted."""
        name, value = self._entry(key)
        if value and value not in accepted:
            only = f": expected {' or '.join(accepted)}" if accepted else ""
            raise ConfigError(f"{name} {value!r} is not supported{only}")


def _checked_connect(connect: str) -> str:
    hosts, slash, chroot = connect.partition("/")
    for host in hosts.split(","):
        name, colon, port = host.strip().rpartition(":")
        if colon and not (name and port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16):
            raise ConfigError(f"zookeeper.connect {connect!r}: {host.strip()!r}: expected HOST:PORT")
        if not host.strip():
            raise ConfigError(f"zookeeper.connect {connect!r}: expected HOST:PORT[,HOST:PORT]*[/chroot]")
    if chroot and (chroot.endswith("/") or "//" in f"{slash}{chroot}"):
        raise ConfigError(f"zookeeper.connect {connect!r}: /{chroot}: expected a path without empty names")
    return connect


def _tls(reader: _Reader) -> ZkTls:
    for key in ("keystore", "truststore"):
        kind = reader.text(f"zookeeper.ssl.{key}.type")
        place = reader.text(f"zookeeper.ssl.{key}.location")
        if place and kind.upper() != "PEM":
            raise ConfigError(f"zookeeper.ssl.{key}.type {kind!r}: expected PEM, the only supported type")
        if place and not Path(place).is_file():
            raise ConfigError(f"zookeeper.ssl.{key}.location {place!r}: expected an existing PEM file")
    for key in ("zookeeper.ssl.crl.enable", "zookeeper.ssl.ocsp.enable"):
        if reader.flag(key):
            raise ConfigError(f"{key}: revocation checks are not supported: expected false")
    algorithm = reader.text("zookeeper.ssl.endpoint.identification.algorithm")
    if algorithm.upper() not in {"", "HTTPS"}:
        raise ConfigError(f"zookeeper.ssl.endpoint.identification.algorithm {algorithm!r}: expected HTTPS")
    # A PEM keystore holds both the private key and the certificate chain (KIP-651).
    return ZkTls(
        keystore=reader.text("zookeeper.ssl.keystore.location") or None,
        key_password=reader.text("zookeeper.ssl.keystore.password") or None,
        truststore=reader.text("zookeeper.ssl.truststore.location") or None,
        checks_host=not reader.is_empty("zookeeper.ssl.endpoint.identification.algorithm"),
    )


# Errors of the ZooKeeper client. A znode that cannot be decoded is a DecodeError with the znode's path.


class StoreError(MetadataError):
    """ZooKeeper refused the request, or no response arrived; in the latter case the request may have been applied."""

    retriable = True


class DisconnectedError(StoreError):
    """There was no connection, or it was lost while the request was in flight. The client reconnects by itself."""


class ConflictError(StoreError):
    """Another client changed, created or deleted the znode first; nothing of the transaction was applied."""
