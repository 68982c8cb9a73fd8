"""server.properties: the names of all properties, which of them are refused, and what a node is configured with."""

import socket
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path

from attrs import evolve

from aclog.authorizer import settings
from aclog.authorizer.standard import (
    ACL_AUTHORIZERS,
    AUTHORIZER_CLASS_NAME_CONFIG,
    KAFKAS_ACL_AUTHORIZERS,
    KAFKAS_STANDARD_AUTHORIZER,
    load_authorizer_class,
)
from aclog.config.listeners import (
    ROLES,
    build_listeners,
    check_inter_broker_mechanism,
    early_start_notes,
    plan_listeners,
)
from aclog.config.node_config import ClientSecurity, HostPort, LogKind, NodeConfig, Role
from aclog.config.node_settings import (
    CLIENT_PREFIX,
    METADATA_LOG_KEYS,
    controller_login,
    read_broker_settings,
    read_checkpoint_policy,
    read_limits,
    read_log_kind,
    read_quorum,
    read_topic_settings,
)
from aclog.config.properties import Properties, listener_prefix, read_properties, servers
from aclog.config.security import (
    CHECKED_KEYS,
    DECOY_SECRET,
    JAAS,
    MAX_REAUTH,
    SECRET,
    read_token_settings,
    refuse_plugins,
)
from aclog.metalog.errors import ConfigError
from aclog.snapshots.image import KAFKA_VERSION_CONFIG

# The names of all properties of a Kafka 4.3.1 server (AbstractKafkaConfig.CONFIG_DEF, StandardAuthorizer).


