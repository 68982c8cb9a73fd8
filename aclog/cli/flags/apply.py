"""The flags of commands that apply a plan."""

from pathlib import Path
from typing import Annotated

import typer
from attrs import field, frozen


@frozen(kw_only=True)
class ApplyFlags:
    """What an operator has accepted, and where the journal is."""

    yes: Annotated[bool, typer.Option("--yes", metavar="", help="Do not ask.")] = False
    accept_transient: Annotated[
        bool,
        typer.Option(
            "--accept-transient-denials",
            metavar="",
            help="Accept what the plan lists as denied for a moment, though it is allowed before and after.",
        ),
    ] = False
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            metavar="",
            help="Go on with an apply of this plan that was killed or stopped; without it such an apply is found, too, "
            "if there is a journal.",
        ),
    ] = False
    journal: Annotated[
        Path | None,
        typer.Option("--journal", metavar="FILE", help="The journal. [dim]Default: the plan's[/]", show_default=False),
    ] = None
    other_journals: Annotated[
        list[Path],
        typer.Option(
            "--other-journal",
            metavar="FILE",
            help="The journal of another source that the plan was made with, if it is not where it was then; can be "
            "repeated.",
            show_default=False,
        ),
    ] = field(factory=list)
    force: Annotated[
        bool, typer.Option("--force", metavar="", help="Write even if the log belongs to a Kafka node.")
    ] = False
