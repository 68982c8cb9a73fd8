"""The flags of `aclog pdp`."""

from pathlib import Path
from typing import Annotated

import typer
from attrs import frozen

from aclog.cli.flags import web


@frozen(kw_only=True)
class PdpFlags:
    """Where it listens, who may ask, and how foreign questions are mapped."""

    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Where to listen.", show_default=True)
    ] = "127.0.0.1:8180"
    mapping: Annotated[
        Path | None,
        typer.Option(
            "--mapping",
            metavar="FILE",
            help="What foreign subjects, resources and actions are in Kafka's terms, as JSON or YAML. [dim]Default: "
            "types are Kafka's, and actions its operations[/]",
            show_default=False,
        ),
    ] = None
    check_mapping: Annotated[
        bool,
        typer.Option(
            "--check-mapping",
            help="Print what each type and action of the mapping becomes, which cases never count and which spellings "
            "are rejected, and serve nothing.",
        ),
    ] = False
    tls_cert: web.TlsCert = None
    tls_key: web.TlsKey = None
    tls_client_ca: Annotated[
        Path | None,
        typer.Option(
            "--tls-client-ca",
            metavar="FILE",
            help="Only clients with a certificate of these authorities may ask (PEM).",
            show_default=False,
        ),
    ] = None
    base_url: web.BaseUrl = None
    health_listen: web.HealthListen = None
    tokens: Annotated[
        Path | None,
        typer.Option("--tokens", metavar="FILE", help="Bearer tokens of those who may ask, one a line."),
    ] = None
    audit: web.AuditFile = None
    decision_log: Annotated[
        Path | None,
        typer.Option(
            "--decision-log",
            metavar="FILE",
            help="Append an event of OPA's decision log for each answer of OPA's data API.",
        ),
    ] = None
    max_age: Annotated[
        float,
        typer.Option(
            "--max-age", metavar="SECONDS", help="Decide nothing from a state that nobody has confirmed for longer."
        ),
    ] = 60.0
