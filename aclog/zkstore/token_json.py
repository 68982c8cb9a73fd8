"""Delegation tokens in ZooKeeper: a node for each, as a broker of Kafka 3.9 writes and reads it.

Mirrors kafka.zk.DelegationTokenInfoZNode, DelegationTokenChangeNotificationZNode and TokenInformation. KIP-48 names
the directory `/tokenauth`; what Kafka shipped is `/delegation_token`. A token's HMAC is nowhere in the store.
"""

from collections.abc import Mapping
from typing import Any

from aclog.metalog.errors import DecodeError, EncodeError
from aclog.metalog.records import DelegationTokenRecord
from aclog.zkstore.acl_json import json_object
from aclog.zkstore.json_fields import compact_json, integer_field, text_field, texts_field
from aclog.zkstore.percent import percent_decoded, percent_encoded

TOKENS_PATH = "/delegation_token/tokens"
"""A node for each token, by its id."""
TOKEN_CHANGES_PATH = "/delegation_token/token_changes"  # noqa: S105  # a path
"""What changed, for those who watch: each node's data is a token's id."""
TOKEN_CHANGE_PREFIX = f"{TOKEN_CHANGES_PATH}/token_change_"
"""ZooKeeper appends ten digits."""
KIP_TOKENS_PATH = "/tokenauth/tokens"
"""Where KIP-48's text puts them. No Kafka does; what stands there is read, never written."""

NEWEST_VERSION = 3
"""Since version 3 (KIP-373) the requester stands beside the owner; before, the owner was the requester."""
_REQUESTER_SINCE = 3
_VERSIONS = frozenset(range(1, NEWEST_VERSION + 1))


def token_path(token_id: str) -> str:
    """The node of a token."""
    return f"{TOKENS_PATH}/{token_id}"


def decode_token(data: bytes | None, path: str) -> DelegationTokenRecord:
    """The token in a node. Its id is the one inside, whatever the node's name, as Kafka has it.

    Raises:
        DecodeError: no JSON object, a version that Kafka 3.9 refuses, a field that is missing or of another kind.

    """
    fields = json_object(data or b"", path=path)
    try:
        return _token(fields)
    except DecodeError as error:
        raise error.at(path=path) from None


def _token(fields: Mapping[str, Any]) -> DelegationTokenRecord:
    version = integer_field(fields, "version", bits=32)
    if version not in _VERSIONS:
        raise DecodeError(f"version {version}: expected one from 1 to {NEWEST_VERSION}")
    owner = _principal(text_field(fields, "owner"), "owner")
    requester = (
        _principal(text_field(fields, "tokenRequester"), "tokenRequester") if version >= _REQUESTER_SINCE else owner
    )
    return DelegationTokenRecord(
        owner=owner,
        requester=requester,
        renewers=tuple(_principal(each, "renewers") for each in texts_field(fields, "renewers")),
        issue_timestamp=integer_field(fields, "issueTimestamp"),
        max_timestamp=integer_field(fields, "maxTimestamp"),
        expiration_timestamp=integer_field(fields, "expiryTimestamp"),
        token_id=text_field(fields, "tokenId"),
    )


def _principal(text: str, name: str) -> str:
    principal = percent_decoded(text)
    if ":" not in principal:
        raise DecodeError(f"{name} {principal!r}: expected a principal such as User:alice")
    return principal


def encode_token(token: DelegationTokenRecord) -> bytes:
    """What a node holds, byte for byte as Kafka 3.9 writes it.

    Raises:
        EncodeError: an id that no node can be named by.

    """
    if not token.token_id or "/" in token.token_id or token.token_id in {".", ".."}:
        raise EncodeError(f"token id {token.token_id!r}: expected one that a ZooKeeper node can be named by")
    return compact_json(
        {
            "issueTimestamp": token.issue_timestamp,
            "renewers": [percent_encoded(renewer) for renewer in token.renewers],
            "tokenRequester": percent_encoded(token.requester),
            "tokenId": token.token_id,
            "owner": percent_encoded(token.owner),
            "expiryTimestamp": token.expiration_timestamp,
            "maxTimestamp": token.max_timestamp,
            "version": NEWEST_VERSION,
        }
    )
