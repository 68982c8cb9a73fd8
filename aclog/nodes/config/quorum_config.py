"""Who the controllers are: controller.quorum.* (QuorumConfig)."""

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
    """Where the controllers are, and who votes where the configuration says so."""

    addresses: tuple[HostPort, ...]
    voters: Mapping[int, HostPort]


def read_quorum(properties: Properties, roles: frozenset[Role], node_id: int, kind: LogKind) -> Quorum:
    """What controller.quorum.voters and controller.quorum.bootstrap.servers say.

    Several controllers share a log in a topic: the voters are those of which one is to be active, and each must be
    there with its address, since standbys tell clients where the active one is.

    Raises:
        ConfigError: neither is set, a malformed one, several voters with a controller here whose log is no topic's, or
            voters that contradict this node's id and roles.

    """
    told, bootstrap = voters(properties, VOTERS), servers(properties, BOOTSTRAP)
    if not told and not bootstrap:
        raise properties.error(BOOTSTRAP, f"neither it nor {VOTERS} is set: expected where the controllers are")
    if Role.CONTROLLER in roles and told:
        if node_id not in told:
            raise properties.contradiction(
                VOTERS, _NODE_ID, f"controller {node_id} is not among the voters {', '.join(map(str, told))}"
            )
        if len(told) > 1 and kind is not LogKind.TOPIC:
            raise properties.error(
                VOTERS,
                f"{len(told)} voters: expected one, a quorum of several takes a log in a topic (metadata.log.kind)",
            )
    elif node_id in told:
        raise properties.contradiction(VOTERS, _ROLES, f"node {node_id} is a voter, but only a broker")
    if kind is LogKind.TOPIC and len(known_addresses(tuple(told.values()))) < max(len(told), 1):
        raise properties.error(
            VOTERS, "a log in a topic takes the controllers of which one is active, each with an address of its own"
        )
    addresses = known_addresses((*bootstrap, *told.values()))
    if not addresses and Role.CONTROLLER not in roles:
        raise properties.error(VOTERS, f"no voter has an address: expected {BOOTSTRAP}")
    return Quorum(addresses=addresses, voters=told)


def controller_login(properties: Properties, controller_listener: str, protocol: SecurityProtocol) -> ClientSecurity:
    """How a broker, or another controller, logs in to the controllers: by their listener's JAAS line and ssl.*.

    Mirrors NodeToControllerChannelManager.

    Raises:
        ConfigError: a mechanism that is not supported, no username and password, or wrong ssl.* values.

    """
    listener = properties.of_listener(controller_listener)
    tls = tls_settings(listener, sasl=protocol.sasl) if protocol.tls else None
    if not protocol.sasl:
        return ClientSecurity(security_protocol=protocol, tls=tls)
    mechanism = listener.text(MECHANISM) or "GSSAPI"
    check_mechanism(listener, MECHANISM, mechanism)
    key = mechanism_key(listener, mechanism)
    entry = jaas_entry(listener, mechanism, key)
    return login(listener, protocol, mechanism, entry=entry, key=key, tls=tls)
