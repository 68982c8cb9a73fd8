"""The flags of a second state, to compare with a first one: another source or moment, or a change of the first."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from attrs import evolve, frozen

from aclog.cli.flags.authorizer import AuthorizerFlags
from aclog.cli.flags.completion import complete_refs
from aclog.cli.flags.context import complete_contexts
from aclog.cli.flags.source import SourceFlags
from aclog.cli.flags.stdin import check_one_stdin
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.format import AclsFormat

if TYPE_CHECKING:
    from aclog.authorizer.rule_change import RuleChange
    from aclog.sources.contexts.context import Context

PANEL = "Second state (one source, or a change of the first state)"
_STDIN = "-"


@frozen(kw_only=True)
class SecondStateFlags:
    """The rules of another source or moment, or those of the first state with some added and removed."""

    to_log: Annotated[
        Path | None,
        typer.Option("--to-log", metavar="DIR", help="The state of this log.", rich_help_panel=PANEL),
    ] = None
    to_snapshot: Annotated[
        Path | None,
        typer.Option("--to-snapshot", metavar="FILE", help="The state of this checkpoint.", rich_help_panel=PANEL),
    ] = None
    to_acls: Annotated[
        str | None,
        typer.Option(
            "--to-acls",
            metavar="PATH",
            help="The ACLs of this file or directory, as --acls.",
            rich_help_panel=PANEL,
        ),
    ] = None
    to_ref: Annotated[
        str | None,
        typer.Option(
            "--to-ref",
            metavar="GITREF:PATH",
            autocompletion=complete_refs,
            help="The same as of a commit, as --ref.",
            rich_help_panel=PANEL,
        ),
    ] = None
    to_acls_format: Annotated[
        AclsFormat | None,
        typer.Option(
            "--to-acls-format",
            metavar="FORMAT",
            help="The format of these files. [dim]Default: that of --acls-format, or auto[/]",
            rich_help_panel=PANEL,
        ),
    ] = None
    to_bootstrap_controller: Annotated[
        str | None,
        typer.Option(
            "--to-bootstrap-controller",
            metavar="HOST:PORT",
            help="The state of this running quorum.",
            rich_help_panel=PANEL,
        ),
    ] = None
    to_bootstrap_server: Annotated[
        str | None,
        typer.Option(
            "--to-bootstrap-server",
            metavar="HOST:PORT",
            help="The ACLs of this running cluster, by its admin API.",
            rich_help_panel=PANEL,
        ),
    ] = None
    to_context: Annotated[
        str | None,
        typer.Option(
            "--to-context",
            metavar="NAME",
            autocompletion=complete_contexts,
            help="The state of this context, with its super users and other settings.",
            rich_help_panel=PANEL,
        ),
    ] = None
    to_command_config: Annotated[
        Path | None,
        typer.Option(
            "--to-command-config",
            metavar="FILE",
            help="Client properties for the two flags above. [dim]Default: those of --command-config[/]",
            rich_help_panel=PANEL,
        ),
    ] = None
    to_as_of: Annotated[
        str | None,
        typer.Option(
            "--to-as-of",
            metavar="N|TIME",
            help="With --to-log, its state at this point; alone, that of the first state's log.",
            rich_help_panel=PANEL,
        ),
    ] = None
    change: Annotated[
        str | None,
        typer.Option(
            "--change",
            metavar="FILE",
            help='Changes of ACLs, as JSON lines: [cyan]{"action":"ADD","rule":{...}}[/], or REMOVE; in order.',
            rich_help_panel=PANEL,
        ),
    ] = None
    add: Annotated[
        str | None,
        typer.Option("--add", metavar="FILE", help="ACLs to add, as JSON lines.", rich_help_panel=PANEL),
    ] = None
    remove: Annotated[
        str | None,
        typer.Option("--remove", metavar="FILE", help="ACLs to remove, as JSON lines.", rich_help_panel=PANEL),
    ] = None

    def given(self) -> bool:
        """Return whether a flag names the second state."""
        return self._is_change() or self._has_source() or self.to_as_of is not None

    def check(self, first: SourceFlags) -> None:
        """Check the flags before anything is read.

        Raises:
            ConfigError: not one source or a change; a flag without the one that it belongs to; stdin read twice.

        """
        if self._is_change() and (self._has_source() or self.to_as_of is not None):
            raise ConfigError("--change, --add and --remove change the first state: expected them without a --to- flag")
        if self.change is not None and (self.add is not None or self.remove is not None):
            raise ConfigError("expected either --change FILE, or --add FILE and --remove FILE")
        if not self.given():
            raise ConfigError(
                "no second state is given: --to-log DIR, --to-snapshot FILE, --to-acls PATH, --to-ref GITREF:PATH, "
                "--to-as-of N|TIME, --to-bootstrap-controller HOST:PORT, --to-bootstrap-server HOST:PORT, "
                "--to-context NAME, --change FILE, or --add FILE and --remove FILE"
            )
        if self.to_command_config is not None and self.to_bootstrap_controller is self.to_bootstrap_server is None:
            raise ConfigError("--to-command-config: expected --to-bootstrap-controller or --to-bootstrap-server")
        if self._sources().count(None) < len(self._sources()) - 1:
            raise ConfigError(
                "exactly one second state must be given: --to-log DIR, --to-snapshot FILE, --to-acls PATH, "
                "--to-ref GITREF:PATH, --to-bootstrap-controller HOST:PORT, --to-bootstrap-server HOST:PORT or "
                "--to-context NAME"
            )
        if self.to_acls_format is not None and self.to_acls is self.to_ref is None:
            raise ConfigError("--to-acls-format: expected --to-acls PATH or --to-ref GITREF:PATH")
        check_one_stdin({**first.files(), **self.files()})

    def files(self) -> dict[str, str | None]:
        """Return the flags that name a file of ACLs or of changes, which may be stdin, and what is given for them."""
        return {"--to-acls": self.to_acls, "--change": self.change, "--add": self.add, "--remove": self.remove}

    def source(self, first: SourceFlags) -> SourceFlags | None:
        """Return the source of the second state; None if it is the first one, changed or with other settings."""
        if not self._has_source():
            return None if self.to_as_of is None else evolve(first, as_of=self.to_as_of)
        if (context := self._context()) is not None:
            from aclog.cli.flags.context_state import context_source

            return evolve(context_source(context), as_of=self.to_as_of, timezone=first.timezone)
        return SourceFlags(
            log=self.to_log,
            snapshot=self.to_snapshot,
            acls=self.to_acls,
            ref=self.to_ref,
            acls_format=self._acls_format(first),
            modules=first.modules,
            bootstrap_controller=self.to_bootstrap_controller,
            bootstrap_server=self.to_bootstrap_server,
            command_config=self.to_command_config or first.command_config,
            as_of=self.to_as_of,
            timezone=first.timezone,
        )

    def authorizer(self, first: AuthorizerFlags) -> AuthorizerFlags:
        """Return what decides on the second state: the settings of its context, if it is one, else those of the first.

        Raises:
            ConfigError: there is no such context.

        """
        context = self._context()
        if context is None:
            return first
        from aclog.cli.flags.context_state import context_authorizer

        return context_authorizer(context)

    def changes(self) -> "tuple[RuleChange, ...]":
        """Return the changes of --change, or those of --remove and then those of --add; none if none is given.

        Removals come first, so that an ACL may be in both files.

        Raises:
            ConfigError: a line that is no change, or no ACL; OSError: a file cannot be read.

        """
        from aclog.sources.change_lines import read_change_of_each, read_changes

        if self.change is not None:
            return tuple(read_changes(self.change))
        removed = read_change_of_each(self.remove, "--remove", added=False) if self.remove is not None else ()
        added = read_change_of_each(self.add, "--add", added=True) if self.add is not None else ()
        return (*removed, *added)

    def file(self) -> str | None:
        """Return the file that the second state comes from, for reports about it; None if it is no file."""
        found = self.change or self.add or self.remove or self.to_acls or self.to_ref
        return None if found == _STDIN else found

    def _acls_format(self, first: SourceFlags) -> AclsFormat | None:
        if self.to_acls is self.to_ref is None:
            return None
        return self.to_acls_format or first.acls_format

    def _context(self) -> "Context | None":
        if self.to_context is None:
            return None
        from aclog.sources.contexts.context_file import read_context_file

        return read_context_file().context(self.to_context)

    def _is_change(self) -> bool:
        return any(flag is not None for flag in (self.change, self.add, self.remove))

    def _has_source(self) -> bool:
        return any(flag is not None for flag in self._sources())

    def _sources(self) -> tuple[Path | str | None, ...]:
        files = (self.to_log, self.to_snapshot, self.to_acls, self.to_ref)
        return (*files, self.to_bootstrap_controller, self.to_bootstrap_server, self.to_context)
