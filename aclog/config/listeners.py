"""The listeners of a node, and settings that leave it open."""

from collections.abc import Callable, Iterator, Mapping

from attrs import evolve

from aclog.authorizer.settings import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG, parse_super_users, super_user_mistakes
from aclog.authorizer.standard import (
    ACL_AUTHORIZERS,
    AUTHORIZER_CLASS_NAME_CONFIG,
    KAFKAS_STANDARD_AUTHORIZER,
    StandardAuthorizer,
    load_authorizer_class,
)
from aclog.config.node_config import ClientAuth, HostPort, Listener, NodeConfig, Role
from aclog.config.properties import ListenerAddress, Properties, check_ports, listener_addresses
from aclog.config.security import ENABLED, enabled_mechanisms, plain_users, session_lifetimes, tls_settings
from aclog.metalog.values import frozen
from aclog.protocol.session import ANONYMOUS, SecurityProtocol

# The listener keys as a whole, and the checks between them (KafkaConfig.validateValues).


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
    """The values of the listener keys, without their security settings."""

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
    """Return the advertised address of each listener: the configured one, else the bound one unless any."""
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
        return properties.choice(INTER_BROKER_PROTOCOL, choices, SecurityProtocol.PLAINTEXT.value)
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
    if alone and (clashes := [name for name in names if name in plan.controller_names]):
        raise properties.contradiction(
            LISTENERS, CONTROLLER_NAMES, f"{ROLES}=broker, but {', '.join(clashes)} is a controller listener"
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


# A node's listeners, each with its TLS and SASL settings.


INTER_BROKER_MECHANISM = "sasl.mechanism.inter.broker.protocol"


def build_listeners(properties: Properties, plan: ListenerPlan, host_name: Callable[[], str]) -> tuple[Listener, ...]:
    """Build the listeners, with TLS and SASL; `host_name` supplies the host to advertise if none is configured.

    Raises:
        ConfigError: unsupported security settings.

    """
    return tuple(_listener(properties.of_listener(bound.name), plan, bound, host_name) for bound in plan.bound)


def _listener(
    properties: Properties, plan: ListenerPlan, bound: ListenerAddress, host_name: Callable[[], str]
) -> Listener:
    protocol = plan.protocols[bound.name]
    mechanisms = enabled_mechanisms(properties) if protocol.sasl else ()
    advertised = plan.advertised[bound.name]
    return Listener(
        name=bound.name,
        bind=bound.address,
        advertised=advertised if advertised.host else evolve(advertised, host=host_name()),
        security_protocol=protocol,
        controller=bound.name in plan.controller_names,
        early_start=bound.name in plan.early_names,
        sasl_mechanisms=mechanisms,
        plain_users=plain_users(properties) if "PLAIN" in mechanisms else {},
        session_lifetimes_ms=session_lifetimes(properties, mechanisms),
        tls=tls_settings(properties, sasl=protocol.sasl, server=True) if protocol.tls else None,
    )


def early_start_notes(properties: Properties, listeners: tuple[Listener, ...]) -> tuple[str, ...]:
    """Return a note for each early-start listener whose credentials are all in the log, which is not replayed yet."""
    return tuple(
        f"{properties.where}: listener {listener.name} starts early with SCRAM only, whose credentials are in the "
        "log: no login succeeds there before the log is replayed"
        for listener in listeners
        if listener.early_start and listener.sasl_mechanisms and "PLAIN" not in listener.sasl_mechanisms
    )


def check_inter_broker_mechanism(properties: Properties, plan: ListenerPlan) -> None:
    """Check that the inter-broker listener offers the mechanism that brokers use there.

    Raises:
        ConfigError: it does not.

    """
    if not plan.protocols[plan.inter_broker_name].sasl:
        return
    listener = properties.of_listener(plan.inter_broker_name)
    mechanism = properties.text(INTER_BROKER_MECHANISM) or "GSSAPI"
    if mechanism not in enabled_mechanisms(listener):
        raise listener.contradiction(
            INTER_BROKER_MECHANISM, ENABLED, f"{mechanism} is not among the mechanisms of the inter-broker listener"
        )


# Settings that leave a node open or lock principals out, probably unintentionally. Kafka does not warn about them.


NO_AUTHORIZER = "no_authorizer"
SUPER_USERS = "super_users"
ALLOW_EVERYONE = "allow_everyone"
ANONYMOUS_SUPER_USER = "anonymous_super_user"
NO_SUPER_USER_LOGIN = "no_super_user_login"
NO_ADMINISTRATOR = "no_administrator"
EVERYBODY_ADMINISTERS = "everybody_administers"

KINDS = (
    NO_AUTHORIZER,
    SUPER_USERS,
    ALLOW_EVERYONE,
    ANONYMOUS_SUPER_USER,
    NO_SUPER_USER_LOGIN,
    NO_ADMINISTRATOR,
    EVERYBODY_ADMINISTERS,
)
"""Every kind of warning; the last two depend on the ACLs (server.node), and the first may."""

_LEGACY = {SUPER_USERS_CONFIG: "kafka.superusers", ALLOW_EVERYONE_CONFIG: "allow.everyone"}
"""KIP-11's names, which the authorizer on ZooKeeper reads if the released ones are not set."""


@frozen(kw_only=True)
class AccessWarning:
    """A sentence for the log, and its kind for metrics: one of KINDS."""

    kind: str
    text: str


def configured_warnings(config: NodeConfig) -> Iterator[AccessWarning]:
    """Yield the warnings that do not depend on ACLs. An authorizer of unknown semantics is not judged."""
    if config.authorizer_class_name is None:
        yield without_authorizer([*_logins(config), *_keys_without_effect(config)])
    elif has_kafkas_semantics(config):
        yield from _of_super_users(access_property(config, SUPER_USERS_CONFIG))
        yield from _of_flag(config)
        yield from _of_anonymous(config)


def without_authorizer(reasons: list[str]) -> AccessWarning:
    """Return the warning about a node without an authorizer, and the settings that suggest that one is intended."""
    although = f", although {' and '.join(reasons)}" if reasons else ""
    text = (
        f"{AUTHORIZER_CLASS_NAME_CONFIG} is not set: every client may perform every operation{although}. "
        f"Expected {AUTHORIZER_CLASS_NAME_CONFIG}={KAFKAS_STANDARD_AUTHORIZER}"
    )
    return AccessWarning(kind=NO_AUTHORIZER, text=text)


def has_kafkas_semantics(config: NodeConfig) -> bool:
    """Whether the node has one of Kafka's authorizers, whose properties and decisions are known."""
    name = config.authorizer_class_name
    if name is None:
        return False
    return name in ACL_AUTHORIZERS or issubclass(load_authorizer_class(name), StandardAuthorizer)


def access_property(config: NodeConfig, key: str) -> str | None:
    """Return the value of `super.users` or `allow.everyone.if.no.acl.found` that the authorizer goes by."""
    properties = config.properties
    if key not in properties and config.authorizer_class_name in ACL_AUTHORIZERS:
        return properties.get(_LEGACY[key])
    return properties.get(key)


def _logins(config: NodeConfig) -> Iterator[str]:
    names = [each.name for each in config.listeners if _may_log_in(each)]
    if names:
        yield f"clients log in at {_listeners(names)}"


def _keys_without_effect(config: NodeConfig) -> Iterator[str]:
    for key in (*_LEGACY, *_LEGACY.values()):
        if config.properties.get(key, "").strip():
            yield f"{key} is set"


def _of_super_users(text: str | None) -> Iterator[AccessWarning]:
    mistakes = list(super_user_mistakes(text))
    for user in sorted(parse_super_users(text)):
        kind, _, name = user.partition(":")
        if kind != "User":  # no other principal builder is supported
            mistakes.append(f"{user!r} is not a client: every login has the type User: did you mean 'User:{name}'?")
    for mistake in mistakes:
        yield AccessWarning(kind=SUPER_USERS, text=f"{SUPER_USERS_CONFIG}: {mistake}")


def _of_flag(config: NodeConfig) -> Iterator[AccessWarning]:
    value = access_property(config, ALLOW_EVERYONE_CONFIG)
    if value is not None and value.strip().lower() not in {"true", "false"}:
        text = f"{ALLOW_EVERYONE_CONFIG}: {value!r} means false, as in Kafka: expected true or false"
        yield AccessWarning(kind=ALLOW_EVERYONE, text=text)


def _of_anonymous(config: NodeConfig) -> Iterator[AccessWarning]:
    users = parse_super_users(access_property(config, SUPER_USERS_CONFIG))
    if str(ANONYMOUS) in users:
        if open_to_all := [each.name for each in config.listeners if not _must_log_in(each)]:
            yield AccessWarning(
                kind=ANONYMOUS_SUPER_USER,
                text=f"{SUPER_USERS_CONFIG} has {ANONYMOUS}, the principal of clients without login: every client that "
                f"reaches {_listeners(open_to_all)} may perform every operation",
            )
        return
    names = [each.name for each in config.listeners]
    if users and names and not any(map(_may_log_in, config.listeners)):
        yield AccessWarning(
            kind=NO_SUPER_USER_LOGIN,
            text=f"no super user can log in: all clients are {ANONYMOUS} at {_listeners(names)}. "
            f"Expected a listener with SASL or ssl.client.auth=required, or ACLs for {ANONYMOUS}",
        )


def _may_log_in(listener: Listener) -> bool:
    certificates = listener.tls is not None and listener.tls.client_auth is not ClientAuth.NONE
    return listener.security_protocol.sasl or certificates


def _must_log_in(listener: Listener) -> bool:
    certificates = listener.tls is not None and listener.tls.client_auth is ClientAuth.REQUIRED
    return listener.security_protocol.sasl or certificates


def _listeners(names: list[str]) -> str:
    return f"listener{'' if len(names) == 1 else 's'} {', '.join(names)}"
