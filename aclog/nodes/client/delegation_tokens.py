"""Delegation token requests to a broker, ours or Kafka's (KIP-48, KIP-373)."""

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

_OLDEST, _NEWEST = 1, 3  # renewing and expiring end at 2: only owners and requesters (KIP-373) came with 3
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST = datetime(9999, 12, 31, tzinfo=UTC)
_LAST_MS = (_LAST - _EPOCH) // timedelta(milliseconds=1)

_ERROR_TEXTS = {
    61: "Delegation tokens are not enabled on this cluster (DELEGATION_TOKEN_AUTH_DISABLED)",
    62: "There is no such delegation token (DELEGATION_TOKEN_NOT_FOUND)",
    63: "Only a token's owner and its renewers may use it so (DELEGATION_TOKEN_OWNER_MISMATCH)",
    64: "Not possible over PLAINTEXT, over SSL without a client certificate, or when authenticated by a token "
    "(DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)",
    65: "Not allowed to create tokens for this owner (DELEGATION_TOKEN_AUTHORIZATION_FAILED)",
    66: "The delegation token has expired (DELEGATION_TOKEN_EXPIRED)",
    67: "A renewer's principal type is not User (INVALID_PRINCIPAL_TYPE)",
}
"""By error code: responses about tokens have no message field."""


@frozen(kw_only=True)
class DelegationToken:
    """A token, and the HMAC that serves as its password, which is left out of the repr."""

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
    """Create a token for the authenticated user or another owner; a negative lifetime means the server's maximum.

    Raises:
        RequestError: the broker refuses; has its code and a text for it.
        UnreachableError, DecodeError, EncodeError: as Connection.ask; ConfigError: the broker is too old.

    """
    key, oldest = CREATE_DELEGATION_TOKEN, _OLDEST if owner is None else REQUESTER_SINCE
    version = connection.version(key, oldest, _NEWEST)
    named = tuple(
        build(key, version, "request", "CreatableRenewers", principal_type=each.type, principal_name=each.name)
        for each in renewers
    )
    response = await connection.ask(
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
    _check(response)
    return _token(response, tuple(renewers))


async def renew_token(connection: Connection, hmac: bytes, period: timedelta) -> datetime:
    """Renew a token; return its new expiry time. A negative period: the maximum. Raises as create_token."""
    version = connection.version(RENEW_DELEGATION_TOKEN, _OLDEST, _NEWEST - 1)
    response = await connection.ask(build(RENEW_DELEGATION_TOKEN, version, "request", hmac=hmac, renew_period=period))
    _check(response)
    return response.expiry_timestamp  # type: ignore[no-any-return]


async def expire_token(connection: Connection, hmac: bytes, period: timedelta) -> datetime:
    """Change a token's expiry time and return it; a negative period expires the token now. Raises as create_token."""
    version = connection.version(EXPIRE_DELEGATION_TOKEN, _OLDEST, _NEWEST - 1)
    response = await connection.ask(
        build(EXPIRE_DELEGATION_TOKEN, version, "request", hmac=hmac, expiry_time_period=period)
    )
    _check(response)
    return response.expiry_timestamp  # type: ignore[no-any-return]


async def describe_tokens(connection: Connection, owners: Sequence[KafkaPrincipal] | None) -> list[DelegationToken]:
    """Return the visible tokens of these owners, or of all owners for None. Raises as create_token."""
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
    response = await connection.ask(build(key, version, "request", owners=named))
    _check(response)
    return [_token(each, _principals(each.renewers)) for each in response.tokens]


def _token(found: Any, renewers: tuple[KafkaPrincipal, ...]) -> DelegationToken:
    owner = KafkaPrincipal(type=found.principal_type, name=found.principal_name)
    requester = owner  # before version 3 (KIP-373), owner and requester are the same
    if hasattr(found, "token_requester_principal_type"):
        requester = KafkaPrincipal(type=found.token_requester_principal_type, name=found.token_requester_principal_name)
    return DelegationToken(
        token_id=found.token_id,
        hmac=bytes(found.hmac),
        owner=owner,
        requester=requester,
        renewers=renewers,
        issued=_time(found.issue_timestamp),
        expires=_time(found.expiry_timestamp),
        longest=_time(found.max_timestamp),
    )


def _principals(found: Sequence[Any]) -> tuple[KafkaPrincipal, ...]:
    return tuple(KafkaPrincipal(type=each.principal_type, name=each.principal_name) for each in found)


def _time(timestamp: datetime | int) -> datetime:
    """Convert a timestamp, which kio decodes in some responses and not in others, up to the year 9999."""
    if isinstance(timestamp, datetime):
        return timestamp
    return _EPOCH + timedelta(milliseconds=min(timestamp, _LAST_MS))


def _check(response: Any) -> None:
    code = int(response.error_code)
    if code:
        raise RequestError(code, _ERROR_TEXTS.get(code))
