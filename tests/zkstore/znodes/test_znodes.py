"""Users' znodes: equal to those of a real Kafka 3.9, with unchanged quotas; and malformed ones."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.credentials.scram import ScramMechanism
from aclog.metalog.errors import DecodeError, EncodeError
from aclog.metalog.records import UserScramCredentialRecord
from aclog.zookeeper.znodes import (
    CONFIG_CHANGES_PATH,
    USERS_PATH,
    UserConfig,
    decode_credential,
    decode_user_config,
    encode_config_change,
    encode_credential,
    encode_user_config,
    user_of_node,
    user_path,
    with_credentials,
)
from tests.zkstore.recorded import DESCRIBED, NODES, below

RECORDED = below(USERS_PATH)
SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
GOOD = "salt=c2FsdA==,stored_key=c3RvcmVk,server_key=c2VydmVy,iterations=4096"


def records_of(path):
    """Return the user, credentials and configuration of a recorded znode."""
    user = user_of_node(path.removeprefix(f"{USERS_PATH}/"))
    config = decode_user_config(RECORDED[path], path)
    return user, [decode_credential(user, mechanism, text) for mechanism, text in config.credentials()], config


def test_recorded_users_equal_kafkas_descriptions():
    found = {user: records for user, records, _ in map(records_of, RECORDED) if records}
    assert sorted(found) == [row["user"] for row in DESCRIBED["scram"]]
    for row in DESCRIBED["scram"]:
        infos = [
            {"mechanism": ScramMechanism(record.mechanism).mechanism_name, "iterations": record.iterations}
            for record in found[row["user"]]
        ]
        assert sorted(infos, key=lambda info: info["mechanism"]) == row["credentialInfos"]


@pytest.mark.parametrize("number", range(len(RECORDED)))
def test_recorded_nodes_round_trip_byte_for_byte(number):
    path = sorted(RECORDED)[number]
    user, records, config = records_of(path)
    assert encode_user_config(config) == RECORDED[path]
    assert encode_user_config(with_credentials(config, records)) == RECORDED[path]
    if user is not None:
        assert user_path(user) == path


def test_the_default_entity_is_not_a_user():
    assert user_of_node("<default>") is None
    assert user_of_node("%3Cdefault%3E") == "<default>"


def test_a_config_change_event_equals_kafkas():
    changes = set(below(CONFIG_CHANGES_PATH).values())
    for user in ("sam", "a/b", "<default>", "ünï"):
        assert encode_config_change(user_path(user)) in changes


def test_quotas_are_kept_when_credentials_change():
    sam = f"{USERS_PATH}/sam"
    config = decode_user_config(NODES[sam], sam)
    assert config.others == ("producer_byte_rate",)
    without = with_credentials(config, ())
    assert without.values == {"producer_byte_rate": "1024"}
    [(_, text), _] = config.credentials()
    record = decode_credential("sam", SHA_256, text)
    assert list(with_credentials(without, [record]).values) == ["SCRAM-SHA-256", "producer_byte_rate"]


def test_a_node_without_data_is_an_empty_config():
    assert decode_user_config(b"", "/config/users/a") == UserConfig()
    assert decode_user_config(None, "/config/users/a") == UserConfig()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "byte 1"),
        (b"7", "expected a JSON object"),
        (b'{"config":{}}', "no field 'version'"),
        (b'{"version":2,"config":{}}', "version 2: expected 1"),
        (b'{"version":1}', "config: expected an object"),
        (b'{"version":1,"config":{"a":1}}', "config: expected an object with string values"),
    ],
)
def test_errors_name_the_path(data, message):
    with pytest.raises(DecodeError, match=r"^/config/users/a: ") as refused:
        decode_user_config(data, "/config/users/a")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected salt=..."),
        (GOOD.replace(",iterations=4096", ""), "expected salt=..."),
        (f"{GOOD},more=1", "expected salt=..."),
        (f"{GOOD},iterations=4097", "expected salt=..."),
        (GOOD.replace("c2FsdA==", "c2FsdA"), "salt: expected base64"),
        (GOOD.replace("c3RvcmVk", "ü"), "stored_key: expected base64"),
        (GOOD.replace("4096", "many"), "iterations: expected a number of 0 to 2147483647"),
        (GOOD.replace("4096", "-1"), "iterations: expected a number of 0 to 2147483647"),
        (GOOD.replace("4096", str(1 << 31)), "iterations: expected a number of 0 to 2147483647"),
    ],
)
def test_a_malformed_credential_is_rejected_and_not_shown(text, message):
    with pytest.raises(DecodeError) as refused:
        decode_credential("ann", SHA_256, text)
    assert message in str(refused.value)
    assert "c2VydmVy" not in str(refused.value)


@pytest.mark.parametrize("user", ["", ".", ".."])
def test_an_invalid_node_name_is_rejected(user):
    with pytest.raises(EncodeError, match="expected a name that is valid as a znode name"):
        user_path(user)


def test_secrets_are_not_in_the_repr():
    assert GOOD not in repr(UserConfig(values={"SCRAM-SHA-256": GOOD}))


some_bytes = st.binary(max_size=64)


@given(
    user=st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda name: name not in {".", ".."}),
    mechanism=st.sampled_from([SHA_256, SHA_512]),
    keys=st.tuples(some_bytes, some_bytes, some_bytes),
    iterations=st.integers(0, (1 << 31) - 1),
)
def test_credentials_round_trip(user, mechanism, keys, iterations):
    salt, stored, server = keys
    record = UserScramCredentialRecord(
        name=user, mechanism=mechanism, salt=salt, stored_key=stored, server_key=server, iterations=iterations
    )
    assert decode_credential(user, mechanism, encode_credential(record)) == record
    node = encode_user_config(with_credentials(UserConfig(), [record]))
    assert decode_user_config(node, user_path(user)).values == json.loads(node)["config"]
    assert user_of_node(user_path(user).removeprefix(f"{USERS_PATH}/")) == user
