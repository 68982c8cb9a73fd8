"""The flags of `aclog lint` besides the source and the authorizer."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from attrs import evolve, field, frozen

from aclog.cli.flags.output import Columns, NoPager, Output, OutputFlags, format_option
from aclog.cli.lint.lint_names import complete_ids, complete_one, split_ids
from aclog.terminal.output_format import ROW_FORMATS, OutputFormat

if TYPE_CHECKING:
    from aclog.sources.repository.settings import RepositorySettings

_KNOWN = "What is known of the cluster"


class FailOn(StrEnum):
    """From which severity on a finding makes the command fail."""

    ERROR = "error"
    WARNING = "warning"
    NEVER = "never"


@frozen(kw_only=True)
class ClusterFlags:
    """What is known of the cluster besides its rules; each wins over aclog.toml if it is given."""

    groups: Annotated[
        str | None,
        typer.Option(
            "--groups", metavar="FILE", help="Consumer groups that exist, one a line.", rich_help_panel=_KNOWN
        ),
    ] = None
    accesses: Annotated[
        str | None,
        typer.Option(
            "--accesses",
            metavar="PATH",
            help="Recent accesses: a log in any form that [cyan]aclog usage[/] reads (a principal may stand alone).",
            rich_help_panel=_KNOWN,
        ),
    ] = None
    broker_version: Annotated[
        str | None,
        typer.Option(
            "--broker-version", metavar="V", help="The oldest broker's Kafka, such as 3.9.1.", rich_help_panel=_KNOWN
        ),
    ] = None
    broker_principals: Annotated[
        str | None,
        typer.Option(
            "--broker-principals",
            metavar="P;P",
            help="The principals of brokers, to whom cluster rights belong.",
            rich_help_panel=_KNOWN,
        ),
    ] = None
    separators: Annotated[
        str | None,
        typer.Option(
            "--separators",
            metavar="CHARS",
            help="The characters that separate the parts of names. [dim]Default: .-_[/]",
            rich_help_panel=_KNOWN,
        ),
    ] = None
    principal_types: Annotated[
        str | None,
        typer.Option(
            "--principal-types",
            metavar="TYPE,...",
            help="The types of principals that clients have. [dim]Default: User[/]",
            rich_help_panel=_KNOWN,
        ),
    ] = None

    def over(self, settings: "RepositorySettings") -> "RepositorySettings":
        """Return the settings with what the flags give instead."""
        named = {"groups": self.groups, "accesses": self.accesses}
        source: dict[str, Any] = {key: value for key, value in named.items() if value is not None}
        split = None if self.principal_types is None else tuple(map(str.strip, self.principal_types.split(",")))
        given = {
            "broker_version": self.broker_version,
            "broker_principals": None if self.broker_principals is None else (self.broker_principals,),
            "separators": self.separators,
            "principal_types": split,
        }
        lint: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
        return evolve(settings, source=evolve(settings.source, **source), lint=evolve(settings.lint, **lint))


@frozen(kw_only=True)
class LintFlags:
    """Which lints, what is suppressed, what fails, and how it is printed."""

    select: Annotated[
        str | None,
        typer.Option(
            "--select",
            metavar="IDS",
            help="Only these lints, by id or name, with commas between them. [dim]Default: all[/]",
            autocompletion=complete_ids,
        ),
    ] = None
    ignore: Annotated[
        Path | None,
        typer.Option("--ignore", metavar="FILE", help="Suppressions, as TOML: [cyan]\\[\\[ignore]][/] tables."),
    ] = None
    fix: Annotated[
        Path | None,
        typer.Option(
            "--fix",
            metavar="FILE",
            help="Write a change (for [cyan]--change[/]) that mends what it can without changing any decision.",
        ),
    ] = None
    fail_on: Annotated[
        FailOn | None,
        typer.Option("--fail-on", help="From which severity on findings make the exit code 1.", show_default="error"),
    ] = None
    format: Annotated[
        OutputFormat | None,
        format_option(
            OutputFormat.TEXT,
            *ROW_FORMATS,
            OutputFormat.SARIF,
            default="text",
            help="For people, for programs, for a merge request, for code scanning.",
        ),
    ] = None
    columns: Columns = None
    no_pager: NoPager = False
    list_all: Annotated[bool, typer.Option("--list", metavar="", help="List all lints, and exit.")] = False
    explain: Annotated[
        list[str],
        typer.Option("--explain", metavar="ID", help="Explain a lint, and exit.", autocompletion=complete_one),
    ] = field(factory=list)

    def output(self) -> Output:
        """Return how to print. Raises as OutputFlags.choose."""
        flags = OutputFlags(columns=self.columns, no_pager=self.no_pager)
        return flags.choose(self.format, pipe=OutputFormat.TEXT)

    def over(self, settings: "RepositorySettings") -> "RepositorySettings":
        """Return the settings with what the flags give instead."""
        lint = settings.lint
        if self.select is not None:
            lint = evolve(lint, select=split_ids(self.select))
        if self.fail_on is not None:
            lint = evolve(lint, fail_on=self.fail_on.value)
        return evolve(settings, lint=lint)
