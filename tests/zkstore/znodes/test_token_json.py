"""Tokens' znodes: equal to those of a real Kafka 3.9, in all versions; and malformed ones."""

import json

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from aclog.credentials.tokens import token_hmac
from aclog.metalog.errors import DecodeError, EncodeError
from aclog.metalog.records import DelegationTokenRecord
from aclog.zookeeper.znodes import TOKENS_PATH, decode_token, encode_token, token_path
from tests.zkstore.recorded import DESCRIBED, SECRET, below

RECORDED = below(TOKENS_PATH)
PATH = f"{TOKENS_PATH}/t"
FIELDS = {
    "version": 3, "owner": "User%3Aann", "tokenRequester": "User%3Abob", "renewers": [], "issueTimestamp": 1,
    "maxTimestamp": 3, "expiryTimestamp": 2, "tokenId": "t",
}  # fmt: skip
TOKEN = DelegationTokenRecord(
    owner="User:ann", requester="User:bob", renewers=(), issue_timestamp=1, max_timestamp=3, expiration_timestamp=2,
    token_id="t",
)  # fmt: skip


def node(**changes):
    """Return a token's znode with some fields changed, or removed if None."""
    fields = {key: value for key, value in {**FIELDS, **changes}.items() if value is not None}
    return json.dumps(fields).encode()


@pytest.mark.parametrize("path", RECORDED)
def test_recorded_nodes_round_trip_byte_for_byte(path):
    token = decode_token(RECORDED[path], path)
    assert token_path(token.token_id) == path
    assert encode_token(token) == RECORDED[path]


def test_recorded_tokens_equal_kafkas_descriptions():
    tokens = sorted((decode_token(data, path) for path, data in RECORDED.items()), key=lambda token: token.token_id)
    assert [
        {
            "tokenId": token.token_id, "owner": token.owner, "requester": token.requester,
            "issueTimestamp": token.issue_timestamp, "expiryTimestamp": token.expiration_timestamp,
            "maxTimestamp": token.max_timestamp, "hmac": token_hmac(SECRET, token.token_id),
            "renewers": list(token.renewers),
        }
        for token in tokens
    ] == DESCRIBED["tokens"]  # fmt: skip


@pytest.mark.parametrize("version", [1, 2])
def test_before_version_3_the_owner_is_the_requester(version):
    assert decode_token(node(version=version), PATH) == evolve(TOKEN, requester="User:ann")
    assert decode_token(node(version=version, tokenRequester=None), PATH) == evolve(TOKEN, requester="User:ann")


def test_plus_is_a_space_as_in_javas_decoder():
    assert decode_token(node(owner="User:a+b"), PATH).owner == "User:a b"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "expected JSON"),
        (b"", "expected JSON"),
        (b"{", "byte 1"),
        (b"[]", "expected a JSON object"),
        (b"\xff", "byte 0"),
        (node(version=None), "no field 'version'"),
        (node(version=0), "version 0: expected one from 1 to 3"),
        (node(version=4), "version 4: expected one from 1 to 3"),
        (node(version=True), "version: True"),
        (node(version="3"), "version: '3'"),
        (node(tokenRequester=None), "no field 'tokenRequester'"),
        (node(owner=None), "no field 'owner'"),
        (node(owner=7), "owner: 7: expected a string"),
        (node(owner="ann"), "expected a principal"),
        (node(owner="User%3"), "expected two hexadecimal digits"),
        (node(owner="User%3A%FF"), "expected percent-encoded UTF-8"),
        (node(renewers="User%3Aa"), "renewers: expected an array"),
        (node(renewers=[1]), "renewers: expected an array"),
        (node(renewers=["a"]), "renewers 'a'"),
        (node(issueTimestamp=1.5), "issueTimestamp: 1.5"),
        (node(maxTimestamp=1 << 63), "expected a signed 64-bit integer"),
        (node(expiryTimestamp=None), "no field 'expiryTimestamp'"),
        (node(tokenId=None), "no field 'tokenId'"),
    ],
)
def test_errors_name_the_path(data, message):
    with pytest.raises(DecodeError, match=r"^/delegation_token/tokens/t: ") as refused:
        decode_token(data, PATH)
    assert message in str(refused.value)


@pytest.mark.parametrize("token_id", ["", ".", "..", "a/b"])
def test_an_invalid_token_id_is_not_written(token_id):
    with pytest.raises(EncodeError, match="expected an id that is valid as a znode name"):
        encode_token(evolve(TOKEN, token_id=token_id))


text = st.text(st.characters(exclude_categories=["Cs"]))
principals = st.builds("User:{}".format, text)
numbers = st.integers(-(1 << 63), (1 << 63) - 1)


@given(
    st.builds(
        DelegationTokenRecord,
        owner=principals,
        requester=principals,
        renewers=st.lists(principals, max_size=3).map(tuple),
        issue_timestamp=numbers,
        max_timestamp=numbers,
        expiration_timestamp=numbers,
        token_id=st.from_regex(r"[A-Za-z0-9_-]{22}", fullmatch=True),
    )
)
def test_tokens_round_trip(token):
    assert decode_token(encode_token(token), PATH) == token
