"""The answers about delegation tokens, written straight to bytes: their times go beyond what Python's dates hold."""

from collections.abc import Iterable

from aclog.metalog.records import DelegationTokenRecord
from aclog.nodes.wire.api_keys import CREATE_DELEGATION_TOKEN, DESCRIBE_DELEGATION_TOKEN, RENEW_DELEGATION_TOKEN
from aclog.nodes.wire.field_writer import NO_THROTTLE, FieldWriter, field_writer

REQUESTER_SINCE = 3
"""The version of create and describe that tells owner and requester apart (KIP-373)."""


def token_created_response(version: int, token: DelegationTokenRecord, token_hmac: bytes) -> bytes:
    """The body of the answer to a CreateDelegationToken (versions 1 to 3) that made this token."""
    form = field_writer(CREATE_DELEGATION_TOKEN, version)
    who = form.principal(token.owner) + (form.principal(token.requester) if version >= REQUESTER_SINCE else b"")
    times = _long(token.issue_timestamp) + _long(token.expiration_timestamp) + _long(token.max_timestamp)
    made = form.string(token.token_id) + form.binary(token_hmac)
    return bytes(2) + who + times + made + NO_THROTTLE + form.tags


def token_refused_response(version: int, owner: str, requester: str, error_code: int, timestamp: int) -> bytes:
    """The body of the answer to a CreateDelegationToken that made none; `timestamp` stands for all three times."""
    form = field_writer(CREATE_DELEGATION_TOKEN, version)
    who = form.principal(owner) + (form.principal(requester) if version >= REQUESTER_SINCE else b"")
    nothing = form.string("") + form.binary(b"")
    return _short(error_code) + who + 3 * _long(timestamp) + nothing + NO_THROTTLE + form.tags


def token_expiry_response(version: int, error_code: int, expiry_ms: int) -> bytes:
    """The body of the answer to a RenewDelegationToken or an ExpireDelegationToken (versions 1 and 2)."""
    return _short(error_code) + _long(expiry_ms) + NO_THROTTLE + field_writer(RENEW_DELEGATION_TOKEN, version).tags


def describe_tokens_response(
    version: int, tokens: Iterable[tuple[DelegationTokenRecord, bytes]], error_code: int = 0
) -> bytes:
    """The body of the answer to a DescribeDelegationToken (versions 1 to 3): tokens, and the HMAC of each."""
    form = field_writer(DESCRIBE_DELEGATION_TOKEN, version)
    told = [_described(form, version, token, token_hmac) for token, token_hmac in tokens]
    return _short(error_code) + form.array(len(told)) + b"".join(told) + NO_THROTTLE + form.tags


def _described(form: FieldWriter, version: int, token: DelegationTokenRecord, token_hmac: bytes) -> bytes:
    who = form.principal(token.owner) + (form.principal(token.requester) if version >= REQUESTER_SINCE else b"")
    times = _long(token.issue_timestamp) + _long(token.expiration_timestamp) + _long(token.max_timestamp)
    renewers = [form.principal(renewer) + form.tags for renewer in token.renewers]
    secret = form.string(token.token_id) + form.binary(token_hmac)
    return who + times + secret + form.array(len(renewers)) + b"".join(renewers) + form.tags


def _short(code: int) -> bytes:
    return code.to_bytes(2, "big", signed=True)


def _long(value: int) -> bytes:
    return value.to_bytes(8, "big", signed=True)
