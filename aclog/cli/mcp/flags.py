"""The flags of `aclog mcp` besides the source."""

from pathlib import Path
from typing import Annotated

import typer
from attrs import field, frozen

from aclog.cli.flags.accesses import PANEL, AccessesFormat, AccessesTimezone


@frozen(kw_only=True)
class McpFlags:
    """What the tool `unused` reads, and how long a tool may take."""

    index: Annotated[
        Path | None,
        typer.Option(
            "--index",
            metavar="DIR",
            help="The index that [cyan]aclog usage-index[/] keeps, for the tool [cyan]unused[/].",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None
    accesses: Annotated[
        list[str],
        typer.Option(
            "--accesses",
            metavar="PATH",
            help="An access log for that tool: with [cyan]--index[/] the proof, without it all there is (as in "
            "[cyan]aclog usage[/]); can be repeated.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = field(factory=list)
    accesses_format: AccessesFormat = None
    accesses_timezone: AccessesTimezone = "UTC"
    time_limit: Annotated[
        float, typer.Option("--time-limit", metavar="SECONDS", min=1, help="End a tool that takes longer.")
    ] = 60.0
