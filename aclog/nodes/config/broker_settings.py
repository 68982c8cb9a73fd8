"""How brokers register, and for how long they may be silent: broker.*, initial.broker.registration.timeout.ms."""

from aclog.nodes.config.java_properties import Properties
from aclog.nodes.config.node_config import BrokerSettings

SESSION_TIMEOUT = "broker.session.timeout.ms"
HEARTBEAT_INTERVAL = "broker.heartbeat.interval.ms"
REGISTRATION_TIMEOUT = "initial.broker.registration.timeout.ms"
RACK = "broker.rack"


def read_broker_settings(properties: Properties) -> BrokerSettings:
    """Read Kafka's keys, with its defaults (KRaftConfigs).

    Raises:
        ConfigError: numbers out of bounds.

    """
    default = BrokerSettings()
    return BrokerSettings(
        session_timeout_ms=properties.integer(SESSION_TIMEOUT, default.session_timeout_ms, least=1),
        heartbeat_interval_ms=properties.integer(HEARTBEAT_INTERVAL, default.heartbeat_interval_ms, least=1),
        registration_timeout_ms=properties.integer(REGISTRATION_TIMEOUT, default.registration_timeout_ms, least=1),
        rack=properties.text_or_none(RACK),
    )
