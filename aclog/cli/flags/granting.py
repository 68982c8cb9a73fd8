"""The flags of `aclog grant` and `aclog revoke` besides the intent."""

from pathlib import Path
from typing import Annotated

import typer
from attrs import frozen

from aclog.cli.flags.plan import MaxDeletes, PlanOut


@frozen(kw_only=True)
class DoFlags:
    """What becomes of the plan: it is shown, and written into a file or applied if that is asked for."""

    yes: Annotated[bool, typer.Option("--yes", metavar="", help="Apply the plan, without asking.")] = False
    out: PlanOut = None
    journal: Annotated[
        Path | None,
        typer.Option(
            "--journal",
            metavar="FILE",
            help="The journal of the source of rules that owns what is added. [dim]Default: nobody owns it[/]",
            show_default=False,
        ),
    ] = None
    accept_side_effects: Annotated[
        bool,
        typer.Option(
            "--accept-side-effects",
            metavar="",
            help="Apply, or write the PLAN, although others lose access by a grant, or gain it by a revocation; the "
            "plan says so ([cyan]allow.everyone.if.no.acl.found[/]).",
        ),
    ] = False
    accept_transient: Annotated[
        bool,
        typer.Option(
            "--accept-transient-denials",
            metavar="",
            help="Accept what the plan lists as denied for a moment, though it is allowed before and after.",
        ),
    ] = False
    force: Annotated[
        bool, typer.Option("--force", metavar="", help="Write even if the log belongs to a Kafka node.")
    ] = False


@frozen(kw_only=True)
class RevokedFlags:
    """What may be removed."""

    adopt: Annotated[
        bool,
        typer.Option("--adopt", metavar="", help="With a journal: remove rules that it does not own, too."),
    ] = False
    max_deletes: MaxDeletes = None
