"""The listeners of a node, each with the TLS and SASL settings that hold for it."""

from collections.abc import Callable

from attrs import evolve

from aclog.nodes.config.addresses import ListenerAddress
from aclog.nodes.config.java_properties import Properties
from aclog.nodes.config.listener_plan import ListenerPlan
from aclog.nodes.config.node_config import Listener
from aclog.nodes.config.sasl_settings import ENABLED, enabled_mechanisms, plain_users
from aclog.nodes.config.tls_settings import tls_settings
from aclog.nodes.config.token_settings import session_lifetimes

INTER_BROKER_MECHANISM = "sasl.mechanism.inter.broker.protocol"


def build_listeners(properties: Properties, plan: ListenerPlan, host_name: Callable[[], str]) -> tuple[Listener, ...]:
    """The listeners, with TLS and SASL; `host_name` gives the name to advertise where none is written.

    Raises:
        ConfigError: security settings that cannot be honoured.

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
    """A line for each listener that opens early to people whose credentials are in the log that is not replayed yet."""
    return tuple(
        f"{properties.where}: listener {listener.name} opens early, but only for SCRAM, whose credentials are in the "
        "log: nobody can log in there before the log is replayed"
        for listener in listeners
        if listener.early_start and listener.sasl_mechanisms and "PLAIN" not in listener.sasl_mechanisms
    )


def check_inter_broker_mechanism(properties: Properties, plan: ListenerPlan) -> None:
    """Stop where brokers would log in to each other by a mechanism that their listener does not offer.

    Raises:
        ConfigError: so it is.

    """
    if not plan.protocols[plan.inter_broker_name].sasl:
        return
    listener = properties.of_listener(plan.inter_broker_name)
    mechanism = properties.text(INTER_BROKER_MECHANISM) or "GSSAPI"
    if mechanism not in enabled_mechanisms(listener):
        raise listener.contradiction(
            INTER_BROKER_MECHANISM, ENABLED, f"{mechanism} is not among the mechanisms of the inter-broker listener"
        )
