"""The `aclog tokens` commands: kafka-delegation-tokens.sh."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer
from attrs import frozen

from aclog.cli.flags.groups import with_flags
from aclog.cli.flags.output import OutputFlags, format_option
from aclog.cli.flags.source import SourceFlags
from aclog.cli.from_context.marks import writes_to_source
from aclog.metalog.errors import ConfigError
from aclog.terminal.output_format import ROW_FORMATS, OutputFormat

if TYPE_CHECKING:
    from aclog.cli.tokens.output import Broker

app = typer.Typer(
    name="tokens",
    help="Create, renew, expire, describe and list delegation tokens; flags as of kafka-delegation-tokens.sh.",
    no_args_is_help=True,
)


@frozen(kw_only=True)
class BrokerFlags:
    """The brokers, and the login."""

    bootstrap_server: Annotated[
        str,
        typer.Option(
            "--bootstrap-server",
            metavar="HOST:PORT",
            help="The brokers, comma-separated, of a running cluster (aclog or Kafka).",
            show_default=False,
        ),
    ]
    command_config: Annotated[
        Path,
        typer.Option(
            "--command-config",
            metavar="FILE",
            help="Client properties with the login: tokens are only for authenticated users.",
            show_default=False,
        ),
    ]

    def broker(self) -> "Broker":
        """Return the broker. Raises ConfigError: an invalid address, or a bad properties file."""
        from aclog.cli.tokens.output import Broker
        from aclog.sources.server_flags import client_security, parse_servers

        servers = parse_servers("--bootstrap-server", self.bootstrap_server)
        return Broker(servers=servers, security=client_security(self.command_config))


Hmac: TypeAlias = Annotated[
    str, typer.Option("--hmac", metavar="BASE64", help="The token's HMAC, as create prints it.", show_default=False)
]

Force: TypeAlias = Annotated[
    bool, typer.Option("--force", metavar="", help="Do not ask before writing to a context that -c does not name.")
]


@app.command()
@with_flags
@writes_to_source()
def create(
    flags: BrokerFlags,
    max_life_time_period: Annotated[
        int,
        typer.Option(
            "--max-life-time-period",
            metavar="MS",
            help="The maximum lifetime, renewals included; -1: the server's maximum.",
            show_default=False,
        ),
    ],
    renewer_principal: Annotated[
        list[str] | None,
        typer.Option(
            "--renewer-principal",
            metavar="TYPE:NAME",
            help="A principal that may renew and expire the token, besides its owner.",
        ),
    ] = None,
    owner_principal: Annotated[
        str | None,
        typer.Option(
            "--owner-principal",
            metavar="TYPE:NAME",
            help="The owner of the token; needs CREATE_TOKENS on that user.",
            show_default="the authenticated user",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Create a token, and print its id and HMAC: with both, its bearer can log in as its owner.

    [bold]Example[/]

      aclog tokens create --bootstrap-server HOST:9092 --command-config FILE --max-life-time-period -1
    """
    del force  # asked for by aclog.cli.from_context
    from aclog.cli.tokens.output import print_created

    print_created(flags.broker(), renewer_principal or (), max_life_time_period, owner_principal)


@app.command()
@with_flags
@writes_to_source()
def renew(
    flags: BrokerFlags,
    hmac: Hmac,
    renew_time_period: Annotated[
        int,
        typer.Option(
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
    del force  # asked for by aclog.cli.from_context
    from aclog.cli.tokens.output import print_renewed

    print_renewed(flags.broker(), hmac, renew_time_period)


@app.command()
@with_flags
@writes_to_source()
def expire(
    flags: BrokerFlags,
    hmac: Hmac,
    expiry_time_period: Annotated[
        int,
        typer.Option(
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
    del force  # asked for by aclog.cli.from_context
    from aclog.cli.tokens.output import print_expired

    print_expired(flags.broker(), hmac, expiry_time_period)


@app.command()
@with_flags
def describe(
    flags: BrokerFlags,
    output: OutputFlags,
    format_: Annotated[OutputFormat | None, format_option(OutputFormat.KAFKA, *ROW_FORMATS, default="kafka")] = None,
    owner_principal: Annotated[
        list[str] | None,
        typer.Option(
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
    from aclog.cli.tokens.output import print_described

    print_described(flags.broker(), owner_principal or (), output.choose(format_, pipe=OutputFormat.KAFKA))


@app.command("list")
@with_flags
def list_(
    source: SourceFlags,
    output: OutputFlags,
    owner_principal: Annotated[
        list[str] | None,
        typer.Option(
            "--owner-principal",
            metavar="TYPE:NAME",
            help="Only the tokens that this principal owns, requested or may renew.",
            show_default="all tokens",
        ),
    ] = None,
    expires_before: Annotated[
        str | None,
        typer.Option(
            "--expires-before",
            metavar="TIME",
            help="Only those that expire before this time, unless they are renewed: [cyan]2026-11-27[/].",
            show_default=False,
        ),
    ] = None,
    format_: Annotated[OutputFormat | None, format_option(*ROW_FORMATS, default="table")] = None,
) -> None:
    """List the tokens in a log, a checkpoint or a running quorum, with their times; the HMACs are not there.

    `aclog tokens describe` asks a broker instead, which shows what the
    login may see.

    [bold]Examples[/]

      aclog tokens list --log DIR --expires-before 2026-11-27
      aclog tokens list --bootstrap-controller HOST:9093 --owner-principal User:bob
    """
    from aclog.cli.tokens.token_list import print_tokens

    how = output.choose(format_, pipe=OutputFormat.TABLE)
    if source.acls is not None or source.ref is not None or source.bootstrap_server is not None:
        raise ConfigError(
            "tokens are in a log: expected --log, --snapshot or --bootstrap-controller; of a broker, `aclog tokens "
            "describe` lists those that the login may see"
        )
    print_tokens(source.choose(), owner_principal or (), expires_before, how)
