"""A node's listeners, each with its TLS and SASL settings."""

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
