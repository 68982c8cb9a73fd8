"""Security properties that are refused, since ignoring them could admit clients that the operator means to refuse."""

from collections.abc import Iterator

from aclog.authorizer.loader import (
    AUTHORIZER_CLASS_NAME_CONFIG,
    KAFKAS_ACL_AUTHORIZERS,
    KAFKAS_STANDARD_AUTHORIZER,
    load_authorizer_class,
)
from aclog.metalog.errors import ConfigError
from aclog.nodes.config.java_properties import Properties

_ACCEPTED = {
    "principal.builder.class": ("org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",),
    "sasl.server.callback.handler.class": (),
    "sasl.client.callback.handler.class": (),
    "sasl.login.callback.handler.class": (),
    "sasl.login.class": (),
    "security.providers": (),
    "ssl.client.auth": ("none", "requested", "required"),
    "ssl.engine.factory.class": (),
    "ssl.keymanager.algorithm": ("SunX509", "NewSunX509", "PKIX"),
    "ssl.protocol": ("TLS", "TLSv1.2", "TLSv1.3"),
    "ssl.provider": (),
    "ssl.trustmanager.algorithm": ("PKIX", "SunX509"),
}
"""Keys that decide who is admitted, and their supported values, also for listeners that do not use them."""

CHECKED_KEYS = frozenset({*_ACCEPTED, AUTHORIZER_CLASS_NAME_CONFIG, "config.providers"})
_KAFKAS = ("org.apache.kafka.", "kafka.")


def refuse_plugins(properties: Properties) -> None:
    """Refuse security properties that only Java can implement, also with a listener's or a mechanism's prefix.

    Raises:
        ConfigError: there is one.

    """
    for key, value in properties.values.items():
        for name in _endings(key):
            accepted, given = _ACCEPTED.get(name), value.strip()
            if accepted is not None and given and given not in accepted:
                only = f", only {' or '.join(accepted)}" if accepted else ""
                raise properties.error(key, f"{given!r} is not supported here{only}: expected it to be left out")


def _endings(key: str) -> Iterator[str]:
    """Yield the key, and the rest of `listener.name.<name>.<key>` and `listener.name.<name>.<mechanism>.<key>`."""
    yield key
    if key.startswith("listener.name."):
        parts = key.split(".")
        yield from (".".join(parts[start:]) for start in range(3, len(parts)))


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
