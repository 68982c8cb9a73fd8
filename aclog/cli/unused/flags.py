"""The flags of `aclog unused` besides the source."""

import re
from pathlib import Path
from typing import Annotated

import typer
from attrs import field, frozen

from aclog.metalog.errors import ConfigError

_UNITS = {"h": 1, "d": 24, "w": 7 * 24}
_HOUR = 3_600_000_000


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
    gap: Annotated[
        str,
        typer.Option(
            "--gap",
            metavar="TIME",
            help="A broker that logs nothing for so long ([cyan]6h[/], [cyan]1d[/], [cyan]2w[/]) leaves a hole: then "
            "nothing is called unused.",
        ),
    ] = "1d"
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

    def gap_us(self) -> int:
        """Return the shortest hole in us. Raises ConfigError: it is no time, or under an hour."""
        found = re.fullmatch(r"([0-9]{1,6})([hdw])", self.gap.strip())
        if found is None or not int(found[1]):
            raise ConfigError(f"--gap {self.gap[:40]!r}: expected hours, days or weeks, such as 6h, 1d or 2w")
        return int(found[1]) * _UNITS[found[2]] * _HOUR
