"""Delegation tokens as JSON, as a broker of Kafka 3.9 writes and reads them.

Mirrors kafka.zk.DelegationTokenInfoZNode, DelegationTokenChangeNotificationZNode and TokenInformation. A token's HMAC
is not stored: brokers compute it from the token id and delegation.token.secret.key.
"""

from collections.abc import Mapping
from typing import Any

from aclog.metalog.errors import DecodeError, EncodeError
from aclog.metalog.records import DelegationTokenRecord
from aclog.zkstore.znodes.json_fields import compact_json, integer_field, json_object, text_field, texts_field
from aclog.zkstore.znodes.paths import TOKENS_PATH
from aclog.zkstore.znodes.percent import percent_decoded, percent_encoded

NEWEST_VERSION = 3
# Version 3 added the requester (KIP-373); in versions 1 and 2 the owner is the requester.
_REQUESTER_SINCE = 3
_VERSIONS = frozenset(range(1, NEWEST_VERSION + 1))


def token_path(token_id: str) -> str:
    """Return the path of a token's znode."""
    return f"{TOKENS_PATH}/{token_id}"


def decode_token(data: bytes | None, path: str) -> DelegationTokenRecord:
    """Decode a token. Its id is the `tokenId` field, not the znode's name, as in Kafka.

    Raises:
        DecodeError: not a JSON object, a version that Kafka 3.9 rejects, or a missing or mistyped field.

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
    """Encode a token, byte for byte as Kafka 3.9 does.

    Raises:
        EncodeError: a token id that is not a valid znode name.

    """
    if not token.token_id or "/" in token.token_id or token.token_id in {".", ".."}:
        raise EncodeError(f"token id {token.token_id!r}: expected an id that is valid as a znode name")
    # The order of the keys is Kafka's.
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
