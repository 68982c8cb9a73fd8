"""Responses with delegation tokens, encoded without kio because their timestamps exceed datetime's range."""

from collections.abc import Iterable

from aclog.metalog.records import DelegationTokenRecord
from aclog.nodes.wire.api_keys import CREATE_DELEGATION_TOKEN, DESCRIBE_DELEGATION_TOKEN, RENEW_DELEGATION_TOKEN
from aclog.nodes.wire.field_writer import NO_THROTTLE, FieldWriter, field_writer

REQUESTER_SINCE = 3
"""The version since which create and describe distinguish owner and requester (KIP-373)."""


def token_created_response(version: int, token: DelegationTokenRecord, token_hmac: bytes) -> bytes:
    """Return the body of a successful CreateDelegationToken response (versions 1 to 3)."""
    form = field_writer(CREATE_DELEGATION_TOKEN, version)
    who = form.principal(token.owner) + (form.principal(token.requester) if version >= REQUESTER_SINCE else b"")
    times = _long(token.issue_timestamp) + _long(token.expiration_timestamp) + _long(token.max_timestamp)
    made = form.string(token.token_id) + form.binary(token_hmac)
    return bytes(2) + who + times + made + NO_THROTTLE + form.tags


def token_refused_response(version: int, owner: str, requester: str, *, error_code: int, timestamp: int) -> bytes:
    """Return the body of a failed CreateDelegationToken response; `timestamp` is used for all three times."""
    form = field_writer(CREATE_DELEGATION_TOKEN, version)
    who = form.principal(owner) + (form.principal(requester) if version >= REQUESTER_SINCE else b"")
    nothing = form.string("") + form.binary(b"")
    return _short(error_code) + who + 3 * _long(timestamp) + nothing + NO_THROTTLE + form.tags


def token_expiry_response(version: int, error_code: int, expiry_ms: int) -> bytes:
    """Return the body of a RenewDelegationToken or ExpireDelegationToken response (versions 1 and 2)."""
    return _short(error_code) + _long(expiry_ms) + NO_THROTTLE + field_writer(RENEW_DELEGATION_TOKEN, version).tags


def describe_tokens_response(
    version: int, tokens: Iterable[tuple[DelegationTokenRecord, bytes]], error_code: int = 0
) -> bytes:
    """Return the body of a DescribeDelegationToken response (versions 1 to 3) with tokens and their HMACs."""
    form = field_writer(DESCRIBE_DELEGATION_TOKEN, version)
    described = [_described(form, version, token, token_hmac) for token, token_hmac in tokens]
    return _short(error_code) + form.array(len(described)) + b"".join(described) + NO_THROTTLE + form.tags


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
