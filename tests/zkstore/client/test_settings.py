"""Client settings: invalid and unsupported properties, and secrets in reprs."""

import pytest

from aclog.metalog.errors import ConfigError
from aclog.zookeeper.client import KEYS, ZkTls, zk_settings

CONNECT = {"zookeeper.connect": "a:2181,b:2182/kafka"}


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({}, "zookeeper.connect is missing"),
        ({"zookeeper.connect": " "}, "zookeeper.connect is missing"),
        ({"zookeeper.connect": "a:x"}, "'a:x': expected HOST:PORT"),
        ({"zookeeper.connect": "a:1,"}, "expected HOST:PORT"),
        ({"zookeeper.connect": "a:70000"}, "expected HOST:PORT"),
        ({"zookeeper.connect": "a:1//b"}, "without empty names"),
        ({"zookeeper.connect": "a:1/b/"}, "without empty names"),
        ({**CONNECT, "zookeeper.session.timeout.ms": "0"}, "expected a number of 1 to"),
        ({**CONNECT, "zookeeper.session.timeout.ms": "1e3"}, "expected a number of 1 to"),
        ({**CONNECT, "zookeeper.set.acl": "yes"}, "expected true or false"),
        ({**CONNECT, "zookeeper.clientCnxnSocket": "x.Y"}, "is not supported: expected "),
        (
            {**CONNECT, "zookeeper.ssl.client.enable": "true", "zookeeper.ssl.truststore.location": "/x.jks"},
            "expected PEM",
        ),
        (
            {
                **CONNECT,
                "zookeeper.ssl.client.enable": "true",
                "zookeeper.ssl.truststore.location": "/nowhere.pem",
                "zookeeper.ssl.truststore.type": "PEM",
            },
            "'/nowhere.pem': expected an existing PEM file",
        ),
        ({**CONNECT, "zookeeper.ssl.client.enable": "true", "zookeeper.ssl.crl.enable": "true"}, "revocation"),
    ],
)
def test_invalid_and_unsupported_values_are_rejected(properties, message):
    with pytest.raises(ConfigError, match=message):
        zk_settings(properties)


def test_a_password_is_not_in_the_repr():
    assert "secret" not in repr(ZkTls(key_password="secret"))


def test_all_properties_that_are_read_are_named():
    class Recorded(dict):
        def get(self, key, default=None):
            read.add(key)
            return super().get(key, default)

    read = set()
    zk_settings(Recorded({**CONNECT, "zookeeper.ssl.client.enable": "true"}), prefix="authorizer.")
    zk_settings(Recorded(CONNECT))
    assert {key.removeprefix("authorizer.") for key in read} == KEYS
