"""The flags of `aclog diff` besides the two states."""

from typing import Annotated

import typer
from attrs import field, frozen

from aclog.cli.flags.output import Columns, NoPager, Output, OutputFlags, format_option
from aclog.cli.flags.second_settings import SecondSettingsFlags
from aclog.cli.flags.second_state import SecondStateFlags
from aclog.metalog.errors import ConfigError
from aclog.terminal.output_format import ROW_FORMATS, OutputFormat


@frozen(kw_only=True)
class DiffFlags:
    """Names that the two states have differently, what is counted, and the format."""

    map_names: Annotated[
        list[str],
        typer.Option(
            "--map-names",
            metavar="OLD=NEW",
            help="Names of topics, groups and transactional ids of the first state that begin with OLD begin with NEW "
            "in the second one; can be repeated.",
        ),
    ] = field(factory=list)
    accesses: Annotated[
        str | None,
        typer.Option(
            "--accesses",
            metavar="PATH",
            help="Count which of these accesses flip: an access log in any form that [cyan]aclog usage[/] reads; "
            "[cyan]-[/] is stdin.",
            show_default=False,
        ),
    ] = None
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            metavar="",
            help="Instead of a second state: print what each change gives and takes, as it is committed, until Ctrl-C.",
        ),
    ] = False
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

    def output(self) -> Output:
        """Return how to print. Raises as OutputFlags.choose."""
        flags = OutputFlags(columns=self.columns, no_pager=self.no_pager)
        return flags.choose(self.format, pipe=OutputFormat.TEXT, is_live=self.follow)


def check_followed(target: SecondStateFlags, settings: SecondSettingsFlags, report: DiffFlags) -> None:
    """Check the flags beside --follow. Raises ConfigError: one of them needs a second state."""
    if target.given() or settings.given():
        raise ConfigError("--follow compares each state of the log with the next: expected no second state")
    if report.map_names or report.accesses is not None:
        raise ConfigError("--follow: expected neither --map-names nor --accesses")
    if report.columns is not None:
        raise ConfigError("--follow: expected no --columns")
