"""The `aclog tokens` commands: kafka-delegation-tokens.sh."""

import asyncio
import binascii
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

from aclog.authorizer.interface import InvalidRequestError
from aclog.authorizer.settings import KafkaPrincipal
from aclog.cli.app import writes_to_source
from aclog.cli.flags.common import Output, OutputFlags, format_option, typed_text
from aclog.cli.flags.source import SourceFlags
from aclog.cli.options import Group, Option
from aclog.client.connection import Connection, Role
from aclog.client.requests import DelegationToken, create_token, describe_tokens, expire_token, renew_token
from aclog.config.node_config import ClientSecurity, HostPort
from aclog.metalog.errors import ConfigError
from aclog.metalog.records import DelegationTokenRecord
from aclog.metalog.values import frozen
from aclog.snapshots.moments import milliseconds
from aclog.sources.choice import ChosenSource
from aclog.sources.live import connect_to_first
from aclog.terminal.columns import ROW_FORMATS, Column, OutputFormat, Row
from aclog.terminal.moment import take_moment
from aclog.terminal.output import emit, say, time_text, value_formatter
from aclog.terminal.tables import print_rows

# The `aclog tokens` commands: kafka-delegation-tokens.sh.


app = Group(
    name="tokens",
    help="Create, renew, expire, describe and list delegation tokens; flags as of kafka-delegation-tokens.sh.",
    no_args_is_help=True,
)


@frozen(kw_only=True)
class BrokerFlags:
    """The brokers, and the login."""

    bootstrap_server: Annotated[
        str,
        Option(
            "--bootstrap-server",
            metavar="HOST:PORT",
            help="The brokers, comma-separated, of a running cluster (aclog or Kafka).",
            show_default=False,
        ),
    ]
    command_config: Annotated[
        Path,
        Option(
            "--command-config",
            metavar="FILE",
            help="Client properties with the login: tokens are only for authenticated users.",
            show_default=False,
        ),
    ]

    def broker(self) -> "Broker":
        """Return the broker. Raises ConfigError: an invalid address, or a bad properties file."""
        from aclog.sources.server_flags import client_security, parse_servers

        servers = parse_servers("--bootstrap-server", self.bootstrap_server)
        return Broker(servers=servers, security=client_security(self.command_config))


Hmac: TypeAlias = Annotated[
    str, Option("--hmac", metavar="BASE64", help="The token's HMAC, as create prints it.", show_default=False)
]

Force: TypeAlias = Annotated[
    bool, Option("--force", metavar="", help="Write without confirmation to a context that -c does not name.")
]