_NAMES = """
add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms advertised.listeners
allow.everyone.if.no.acl.found alter.config.policy.class.name alter.log.dirs.replication.quota.window.num
alter.log.dirs.replication.quota.window.size.seconds authorizer.class.name auto.create.topics.enable
auto.leader.rebalance.enable background.threads broker.heartbeat.interval.ms broker.id broker.rack
broker.session.timeout.ms client.quota.callback.class compression.gzip.level compression.lz4.level compression.type
compression.zstd.level config.providers connection.failed.authentication.delay.ms connections.max.idle.ms
connections.max.reauth.ms controlled.shutdown.enable controller.listener.names
controller.performance.always.log.threshold.ms controller.performance.sample.period.ms
controller.quorum.append.linger.ms controller.quorum.auto.join.enable controller.quorum.bootstrap.servers
controller.quorum.election.backoff.max.ms controller.quorum.election.timeout.ms controller.quorum.fetch.max.bytes
controller.quorum.fetch.snapshot.max.bytes controller.quorum.fetch.timeout.ms controller.quorum.request.timeout.ms
controller.quorum.retry.backoff.ms controller.quorum.voters controller.quota.window.num
controller.quota.window.size.seconds controller.socket.timeout.ms cordoned.log.dirs create.topic.policy.class.name
default.replication.factor delegation.token.expiry.check.interval.ms delegation.token.expiry.time.ms
delegation.token.max.lifetime.ms delegation.token.secret.key delete.records.purgatory.purge.interval.requests
delete.topic.enable early.start.listeners fetch.max.bytes fetch.purgatory.purge.interval.requests
follower.fetch.last.tiered.offset.enable group.consumer.assignment.interval.ms group.consumer.assignors
group.consumer.heartbeat.interval.ms group.consumer.max.assignment.interval.ms
group.consumer.max.heartbeat.interval.ms group.consumer.max.session.timeout.ms group.consumer.max.size
group.consumer.migration.policy group.consumer.min.assignment.interval.ms group.consumer.min.heartbeat.interval.ms
group.consumer.min.session.timeout.ms group.consumer.regex.refresh.interval.ms group.consumer.session.timeout.ms
group.coordinator.append.linger.ms group.coordinator.background.threads group.coordinator.cached.buffer.max.bytes
group.coordinator.rebalance.protocols group.coordinator.threads group.initial.rebalance.delay.ms
group.max.session.timeout.ms group.max.size group.min.session.timeout.ms group.share.assignment.interval.ms
group.share.assignors group.share.delivery.count.limit group.share.heartbeat.interval.ms
group.share.initialize.retry.interval.ms group.share.max.assignment.interval.ms group.share.max.delivery.count.limit
group.share.max.heartbeat.interval.ms group.share.max.partition.max.record.locks
group.share.max.record.lock.duration.ms group.share.max.session.timeout.ms group.share.max.share.sessions
group.share.max.size group.share.min.assignment.interval.ms group.share.min.delivery.count.limit
group.share.min.heartbeat.interval.ms group.share.min.partition.max.record.locks
group.share.min.record.lock.duration.ms group.share.min.session.timeout.ms group.share.partition.max.record.locks
group.share.persister.class.name group.share.record.lock.duration.ms group.share.session.timeout.ms
group.streams.assignment.interval.ms group.streams.heartbeat.interval.ms group.streams.initial.rebalance.delay.ms
group.streams.max.assignment.interval.ms group.streams.max.heartbeat.interval.ms group.streams.max.session.timeout.ms
group.streams.max.size group.streams.max.standby.replicas group.streams.min.assignment.interval.ms
group.streams.min.heartbeat.interval.ms group.streams.min.session.timeout.ms group.streams.num.standby.replicas
group.streams.session.timeout.ms initial.broker.registration.timeout.ms inter.broker.listener.name
internal.metadata.delete.delay.millis internal.metadata.log.segment.bytes internal.metadata.max.batch.size.in.bytes
kafka.metrics.polling.interval.secs kafka.metrics.reporters leader.imbalance.check.interval.seconds
listener.security.protocol.map listeners log.cleaner.backoff.ms log.cleaner.dedupe.buffer.size
log.cleaner.delete.retention.ms log.cleaner.enable log.cleaner.io.buffer.load.factor log.cleaner.io.buffer.size
log.cleaner.io.max.bytes.per.second log.cleaner.max.compaction.lag.ms log.cleaner.min.cleanable.ratio
log.cleaner.min.compaction.lag.ms log.cleaner.threads log.cleanup.policy log.dir log.dir.failure.timeout.ms log.dirs
log.flush.interval.messages log.flush.interval.ms log.flush.offset.checkpoint.interval.ms
log.flush.scheduler.interval.ms log.flush.start.offset.checkpoint.interval.ms log.index.interval.bytes
log.index.size.max.bytes log.initial.task.delay.ms log.local.retention.bytes log.local.retention.ms
log.message.timestamp.after.max.ms log.message.timestamp.before.max.ms log.message.timestamp.type log.preallocate
log.retention.bytes log.retention.check.interval.ms log.retention.hours log.retention.minutes log.retention.ms
log.roll.hours log.roll.jitter.hours log.roll.jitter.ms log.roll.ms log.segment.bytes log.segment.delete.delay.ms
max.connection.creation.rate max.connections max.connections.per.ip max.connections.per.ip.overrides
max.incremental.fetch.session.cache.slots max.request.partition.size.limit message.max.bytes metadata.log.dir
metadata.log.max.record.bytes.between.snapshots metadata.log.max.snapshot.interval.ms metadata.log.segment.bytes
metadata.log.segment.ms metadata.max.idle.interval.ms metadata.max.retention.bytes metadata.max.retention.ms
metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms min.insync.replicas node.id
num.io.threads num.network.threads num.partitions num.recovery.threads.per.data.dir num.replica.alter.log.dirs.threads
num.replica.fetchers offset.metadata.max.bytes offsets.commit.timeout.ms offsets.load.buffer.size
offsets.retention.check.interval.ms offsets.retention.minutes offsets.topic.compression.codec
offsets.topic.num.partitions offsets.topic.replication.factor offsets.topic.segment.bytes principal.builder.class
process.roles producer.id.expiration.check.interval.ms producer.id.expiration.ms
producer.purgatory.purge.interval.requests queued.max.request.bytes queued.max.requests quota.window.num
quota.window.size.seconds remote.fetch.max.wait.ms remote.list.offsets.request.timeout.ms
remote.log.index.file.cache.total.size.bytes remote.log.index.file.cache.ttl.ms
remote.log.manager.copier.thread.pool.size remote.log.manager.copy.max.bytes.per.second
remote.log.manager.copy.quota.window.num remote.log.manager.copy.quota.window.size.seconds
remote.log.manager.expiration.thread.pool.size remote.log.manager.fetch.max.bytes.per.second
remote.log.manager.fetch.quota.window.num remote.log.manager.fetch.quota.window.size.seconds
remote.log.manager.follower.thread.pool.size remote.log.manager.task.interval.ms
remote.log.manager.task.retry.backoff.max.ms remote.log.manager.task.retry.backoff.ms
remote.log.manager.task.retry.jitter remote.log.manager.thread.pool.size remote.log.metadata.custom.metadata.max.bytes
remote.log.metadata.manager.class.name remote.log.metadata.manager.class.path remote.log.metadata.manager.impl.prefix
remote.log.metadata.manager.listener.name remote.log.reader.max.pending.tasks remote.log.reader.threads
remote.log.storage.manager.class.name remote.log.storage.manager.class.path remote.log.storage.manager.impl.prefix
remote.log.storage.system.enable replica.fetch.backoff.ms replica.fetch.max.bytes replica.fetch.min.bytes
replica.fetch.response.max.bytes replica.fetch.wait.max.ms replica.high.watermark.checkpoint.interval.ms
replica.lag.time.max.ms replica.selector.class replica.socket.receive.buffer.bytes replica.socket.timeout.ms
replication.quota.window.num replication.quota.window.size.seconds request.timeout.ms
sasl.client.callback.handler.class sasl.enabled.mechanisms sasl.jaas.config sasl.kerberos.kinit.cmd
sasl.kerberos.min.time.before.relogin sasl.kerberos.principal.to.local.rules sasl.kerberos.service.name
sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class
sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism.controller.protocol
sasl.mechanism.inter.broker.protocol sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url
sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope
sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url
sasl.server.callback.handler.class sasl.server.max.receive.size security.inter.broker.protocol security.providers
server.max.startup.time.ms share.coordinator.append.linger.ms share.coordinator.cached.buffer.max.bytes
share.coordinator.cold.partition.snapshot.interval.ms share.coordinator.load.buffer.size
share.coordinator.snapshot.update.records.per.snapshot share.coordinator.state.topic.compression.codec
share.coordinator.state.topic.min.isr share.coordinator.state.topic.num.partitions
share.coordinator.state.topic.prune.interval.ms share.coordinator.state.topic.replication.factor
share.coordinator.state.topic.segment.bytes share.coordinator.threads share.coordinator.write.timeout.ms
share.fetch.purgatory.purge.interval.requests socket.connection.setup.timeout.max.ms
socket.connection.setup.timeout.ms socket.listen.backlog.size socket.receive.buffer.bytes socket.request.max.bytes
socket.send.buffer.bytes ssl.allow.dn.changes ssl.allow.san.changes ssl.cipher.suites ssl.client.auth
ssl.enabled.protocols ssl.endpoint.identification.algorithm ssl.engine.factory.class ssl.key.password
ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location ssl.keystore.password
ssl.keystore.type ssl.principal.mapping.rules ssl.protocol ssl.provider ssl.secure.random.implementation
ssl.trustmanager.algorithm ssl.truststore.certificates ssl.truststore.location ssl.truststore.password
ssl.truststore.type super.users telemetry.max.bytes transaction.abort.timed.out.transaction.cleanup.interval.ms
transaction.max.timeout.ms transaction.partition.verification.enable
transaction.remove.expired.transaction.cleanup.interval.ms transaction.state.log.load.buffer.size
transaction.state.log.min.isr transaction.state.log.num.partitions transaction.state.log.replication.factor
transaction.state.log.segment.bytes transaction.two.phase.commit.enable transactional.id.expiration.ms
unclean.leader.election.enable unclean.leader.election.interval.ms unstable.api.versions.enable
unstable.feature.versions.enable
"""

