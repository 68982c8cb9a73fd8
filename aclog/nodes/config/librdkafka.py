"""Kafka's client security settings as librdkafka's properties (librdkafka's CONFIGURATION.md)."""

from aclog.metalog.errors import ConfigError
from aclog.nodes.config.node_config import ClientSecurity, TlsSettings

_DEFAULT_PROTOCOLS = TlsSettings().protocols


def librdkafka_properties(security: ClientSecurity, where: str) -> dict[str, str]:
    """Translate client security settings; `where` names their file and prefix in errors.

    No file is read: stores are passed on as paths or PEM text. The result contains secrets.

    Raises:
        ConfigError: librdkafka does not support the setting: a trust store that is not PEM, a delegation token, a
            choice of TLS versions or cipher suites.

    """
    found = {"security.protocol": security.security_protocol.value}
    if security.security_protocol.sasl:
        found |= _sasl(security, where)
    if security.security_protocol.tls and security.tls is not None:
        found |= _tls(security.tls, where)
    return found


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
    found = {"ssl.endpoint.identification.algorithm": identification, **_trust(tls, where), **_key(tls)}
    return found | ({"ssl.key.password": tls.key_password} if tls.key_password else {})


def _trust(tls: TlsSettings, where: str) -> dict[str, str]:
    """Return whose certificates to trust; by default the operating system's authorities."""
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
