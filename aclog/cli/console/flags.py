"""The flags of `aclog console`."""

from typing import Annotated

import typer
from attrs import frozen

from aclog.cli.flags import web


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
