"""`aclog tokens`: what kafka-delegation-tokens.sh does, and what it prints."""

import asyncio
import binascii
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TypeVar

from attrs import frozen

from aclog.authorizer.errors import InvalidRequestError
from aclog.authorizer.principals import KafkaPrincipal
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
from aclog.nodes.config.node_config import ClientSecurity, HostPort
from aclog.sources.bootstrap import connect_to_first

_T = TypeVar("_T")
_MAX_LONG = (1 << 63) - 1
_LONGEST_MS = 1000 * 365 * 24 * 3_600_000
"""No server lets a token live longer, and Python counts no further in this."""
_ROW = "\n{:<15} {:<30} {:<15} {:<15} {:<25} {:<15} {:<15} {:<15}"
"""The columns of DelegationTokenCommand.printToken."""


@frozen(kw_only=True)
class Broker:
    """Where to ask, and as whom."""

    servers: tuple[HostPort, ...]
    security: ClientSecurity

    def ask(self, work: Callable[[Connection], Awaitable[_T]]) -> _T:
        """What a broker answers.

        Raises:
            MetadataError: none answers, or it refuses.

        """

        async def asked() -> _T:
            async with await connect_to_first(self.servers, self.security) as connection:
                return await work(connection)

        return asyncio.run(asked())


def print_created(broker: Broker, renewers: Sequence[str], max_lifetime_ms: int, owner: str | None) -> None:
    """Make a token and print it. Raises as Broker.ask; ConfigError for what is no principal or no number."""
    named, whom = (
        _principals("--renewer-principal", renewers),
        _principals("--owner-principal", [owner] if owner else []),
    )
    lifetime = _duration("--max-life-time-period", max_lifetime_ms)
    print(f"Calling create token operation with renewers :{_listed(named)} , max-life-time-period :{max_lifetime_ms}")
    made = broker.ask(lambda connection: create_token(connection, named, lifetime, whom[0] if whom else None))
    print(f"Created delegation token with tokenId : {made.token_id}")
    _print_tokens([made])


def print_renewed(broker: Broker, hmac: str, period_ms: int) -> None:
    """Renew a token and print until when it holds. Raises as print_created."""
    secret, period = _hmac(hmac), _duration("--renew-time-period", period_ms)
    print(f"Calling renew token operation with hmac :{hmac} , renew-time-period :{period_ms}")
    expires = broker.ask(lambda connection: renew_token(connection, secret, period))
    print(f"Completed renew operation. New expiry date : {_date(expires)}")


def print_expired(broker: Broker, hmac: str, period_ms: int) -> None:
    """Let a token end and print when it does. Raises as print_created."""
    secret, period = _hmac(hmac), _duration("--expiry-time-period", period_ms)
    print(f"Calling expire token operation with hmac :{hmac} , expire-time-period :{period_ms}")
    expires = broker.ask(lambda connection: expire_token(connection, secret, period))
    print(f"Completed expire operation. New expiry date : {_date(expires)}")


def print_described(broker: Broker, owners: Sequence[str]) -> None:
    """Print the tokens of these owners, or all that may be seen. Raises as print_created."""
    named = _principals("--owner-principal", owners)
    if named:
        print(f"Calling describe token operation for owners: {_listed(named)}")
    else:
        print("Calling describe token operation for current user.")
    tokens = broker.ask(lambda connection: describe_tokens(connection, named or None))
    print(f"Total number of tokens : {len(tokens)}", end="")
    _print_tokens(tokens)


def _print_tokens(tokens: Iterable[DelegationToken]) -> None:
    heads = ("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")
    print(_ROW.format(*heads))
    for token in tokens:
        who = str(token.owner), str(token.requester), _listed(token.renewers)
        times = _date(token.issued), _date(token.expires), _date(token.longest)
        print(_ROW.format(token.token_id, b64encode(token.hmac).decode(), *who, *times))


def _listed(principals: Iterable[KafkaPrincipal]) -> str:
    return f"[{', '.join(map(str, principals))}]"


def _date(moment: datetime) -> str:
    """To the minute, where we are."""
    with suppress(OverflowError):  # the end of the year 9999 is told as it is
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
        raise ConfigError(
            "--hmac: its value (not shown) is not base64: expected what `tokens create` printed"
        ) from None


def _duration(flag: str, millis: int) -> timedelta:
    if not -_MAX_LONG - 1 <= millis <= _MAX_LONG:
        raise ConfigError(f"{flag}: {millis}: expected a number of ms that has 64 bits")
    return timedelta(milliseconds=max(-1, min(millis, _LONGEST_MS)))
