"""Client security settings, also as librdkafka's."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from aclog.authorizer.standard import (
    AUTHORIZER_CLASS_NAME_CONFIG,
    KAFKAS_ACL_AUTHORIZERS,
    KAFKAS_STANDARD_AUTHORIZER,
    load_authorizer_class,
)
from aclog.config.node_config import ClientSecurity, TlsSettings
from aclog.config.properties import Properties, read_properties
from aclog.config.security import JAAS, PLAIN_MODULE, SCRAM_MODULE, check_mechanism, jaas_entry, login, tls_settings
from aclog.metalog.errors import ConfigError
from aclog.protocol.session import SecurityProtocol

# Security properties that are refused, since ignoring them could admit clients that the operator means to refuse.


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
"""Keys that control admission, and their supported values, also for listeners that do not use them."""

CHECKED_KEYS = frozenset({*_ACCEPTED, AUTHORIZER_CLASS_NAME_CONFIG, "config.providers"})
_KAFKAS = ("org.apache.kafka.", "kafka.")


def refuse_plugins(properties: Properties) -> None:
    """Refuse security properties that only Java can implement, also with a listener's or a mechanism's prefix.

    Raises:
        ConfigError: there is one.

    """
    for key, value in properties.values.items():
        for name in _endings(key):
            accepted, text = _ACCEPTED.get(name), value.strip()
            if accepted is not None and text and text not in accepted:
                only = f", only {' or '.join(accepted)}" if accepted else ""
                raise properties.error(key, f"{text!r} is not supported here{only}: expected it to be left out")


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


# Client security settings from a properties file (--command-config; AdminClientConfig's security keys).


PROTOCOL = "security.protocol"
MECHANISM = "sasl.mechanism"


def load_client_security(path: Path | str) -> ClientSecurity:
    """Load the security settings from a client properties file; other keys are ignored.

    Raises:
        ConfigError: names the file, the key and the expected value; never contains a secret.

    """
    properties, _ = read_properties(Path(path))
    return parse_client_security(properties, str(path))


def parse_client_security(properties: Mapping[str, str], where: str) -> ClientSecurity:
    """Return the security settings in client properties; `where` names their source in errors.

    Raises:
        ConfigError: as `load_client_security`.

    """
    source = Properties(values=dict(properties), where=where)
    source.check_values()
    refuse_plugins(source)
    return client_security(source)


def client_security(source: Properties) -> ClientSecurity:
    """Return the security settings in properties that were already checked for plugins.

    Raises:
        ConfigError: as `load_client_security`.

    """
    protocol = _protocol(source)
    tls = tls_settings(source, sasl=protocol.sasl) if protocol.tls else None
    if not protocol.sasl:
        return ClientSecurity(security_protocol=protocol, tls=tls)
    mechanism = source.text(MECHANISM) or "GSSAPI"
    check_mechanism(source, MECHANISM, mechanism)
    if source.text(JAAS) is None:
        module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
        raise source.error(JAAS, f'not set: expected {module} required username="..." password="...";')
    entry = jaas_entry(source, mechanism, JAAS)
    return login(source, protocol, mechanism, entry=entry, key=JAAS, tls=tls)


def _protocol(properties: Properties) -> SecurityProtocol:
    name = (properties.text(PROTOCOL) or SecurityProtocol.PLAINTEXT.value).upper()
    if name not in SecurityProtocol.__members__:
        expected = ", ".join(SecurityProtocol.__members__)
        raise properties.error(PROTOCOL, f"{properties.display_value(PROTOCOL)}: expected one of {expected}")
    return SecurityProtocol[name]


# Kafka's client security settings as librdkafka's properties (librdkafka's CONFIGURATION.md).


_DEFAULT_PROTOCOLS = TlsSettings().protocols


def librdkafka_properties(security: ClientSecurity, where: str) -> dict[str, str]:
    """Translate client security settings; `where` names their file and prefix in errors.

    No file is read: stores are passed on as paths or PEM text. The result contains secrets.

    Raises:
        ConfigError: librdkafka does not support the setting: a trust store that is not PEM, a delegation token, a
            choice of TLS versions or cipher suites.

    """
    configuration = {"security.protocol": security.security_protocol.value}
    if security.security_protocol.sasl:
        configuration |= _sasl(security, where)
    if security.security_protocol.tls and security.tls is not None:
        configuration |= _tls(security.tls, where)
    return configuration


def _sasl(security: ClientSecurity, where: str) -> dict[str, str]:
    if security.token_auth:
        raise ConfigError(f"{where}sasl.jaas.config: tokenauth: librdkafka does not support delegation tokens")
    return {
        "sasl.mechanism": security.sasl_mechanism or "",
        "sasl.username": security.username or "",
        "sasl.password": security.password or "",
    }


def _tls(tls: TlsSettings, where: str) -> dict[str, str]:
    if tls.protocols != _DEFAULT_PROTOCOLS:
        raise ConfigError(f"{where}ssl.enabled.protocols: not supported by librdkafka: expected it to be left out")
    if tls.cipher_suites:
        raise ConfigError(f"{where}ssl.cipher.suites: not supported by librdkafka: expected it to be left out")
    identification = "https" if tls.endpoint_identification else "none"
    configuration = {"ssl.endpoint.identification.algorithm": identification, **_trust(tls, where), **_key(tls)}
    return configuration | ({"ssl.key.password": tls.key_password} if tls.key_password else {})


def _trust(tls: TlsSettings, where: str) -> dict[str, str]:
    """Return the trusted certificates; by default the operating system's authorities."""
    if tls.truststore_pem is not None:
        return {"ssl.ca.pem": tls.truststore_pem}
    if tls.truststore is None:
        return {}
    if tls.truststore_type != "PEM":
        raise ConfigError(f"{where}ssl.truststore.type: {tls.truststore_type}: librdkafka supports PEM only")
    return {"ssl.ca.location": str(tls.truststore)}


def _key(tls: TlsSettings) -> dict[str, str]:
    """Return the client's own key and certificates; one PEM file holds both."""
    if tls.key_pem is not None:
        return {"ssl.key.pem": tls.key_pem, "ssl.certificate.pem": tls.certificate_chain_pem or ""}
    if tls.keystore is None:
        return {}
    path = str(tls.keystore)
    if tls.keystore_type == "PEM":
        return {"ssl.key.location": path, "ssl.certificate.location": path}
    return {"ssl.keystore.location": path, "ssl.keystore.password": tls.keystore_password or ""}