@app.command()
@writes_to_source()
def create(
    flags: BrokerFlags,
    max_life_time_period: Annotated[
        int,
        Option(
            "--max-life-time-period",
            metavar="MS",
            help="The maximum lifetime, renewals included; -1: the server's maximum.",
            show_default=False,
        ),
    ],
    renewer_principal: Annotated[
        list[str] | None,
        Option(
            "--renewer-principal",
            metavar="TYPE:NAME",
            help="A principal that may renew and expire the token, besides its owner.",
        ),
    ] = None,
    owner_principal: Annotated[
        str | None,
        Option(
            "--owner-principal",
            metavar="TYPE:NAME",
            help="The owner of the token; needs CREATE_TOKENS on that user.",
            show_default="the authenticated user",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Create a token, and print its id and HMAC, with which a client can log in as the token's owner.

    [bold]Example[/]

      aclog tokens create --bootstrap-server HOST:9092 --command-config FILE --max-life-time-period -1
    """
    del force  # read by aclog.cli.app

    print_created(flags.broker(), renewer_principal or (), max_life_time_period, owner_principal)


@app.command()
@writes_to_source()
def renew(
    flags: BrokerFlags,
    hmac: Hmac,
    renew_time_period: Annotated[
        int,
        Option(
            "--renew-time-period",
            metavar="MS",
            help="How long the token is valid from now; -1: the server's default.",
            show_default=False,
        ),
    ],
    force: Force = False,
) -> None:
    """Extend the validity of a token, up to its maximum lifetime; for its owner and its renewers.

    [bold]Example[/]

      aclog tokens renew --bootstrap-server HOST:9092 --command-config FILE --hmac HMAC --renew-time-period -1
    """
    del force  # read by aclog.cli.app

    print_renewed(flags.broker(), hmac, renew_time_period)


@app.command()
@writes_to_source()
def expire(
    flags: BrokerFlags,
    hmac: Hmac,
    expiry_time_period: Annotated[
        int,
        Option(
            "--expiry-time-period",
            metavar="MS",
            help="When the token expires, from now; -1: immediately.",
            show_default=False,
        ),
    ],
    force: Force = False,
) -> None:
    """Expire a token earlier, or immediately; for its owner and its renewers.

    [bold]Example[/]

      aclog tokens expire --bootstrap-server HOST:9092 --command-config FILE --hmac HMAC --expiry-time-period -1
    """
    del force  # read by aclog.cli.app

    print_expired(flags.broker(), hmac, expiry_time_period)


@app.command()
def describe(
    flags: BrokerFlags,
    output: OutputFlags,
    format_: Annotated[OutputFormat | None, format_option(OutputFormat.KAFKA, *ROW_FORMATS, default="kafka")] = None,
    owner_principal: Annotated[
        list[str] | None,
        Option(
            "--owner-principal",
            metavar="TYPE:NAME",
            help="Only the tokens that this principal owns, requested or may renew.",
            show_default="all visible tokens",
        ),
    ] = None,
) -> None:
    """Print your tokens, and those you may describe, with their HMACs.

    [bold]Example[/]

      aclog tokens describe --bootstrap-server HOST:9092 --command-config FILE
    """
    print_described(flags.broker(), owner_principal or (), output.choose(format_, pipe=OutputFormat.KAFKA))


@app.command("list")
def list_(
    source: SourceFlags,
    output: OutputFlags,
    owner_principal: Annotated[
        list[str] | None,
        Option(
            "--owner-principal",
            metavar="TYPE:NAME",
            help="Only the tokens that this principal owns, requested or may renew.",
            show_default="all tokens",
        ),
    ] = None,
    expires_before: Annotated[
        str | None,
        Option(
            "--expires-before",
            metavar="TIME",
            help="Only those that expire before this time, unless they are renewed: [cyan]2026-11-27[/].",
            show_default=False,
        ),
    ] = None,
    format_: Annotated[OutputFormat | None, format_option(*ROW_FORMATS, default="table")] = None,
) -> None:
    """List the tokens in a log, a checkpoint or a running quorum, with their times and without HMACs.

    `aclog tokens describe` queries a broker instead, which returns the tokens that
    the login may describe.

    [bold]Examples[/]

      aclog tokens list --log DIR --expires-before 2026-11-27
      aclog tokens list --bootstrap-controller HOST:9093 --owner-principal User:bob
    """
    how = output.choose(format_, pipe=OutputFormat.TABLE)
    if source.acls is not None or source.ref is not None or source.bootstrap_server is not None:
        raise ConfigError(
            "tokens are in a log: expected --log, --snapshot or --bootstrap-controller; of a broker, `aclog tokens "
            "describe` lists those that the login may see"
        )
    print_tokens(source.choose(), owner_principal or (), expires_before, how)


# The requests and the output of kafka-delegation-tokens.sh (DelegationTokenCommand).


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
    """The servers to query, and the login."""

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
    token = broker.request(lambda connection: create_token(connection, named, lifetime, owners[0] if owners else None))
    say(f"Created delegation token with tokenId : {token.token_id}")
    _print_tokens([token])


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
        records = broker.request(lambda connection: describe_tokens(connection, named or None))
        output.print_rows(TOKEN_COLUMNS, map(_token_object, records))
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
    show = value_formatter()
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


# The delegation tokens of a state, as `tokens list` lists them.


def _time(value: Any) -> str:
    return time_text(value)


def _names(value: Any) -> str:
    return ", ".join(value)


COLUMNS = (
    Column(key="tokenId", title="TOKEN"),
    Column(key="owner", cut=True),
    Column(key="requester", cut=True, spare=True),
    Column(key="renewers", cut=True, spare=True, text=_names),
    Column(key="issueTimestamp", title="ISSUED", text=_time),
    Column(key="expiryTimestamp", title="EXPIRES", text=_time),
    Column(key="maxTimestamp", title="LATEST", text=_time),
)
"""Whose token it is, when it was issued, when it expires, and until when it can be renewed; times in ms since 1970."""


def print_tokens(choice: ChosenSource, owners: Sequence[str], expires_before: str | None, output: Output) -> None:
    """Print the tokens that concern these principals, or all, and expire before a time; the earliest first.

    Raises:
        ConfigError: a bad principal, or a text that is no time.
        MetadataError: the source is damaged, or cannot be reached.

    """
    principals = [_principal(text) for text in owners]
    limit = None if expires_before is None else _limit(expires_before)
    tokens = choice.image().tokens
    records = tokens.owned_by(principals) if principals else tokens.records()
    soon = (record for record in records if limit is None or record.expiration_timestamp < limit)
    rows = map(_row, sorted(soon, key=lambda record: record.expiration_timestamp))
    print_rows(COLUMNS, rows, output.form, keys=output.columns)
    choice.warn_of_age()


def _principal(text: str) -> str:
    try:
        return str(KafkaPrincipal.parse(typed_text(text.strip())))
    except InvalidRequestError as error:
        raise ConfigError(f"--owner-principal: {error}: expected TYPE:NAME") from None


def _limit(text: str) -> int:
    moment = take_moment(text)
    if not isinstance(moment, datetime):
        raise ConfigError(f"--expires-before {text!r}: expected a time, such as 2026-11-27 or 2026-11-27T18:00Z")
    return milliseconds(moment)


def _row(record: DelegationTokenRecord) -> Row:
    return {
        "tokenId": record.token_id,
        "owner": record.owner,
        "requester": record.requester,
        "renewers": list(record.renewers),
        "issueTimestamp": record.issue_timestamp,
        "expiryTimestamp": record.expiration_timestamp,
        "maxTimestamp": record.max_timestamp,
    }
