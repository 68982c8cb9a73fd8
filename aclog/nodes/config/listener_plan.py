"""The listener keys as a whole, and the checks between them (KafkaConfig.validateValues)."""

from collections.abc import Mapping

from attrs import evolve, frozen

from aclog.nodes.config.addresses import ListenerAddress, check_ports, listener_addresses
from aclog.nodes.config.java_properties import Properties
from aclog.nodes.config.node_config import HostPort, Role
from aclog.nodes.session import SecurityProtocol

LISTENERS = "listeners"
PROTOCOL_MAP = "listener.security.protocol.map"
ADVERTISED = "advertised.listeners"
CONTROLLER_NAMES = "controller.listener.names"
EARLY_START = "early.start.listeners"
INTER_BROKER_NAME = "inter.broker.listener.name"
INTER_BROKER_PROTOCOL = "security.inter.broker.protocol"
ROLES = "process.roles"
ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - a value of the configuration
_SECURE = {protocol.value for protocol in SecurityProtocol} - {SecurityProtocol.PLAINTEXT.value}
_DEFAULT_LISTENERS = (ListenerAddress(name="PLAINTEXT", address=HostPort(host="", port=9092)),)


@frozen(kw_only=True)
class ListenerPlan:
    """What the listener keys say, without their security settings."""

    bound: tuple[ListenerAddress, ...]
    advertised: Mapping[str, HostPort]
    """The address for clients of each listener; the host is empty if none is configured."""
    controller_names: tuple[str, ...]
    early_names: tuple[str, ...]
    protocols: Mapping[str, SecurityProtocol]
    inter_broker_name: str


def plan_listeners(properties: Properties, roles: frozenset[Role]) -> ListenerPlan:
    """Read and check the listener keys.

    Raises:
        ConfigError: malformed values, or keys that contradict each other.

    """
    bound = listener_addresses(properties, LISTENERS) or _DEFAULT_LISTENERS
    check_ports(properties, LISTENERS, bound)
    names = tuple(listener.name for listener in bound)
    controller_names = _controller_names(properties)
    protocols = _protocol_map(properties, names, controller_names)
    plan = ListenerPlan(
        bound=bound,
        advertised=_advertised(properties, bound, controller_names, protocols),
        controller_names=controller_names,
        early_names=_early_names(properties, names, controller_names),
        protocols=protocols,
        inter_broker_name=_inter_broker_name(properties, protocols),
    )
    _check_protocols(properties, plan)
    if Role.CONTROLLER in roles:
        _check_controller(properties, names, controller_names, alone=Role.BROKER not in roles)
    if Role.BROKER in roles:
        _check_broker(properties, plan, alone=Role.CONTROLLER not in roles)
    return plan


def _controller_names(properties: Properties) -> tuple[str, ...]:
    names = properties.items(CONTROLLER_NAMES)
    if not names:
        raise properties.error(CONTROLLER_NAMES, "not set: expected the names of the controller listeners")
    return tuple(dict.fromkeys(names))


def _protocol_map(
    properties: Properties, listener_names: tuple[str, ...], controller_names: tuple[str, ...]
) -> Mapping[str, SecurityProtocol]:
    """Return the security protocol of each listener name, in upper case (effectiveListenerSecurityProtocolMap).

    By default the protocols' own names are mapped, and a controller listener of another name is PLAINTEXT, but only if
    no listener in use has the name of a secure protocol.

    Raises:
        ConfigError: an entry that is not NAME:PROTOCOL, or an unknown protocol.

    """
    if properties.text(PROTOCOL_MAP) is not None:
        return dict(_entry(properties, part) for part in properties.items(PROTOCOL_MAP) or ())
    default = {protocol.value: protocol for protocol in SecurityProtocol}
    # With secure listener names in use, an insecure controller listener must be configured explicitly.
    if _SECURE & {*listener_names, *controller_names}:
        return default
    return default | {name.upper(): SecurityProtocol.PLAINTEXT for name in controller_names}


def _entry(properties: Properties, part: str) -> tuple[str, SecurityProtocol]:
    name, colon, protocol = (text.strip() for text in part.rpartition(":"))
    if not colon or not name:
        raise properties.error(PROTOCOL_MAP, f"{part!r}: expected NAME:PROTOCOL")
    if protocol.upper() not in SecurityProtocol.__members__:
        expected = ", ".join(SecurityProtocol.__members__)
        raise properties.error(PROTOCOL_MAP, f"{protocol!r}: expected one of {expected}")
    return name.upper(), SecurityProtocol[protocol.upper()]