KNOWN_KEYS = frozenset(_NAMES.split())


# Check of all property names: used here, known to Kafka but unused, or unknown.


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
    settings.CIDR_CONFIG,
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
_OF_KIP_11 = {"kafka.superusers": settings.SUPER_USERS_CONFIG, "allow.everyone": settings.ALLOW_EVERYONE_CONFIG}
"""KIP-11's names of two keys, which AclAuthorizer also reads, and today's names."""
_SUGGESTIONS = _OF_KIP_11 | {
    "kafka.super.users": settings.SUPER_USERS_CONFIG,
    "delegation.token.master.key": SECRET,
}
"""Keys whose correct spelling is too different to be found by edit distance."""
_LISTENER = "listener.name."
_OF_PLUGINS = ("config.providers.", "metrics.jmx.", "rlmm.config.", "rsm.config.")
"""Kafka passes keys with these prefixes on to plugins."""

_CHOICES = sorted(KNOWN_KEYS | OWN_KEYS | _SUGGESTIONS.keys())
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
    return f"{key} (did you mean {_SUGGESTIONS.get(near[0], near[0])}?)" if near else key


# The class of the authorizer.

_KAFKAS = ("org.apache.kafka.", "kafka.")


def authorizer_class_name(properties: Properties) -> str | None:
    """Return the authorizer's class name, if set, after checking that the class can be imported.

    Raises:
        ConfigError: a Java class without a counterpart here, or a class that does not exist.

    """
    name = properties.text_or_none(AUTHORIZER_CLASS_NAME_CONFIG)
    if name is None:
        return None
    # Kafka's own authorizers have counterparts here, so that a server.properties of Kafka works unchanged.
    if name not in (KAFKAS_STANDARD_AUTHORIZER, *KAFKAS_ACL_AUTHORIZERS) and name.startswith(_KAFKAS):
        raise properties.error(
            AUTHORIZER_CLASS_NAME_CONFIG,
            f"{name!r} has no counterpart here: expected {KAFKAS_STANDARD_AUTHORIZER} or a Python class",
        )
    try:
        load_authorizer_class(name)
    except ConfigError as error:
        raise ConfigError(f"{properties.where}: {error}") from error
    return name


