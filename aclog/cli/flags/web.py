"""Flags of the commands that serve over the web."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

TlsCert: TypeAlias = Annotated[
    Path | None,
    typer.Option("--tls-cert", metavar="FILE", help="The server's certificate chain (PEM).", show_default=False),
]
TlsKey: TypeAlias = Annotated[
    Path | None, typer.Option("--tls-key", metavar="FILE", help="Its private key (PEM).", show_default=False)
]
BaseUrl: TypeAlias = Annotated[
    str | None,
    typer.Option("--base-url", metavar="URL", help="How clients reach it.", show_default="that of --listen"),
]
AuditFile: TypeAlias = Annotated[
    Path | None, typer.Option("--audit", metavar="FILE", help="Append a line of JSON for each answer.")
]
HealthListen: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--health-listen",
        metavar="HOST:PORT",
        help="Also listen here, without TLS or login, for /healthz, /readyz and /metrics: outside of the limits on "
        "connections to --listen. Bind it to an address that only your monitoring reaches.",
        show_default=False,
    ),
]