def _advertised(
    properties: Properties,
    bound: tuple[ListenerAddress, ...],
    controller_names: tuple[str, ...],
    protocols: Mapping[str, SecurityProtocol],
) -> dict[str, HostPort]:
    """Return where each listener is advertised: as configured, else where it is bound, unless that is any address."""
    configured = {listener.name: listener for listener in listener_addresses(properties, ADVERTISED) or ()}
    for listener in configured.values():
        if listener.address.host == ANY_ADDRESS:
            raise properties.error(ADVERTISED, f"{listener}: {ANY_ADDRESS} is not a routable address: expected a host")
        if listener.name not in protocols:
            raise properties.contradiction(ADVERTISED, PROTOCOL_MAP, f"{listener.name} has no security protocol")
    for listener in bound:
        if listener.address.host == ANY_ADDRESS and not configured and listener.name not in controller_names:
            raise properties.contradiction(
                LISTENERS, ADVERTISED, f"{listener} cannot be advertised: expected {ADVERTISED} with a host"
            )
    addresses = {listener.name: _reachable(listener.address) for listener in bound}
    return addresses | {name: listener.address for name, listener in configured.items()}


def _reachable(address: HostPort) -> HostPort:
    return evolve(address, host="") if address.host in {ANY_ADDRESS, "::"} else address


def _early_names(properties: Properties, names: tuple[str, ...], controller_names: tuple[str, ...]) -> tuple[str, ...]:
    names_given = properties.items(EARLY_START)
    if names_given is None:
        return tuple(name for name in controller_names if name in names)
    for name in names_given:
        if name not in names and name not in controller_names:
            raise properties.contradiction(
                EARLY_START,
                LISTENERS,
                f"{name} is not among the listeners ({', '.join(names)}) or the controller listeners",
            )
    return tuple(dict.fromkeys(names_given))


def _inter_broker_name(properties: Properties, protocols: Mapping[str, SecurityProtocol]) -> str:
    name = properties.text(INTER_BROKER_NAME)
    if name is None:
        choices = tuple(protocol.value for protocol in SecurityProtocol)
        return properties.chosen(INTER_BROKER_PROTOCOL, choices, SecurityProtocol.PLAINTEXT.value)
    if properties.text(INTER_BROKER_PROTOCOL) is not None:
        raise properties.contradiction(INTER_BROKER_NAME, INTER_BROKER_PROTOCOL, "expected one of them")
    if name.upper() not in protocols:
        raise properties.contradiction(INTER_BROKER_NAME, PROTOCOL_MAP, f"{name.upper()} has no security protocol")
    return name.upper()


def _check_protocols(properties: Properties, plan: ListenerPlan) -> None:
    for listener in plan.bound:
        if listener.name not in plan.protocols:
            raise properties.contradiction(LISTENERS, PROTOCOL_MAP, f"{listener.name} has no security protocol")
    for name in plan.controller_names:
        if name not in plan.protocols:
            raise properties.contradiction(CONTROLLER_NAMES, PROTOCOL_MAP, f"{name} has no security protocol")


def _check_controller(
    properties: Properties, names: tuple[str, ...], controller_names: tuple[str, ...], *, alone: bool
) -> None:
    for name in controller_names:
        if name not in names:
            raise properties.contradiction(
                CONTROLLER_NAMES, LISTENERS, f"{name} is not among the listeners of this controller: {', '.join(names)}"
            )
    if alone and (others := sorted(set(names) - set(controller_names))):
        raise properties.contradiction(
            LISTENERS, CONTROLLER_NAMES, f"{ROLES}=controller, but {', '.join(others)} is not a controller listener"
        )


def _check_broker(properties: Properties, plan: ListenerPlan, *, alone: bool) -> None:
    names = tuple(listener.name for listener in plan.bound)
    if alone and (found := [name for name in names if name in plan.controller_names]):
        raise properties.contradiction(
            LISTENERS, CONTROLLER_NAMES, f"{ROLES}=broker, but {', '.join(found)} is a controller listener"
        )
    advertised = listener_addresses(properties, ADVERTISED) or plan.bound
    for_clients = [listener.name for listener in advertised if listener.name not in plan.controller_names]
    if not for_clients:
        raise properties.contradiction(
            ADVERTISED, CONTROLLER_NAMES, "no client listener: expected one that is not a controller listener"
        )
    if unknown := sorted(set(for_clients) - set(names)):
        raise properties.contradiction(ADVERTISED, LISTENERS, f"{', '.join(unknown)} is not among the listeners")
    if plan.inter_broker_name not in for_clients:
        raise properties.contradiction(
            INTER_BROKER_PROTOCOL if properties.text(INTER_BROKER_NAME) is None else INTER_BROKER_NAME,
            ADVERTISED,
            f"{plan.inter_broker_name} is not among the client listeners: {', '.join(for_clients)}",
        )
