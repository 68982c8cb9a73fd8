"""Kafka's client settings in librdkafka's words (AdminClientConfig's security keys; librdkafka's CONFIGURATION.md)."""

from aclog.metalog.errors import ConfigError
from aclog.nodes.config.node_config import ClientSecurity, TlsSettings

_DEFAULT_PROTOCOLS = TlsSettings().protocols


def librdkafka_properties(security: ClientSecurity, where: str) -> dict[str, str]:
    """The librdkafka properties that stand for these settings; `where` names their file and prefix in errors.

    Nothing is read: stores are passed on by their paths, or as PEM text. Secrets are in it.

    Raises:
        ConfigError: what librdkafka cannot do: a trust store that is not PEM, a login by a delegation token, TLS
            versions or suites of one's own.

    """
    found = {"security.protocol": security.security_protocol.value}
    if security.security_protocol.sasl:
        found |= _sasl(security, where)
    if security.security_protocol.tls and security.tls is not None:
        found |= _tls(security.tls, where)
    return found


def _sasl(security: ClientSecurity, where: str) -> dict[str, str]:
    if security.token_auth:
        raise ConfigError(f"{where}sasl.jaas.config: tokenauth: librdkafka cannot log in by a delegation token")
    return {
        "sasl.mechanism": security.sasl_mechanism or "",
        "sasl.username": security.username or "",
        "sasl.password": security.password or "",
    }


def _tls(tls: TlsSettings, where: str) -> dict[str, str]:
    if tls.protocols != _DEFAULT_PROTOCOLS:
        raise ConfigError(f"{where}ssl.enabled.protocols: librdkafka has no such choice: expected it left out")
    if tls.cipher_suites:
        raise ConfigError(f"{where}ssl.cipher.suites: librdkafka knows none by these names: expected it left out")
    identification = "https" if tls.endpoint_identification else "none"
    found = {"ssl.endpoint.identification.algorithm": identification, **_trust(tls, where), **_key(tls)}
    return found | ({"ssl.key.password": tls.key_password} if tls.key_password else {})


def _trust(tls: TlsSettings, where: str) -> dict[str, str]:
    """Whose certificates are trusted; where nothing is said, the machine's own authorities."""
    if tls.truststore_pem is not None:
        return {"ssl.ca.pem": tls.truststore_pem}
    if tls.truststore is None:
        return {}
    if tls.truststore_type != "PEM":
        raise ConfigError(f"{where}ssl.truststore.type: {tls.truststore_type}: librdkafka takes PEM only")
    return {"ssl.ca.location": str(tls.truststore)}


def _key(tls: TlsSettings) -> dict[str, str]:
    """What this client shows itself by; a PEM file holds both its key and its certificates."""
    if tls.key_pem is not None:
        return {"ssl.key.pem": tls.key_pem, "ssl.certificate.pem": tls.certificate_chain_pem or ""}
    if tls.keystore is None:
        return {}
    path = str(tls.keystore)
    if tls.keystore_type == "PEM":
        return {"ssl.key.location": path, "ssl.certificate.location": path}
    return {"ssl.keystore.location": path, "ssl.keystore.password": tls.keystore_password or ""}
