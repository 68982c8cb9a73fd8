"""The flags of `aclog unused` besides the source."""

from pathlib import Path
from typing import Annotated

import typer
from attrs import field, frozen

from aclog.cli.flags.gap import Gap


@frozen(kw_only=True)
class UnusedFlags:
    """The index, the window, and what counts as a hole in it."""

    index: Annotated[
        Path,
        typer.Option(
            "--index", metavar="DIR", help="The index that [cyan]aclog usage-index[/] keeps.", show_default=False
        ),
    ]
    days: Annotated[
        int,
        typer.Option("--days", metavar="N", min=1, help="The length of the window, in whole days (UTC)."),
    ] = 90
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="The end of the window.", show_default="the latest access"),
    ] = None
    gap: Gap = "1d"
    ignore_broker: Annotated[
        list[str],
        typer.Option(
            "--ignore-broker",
            metavar="ID",
            help="A broker that is no more, or logs nothing: its silence is no hole; [cyan]none[/] is for lines that "
            "name no broker. Can be repeated.",
        ),
    ] = field(factory=list)
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Write the removal of all that can go together, as a change for [cyan]--change[/].",
            show_default=False,
        ),
    ] = None
