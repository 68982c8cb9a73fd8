"""The controllers: controller.quorum.* (QuorumConfig)."""

from collections.abc import Mapping

from attrs import frozen

from aclog.nodes.config.addresses import known_addresses, servers, voters
from aclog.nodes.config.java_properties import Properties
from aclog.nodes.config.node_config import ClientSecurity, HostPort, LogKind, Role
from aclog.nodes.config.sasl_settings import check_mechanism, jaas_entry, login, mechanism_key
from aclog.nodes.config.tls_settings import tls_settings
from aclog.nodes.session import SecurityProtocol

VOTERS = "controller.quorum.voters"
BOOTSTRAP = "controller.quorum.bootstrap.servers"
MECHANISM = "sasl.mechanism.controller.protocol"
_NODE_ID = "node.id"
_ROLES = "process.roles"


@frozen(kw_only=True)
class Quorum:
    """The controllers' addresses, and the voters if the configuration lists them."""

    addresses: tuple[HostPort, ...]
    voters: Mapping[int, HostPort]


def read_quorum(properties: Properties, roles: frozenset[Role], node_id: int, kind: LogKind) -> Quorum:
    """Read controller.quorum.voters and controller.quorum.bootstrap.servers.

    With a log in a topic, the voters are the controllers that share it. All need an address, since standbys redirect
    clients to the active one.

    Raises:
        ConfigError: neither key is set, one is malformed, a controller has several voters but no log in a topic, or the
            voters contradict this node's id and roles.

    """
    static, bootstrap = voters(properties, VOTERS), servers(properties, BOOTSTRAP)
    if not static and not bootstrap:
        raise properties.error(BOOTSTRAP, f"neither it nor {VOTERS} is set: expected the controllers' addresses")
    if Role.CONTROLLER in roles and static:
        if node_id not in static:
            raise properties.contradiction(
                VOTERS, _NODE_ID, f"controller {node_id} is not among the voters {', '.join(map(str, static))}"
            )
        if len(static) > 1 and kind is not LogKind.TOPIC:
            raise properties.error(
                VOTERS,
                f"{len(static)} voters: expected one; several controllers need a log in a topic (metadata.log.kind)",
            )
    elif node_id in static:
        raise properties.contradiction(VOTERS, _ROLES, f"node {node_id} is a voter, but only a broker")
    if kind is LogKind.TOPIC and len(known_addresses(tuple(static.values()))) < max(len(static), 1):
        raise properties.error(VOTERS, "a log in a topic needs all controllers here, each with its own address")
    addresses = known_addresses((*bootstrap, *static.values()))
    if not addresses and Role.CONTROLLER not in roles:
        raise properties.error(VOTERS, f"no voter has an address: expected {BOOTSTRAP}")
    return Quorum(addresses=addresses, voters=static)


def controller_login(properties: Properties, controller_listener: str, protocol: SecurityProtocol) -> ClientSecurity:
    """Return how a broker or another controller authenticates to the controllers: by their listener's settings.

    Mirrors NodeToControllerChannelManager.

    Raises:
        ConfigError: an unsupported mechanism, no username and password, or invalid ssl.* values.

    """
    listener = properties.of_listener(controller_listener)
    tls = tls_settings(listener, sasl=protocol.sasl) if protocol.tls else None
    if not protocol.sasl:
        return ClientSecurity(security_protocol=protocol, tls=tls)
    # Kafka's default, which is not supported: the error then names the key to set.
    mechanism = listener.text(MECHANISM) or "GSSAPI"
    check_mechanism(listener, MECHANISM, mechanism)
    key = mechanism_key(listener, mechanism)
    entry = jaas_entry(listener, mechanism, key)
    return login(listener, protocol, mechanism, entry=entry, key=key, tls=tls)
