"""Client security settings, also as librdkafka's."""

from collections.abc import Mapping
from pathlib import Path

from aclog.config.node_config import ClientSecurity, TlsSettings
from aclog.config.properties import Properties, read_properties
from aclog.config.security import (
    JAAS,
    PLAIN_MODULE,
    SCRAM_MODULE,
    check_mechanism,
    jaas_entry,
    login,
    refuse_plugins,
    tls_settings,
)
from aclog.metalog.errors import ConfigError
from aclog.protocol.session import SecurityProtocol

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
