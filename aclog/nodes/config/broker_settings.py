"""The settings of brokers: broker.*, initial.broker.registration.timeout.ms, auto.create.topics.enable."""

from aclog.nodes.config.java_properties import Properties
from aclog.nodes.config.node_config import BrokerSettings

SESSION_TIMEOUT = "broker.session.timeout.ms"
HEARTBEAT_INTERVAL = "broker.heartbeat.interval.ms"
REGISTRATION_TIMEOUT = "initial.broker.registration.timeout.ms"
RACK = "broker.rack"
AUTO_CREATE_TOPICS = "auto.create.topics.enable"


def read_broker_settings(properties: Properties) -> BrokerSettings:
    """Read Kafka's keys, with its defaults (KRaftConfigs, ServerLogConfigs).

    Raises:
        ConfigError: numbers out of bounds, or a boolean that is none.

    """
    default = BrokerSettings()
    return BrokerSettings(
        session_timeout_ms=properties.integer(SESSION_TIMEOUT, default.session_timeout_ms, least=1),
        heartbeat_interval_ms=properties.integer(HEARTBEAT_INTERVAL, default.heartbeat_interval_ms, least=1),
        registration_timeout_ms=properties.integer(REGISTRATION_TIMEOUT, default.registration_timeout_ms, least=1),
        rack=properties.text_or_none(RACK),
        auto_create_topics=properties.boolean(AUTO_CREATE_TOPICS, default=default.auto_create_topics),
    )
