"""Kafka's client settings as librdkafka's, accepted by librdkafka itself."""

from pathlib import Path

import pytest
from confluent_kafka import Producer

from aclog.config.client_config import librdkafka_properties
from aclog.config.node_config import ClientSecurity, TlsSettings
from aclog.metalog.errors import ConfigError
from aclog.protocol.session import SecurityProtocol

SASL = ClientSecurity(
    security_protocol=SecurityProtocol.SASL_PLAINTEXT, sasl_mechanism="PLAIN", username="u", password="p"
)


def tls(**settings: object) -> ClientSecurity:
    return ClientSecurity(security_protocol=SecurityProtocol.SSL, tls=TlsSettings(**settings))


@pytest.mark.parametrize(
    ("security", "expected"),
    [
        (ClientSecurity(), {}),
        (SASL, {"sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"}),
        (tls(), {"ssl.endpoint.identification.algorithm": "https"}),
        (tls(endpoint_identification=False), {"ssl.endpoint.identification.algorithm": "none"}),
        (tls(truststore=Path("/ca"), truststore_type="PEM"), {"ssl.ca.location": "/ca"}),
        (tls(truststore_pem="text", truststore_type="PEM"), {"ssl.ca.pem": "text"}),
        (
            tls(keystore=Path("/k.pem"), keystore_type="PEM", key_password="kp"),
            {"ssl.key.location": "/k.pem", "ssl.certificate.location": "/k.pem", "ssl.key.password": "kp"},
        ),
        (
            tls(keystore=Path("/k.p12"), keystore_type="PKCS12", keystore_password="sp"),
            {"ssl.keystore.location": "/k.p12", "ssl.keystore.password": "sp"},
        ),
        (
            tls(key_pem="key", certificate_chain_pem="chain", keystore_type="PEM"),
            {"ssl.key.pem": "key", "ssl.certificate.pem": "chain"},
        ),
    ],
    ids=["plaintext", "plain", "tls", "any host", "ca file", "ca text", "pem", "pkcs12", "pem text"],
)
def test_each_setting(security: ClientSecurity, expected: dict[str, str]) -> None:
    found = librdkafka_properties(security, "it: ")
    assert found.pop("security.protocol") == security.security_protocol.value
    assert {"ssl.endpoint.identification.algorithm": "https", **expected} == {
        "ssl.endpoint.identification.algorithm": "https",
        **found,
    }


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_librdkafka_takes_them(mechanism: str) -> None:
    security = ClientSecurity(
        security_protocol=SecurityProtocol.SASL_SSL,
        sasl_mechanism=mechanism,
        username="u",
        password="p",
        tls=TlsSettings(),
    )
    Producer({"bootstrap.servers": "127.0.0.1:1", **librdkafka_properties(security, "it: ")}, logger=None)


@pytest.mark.parametrize(
    ("security", "what"),
    [
        (ClientSecurity(security_protocol=SecurityProtocol.SASL_SSL, token_auth=True), "sasl.jaas.config: tokenauth"),
        (tls(truststore=Path("/t"), truststore_type="PKCS12"), "ssl.truststore.type: PKCS12"),
        (tls(protocols=("TLSv1.3",)), "ssl.enabled.protocols"),
        (tls(cipher_suites=("TLS_AES_256_GCM_SHA384",)), "ssl.cipher.suites"),
    ],
    ids=["token", "trust store", "versions", "suites"],
)
def test_unsupported_by_librdkafka(security: ClientSecurity, what: str) -> None:
    with pytest.raises(ConfigError) as error:
        librdkafka_properties(security, "it: metadata.log.client.")
    assert str(error.value).startswith(f"it: metadata.log.client.{what}")
