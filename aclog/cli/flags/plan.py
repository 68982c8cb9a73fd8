"""The flags of commands that make a plan."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from attrs import field, frozen

from aclog.cli.flags.accesses import PANEL as ACCESSES
from aclog.cli.flags.accesses import AccessesFormat, AccessesTimezone, Workers
from aclog.cli.flags.output import PANEL, NoPager, Output, OutputFlags, format_option
from aclog.cli.flags.source import Modules, TopicsFile
from aclog.sources.formats.format import AclsFormat
from aclog.terminal.output_format import OutputFormat

_WANT = "What is wanted (exactly one)"

JournalFile: TypeAlias = Annotated[
    Path,
    typer.Option(
        "--journal",
        metavar="FILE",
        help="What this source of rules has applied, and so owns. It is made by the first apply; keep it with the "
        "rules, and one for each place.",
        show_default=False,
    ),
]
OtherJournals: TypeAlias = Annotated[
    list[Path],
    typer.Option(
        "--other-journal",
        metavar="FILE",
        help="The journal of another source for the same place: what it owns, too, is not deleted; can be repeated.",
    ),
]
MaxDeletes: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--max-deletes",
        metavar="N|N%",
        help="Refuse a plan with more deletes. [dim]Default: the larger of 20 and 10% of what is owned[/]",
        show_default=False,
    ),
]
PlanOut: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="PLAN", help="Write the plan into this file, for [cyan]aclog apply[/].", show_default=False
    ),
]


ChangeFile: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--change",
        metavar="FILE",
        help='Rules to add and to remove, as JSON lines: [cyan]{"action":"ADD","rule":{...}}[/], or REMOVE.',
        rich_help_panel=_WANT,
    ),
]


@frozen(kw_only=True)
class WantFlags:
    """What a place should hold: all rules of a source."""

    want: Annotated[
        str | None,
        typer.Option(
            "--want",
            metavar="PATH",
            help="All rules that this source wants: JSON lines, or the files of a GitOps tool, as [cyan]--acls[/] "
            "reads them.",
            rich_help_panel=_WANT,
        ),
    ] = None
    want_format: Annotated[
        AclsFormat | None,
        typer.Option(
            "--want-format",
            metavar="FORMAT",
            help="The format of these files. [dim]Default: auto, found out for each[/]",
            rich_help_panel=_WANT,
        ),
    ] = None
    modules: Modules = field(factory=list)
    topics_file: TopicsFile = None


@frozen(kw_only=True)
class OwnershipFlags:
    """What belongs to the source, and how much of it may be deleted."""

    journal: JournalFile
    other_journals: OtherJournals = field(factory=list)
    adopt: Annotated[
        bool,
        typer.Option(
            "--adopt",
            metavar="",
            help="Own wanted rules that are there already; and let [cyan]--change[/] remove rules that are not owned.",
        ),
    ] = False
    max_deletes: MaxDeletes = None


@frozen(kw_only=True)
class StepsOutputFlags:
    """How a plan is printed."""

    format: Annotated[
        OutputFormat | None,
        format_option(
            OutputFormat.TEXT, OutputFormat.JSONL, default="text", help="For people, or the steps for programs."
        ),
    ] = None
    no_pager: NoPager = False

    def choose(self) -> Output:
        """Return how to print. Raises as OutputFlags.choose."""
        return OutputFlags(no_pager=self.no_pager).choose(self.format, pipe=OutputFormat.TEXT)


@frozen(kw_only=True)
class PlanOutputFlags:
    """How a plan is printed that may be long, what else is told of it, and the file that it is written into."""

    out: PlanOut = None
    accesses: Annotated[
        list[str],
        typer.Option(
            "--accesses",
            metavar="PATH",
            help="Tell of each rule to delete when it was last used: by a directory that [cyan]aclog usage-index[/] "
            "keeps, or by an access log as of [cyan]aclog usage[/], which can be repeated.",
            show_default=False,
            rich_help_panel=ACCESSES,
        ),
    ] = field(factory=list)
    accesses_format: AccessesFormat = None
    accesses_timezone: AccessesTimezone = "UTC"
    workers: Workers = None
    format: Annotated[
        OutputFormat | None,
        format_option(
            OutputFormat.TEXT,
            OutputFormat.MARKDOWN,
            OutputFormat.JSONL,
            default="text",
            help="For people, for a comment on a pull request, or the steps for programs.",
        ),
    ] = None
    full: Annotated[
        bool,
        typer.Option("--full", metavar="", help="Print all of the text, however long it is.", rich_help_panel=PANEL),
    ] = False
    no_pager: NoPager = False

    def choose(self) -> Output:
        """Return how to print. Raises as OutputFlags.choose."""
        return OutputFlags(no_pager=self.no_pager).choose(self.format, pipe=OutputFormat.TEXT)
