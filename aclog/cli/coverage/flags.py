"""The flags of `aclog coverage`."""

from pathlib import Path
from typing import Annotated

import typer
from attrs import field, frozen

from aclog.cli.flags.accesses import AccessesFlags, AccessesFormat, AccessesTimezone, AccessPaths, Workers
from aclog.cli.flags.gap import Gap


@frozen(kw_only=True)
class CoverageFlags:
    """An access log or an index, and what counts as a hole in it."""

    accesses: AccessPaths = field(factory=list)
    index: Annotated[
        Path | None,
        typer.Option(
            "--index", metavar="DIR", help="An index that [cyan]aclog usage-index[/] keeps.", show_default=False
        ),
    ] = None
    gap: Gap = "1d"
    accesses_format: AccessesFormat = None
    accesses_timezone: AccessesTimezone = "UTC"
    workers: Workers = None

    def log(self) -> AccessesFlags:
        """Return the flags of the log."""
        return AccessesFlags(
            accesses=self.accesses,
            accesses_format=self.accesses_format,
            accesses_timezone=self.accesses_timezone,
            workers=self.workers,
        )
