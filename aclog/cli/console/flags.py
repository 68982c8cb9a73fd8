"""The flags of `aclog console`."""

from pathlib import Path
from typing import Annotated

import typer
from attrs import field, frozen

from aclog.cli.flags import web
from aclog.cli.flags.accesses import AccessesFormat, AccessesTimezone, Workers
from aclog.cli.flags.gap import Gap
from aclog.sources.formats.format import AclsFormat

_PANEL = "Findings"


@frozen(kw_only=True)
class ConsoleFlags:
    """Where it listens, and who may see it."""

    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Where to listen.", show_default=True)
    ] = "127.0.0.1:8080"
    login: Annotated[
        str | None,
        typer.Option(
            "--login",
            metavar="FILE|oidc|oidc:FILE",
            help="Who may see it: a file with a principal and the hash of a password a line; or who logs in at an "
            "OpenID Connect provider, which variables or a file name. Who may not DESCRIBE the cluster sees his own "
            "rights. [dim]Default: everybody on this machine, and all of it[/]",
            show_default=False,
        ),
    ] = None
    hash_password: Annotated[
        str | None,
        typer.Option(
            "--hash-password",
            metavar="PRINCIPAL",
            help="Ask for a password, print the line of --login's file for it, and end.",
        ),
    ] = None
    tls_cert: web.TlsCert = None
    tls_key: web.TlsKey = None
    base_url: web.BaseUrl = None
    health_listen: web.HealthListen = None
    trusted_proxy: Annotated[
        str | None,
        typer.Option(
            "--trusted-proxy",
            metavar="ADDRESS",
            help="A proxy before it, whose X-Forwarded-For says who asks. [dim]Default: the address that connects[/]",
            show_default=False,
        ),
    ] = None
    audit: web.AuditFile = None
    edit: Annotated[
        bool,
        typer.Option(
            "--edit",
            metavar="",
            help="Let drafts be planned and applied in the pages, as [cyan]aclog plan[/] and [cyan]aclog apply[/] do, "
            "with [cyan]--journal[/]; with a login, by who may ALTER the cluster. SOURCE has to be a place.",
        ),
    ] = False


@frozen(kw_only=True)
class FindingsFlags:
    """By what findings are looked for."""

    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Settings of lint, and suppressions. [dim]Default: the nearest aclog.toml, up to the repository's "
            "root[/]",
            rich_help_panel=_PANEL,
        ),
    ] = None
    ignore: Annotated[
        Path | None,
        typer.Option(
            "--ignore",
            metavar="FILE",
            help="Suppressions of lint, as TOML: [cyan]\\[\\[ignore]][/] tables.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    index: Annotated[
        Path | None,
        typer.Option(
            "--index",
            metavar="DIR",
            help="Unused rules: the index that [cyan]aclog usage-index[/] keeps.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    accesses: Annotated[
        list[str],
        typer.Option(
            "--accesses",
            metavar="PATH",
            help="Unused rules: an access log, as [cyan]aclog usage[/] takes it; with [cyan]--index[/], to prove what "
            "it says. Can be repeated.",
            rich_help_panel=_PANEL,
        ),
    ] = field(factory=list)
    accesses_format: AccessesFormat = None
    accesses_timezone: AccessesTimezone = "UTC"
    workers: Workers = None
    days: Annotated[
        int,
        typer.Option(
            "--days",
            metavar="N",
            min=1,
            help="The length of the window of accesses, in days.",
            rich_help_panel=_PANEL,
        ),
    ] = 90
    gap: Gap = "1d"
    ignore_broker: Annotated[
        list[str],
        typer.Option(
            "--ignore-broker",
            metavar="ID",
            help="With [cyan]--index[/]: a broker whose silence is no hole. Can be repeated.",
            rich_help_panel=_PANEL,
        ),
    ] = field(factory=list)
    want: Annotated[
        str | None,
        typer.Option(
            "--want",
            metavar="PATH",
            help="Drift: all rules that a source wants here, as [cyan]aclog drift[/] takes them; with "
            "[cyan]--journal[/].",
            rich_help_panel=_PANEL,
        ),
    ] = None
    want_format: Annotated[
        AclsFormat | None,
        typer.Option("--want-format", metavar="FORMAT", help="The format of these files.", rich_help_panel=_PANEL),
    ] = None
    journal: Annotated[
        Path | None,
        typer.Option(
            "--journal",
            metavar="FILE",
            help="What this source of rules has applied, and so owns.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    other_journals: Annotated[
        list[Path],
        typer.Option(
            "--other-journal",
            metavar="FILE",
            help="The journal of another source for the same place. Can be repeated.",
            rich_help_panel=_PANEL,
        ),
    ] = field(factory=list)
    tests: Annotated[
        list[str],
        typer.Option(
            "--tests",
            metavar="FILE",
            help="Tests of rules, as [cyan]aclog test[/] takes them. Can be repeated.",
            rich_help_panel=_PANEL,
        ),
    ] = field(factory=list)
