"""SASL mechanisms and JAAS lines, of listeners and of clients."""

from collections.abc import Mapping

from aclog.metalog.errors import ConfigError
from aclog.nodes.config.jaas import PLAIN_MODULE, SCRAM_MODULE, JaasEntry, parse_jaas
from aclog.nodes.config.java_properties import Properties
from aclog.nodes.config.node_config import ClientSecurity, TlsSettings
from aclog.nodes.session import SecurityProtocol

SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""The supported mechanisms."""

ENABLED = "sasl.enabled.mechanisms"
JAAS = "sasl.jaas.config"
_KAFKAS_DEFAULT = "GSSAPI"
_USER = "user_"


def enabled_mechanisms(properties: Properties) -> tuple[str, ...]:
    """Return a SASL listener's mechanisms, from its properties.

    Raises:
        ConfigError: none, or an unsupported one.

    """
    mechanisms = properties.items(ENABLED)
    if mechanisms is None:
        expected = ", ".join(SASL_MECHANISMS)
        raise properties.error(
            ENABLED, f"not set, and Kafka's default {_KAFKAS_DEFAULT} is not supported: expected some of {expected}"
        )
    if not mechanisms:
        raise properties.error(ENABLED, "empty, but a listener uses SASL")
    for mechanism in mechanisms:
        check_mechanism(properties, ENABLED, mechanism)
    return tuple(dict.fromkeys(mechanisms))


def check_mechanism(properties: Properties, key: str, mechanism: str) -> None:
    """Check that a mechanism is supported.

    Raises:
        ConfigError: it is not.

    """
    if mechanism not in SASL_MECHANISMS:
        raise properties.error(key, f"{mechanism!r} is not supported: expected one of {', '.join(SASL_MECHANISMS)}")


def jaas_entry(properties: Properties, mechanism: str, key: str) -> JaasEntry | None:
    """Return the mechanism's login module under a key; None if the key is absent.

    Raises:
        ConfigError: not a JAAS line, or another mechanism's login module.

    """
    text = properties.text(key)
    if text is None:
        return None
    try:
        entry = parse_jaas(text)
    except ConfigError as error:
        raise properties.error(key, str(error)) from error
    expected = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
    if entry.module != expected:
        raise properties.error(key, f"not the login module of {mechanism}: expected {expected}")
    return entry


def mechanism_key(properties: Properties, mechanism: str) -> str:
    """Return the full key of a mechanism's JAAS line on a listener (JaasContext.loadServerContext)."""
    return f"{properties.prefix}{mechanism.lower()}.{JAAS}"


def plain_users(properties: Properties) -> Mapping[str, str]:
    """Return PLAIN's users and passwords on a listener: the `user_<name>` options of its JAAS line.

    Raises:
        ConfigError: there is no such line, or it is malformed.

    """
    key = mechanism_key(properties, "PLAIN")
    entry = jaas_entry(properties, "PLAIN", key)
    if entry is None:
        raise properties.error(key, f"not set, but PLAIN is among {ENABLED}: expected {PLAIN_MODULE} required ... ;")
    return {name.removeprefix(_USER): password for name, password in entry.options.items() if name.startswith(_USER)}


def login(
    properties: Properties,
    protocol: SecurityProtocol,
    mechanism: str,
    *,
    entry: JaasEntry | None,
    key: str,
    tls: TlsSettings | None,
) -> ClientSecurity:
    """Return how a client logs in with a JAAS entry, which is configured under `key`.

    Raises:
        ConfigError: no entry, or an entry without username or password.

    """
    options = entry.options if entry else {}
    username, password = options.get("username"), options.get("password")
    if username is None or password is None:
        raise properties.error(
            key,
            f"no username and password, which {protocol.value} with {mechanism} requires: expected both",
        )
    return ClientSecurity(
        security_protocol=protocol,
        sasl_mechanism=mechanism,
        username=username,
        password=password,
        # Delegation tokens are SCRAM credentials: PLAIN ignores the option.
        token_auth=mechanism != "PLAIN" and options.get("tokenauth", "").lower() == "true",
        tls=tls,
    )
