"""Check of all property names: used here, known to Kafka but unused, or unknown."""

from collections.abc import Iterable
from difflib import get_close_matches

from aclog.authorizer.config import ALLOW_EVERYONE_CONFIG, CIDR_CONFIG, SUPER_USERS_CONFIG
from aclog.authorizer.loader import ACL_AUTHORIZERS, AUTHORIZER_CLASS_NAME_CONFIG, KAFKAS_ACL_AUTHORIZERS
from aclog.metalog.errors import ConfigError
from aclog.nodes.config.java_properties import Properties, listener_prefix
from aclog.nodes.config.known_keys import KNOWN_KEYS
from aclog.nodes.config.metadata_log import CLIENT_PREFIX, METADATA_LOG_KEYS
from aclog.nodes.config.refused_keys import CHECKED_KEYS
from aclog.nodes.config.sasl_settings import JAAS
from aclog.nodes.config.token_settings import MAX_REAUTH, SECRET
from aclog.snapshots.newer_kafka import KAFKA_VERSION_CONFIG

_PER_LISTENER_NAMES = """
connections.max.reauth.ms sasl.enabled.mechanisms ssl.cipher.suites ssl.client.auth ssl.enabled.protocols
ssl.endpoint.identification.algorithm ssl.key.password ssl.keystore.certificate.chain ssl.keystore.key
ssl.keystore.location ssl.keystore.password ssl.keystore.type ssl.principal.mapping.rules
ssl.truststore.certificates ssl.truststore.location ssl.truststore.password ssl.truststore.type
"""
_USED_NAMES = """
advertised.listeners allow.everyone.if.no.acl.found auto.create.topics.enable broker.heartbeat.interval.ms
broker.id broker.rack broker.session.timeout.ms connection.failed.authentication.delay.ms
connections.max.idle.ms controller.listener.names controller.quorum.bootstrap.servers controller.quorum.voters
delegation.token.expiry.check.interval.ms delegation.token.expiry.time.ms delegation.token.max.lifetime.ms
delegation.token.secret.key
early.start.listeners initial.broker.registration.timeout.ms inter.broker.listener.name
internal.metadata.log.segment.bytes listener.security.protocol.map
listeners log.dir log.dirs max.connections max.connections.per.ip metadata.log.dir
metadata.log.max.record.bytes.between.snapshots metadata.log.max.snapshot.interval.ms metadata.log.segment.bytes
metadata.max.retention.bytes metadata.max.retention.ms min.insync.replicas node.id process.roles
queued.max.request.bytes queued.max.requests request.timeout.ms sasl.mechanism.controller.protocol
sasl.mechanism.inter.broker.protocol sasl.server.max.receive.size security.inter.broker.protocol
socket.request.max.bytes super.users
"""

PER_LISTENER_KEYS = frozenset(_PER_LISTENER_NAMES.split())
"""Used with or without a listener's prefix."""

_USED = frozenset(_USED_NAMES.split())
"""Used without a prefix only."""

USED_KEYS = _USED | PER_LISTENER_KEYS
"""Kafka's keys that are used here."""

OWN_KEYS = METADATA_LOG_KEYS | {
    "aclog.authentication.timeout.ms",
    "aclog.http.listener",
    "aclog.scram.decoy.secret",
    "aclog.usage.index",
    CIDR_CONFIG,
    KAFKA_VERSION_CONFIG,
}
"""Keys that Kafka does not have."""

_CLIENT_NAMES = """
sasl.jaas.config sasl.mechanism security.protocol ssl.endpoint.identification.algorithm ssl.key.password
ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location ssl.keystore.password ssl.keystore.type
ssl.truststore.certificates ssl.truststore.location ssl.truststore.type
"""
CLIENT_KEYS = frozenset(_CLIENT_NAMES.split())
"""The keys allowed after `metadata.log.client.`."""

