"""The flags of a running cluster that a command changes or describes."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

PANEL = "Target (exactly one)"

TargetController: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-controller",
        metavar="HOST:PORT",
        help="The active controller of a running quorum (aclog or Kafka).",
        rich_help_panel=PANEL,
    ),
]
TargetServer: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        metavar="HOST:PORT",
        help="The brokers, comma-separated, of a running cluster (aclog or Kafka).",
        rich_help_panel=PANEL,
    ),
]
TargetConfig: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        metavar="FILE",
        help="Client properties, as for Kafka's tools: security.protocol, sasl.*, ssl.*.",
        rich_help_panel=PANEL,
    ),
]
