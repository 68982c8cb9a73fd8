"""The flags of `aclog suggest` besides the source and the access log."""

from pathlib import Path
from typing import Annotated

import typer
from attrs import field, frozen

from aclog.metalog.errors import ConfigError

PANEL = "Suggestion"


@frozen(kw_only=True)
class SuggestFlags:
    """What is suggested, and where it is written."""

    principal: Annotated[
        list[str],
        typer.Option(
            "--principal",
            metavar="PRINCIPAL",
            help="Only replace the rules of this principal; those of all others stay. Can be repeated. "
            "[dim]Default: all rules[/]",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = field(factory=list)
    fold: Annotated[
        str,
        typer.Option(
            "--fold",
            metavar="N",
            help="So many used names of one principal, host and operation become their longest prefix, where that is "
            "safe; [cyan]none[/] for never.",
            rich_help_panel=PANEL,
        ),
    ] = "5"
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            metavar="",
            help="Say why a rule has a prefix, and why other names were not folded.",
            rich_help_panel=PANEL,
        ),
    ] = False
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Write all rules that are wanted, as [cyan]acls list --format jsonl[/] prints rules.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None

    def least(self) -> int | None:
        """Return the number in --fold; None for never. Raises ConfigError: it is none, or under 2."""
        text = self.fold.strip()
        if text == "none":
            return None
        if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) < 2:
            raise ConfigError(f"--fold {self.fold[:40]!r}: expected a number of at least 2, or none")
        return int(text)
