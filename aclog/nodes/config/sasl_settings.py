"""What JAAS lines and mechanism names mean for a listener, and for whoever logs in somewhere."""

from collections.abc import Mapping

from aclog.metalog.errors import ConfigError
from aclog.nodes.config.jaas import PLAIN_MODULE, SCRAM_MODULE, JaasEntry, parse_jaas
from aclog.nodes.config.java_properties import Properties
from aclog.nodes.config.node_config import ClientSecurity, TlsSettings
from aclog.nodes.session import SecurityProtocol

SASL_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""The mechanisms that there are here."""

ENABLED = "sasl.enabled.mechanisms"
JAAS = "sasl.jaas.config"
_KAFKAS_DEFAULT = "GSSAPI"
_USER = "user_"


def enabled_mechanisms(properties: Properties) -> tuple[str, ...]:
    """The mechanisms of a SASL listener, whose properties these are.

    Raises:
        ConfigError: none, or one that is not supported.

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
    """Stop at a mechanism that is not supported.

    Raises:
        ConfigError: it is not.

    """
    if mechanism not in SASL_MECHANISMS:
        raise properties.error(key, f"{mechanism!r} is not supported: expected one of {', '.join(SASL_MECHANISMS)}")


def jaas_entry(properties: Properties, mechanism: str, key: str) -> JaasEntry | None:
    """The login module under a key, which must be the mechanism's; None if the key is absent.

    Raises:
        ConfigError: not a JAAS line, or another login module.

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
        raise properties.error(key, f"another login module than that of {mechanism}: expected {expected}")
    return entry


def mechanism_key(properties: Properties, mechanism: str) -> str:
    """The full key of a mechanism's JAAS line on a listener (JaasContext.loadServerContext)."""
    return f"{properties.prefix}{mechanism.lower()}.{JAAS}"


def plain_users(properties: Properties) -> Mapping[str, str]:
    """Users and passwords of PLAIN on a listener: the `user_<name>` options of its JAAS line.

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
    """How to log in with a mechanism by a JAAS entry, which stands under `key`.

    Raises:
        ConfigError: no entry, or no username or password in it.

    """
    options = entry.options if entry else {}
    username, password = options.get("username"), options.get("password")
    if username is None or password is None:
        raise properties.error(
            key,
            f"no username and password to log in with, which {protocol.value} with {mechanism} takes: expected both",
        )
    return ClientSecurity(
        security_protocol=protocol,
        sasl_mechanism=mechanism,
        username=username,
        password=password,
        token_auth=mechanism != "PLAIN" and options.get("tokenauth", "").lower() == "true",
        tls=tls,
    )
