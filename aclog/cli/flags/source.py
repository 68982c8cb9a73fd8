"""The flags of a state source: where a command reads the state from, and as of when."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer
from attrs import asdict, frozen

if TYPE_CHECKING:
    from aclog.sources.choice import ChosenSource

PANEL = "State source (exactly one)"

LogDir: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--log",
        metavar="DIR",
        help="A directory of segments and checkpoints: one of aclog's, or the [cyan]__cluster_metadata-0[/] of a "
        "stopped Kafka node (or a copy of it).",
        rich_help_panel=PANEL,
    ),
]
SnapshotFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--snapshot", metavar="FILE", help="A checkpoint file of Kafka or aclog.", rich_help_panel=PANEL),
]
AclsFile: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--acls",
        metavar="FILE",
        help="ACLs as JSON lines, the output of [cyan]acls list --format jsonl[/]; [cyan]-[/] is stdin, gzip is "
        "detected. The id is optional.",
        rich_help_panel=PANEL,
    ),
]
BootstrapController: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-controller",
        metavar="HOST:PORT",
        help="The controllers, comma-separated, of a running quorum (aclog or Kafka), whose log is followed.",
        rich_help_panel=PANEL,
    ),
]
BootstrapServer: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        metavar="HOST:PORT",
        help="The brokers, comma-separated, of a running cluster (aclog or Kafka), read through the admin API: ACLs "
        "without ids, SCRAM users without keys, no history.",
        rich_help_panel=PANEL,
    ),
]
CommandConfig: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        metavar="FILE",
        help="Client properties for the two flags above, as for Kafka's tools: security.protocol, sasl.*, ssl.*.",
        rich_help_panel=PANEL,
    ),
]
AsOf: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="N|TIME",
        help="With --log: the state up to and including offset N-1, or before the first batch later than TIME "
        "([cyan]2026-11-20T10:00:00Z[/]).",
        rich_help_panel=PANEL,
    ),
]


@frozen(kw_only=True)
class SourceFlags:
    """Exactly one state source, and the moment to read it at."""

    log: LogDir = None
    snapshot: SnapshotFile = None
    acls: AclsFile = None
    bootstrap_controller: BootstrapController = None
    bootstrap_server: BootstrapServer = None
    command_config: CommandConfig = None
    as_of: AsOf = None

    def given(self) -> bool:
        """Return whether any flag names a source."""
        named = (self.log, self.snapshot, self.acls, self.bootstrap_controller, self.bootstrap_server)
        return any(flag is not None for flag in named)

    def choose(self, notify: Callable[[str], None] | None = None) -> "ChosenSource":
        """Return the source that is given; notes of its recovery go to `notify`, by default to stderr.

        Raises:
            ConfigError: not exactly one source, an invalid address, or a bad properties file.

        """
        from aclog.sources.choice import SourceSelection, choose_source
        from aclog.terminal.notices import note

        return choose_source(SourceSelection(**asdict(self, recurse=False)), notify or note)
