from pathlib import Path

import pytest

from aclog.config.node_config import ClientAuth, TlsSettings
from aclog.config.properties import Properties
from aclog.config.security import tls_settings
from aclog.config.server_properties import parse_config
from aclog.metalog.errors import ConfigError
from tests.support.nodes.node_properties import COMBINED

STORE = {"ssl.keystore.location": "k.jks", "ssl.keystore.password": "kp"}
TRUST = {"ssl.truststore.location": "t.p12", "ssl.truststore.type": "PKCS12", "ssl.truststore.password": "tp"}
PEM = {"ssl.keystore.type": "PEM", "ssl.keystore.key": "KEY", "ssl.keystore.certificate.chain": "CHAIN"}


def settings(values: dict[str, str], *, sasl: bool = False, server: bool = True) -> TlsSettings:
    return tls_settings(Properties(values=values, where="it"), sasl=sasl, server=server)


def test_files() -> None:
    found = settings(STORE | TRUST | {"ssl.key.password": "key", "ssl.client.auth": "required"})
    assert found == TlsSettings(
        keystore=Path("k.jks"),
        keystore_type="JKS",
        keystore_password="kp",
        key_password="key",
        truststore=Path("t.p12"),
        truststore_type="PKCS12",
        truststore_password="tp",
        client_auth=ClientAuth.REQUIRED,
    )
    assert "kp" not in repr(found)
    assert "'key'" not in repr(found)


def test_pem_text() -> None:
    found = settings(PEM | {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "CERTS"})
    assert (found.key_pem, found.certificate_chain_pem, found.truststore_pem) == ("KEY", "CHAIN", "CERTS")
    assert (found.keystore, found.truststore) == (None, None)


SUITES = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")


def test_the_rest() -> None:
    values = {
        "ssl.enabled.protocols": "TLSv1.3",
        "ssl.cipher.suites": ", ".join(SUITES),
        "ssl.endpoint.identification.algorithm": "",
        "ssl.principal.mapping.rules": "RULE:^CN=(.*?),.*$/$1/L,DEFAULT",
    }
    found = settings(STORE | values)
    assert found.protocols == ("TLSv1.3",)
    assert found.cipher_suites == SUITES
    assert not found.endpoint_identification
    assert found.principal_mapping_rules == values["ssl.principal.mapping.rules"]
    assert settings(STORE).endpoint_identification
    assert settings(STORE | {"ssl.endpoint.identification.algorithm": "HTTPS"}).endpoint_identification


def test_a_client_needs_nothing() -> None:
    assert settings({}, server=False) == TlsSettings()
    assert settings({"ssl.client.auth": "required"}, server=False).client_auth is ClientAuth.NONE


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({}, "ssl.keystore.location: neither"),
        ({"ssl.keystore.location": "k.jks"}, "ssl.keystore.password: not set"),
        ({"ssl.keystore.password": "kp", **PEM}, "ssl.keystore.password and ssl.keystore.type contradict"),
        (PEM | {"ssl.keystore.type": "JKS"}, "ssl.keystore.key and ssl.keystore.type contradict"),
        (PEM | {"ssl.keystore.location": "k.pem"}, "ssl.keystore.key and ssl.keystore.location contradict"),
        (PEM | {"ssl.keystore.certificate.chain": ""}, "ssl.keystore.certificate.chain is missing: expected both"),
        (PEM | {"ssl.keystore.key": ""}, "ssl.keystore.key is missing: expected both"),
        (STORE | {"ssl.keystore.type": "BCFKS"}, "ssl.keystore.type: 'BCFKS'"),
        (STORE | {"ssl.truststore.password": "tp"}, "ssl.truststore.password and ssl.truststore.location contradict"),
        (STORE | {"ssl.truststore.certificates": "x"}, "ssl.truststore.certificates and ssl.truststore.type"),
        (STORE | TRUST | {"ssl.truststore.type": "PEM"}, "ssl.truststore.password and ssl.truststore.type"),
        (STORE | {"ssl.client.auth": "required"}, "ssl.client.auth and ssl.truststore.location contradict"),
        (STORE | {"ssl.client.auth": "perhaps"}, "ssl.client.auth: 'perhaps'"),
        (STORE | {"ssl.enabled.protocols": "TLSv1.2,TLSv1.1"}, "ssl.enabled.protocols: 'TLSv1.1'"),
        (STORE | {"ssl.endpoint.identification.algorithm": "ldaps"}, "ssl.endpoint.identification.algorithm: 'ldaps'"),
        (STORE | {"ssl.cipher.suites": "TLS_ROT13"}, "it: ssl.cipher.suites: TLS_ROT13: expected"),
        (STORE | {"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"}, "it: ssl.cipher.suites: only some suites"),
        (STORE | {"ssl.principal.mapping.rules": "RULE:x"}, "it: ssl.principal.mapping.rules: Invalid rule"),
        (STORE | {"ssl.principal.mapping.rules": "RULE:^CN=(.*$/$1/"}, "it: ssl.principal.mapping.rules: RULE:^CN="),
    ],
)
def test_what_is_wrong(values: dict[str, str], what: str) -> None:
    with pytest.raises(ConfigError) as error:
        settings(values)
    assert what in str(error.value)


def test_an_invalid_mapping_rule_names_the_listeners_key() -> None:
    properties = Properties(values=STORE | {"listener.name.x.ssl.principal.mapping.rules": "RULE:x"}, where="it")
    assert tls_settings(properties.of_listener("Y"), server=True).principal_mapping_rules == "DEFAULT"
    with pytest.raises(ConfigError, match=r"^it: listener\.name\.x\.ssl\.principal\.mapping\.rules: Invalid rule"):
        tls_settings(properties.of_listener("X"), server=True)


def test_sasl_ssl_requests_certificates_only_with_the_listeners_own_key() -> None:
    values = STORE | TRUST | {"ssl.client.auth": "required"}
    assert settings(values, sasl=True).client_auth is ClientAuth.NONE
    assert settings(values).client_auth is ClientAuth.REQUIRED
    properties = Properties(values=values | {"listener.name.x.ssl.client.auth": "requested"}, where="it")
    assert tls_settings(properties.of_listener("X"), sasl=True, server=True).client_auth is ClientAuth.REQUESTED
    assert tls_settings(properties.of_listener("Y"), sasl=True, server=True).client_auth is ClientAuth.NONE


def test_a_listeners_own_keys_take_precedence() -> None:
    values = (
        COMBINED
        | STORE
        | {
            "listeners": "SSL://a:1,INT://a:2,CONTROLLER://a:3",
            "listener.security.protocol.map": "SSL:SSL,INT:SSL,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "INT",
            "listener.name.int.ssl.keystore.location": "int.pem",
            "listener.name.int.ssl.keystore.type": "PEM",
            "listener.name.int.ssl.keystore.password": "",
            "listener.name.int.ssl.key.password": "other",
        }
    )
    outer, inner, controllers = parse_config(values, "it").listeners
    assert outer.tls == settings(STORE)
    assert inner.tls == TlsSettings(keystore=Path("int.pem"), keystore_type="PEM", key_password="other")
    assert controllers.tls is None
