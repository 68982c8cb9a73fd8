"""The requests and the output of kafka-delegation-tokens.sh (DelegationTokenCommand)."""

import asyncio
import binascii
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from attrs import frozen

from aclog.authorizer.errors import InvalidRequestError
from aclog.authorizer.principals import KafkaPrincipal
from aclog.cli.flags.output import Output
from aclog.cli.flags.values import typed_text
from aclog.metalog.errors import ConfigError
from aclog.nodes.client.connection import Connection
from aclog.nodes.client.delegation_tokens import (
    DelegationToken,
    create_token,
    describe_tokens,
    expire_token,
    renew_token,
)
from aclog.nodes.client.peer import Role
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.sources.bootstrap import connect_to_first
from aclog.terminal.columns import Column, Row
from aclog.terminal.output import emit, say, shown
from aclog.terminal.timestamps import time_text

_T = TypeVar("_T")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_LONG = (1 << 63) - 1
_LONGEST_MS = 1000 * 365 * 24 * 3_600_000
"""1,000 years: no server allows more, and a timedelta of 2^63 ms would overflow."""
_ROW = "\n{:<15} {:<30} {:<15} {:<15} {:<25} {:<15} {:<15} {:<15}"
"""The columns of DelegationTokenCommand.printToken."""


TOKEN_COLUMNS = (
    Column(key="tokenId", title="TOKEN ID"),
    Column(key="hmac", spare=True),
    Column(key="owner", cut=True),
    Column(key="requester", cut=True),
    Column(key="renewers", cut=True, spare=True, text=", ".join),
    Column(key="issueTimestamp", title="ISSUED", spare=True, text=time_text),
    Column(key="expiryTimestamp", title="EXPIRES", text=time_text),
    Column(key="maxTimestamp", title="ENDS", spare=True, text=time_text),
)
"""Of a delegation token; the keys are those of Kafka's DescribeDelegationTokenResponse."""


@frozen(kw_only=True)
class Broker:
    """The servers to ask, and the login."""

    servers: tuple[HostPort, ...]
    security: ClientSecurity

    def request(self, work: Callable[[Connection], Awaitable[_T]]) -> _T:
        """Return the result of a request to the first responding broker.

        Raises:
            MetadataError: no broker responds, or it refuses.

        """

        async def requested() -> _T:
            async with await connect_to_first(self.servers, self.security, Role.BROKER) as connection:
                return await work(connection)

        return asyncio.run(requested())


def print_created(broker: Broker, renewers: Sequence[str], max_lifetime_ms: int, owner: str | None) -> None:
    """Create a token and print it. Raises as Broker.request; ConfigError: a bad principal or duration."""
    named = _principals("--renewer-principal", renewers)
    owners = _principals("--owner-principal", [owner] if owner else [])
    lifetime = _duration("--max-life-time-period", max_lifetime_ms)
    say(f"Calling create token operation with renewers :{_listed(named)} , max-life-time-period :{max_lifetime_ms}")
    made = broker.request(lambda connection: create_token(connection, named, lifetime, owners[0] if owners else None))
    say(f"Created delegation token with tokenId : {made.token_id}")
    _print_tokens([made])


def print_renewed(broker: Broker, hmac: str, period_ms: int) -> None:
    """Renew a token and print its new expiry. Raises as print_created."""
    secret, period = _hmac(hmac), _duration("--renew-time-period", period_ms)
    say(f"Calling renew token operation with hmac :{hmac} , renew-time-period :{period_ms}")
    expires = broker.request(lambda connection: renew_token(connection, secret, period))
    say(f"Completed renew operation. New expiry date : {_date(expires)}")


def print_expired(broker: Broker, hmac: str, period_ms: int) -> None:
    """Expire a token and print its new expiry. Raises as print_created."""
    secret, period = _hmac(hmac), _duration("--expiry-time-period", period_ms)
    say(f"Calling expire token operation with hmac :{hmac} , expire-time-period :{period_ms}")
    expires = broker.request(lambda connection: expire_token(connection, secret, period))
    say(f"Completed expire operation. New expiry date : {_date(expires)}")


def print_described(broker: Broker, owners: Sequence[str], output: Output) -> None:
    """Print the tokens of these owners, or all visible ones. Raises as print_created."""
    named = _principals("--owner-principal", owners)
    if output.is_rows:
        found = broker.request(lambda connection: describe_tokens(connection, named or None))
        output.print_rows(TOKEN_COLUMNS, map(_token_object, found))
        return
    if named:
        say(f"Calling describe token operation for owners: {_listed(named)}")
    else:
        say("Calling describe token operation for current user.")
    tokens = broker.request(lambda connection: describe_tokens(connection, named or None))
    say(f"Total number of tokens : {len(tokens)}", end="")
    _print_tokens(tokens)


def _print_tokens(tokens: Iterable[DelegationToken]) -> None:
    heads = ("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")
    show = shown()
    emit(_ROW.format(*heads))
    for token in tokens:
        who = str(token.owner), str(token.requester), _listed(token.renewers)
        times = _date(token.issued), _date(token.expires), _date(token.longest)
        emit(_ROW.format(*map(show, (token.token_id, b64encode(token.hmac).decode(), *who, *times))))


def _token_object(token: DelegationToken) -> Row:
    return {
        "tokenId": token.token_id,
        "hmac": b64encode(token.hmac).decode(),
        "owner": str(token.owner),
        "requester": str(token.requester),
        "renewers": list(map(str, token.renewers)),
        "issueTimestamp": _milliseconds(token.issued),
        "expiryTimestamp": _milliseconds(token.expires),
        "maxTimestamp": _milliseconds(token.longest),
    }


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _listed(principals: Iterable[KafkaPrincipal]) -> str:
    return f"[{', '.join(map(str, principals))}]"


def _date(moment: datetime) -> str:
    """Return the local time to the minute, as Kafka's tool prints it."""
    with suppress(OverflowError):  # local time may fall after the year 9999
        moment = moment.astimezone()
    return moment.strftime("%Y-%m-%dT%H:%M")


def _principals(flag: str, texts: Sequence[str]) -> tuple[KafkaPrincipal, ...]:
    try:
        return tuple(KafkaPrincipal.parse(typed_text(text.strip())) for text in texts)
    except InvalidRequestError as error:
        raise ConfigError(f"{flag}: {error}: expected TYPE:NAME") from None


def _hmac(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        # The value is a secret: it must not end up in logs or terminals.
        raise ConfigError(
            "--hmac: its value (not shown) is not base64: expected what `tokens create` printed"
        ) from None


def _duration(flag: str, millis: int) -> timedelta:
    if not -_MAX_LONG - 1 <= millis <= _MAX_LONG:
        raise ConfigError(f"{flag}: {millis}: expected ms as a 64-bit integer")
    return timedelta(milliseconds=max(-1, min(millis, _LONGEST_MS)))
