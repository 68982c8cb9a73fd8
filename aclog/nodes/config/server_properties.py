"""Loading of server.properties: all of a node's settings are checked before anything is opened or bound."""

import socket
from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import evolve

from aclog.authorizer.config import CIDR_CONFIG, parse_cidr_enabled, parse_super_users
from aclog.authorizer.generation import Generation, generation_of_version
from aclog.authorizer.loader import AUTHORIZER_CLASS_NAME_CONFIG, KAFKAS_ACL_AUTHORIZERS
from aclog.metalog.errors import ConfigError
from aclog.nodes.config.addresses import servers
from aclog.nodes.config.broker_settings import read_broker_settings
from aclog.nodes.config.java_properties import Properties, read_properties
from aclog.nodes.config.key_check import check_keys
from aclog.nodes.config.limits import read_checkpoint_policy, read_limits
from aclog.nodes.config.listener_plan import ROLES, plan_listeners
from aclog.nodes.config.listener_settings import build_listeners, check_inter_broker_mechanism, early_start_notes
from aclog.nodes.config.metadata_log import read_log_kind, read_topic_settings
from aclog.nodes.config.node_config import ClientSecurity, HostPort, LogKind, NodeConfig, Role
from aclog.nodes.config.quorum_config import controller_login, read_quorum
from aclog.nodes.config.refused_keys import authorizer_class_name, refuse_plugins
from aclog.nodes.config.token_settings import DECOY_SECRET, read_token_settings
from aclog.snapshots.newer_kafka import KAFKA_VERSION_CONFIG

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
        ConfigError: names the file, the key and what was expected; never contains a secret.

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
    if authorizer_class_name(properties) is None:
        raise properties.error(USAGE_INDEX, "nothing is authorized: expected an authorizer.class.name, or no such key")
    return Path(directory)


def _generation(properties: Properties) -> Generation:
    version = properties.text(KAFKA_VERSION_CONFIG)
    try:
        return Generation.V4_3 if version is None else generation_of_version(version.strip())
    except ConfigError as error:
        raise properties.error(KAFKA_VERSION_CONFIG, str(error)) from error


def _cidr(properties: Properties, generation: Generation) -> bool:
    try:
        enabled = parse_cidr_enabled(properties.text(CIDR_CONFIG))
    except ConfigError as error:
        raise ConfigError(f"{properties.where}: {error}") from error
    class_name = authorizer_class_name(properties)
    if enabled and class_name is None:
        raise properties.error(CIDR_CONFIG, "nothing is authorized: expected an authorizer.class.name, or false")
    if generation.has_ranges and not enabled and properties.text(CIDR_CONFIG) is not None:
        raise properties.contradiction(
            CIDR_CONFIG, KAFKA_VERSION_CONFIG, f"{generation} has ranges: expected true, or one of the keys"
        )
    return enabled or (generation.has_ranges and class_name is not None)


def _check_super_users(properties: Properties) -> None:
    try:
        parse_super_users(properties.text("super.users"))
    except ConfigError as error:
        raise ConfigError(f"{properties.where}: {error}") from error
