"""The flags of commands that make plans, apply them, or compare a target with its source."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

from attrs import field

from aclog.cli.flags.accesses import ACCESSES_PANEL as ACCESSES
from aclog.cli.flags.accesses import AccessesFormat, AccessesTimezone, Workers
from aclog.cli.flags.common import PANEL, NoPager, Output, OutputFlags, format_option
from aclog.cli.flags.source import AcceptUnread, Exclude, Modules, TopicsFile, VarFiles, Vars, Workspace
from aclog.cli.options import Option
from aclog.metalog.values import frozen
from aclog.sources.formats.format import AclsFormat
from aclog.terminal.columns import OutputFormat

# The flags of commands that make a plan.


_WANT = "Desired rules (exactly one)"

JournalFile: TypeAlias = Annotated[
    Path,
    Option(
        "--journal",
        metavar="FILE",
        help="The record of the rules that this source has applied, and so manages. The first apply creates it; keep "
        "it with the rules, one for each target.",
        show_default=False,
    ),
]
OtherJournals: TypeAlias = Annotated[
    list[Path],
    Option(
        "--other-journal",
        metavar="FILE",
        help="The journal of another source for the same target: its rules are not deleted; can be repeated.",
    ),
]
MaxDeletes: TypeAlias = Annotated[
    str | None,
    Option(
        "--max-deletes",
        metavar="N|N%",
        help="Refuse a plan with more deletes. [dim]Default: the larger of 20 and 10% of the managed rules[/]",
        show_default=False,
    ),
]
PlanOut: TypeAlias = Annotated[
    Path | None,
    Option(
        "--out", metavar="PLAN", help="Write the plan into this file, for [cyan]aclog apply[/].", show_default=False
    ),
]


ChangeFile: TypeAlias = Annotated[
    str | None,
    Option(
        "--change",
        metavar="FILE",
        help='Rules to add and to remove, as JSON lines: [cyan]{"action":"ADD","rule":{...}}[/], or REMOVE.',
        rich_help_panel=_WANT,
    ),
]


@frozen(kw_only=True, eq=False, repr=False)
class WantFlags:
    """What a place should hold: all rules of a source."""

    want: Annotated[
        str | None,
        Option(
            "--want",
            metavar="PATH",
            help="All desired rules: JSON lines, or the files of a GitOps tool, as [cyan]--acls[/] reads them.",
            rich_help_panel=_WANT,
        ),
    ] = None
    want_format: Annotated[
        AclsFormat | None,
        Option(
            "--want-format",
            metavar="FORMAT",
            help="The format of these files. [dim]Default: auto, found out for each[/]",
            rich_help_panel=_WANT,
        ),
    ] = None
    modules: Modules = field(factory=list)
    exclude: Exclude = field(factory=list)
    accept_unread: AcceptUnread = field(factory=list)
    var_files: VarFiles = field(factory=list)
    variables: Vars = field(factory=list)
    workspace: Workspace = None
    topics_file: TopicsFile = None


class FailOnUnread(StrEnum):
    """What refuses a plan."""

    UNREAD = "unread"


@frozen(kw_only=True, eq=False, repr=False)
class OwnershipFlags:
    """What belongs to the source, and how much of it may be deleted."""

    journal: JournalFile
    other_journals: OtherJournals = field(factory=list)
    adopt: Annotated[
        bool,
        Option(
            "--adopt",
            metavar="",
            help="Manage desired rules that exist already, and let [cyan]--change[/] remove unmanaged rules.",
        ),
    ] = False
    max_deletes: MaxDeletes = None
    fail_on: Annotated[
        FailOnUnread | None,
        Option(
            "--fail-on",
            help="Refuse a plan if content of the source is [cyan]unread[/]. [dim]Default: only one that deletes[/]",
        ),
    ] = None


@frozen(kw_only=True, eq=False, repr=False)
class StepsOutputFlags:
    """How a plan is printed."""

    format: Annotated[
        OutputFormat | None,
        format_option(
            OutputFormat.TEXT,
            OutputFormat.JSONL,
            default="text",
            help="text for people, jsonl (only the steps) for programs.",
        ),
    ] = None
    no_pager: NoPager = False

    def choose(self) -> Output:
        """Return how to print. Raises as OutputFlags.choose."""
        return OutputFlags(no_pager=self.no_pager).choose(self.format, pipe=OutputFormat.TEXT)


@frozen(kw_only=True, eq=False, repr=False)
class PlanOutputFlags:
    """How a plan that may be long is printed, with what further data, and the file that it is written to."""

    out: PlanOut = None
    accesses: Annotated[
        list[str],
        Option(
            "--accesses",
            metavar="PATH",
            help="Print the last use of each rule to delete: from a directory that [cyan]aclog accesses index[/] "
            "keeps, or from an access log as of [cyan]aclog accesses usage[/], which can be repeated.",
            show_default=False,
            rich_help_panel=ACCESSES,
        ),
    ] = field(factory=list)
    accesses_format: AccessesFormat = None
    accesses_timezone: AccessesTimezone = None
    workers: Workers = None
    format: Annotated[
        OutputFormat | None,
        format_option(
            OutputFormat.TEXT,
            OutputFormat.MARKDOWN,
            OutputFormat.JSONL,
            default="text",
            help="text for people, markdown for a comment on a pull request, jsonl (only the steps) for programs.",
        ),
    ] = None
    full: Annotated[
        bool,
        Option("--full", metavar="", help="Print the whole text, without shortening it.", rich_help_panel=PANEL),
    ] = False
    no_pager: NoPager = False

    def choose(self) -> Output:
        """Return how to print. Raises as OutputFlags.choose."""
        return OutputFlags(no_pager=self.no_pager).choose(self.format, pipe=OutputFormat.TEXT)


# The flags of commands that apply a plan.


@frozen(kw_only=True, eq=False, repr=False)
class ApplyFlags:
    """What an operator has accepted, and where the journal is."""

    yes: Annotated[bool, Option("--yes", metavar="", help="Do not ask for confirmation.")] = False
    accept_transient: Annotated[
        bool,
        Option(
            "--accept-transient-denials",
            metavar="",
            help="Apply the plan although some requests are denied temporarily during the apply: they are allowed "
            "before and after it. The plan lists these requests.",
        ),
    ] = False
    resume: Annotated[
        bool,
        Option(
            "--resume",
            metavar="",
            help="Continue an apply of this plan that was killed or stopped; with a journal, aclog detects such an "
            "apply without this flag.",
        ),
    ] = False
    journal: Annotated[
        Path | None,
        Option(
            "--journal",
            metavar="FILE",
            help="The journal file. [dim]Default: the journal that the plan names[/]",
            show_default=False,
        ),
    ] = None
    other_journals: Annotated[
        list[Path],
        Option(
            "--other-journal",
            metavar="FILE",
            help="The new path of another source's journal, if that journal was moved after the plan was made. Can be "
            "repeated.",
            show_default=False,
        ),
    ] = field(factory=list)
    force: Annotated[bool, Option("--force", metavar="", help="Write even if the log belongs to a Kafka node.")] = False


# The flags of `aclog grant` and `aclog revoke` besides the intent.


@frozen(kw_only=True, eq=False, repr=False)
class DoFlags:
    """What happens to the plan: it is shown, and on request written into a file or applied."""

    yes: Annotated[bool, Option("--yes", metavar="", help="Apply the plan without confirmation.")] = False
    out: PlanOut = None
    journal: Annotated[
        Path | None,
        Option(
            "--journal",
            metavar="FILE",
            help="The journal of the source of rules that manages the new rules. [dim]Default: they are unmanaged[/]",
            show_default=False,
        ),
    ] = None
    accept_side_effects: Annotated[
        bool,
        Option(
            "--accept-side-effects",
            metavar="",
            help="Apply, or write the PLAN, although others lose access by a grant, or gain it by a revocation; the "
            "plan lists them ([cyan]allow.everyone.if.no.acl.found[/]).",
        ),
    ] = False
    accept_transient: Annotated[
        bool,
        Option(
            "--accept-transient-denials",
            metavar="",
            help="Apply the plan although some requests are denied temporarily during the apply: they are allowed "
            "before and after it. The plan lists these requests.",
        ),
    ] = False
    force: Annotated[bool, Option("--force", metavar="", help="Write even if the log belongs to a Kafka node.")] = False


@frozen(kw_only=True, eq=False, repr=False)
class RevokedFlags:
    """What may be removed."""

    adopt: Annotated[
        bool,
        Option("--adopt", metavar="", help="With a journal: also remove unmanaged rules."),
    ] = False
    max_deletes: MaxDeletes = None