_OWN_PREFIXES = ("aclog.", CLIENT_PREFIX)
_OF_ZOOKEEPER = ("zookeeper.", "authorizer.zookeeper.", "inter.broker.protocol.version")
"""The prefixes of AclAuthorizer's keys; unknown ones are left to that authorizer."""
_ZOOKEEPERS = ("zookeeper.connect", "authorizer.zookeeper.url", "inter.broker.protocol.version")
_OF_KIP_11 = {"kafka.superusers": SUPER_USERS_CONFIG, "allow.everyone": ALLOW_EVERYONE_CONFIG}
"""KIP-11's names of two keys, which AclAuthorizer reads, too, and today's."""
_MEANT = _OF_KIP_11 | {
    "kafka.super.users": SUPER_USERS_CONFIG,
    "delegation.token.master.key": SECRET,
}
"""Keys that are too far from the meant one to be recognized by their letters."""
_LISTENER = "listener.name."
_OF_PLUGINS = ("config.providers.", "metrics.jmx.", "rlmm.config.", "rsm.config.")
"""Kafka passes keys with these prefixes on to plugins."""

_CHOICES = sorted(KNOWN_KEYS | OWN_KEYS | _MEANT.keys())
_MECHANISMS = ("plain", "scram-sha-256", "scram-sha-512", "gssapi", "oauthbearer")


def check_keys(properties: Properties, listener_names: Iterable[str], *, strict: bool) -> tuple[str, ...]:
    """Return a note about Kafka's keys that are not used here, and one about unknown keys.

    Raises:
        ConfigError: an unknown `aclog.` or `metadata.log.client.` key, or with `strict` any unknown key.

    """
    prefixes = tuple(listener_prefix(name) for name in listener_names)
    unused: list[str] = []
    unknown: list[str] = []
    # AclAuthorizer reads its own keys in `configure`, so they are neither unused nor unknown.
    on_zookeeper = properties.values.get(AUTHORIZER_CLASS_NAME_CONFIG, "").strip() in ACL_AUTHORIZERS
    for key in sorted(properties.values):
        if _is_used(key, prefixes) or (on_zookeeper and (key.startswith(_OF_ZOOKEEPER) or key in _OF_KIP_11)):
            continue
        (unused if _is_kafkas(key, prefixes) else unknown).append(key)
    own = [key for key in unknown if key.startswith(_OWN_PREFIXES)]
    what = f"unknown {'key' if len(unknown) == 1 else 'keys'}: {', '.join(map(_with_hint, unknown))}"
    if own or (strict and unknown):
        raise ConfigError(f"{properties.where}: {what}")
    notes = [f"Kafka's keys that are not used here: {', '.join(unused)}"] if unused else []
    return tuple(f"{properties.where}: {note}" for note in (*notes, *([what] if unknown else [])))


def _is_used(key: str, prefixes: tuple[str, ...]) -> bool:
    if key in USED_KEYS or key in CHECKED_KEYS or key in OWN_KEYS:
        return True
    if key.startswith(CLIENT_PREFIX) and key.removeprefix(CLIENT_PREFIX) in CLIENT_KEYS:
        return True
    return any(_is_used_of_listener(key.removeprefix(prefix)) for prefix in prefixes if key.startswith(prefix))


def _is_used_of_listener(rest: str) -> bool:
    mechanism, _, name = rest.partition(".")
    if mechanism in _MECHANISMS:
        return name in (JAAS, MAX_REAUTH) or name in CHECKED_KEYS
    return rest in PER_LISTENER_KEYS or rest in CHECKED_KEYS


def _is_kafkas(key: str, prefixes: tuple[str, ...]) -> bool:
    if key in KNOWN_KEYS or key.startswith(_OF_PLUGINS):
        return True
    for prefix in prefixes:
        if key.startswith(prefix):
            rest = key.removeprefix(prefix)
            return rest in KNOWN_KEYS or rest.partition(".")[2] in KNOWN_KEYS
    return False


def _with_hint(key: str) -> str:
    if key.startswith(_LISTENER):
        return f"{key} (no such listener; names are in lower case in keys)" if key.count(".") > 2 else key
    if key in _ZOOKEEPERS:
        return f"{key} (only with {AUTHORIZER_CLASS_NAME_CONFIG}={KAFKAS_ACL_AUTHORIZERS[0]})"
    if key == "authorizer.config.path":
        return f"{key} (no such file is read: its keys belong here)"
    plain = key.lower().replace("_", ".").replace("-", ".")
    near = get_close_matches(plain, _CHOICES, n=1, cutoff=0.85)
    return f"{key} (did you mean {_MEANT.get(near[0], near[0])}?)" if near else key