# Loading of server.properties: all of a node's settings are checked before anything is opened or bound.


NODE_ID = "node.id"
BROKER_ID = "broker.id"
LOG_DIRS = "log.dirs"
LOG_DIR = "log.dir"
METADATA_LOG_DIR = "metadata.log.dir"
HTTP_LISTENER = "aclog.http.listener"
USAGE_INDEX = "aclog.usage.index"
MIN_INSYNC_REPLICAS = "min.insync.replicas"
ZOOKEEPER_CONNECT = "zookeeper.connect"
_ZOOKEEPER_MODE = (
    f"not set, but {ZOOKEEPER_CONNECT} is, which is ZooKeeper mode: Kafka 3.9 was the last to have it. Two ways out: "
    f"copy ACLs, users and tokens into a log (aclog migrate), set {ROLES} and remove {ZOOKEEPER_CONNECT}; "
    f"or leave the ACLs in ZooKeeper: set {ROLES} and {AUTHORIZER_CLASS_NAME_CONFIG}={KAFKAS_ACL_AUTHORIZERS[0]}"
)
_DEFAULT_LOG_DIRS = ("/tmp/kafka-logs",)  # noqa: S108 - Kafka's default


def load_config(path: Path | str, *, strict: bool = False) -> NodeConfig:
    """Load the configuration from a properties file; with `strict`, unknown keys are errors.

    Raises:
        ConfigError: names the file, the key and the expected value; never contains a secret.

    """
    properties, repeated = read_properties(Path(path))
    config = parse_config(properties, str(path), strict=strict)
    again = (f"{path}: {key} is set more than once: the last value is used" for key in repeated)
    return evolve(config, notes=(*config.notes, *again))


def parse_config(
    properties: Mapping[str, str],
    where: str,
    *,
    strict: bool = False,
    host_name: Callable[[], str] = socket.getfqdn,
) -> NodeConfig:
    """Build the configuration from properties; `where` names their source in errors.

    `host_name` returns this machine's name, for listeners that have no host to advertise.

    Raises:
        ConfigError: as `load_config`.

    """
    source = Properties(values=dict(properties), where=where)
    source.check_values()
    # Before anything else: ignoring one of these could admit clients that the operator means to refuse.
    refuse_plugins(source)
    roles, node_id = _roles(source), _node_id(source)
    plan = plan_listeners(source, roles)
    if Role.BROKER in roles:
        check_inter_broker_mechanism(source, plan)
    kind = read_log_kind(source, roles)
    quorum = read_quorum(source, roles, node_id, kind)
    log_dirs = _log_dirs(source)
    _check_super_users(source)
    # Kafka connects to controllers by the first controller listener only.
    controllers = plan.controller_names[0]
    listeners = build_listeners(source, plan, host_name)
    generation = _generation(source)
    unused = check_keys(source, (*plan.protocols, *plan.controller_names), strict=strict)
    return NodeConfig(
        roles=roles,
        node_id=node_id,
        metadata_log_dir=_metadata_log_dir(source, log_dirs),
        log_dirs=log_dirs,
        listeners=listeners,
        inter_broker_listener_name=plan.inter_broker_name if Role.BROKER in roles else None,
        controller_listener_names=plan.controller_names,
        controller_quorum=quorum.addresses,
        voters=quorum.voters,
        log_kind=kind,
        topic=read_topic_settings(source) if kind is LogKind.TOPIC else None,
        controller_client=controller_login(source, controllers, plan.protocols[controllers])
        if Role.BROKER in roles or len(quorum.voters) > 1
        # A single controller connects to no other.
        else ClientSecurity(),
        authorizer_class_name=authorizer_class_name(source),
        generation=generation,
        cidr=_cidr(source, generation),
        min_insync_replicas=source.integer(MIN_INSYNC_REPLICAS, 1, least=1),
        limits=read_limits(source),
        checkpoints=read_checkpoint_policy(source),
        tokens=read_token_settings(source),
        scram_decoy_secret=source.text_or_none(DECOY_SECRET),
        brokers=read_broker_settings(source),
        http=_http(source),
        usage_index=_usage_index(source),
        properties=source.values,
        notes=(*unused, *_log_dir_notes(source), *early_start_notes(source, listeners)),
    )


