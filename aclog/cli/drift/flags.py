"""The flags of `aclog drift`."""

from pathlib import Path
from typing import Annotated

import typer
from attrs import field, frozen

from aclog.cli.flags.plan import JournalFile, OtherJournals
from aclog.metalog.errors import ConfigError

_LEAST_SECONDS, _MOST_SECONDS = 0.1, 86_400.0


@frozen(kw_only=True)
class DriftFlags:
    """Whose rules are looked at, and whether again and again."""

    journal: JournalFile
    other_journals: OtherJournals = field(factory=list)
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            metavar="",
            help="Look again and again, and print what drifts and what is mended, until Ctrl-C.",
        ),
    ] = False
    interval: Annotated[
        float | None,
        typer.Option(
            "--interval",
            metavar="SECONDS",
            help="With [cyan]--follow[/]: time between two looks. [dim]Default: 1 for a log, 30 for a cluster[/]",
            show_default=False,
        ),
    ] = None

    def journals(self) -> tuple[Path, list[Path]]:
        """Return the journal, and those of others."""
        return self.journal, self.other_journals

    def seconds(self, *, is_log: bool) -> float:
        """Return the time between two looks. Raises ConfigError: --interval is out of range."""
        if self.interval is None:
            return 1.0 if is_log else 30.0
        if not _LEAST_SECONDS <= self.interval <= _MOST_SECONDS:
            raise ConfigError(f"--interval {self.interval:g}: expected {_LEAST_SECONDS:g} to {_MOST_SECONDS:g} seconds")
        return self.interval
