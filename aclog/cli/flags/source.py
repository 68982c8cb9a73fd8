"""The flags of a state source: where a command reads the state from, and as of when."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer
from attrs import field, frozen

from aclog.cli.flags.completion import complete_refs
from aclog.cli.flags.stdin import check_one_stdin
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.format import AclsFormat

if TYPE_CHECKING:
    from aclog.sources.choice import ChosenSource, SourceSelection
    from aclog.sources.name_file import NameFile

PANEL = "State source (exactly one)"

LogDir: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--log",
        metavar="DIR",
        help="A directory of segments and checkpoints: one of aclog's, or the [cyan]__cluster_metadata-0[/] of a "
        "stopped Kafka node (or a copy of it).",
        rich_help_panel=PANEL,
    ),
]
SnapshotFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--snapshot", metavar="FILE", help="A checkpoint file of Kafka or aclog.", rich_help_panel=PANEL),
]
AclsPath: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--acls",
        metavar="PATH",
        help="A file or a directory of ACLs: JSON lines, the output of [cyan]acls list --format jsonl[/] (the id is "
        "optional), or files of GitOps tools; [cyan]-[/] is stdin, gzip is detected.",
        rich_help_panel=PANEL,
    ),
]
GitRef: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--ref",
        metavar="GITREF:PATH",
        autocompletion=complete_refs,
        help="The same as of a commit, without a checkout: [cyan]origin/main:kafka[/]; [cyan]:kafka[/] is the index.",
        rich_help_panel=PANEL,
    ),
]
AclsFormatFlag: TypeAlias = Annotated[
    AclsFormat | None,
    typer.Option(
        "--acls-format",
        metavar="FORMAT",
        help=f"The format of these files: {', '.join(AclsFormat)}. [dim]Default: auto, found out for each[/]",
        rich_help_panel=PANEL,
    ),
]
Modules: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--module",
        metavar="SOURCE=DIR",
        help="Where the Terraform module of this source is, if not in [cyan].terraform/modules[/]; can be repeated.",
        rich_help_panel=PANEL,
    ),
]
TopicsFile: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--topics",
        metavar="FILE",
        help="Topics that exist, one a line: those that a [cyan]MATCH[/] of jikkou is for, and those that are counted. "
        "[dim]Default: those in a log or a cluster that is read[/]",
        rich_help_panel=PANEL,
    ),
]
BootstrapController: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-controller",
        metavar="HOST:PORT",
        help="The controllers, comma-separated, of a running quorum (aclog or Kafka), whose log is followed.",
        rich_help_panel=PANEL,
    ),
]
BootstrapServer: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        metavar="HOST:PORT",
        help="The brokers, comma-separated, of a running cluster (aclog or Kafka), read through the admin API: ACLs "
        "without ids, SCRAM users without keys, no history.",
        rich_help_panel=PANEL,
    ),
]
CommandConfig: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        metavar="FILE",
        help="Client properties for the two flags above, as for Kafka's tools: security.protocol, sasl.*, ssl.*.",
        rich_help_panel=PANEL,
    ),
]
AsOf: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="N|TIME",
        help="With a log: the state up to and including offset N-1, or before the first batch later than TIME: "
        "[cyan]2026-11-20T10:00:00Z[/], [cyan]'yesterday 18:00'[/], [cyan]-3d[/].",
        rich_help_panel=PANEL,
    ),
]
Timezone: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--timezone",
        metavar="ZONE",
        help="The zone of times that name none, and of those shown as text: [cyan]Europe/Berlin[/], [cyan]+02:00[/], "
        "[cyan]local[/]. [dim]Default: $ACLOG_TIMEZONE, or UTC[/]",
        rich_help_panel=PANEL,
    ),
]


@frozen(kw_only=True)
class SourceFlags:
    """Exactly one state source, and the moment to read it at."""

    log: LogDir = None
    snapshot: SnapshotFile = None
    acls: AclsPath = None
    ref: GitRef = None
    acls_format: AclsFormatFlag = None
    modules: Modules = field(factory=list)
    topics_file: TopicsFile = None
    bootstrap_controller: BootstrapController = None
    bootstrap_server: BootstrapServer = None
    command_config: CommandConfig = None
    as_of: AsOf = None
    timezone: Timezone = None

    def given(self) -> bool:
        """Return whether any flag names a source."""
        named = (self.log, self.snapshot, self.acls, self.ref, self.bootstrap_controller, self.bootstrap_server)
        return any(flag is not None for flag in named)

    def files(self) -> dict[str, str | None]:
        """Return the flags that name a file which may be stdin, and what is given for them."""
        return {"--acls": self.acls, "--topics": self.topics_file}

    def topics(self) -> "NameFile | None":
        """Return the topics that exist, to be read when they are asked for; None if nobody told."""
        from aclog.sources.name_file import NameFile

        return None if self.topics_file is None else NameFile(self.topics_file)

    def choose(
        self, notify: Callable[[str], None] | None = None, *, topics: "NameFile | None" = None
    ) -> "ChosenSource":
        """Return the source that is given; notes of its recovery go to `notify`, by default to stderr.

        `topics`: those of `topics`, if the command reads them, too.

        Raises:
            ConfigError: not exactly one source, an invalid address, or a bad properties file.

        """
        from aclog.sources.choice import choose_source
        from aclog.terminal.notices import note

        return choose_source(self.selection(topics), notify or note)

    def selection(self, topics: "NameFile | None" = None) -> "SourceSelection":
        """Return what is given. Raises ConfigError: flags that do not go together."""
        from aclog.sources.choice import SourceSelection
        from aclog.terminal.timezone import use_zone

        check_one_stdin(self.files())
        if self.timezone is not None:
            use_zone(self.timezone)
        if self.acls_format is not None and self.acls is None and self.ref is None:
            raise ConfigError("--acls-format: expected --acls PATH or --ref GITREF:PATH")
        return SourceSelection(
            log=self.log,
            snapshot=self.snapshot,
            acls=self.acls,
            ref=self.ref,
            form=self.acls_format or AclsFormat.AUTO,
            modules=parse_modules(self.modules),
            topics=topics or self.topics(),
            bootstrap_controller=self.bootstrap_controller,
            bootstrap_server=self.bootstrap_server,
            command_config=self.command_config,
            as_of=self.as_of,
        )


def parse_modules(given: Iterable[str]) -> dict[str, str]:
    """Return the directory of each module by its source. Raises ConfigError: no `=`, or one source twice."""
    found: dict[str, str] = {}
    for text in given:
        # A source may hold `=` (`git::https://host/repository?ref=v1`); a path hardly does.
        source, equals, directory = text.rpartition("=")
        if not equals or not source or not directory:
            raise ConfigError(f"--module {text!r}: expected SOURCE=DIR, such as acme/acl/kafka=vendor/acl")
        if found.setdefault(source, directory) != directory:
            raise ConfigError(f"--module {source!r}: two directories: {found[source]} and {directory}")
    return found