def _roles(properties: Properties) -> frozenset[Role]:
    names = properties.items(ROLES)
    expected = "expected controller, broker, or both, separated by a comma"
    if not names:
        if properties.text_or_none(ZOOKEEPER_CONNECT) is not None:
            raise properties.error(ROLES, _ZOOKEEPER_MODE)
        raise properties.error(ROLES, f"not set: {expected}")
    choices = {role.value: role for role in Role}
    for name in names:
        if name not in choices:
            raise properties.error(ROLES, f"{name!r}: {expected}")
    return frozenset(choices[name] for name in names)


def _node_id(properties: Properties) -> int:
    ids = [properties.integer(key, -1, least=0) for key in (NODE_ID, BROKER_ID) if properties.text(key) is not None]
    if not ids:
        raise properties.error(NODE_ID, "not set: expected a number >= 0")
    if len(set(ids)) > 1:
        raise properties.contradiction(NODE_ID, BROKER_ID, "expected the same number, or one of them")
    return ids[0]


def _log_dirs(properties: Properties) -> tuple[Path, ...]:
    key = LOG_DIRS if properties.text(LOG_DIRS) is not None else LOG_DIR
    names = properties.items(key)
    if names == ():
        raise properties.error(key, "empty: expected one or more directories")
    return tuple(dict.fromkeys(Path(name) for name in names or _DEFAULT_LOG_DIRS))


def _log_dir_notes(properties: Properties) -> tuple[str, ...]:
    if properties.text(LOG_DIRS) is None or properties.text(LOG_DIR) in {None, properties.text(LOG_DIRS)}:
        return ()
    return (f"{properties.where}: {LOG_DIR} is not used, since {LOG_DIRS} is set",)


def _metadata_log_dir(properties: Properties, log_dirs: tuple[Path, ...]) -> Path:
    directory = properties.text(METADATA_LOG_DIR)
    if directory == "":
        raise properties.error(METADATA_LOG_DIR, "empty: expected a directory, or the key to be left out")
    return log_dirs[0] if directory is None else Path(directory)


def _http(properties: Properties) -> HostPort | None:
    if properties.text_or_none(HTTP_LISTENER) is None:
        return None
    addresses = servers(properties, HTTP_LISTENER)
    if len(addresses) != 1:
        raise properties.error(HTTP_LISTENER, f"{len(addresses)} addresses: expected one host:port")
    return addresses[0]


def _usage_index(properties: Properties) -> Path | None:
    directory = properties.text(USAGE_INDEX)
    if directory is None:
        return None
    if directory == "":
        raise properties.error(USAGE_INDEX, "empty: expected a directory, or the key to be left out")
    if "://" in directory:
        raise properties.error(USAGE_INDEX, "a URI: expected a directory of this machine, which the node writes often")
    if authorizer_class_name(properties) is None:
        raise properties.error(USAGE_INDEX, "nothing is authorized: expected an authorizer.class.name, or no such key")
    return Path(directory)


def _generation(properties: Properties) -> settings.Generation:
    version = properties.text(KAFKA_VERSION_CONFIG)
    try:
        return settings.Generation.V4_3 if version is None else settings.generation_of_version(version.strip())
    except ConfigError as error:
        raise properties.error(KAFKA_VERSION_CONFIG, str(error)) from error


def _cidr(properties: Properties, generation: settings.Generation) -> bool:
    try:
        enabled = settings.parse_cidr_enabled(properties.text(settings.CIDR_CONFIG))
    except ConfigError as error:
        raise ConfigError(f"{properties.where}: {error}") from error
    class_name = authorizer_class_name(properties)
    if enabled and class_name is None:
        raise properties.error(
            settings.CIDR_CONFIG, "nothing is authorized: expected an authorizer.class.name, or false"
        )
    if generation.has_ranges and not enabled and properties.text(settings.CIDR_CONFIG) is not None:
        raise properties.contradiction(
            settings.CIDR_CONFIG, KAFKA_VERSION_CONFIG, f"{generation} has ranges: expected true, or one of the keys"
        )
    return enabled or (generation.has_ranges and class_name is not None)


def _check_super_users(properties: Properties) -> None:
    try:
        settings.parse_super_users(properties.text("super.users"))
    except ConfigError as error:
        raise ConfigError(f"{properties.where}: {error}") from error
