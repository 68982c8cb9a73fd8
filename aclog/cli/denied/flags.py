"""The flags of `aclog denied` besides the source and the log."""

from pathlib import Path
from typing import Annotated

import typer
from attrs import field, frozen


@frozen(kw_only=True)
class DeniedFlags:
    """Whose denials, and what becomes of them."""

    principal: Annotated[
        list[str],
        typer.Option(
            "--principal",
            metavar="TYPE:NAME",
            help="Only what this principal is refused; can be repeated.",
            show_default="all",
        ),
    ] = field(factory=list)
    any_host: Annotated[
        bool,
        typer.Option("--any-host", help="Let the rules allow from every host, not only from those that were refused."),
    ] = False
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Write the rules that would allow it, as a change for [cyan]--change[/].",
            show_default=False,
        ),
    ] = None
