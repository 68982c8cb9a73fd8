"""Delegation tokens, as a client asks a broker about them, ours or Kafka's (KIP-48, KIP-373)."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from attrs import field, frozen

from aclog.authorizer.principals import KafkaPrincipal
from aclog.nodes.apis.request import RequestError
from aclog.nodes.client.connection import Connection
from aclog.nodes.wire.api_keys import (
    CREATE_DELEGATION_TOKEN,
    DESCRIBE_DELEGATION_TOKEN,
    EXPIRE_DELEGATION_TOKEN,
    RENEW_DELEGATION_TOKEN,
)
from aclog.nodes.wire.message_builder import build
from aclog.nodes.wire.token_responses import REQUESTER_SINCE

_OLDEST, _NEWEST = 1, 3
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = datetime(9999, 12, 31, tzinfo=UTC)
_LAST_MS = (_LAST - _EPOCH) // timedelta(milliseconds=1)

_TEXTS = {
    61: "Delegation tokens are not enabled there (DELEGATION_TOKEN_AUTH_DISABLED)",
    62: "There is no such delegation token (DELEGATION_TOKEN_NOT_FOUND)",
    63: "Only a token's owner and its renewers may do that (DELEGATION_TOKEN_OWNER_MISMATCH)",
    64: "Not over PLAINTEXT, nor over SSL without a certificate, nor by a token itself "
    "(DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)",
    65: "Not allowed to make tokens for this owner (DELEGATION_TOKEN_AUTHORIZATION_FAILED)",
    66: "The delegation token has expired (DELEGATION_TOKEN_EXPIRED)",
    67: "A renewer is not of the type User (INVALID_PRINCIPAL_TYPE)",
}
"""What each error says, as answers about tokens have no room for words."""


@frozen(kw_only=True)
class DelegationToken:
    """A token, and the HMAC that proves it, which is left out of the repr."""

    token_id: str
    hmac: bytes = field(repr=False)
    owner: KafkaPrincipal
    requester: KafkaPrincipal
    renewers: tuple[KafkaPrincipal, ...]
    issued: datetime
    expires: datetime
    longest: datetime


async def create_token(
    connection: Connection,
    renewers: Sequence[KafkaPrincipal],
    max_lifetime: timedelta,
    owner: KafkaPrincipal | None = None,
) -> DelegationToken:
    """A new token, for whoever is logged in or for another owner; a negative lifetime is the server's longest.

    Raises:
        RequestError: the server refuses; its code.
        UnreachableError, DecodeError: as Connection.ask; ConfigError: the server is too old.

    """
    key, oldest = CREATE_DELEGATION_TOKEN, _OLDEST if owner is None else REQUESTER_SINCE
    version = connection.version(key, oldest, _NEWEST)
    named = tuple(
        build(key, version, "request", "CreatableRenewers", principal_type=each.type, principal_name=each.name)
        for each in renewers
    )
    answer = await connection.ask(
        build(
            key,
            version,
            "request",
            owner_principal_type=owner.type if owner else "",
            owner_principal_name=owner.name if owner else "",
            renewers=named,
            max_lifetime=max_lifetime,
        )
    )
    _check(answer)
    return _token(answer, tuple(renewers))


async def renew_token(connection: Connection, hmac: bytes, period: timedelta) -> datetime:
    """When the token expires now; a negative period is the server's longest. Raises as create_token."""
    version = connection.version(RENEW_DELEGATION_TOKEN, _OLDEST, _NEWEST - 1)
    answer = await connection.ask(build(RENEW_DELEGATION_TOKEN, version, "request", hmac=hmac, renew_period=period))
    _check(answer)
    return answer.expiry_timestamp  # type: ignore[no-any-return]


async def expire_token(connection: Connection, hmac: bytes, period: timedelta) -> datetime:
    """When the token expires now; a negative period removes it at once. Raises as create_token."""
    version = connection.version(EXPIRE_DELEGATION_TOKEN, _OLDEST, _NEWEST - 1)
    answer = await connection.ask(
        build(EXPIRE_DELEGATION_TOKEN, version, "request", hmac=hmac, expiry_time_period=period)
    )
    _check(answer)
    return answer.expiry_timestamp  # type: ignore[no-any-return]


async def describe_tokens(connection: Connection, owners: Sequence[KafkaPrincipal] | None) -> list[DelegationToken]:
    """The tokens of these owners that may be seen, or with None all that may be. Raises as create_token."""
    key = DESCRIBE_DELEGATION_TOKEN
    version = connection.version(key, _OLDEST, _NEWEST)
    name = "DescribeDelegationTokenOwner"
    named = (
        None
        if owners is None
        else tuple(
            build(key, version, "request", name, principal_type=each.type, principal_name=each.name) for each in owners
        )
    )
    answer = await connection.ask(build(key, version, "request", owners=named))
    _check(answer)
    return [_token(each, _principals(each.renewers)) for each in answer.tokens]


def _token(told: Any, renewers: tuple[KafkaPrincipal, ...]) -> DelegationToken:
    owner = KafkaPrincipal(type=told.principal_type, name=told.principal_name)
    requester = owner  # before version 3, nobody makes tokens for another
    if hasattr(told, "token_requester_principal_type"):
        requester = KafkaPrincipal(type=told.token_requester_principal_type, name=told.token_requester_principal_name)
    return DelegationToken(
        token_id=told.token_id,
        hmac=bytes(told.hmac),
        owner=owner,
        requester=requester,
        renewers=renewers,
        issued=_time(told.issue_timestamp),
        expires=_time(told.expiry_timestamp),
        longest=_time(told.max_timestamp),
    )


def _principals(told: Sequence[Any]) -> tuple[KafkaPrincipal, ...]:
    return tuple(KafkaPrincipal(type=each.principal_type, name=each.principal_name) for each in told)


def _time(told: datetime | int) -> datetime:
    """A time, as answers to other requests have it; what is beyond the year 9999 is its end."""
    if isinstance(told, datetime):
        return told
    return _EPOCH + timedelta(milliseconds=min(told, _LAST_MS))


def _check(answer: Any) -> None:
    code = int(answer.error_code)
    if code:
        raise RequestError(code, _TEXTS.get(code))
