from pathlib import Path

import pytest

from aclog.config.client_config import load_client_security, parse_client_security
from aclog.config.node_config import ClientSecurity, TlsSettings
from aclog.metalog.errors import ConfigError
from aclog.protocol.session import SecurityProtocol
from tests.support.nodes.node_properties import MODULE, SCRAM_MODULE

PLAIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": f'{MODULE} required username="a" password="p";',
}
SCRAM = {
    "security.protocol": "sasl_ssl",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.jaas.config": f'{SCRAM_MODULE} required username="token" password="hmac" tokenauth="true";',
    "ssl.truststore.location": "t.pem",
    "ssl.truststore.type": "PEM",
}


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("".join(f"{key} = {value}\n" for key, value in (PLAIN | {"retries": "3"}).items()))
    assert load_client_security(path) == ClientSecurity(
        security_protocol=SecurityProtocol.SASL_PLAINTEXT, sasl_mechanism="PLAIN", username="a", password="p"
    )
    with pytest.raises(ConfigError, match="none: no such file"):
        load_client_security(tmp_path / "none")


def test_plaintext_by_default() -> None:
    assert parse_client_security({}, "it") == ClientSecurity()


def test_a_token_over_tls() -> None:
    found = parse_client_security(SCRAM, "it")
    assert (found.security_protocol, found.token_auth) == (SecurityProtocol.SASL_SSL, True)
    assert found.tls == TlsSettings(truststore=Path("t.pem"), truststore_type="PEM")
    assert "hmac" not in repr(found)


def test_plain_ignores_tokenauth() -> None:
    line = f'{MODULE} required username="a" password="p" tokenauth="true";'
    assert not parse_client_security(PLAIN | {"sasl.jaas.config": line}, "it").token_auth


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"security.protocol": "TLS"}, "security.protocol: 'TLS': expected one of PLAINTEXT"),
        (PLAIN | {"sasl.mechanism": "GSSAPI"}, "sasl.mechanism: 'GSSAPI'"),
        ({"security.protocol": "SASL_PLAINTEXT"}, "sasl.mechanism: 'GSSAPI'"),
        ({key: PLAIN[key] for key in ("security.protocol", "sasl.mechanism")}, "sasl.jaas.config: not set: expected"),
        (PLAIN | {"sasl.mechanism": "SCRAM-SHA-256"}, "sasl.jaas.config: not the login module of SCRAM-SHA-256"),
        (
            PLAIN | {"sasl.jaas.config": f'{MODULE} required username="a";'},
            "sasl.jaas.config: no username and password",
        ),
        (PLAIN | {"sasl.jaas.config": "${file:x:y}"}, "sasl.jaas.config: a ${...}"),
        (PLAIN | {"sasl.client.callback.handler.class": "x.Y"}, "sasl.client.callback.handler.class: 'x.Y'"),
        (PLAIN | {"sasl.login.callback.handler.class": "x.Y"}, "sasl.login.callback.handler.class: 'x.Y'"),
        (SCRAM | {"ssl.engine.factory.class": "x.Y"}, "ssl.engine.factory.class: 'x.Y'"),
    ],
)
def test_what_is_wrong(values: dict[str, str], what: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_client_security(values, "it")
    assert f"it: {what}" in str(error.value)
    assert 'password="p"' not in str(error.value)
