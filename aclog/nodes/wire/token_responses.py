"""The answers about delegation tokens, written straight to bytes: their times go beyond what Python's dates hold."""

from collections.abc import Iterable
from functools import cache

from aclog.metalog.primitives import compact_bytes, compact_string, unsigned_varint
from aclog.metalog.records import DelegationTokenRecord
from aclog.nodes.wire.api_keys import (
    CREATE_DELEGATION_TOKEN,
    DESCRIBE_DELEGATION_TOKEN,
    RENEW_DELEGATION_TOKEN,
    is_flexible,
)

REQUESTER_SINCE = 3
"""The version of create and describe that tells owner and requester apart (KIP-373)."""

_NO_THROTTLE = bytes(4)


def token_created_response(version: int, token: DelegationTokenRecord, token_hmac: bytes) -> bytes:
    """The body of the answer to a CreateDelegationToken (versions 1 to 3) that made this token."""
    form = _form(CREATE_DELEGATION_TOKEN, version)
    who = form.principal(token.owner) + (form.principal(token.requester) if version >= REQUESTER_SINCE else b"")
    times = _long(token.issue_timestamp) + _long(token.expiration_timestamp) + _long(token.max_timestamp)
    made = form.string(token.token_id) + form.binary(token_hmac)
    return bytes(2) + who + times + made + _NO_THROTTLE + form.tags


def token_refused_response(version: int, owner: str, requester: str, error_code: int, timestamp: int) -> bytes:
    """The body of the answer to a CreateDelegationToken that made none; `timestamp` stands for all three times."""
    form = _form(CREATE_DELEGATION_TOKEN, version)
    who = form.principal(owner) + (form.principal(requester) if version >= REQUESTER_SINCE else b"")
    nothing = form.string("") + form.binary(b"")
    return _short(error_code) + who + 3 * _long(timestamp) + nothing + _NO_THROTTLE + form.tags


def token_expiry_response(version: int, error_code: int, expiry_ms: int) -> bytes:
    """The body of the answer to a RenewDelegationToken or an ExpireDelegationToken (versions 1 and 2)."""
    return _short(error_code) + _long(expiry_ms) + _NO_THROTTLE + _form(RENEW_DELEGATION_TOKEN, version).tags


def describe_tokens_response(
    version: int, tokens: Iterable[tuple[DelegationTokenRecord, bytes]], error_code: int = 0
) -> bytes:
    """The body of the answer to a DescribeDelegationToken (versions 1 to 3): tokens, and the HMAC of each."""
    form = _form(DESCRIBE_DELEGATION_TOKEN, version)
    told = [_described(form, version, token, token_hmac) for token, token_hmac in tokens]
    return _short(error_code) + form.array(len(told)) + b"".join(told) + _NO_THROTTLE + form.tags


def _described(form: "_Form", version: int, token: DelegationTokenRecord, token_hmac: bytes) -> bytes:
    who = form.principal(token.owner) + (form.principal(token.requester) if version >= REQUESTER_SINCE else b"")
    times = _long(token.issue_timestamp) + _long(token.expiration_timestamp) + _long(token.max_timestamp)
    renewers = [form.principal(renewer) + form.tags for renewer in token.renewers]
    secret = form.string(token.token_id) + form.binary(token_hmac)
    return who + times + secret + form.array(len(renewers)) + b"".join(renewers) + form.tags


class _Form:
    """How strings and arrays look: in flexible versions or in older ones."""

    def __init__(self, *, flexible: bool) -> None:
        self.flexible = flexible
        self.tags = b"\0" if flexible else b""

    def array(self, length: int) -> bytes:
        """An array's length."""
        return unsigned_varint(length + 1) if self.flexible else length.to_bytes(4, "big")

    def string(self, text: str) -> bytes:
        """A string with its length."""
        if self.flexible:
            return compact_string(text)
        data = text.encode()
        return len(data).to_bytes(2, "big") + data

    def binary(self, data: bytes) -> bytes:
        """Bytes with their length."""
        return compact_bytes(data) if self.flexible else len(data).to_bytes(4, "big") + data

    def principal(self, text: str) -> bytes:
        """A principal's type and name."""
        kind, _, name = text.partition(":")
        return self.string(kind) + self.string(name)


@cache
def _form(api_key: int, version: int) -> _Form:
    return _Form(flexible=is_flexible(api_key, version))


def _short(code: int) -> bytes:
    return code.to_bytes(2, "big", signed=True)


def _long(value: int) -> bytes:
    return value.to_bytes(8, "big", signed=True)
