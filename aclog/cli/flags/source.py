"""The flags of a state source."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from attrs import field, frozen

from aclog.cli.flags.common import AuthorizerFlags, Semantics, check_one_stdin
from aclog.cli.options import Option
from aclog.metalog.errors import ConfigError
from aclog.sources.formats.format import AclsFormat

if TYPE_CHECKING:
    from aclog.config.node_config import HostPort
    from aclog.sources.acl_lines import NameFile
    from aclog.sources.choice import ChosenSource, SourceSelection
    from aclog.sources.contexts import Context


# Completion of GITREF:PATH: what git names in the repository around the working directory.


_MOST = 200


def complete_refs(incomplete: str) -> list[str]:
    """Return the branches and tags that begin so, with the colon after it; then what is in the commit."""
    ref, colon, path = incomplete.partition(":")
    if colon:
        return [f"{ref}:{each}" for each in _paths(ref, path)]
    names = _ask("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/remotes", "refs/tags")
    refs = () if names is None else ("HEAD", *names.split())
    return [f"{name}:" for name in refs if name.startswith(incomplete)][:_MOST]


def _paths(ref: str, incomplete: str) -> list[str]:
    directory, slash, _ = incomplete.rpartition("/")
    listing = _ask("ls-tree", "-z", "--end-of-options", f"{ref or 'HEAD'}:{directory}")
    entries = [entry.partition("\t") for entry in (listing or "").split("\0") if entry]
    paths = [f"{directory}{slash}{name}{'/' * (' tree ' in details)}" for details, _, name in entries]
    return [path for path in paths if path.startswith(incomplete)][:_MOST]


def _ask(*arguments: str) -> str | None:
    from aclog.sources.git import ask_git

    try:
        output = ask_git(*arguments).output
    except ConfigError:
        return None
    return None if output is None else output.decode(errors="replace")


# The flags of a state source: where a command reads the state from, and as of when.


PANEL = "State source (exactly one)"

LogDir: TypeAlias = Annotated[
    Path | None,
    Option(
        "--log",
        metavar="DIR",
        help="A directory of segments and checkpoints: one of aclog's, or the [cyan]__cluster_metadata-0[/] of a "
        "stopped Kafka node (or a copy of it).",
        rich_help_panel=PANEL,
    ),
]
SnapshotFile: TypeAlias = Annotated[
    Path | None,
    Option("--snapshot", metavar="FILE", help="A checkpoint file of Kafka or aclog.", rich_help_panel=PANEL),
]
AclsPath: TypeAlias = Annotated[
    str | None,
    Option(
        "--acls",
        metavar="PATH",
        help="A file or a directory of ACLs: JSON lines, the output of [cyan]acls list --format jsonl[/] (the id is "
        "optional), or files of GitOps tools; [cyan]-[/] is stdin, gzip is detected.",
        rich_help_panel=PANEL,
    ),
]
GitRef: TypeAlias = Annotated[
    str | None,
    Option(
        "--ref",
        metavar="GITREF:PATH",
        autocompletion=complete_refs,
        help="The same as of a commit, without a checkout: [cyan]origin/main:kafka[/]; [cyan]:kafka[/] is the index.",
        rich_help_panel=PANEL,
    ),
]
AclsFormatFlag: TypeAlias = Annotated[
    AclsFormat | None,
    Option(
        "--acls-format",
        metavar="FORMAT",
        help=f"The format of these files: {', '.join(AclsFormat)}. [dim]Default: auto, found out for each[/]",
        rich_help_panel=PANEL,
    ),
]
Modules: TypeAlias = Annotated[
    list[str],
    Option(
        "--module",
        metavar="SOURCE=DIR",
        help="Where the Terraform module of this source is, if not in [cyan].terraform/modules[/]; can be repeated.",
        rich_help_panel=PANEL,
    ),
]
TopicsFile: TypeAlias = Annotated[
    str | None,
    Option(
        "--topics",
        metavar="FILE",
        help="Existing topics, one per line: for the [cyan]MATCH[/] of jikkou, and for counts. [dim]Default: those of "
        "the log or cluster that is read[/]",
        rich_help_panel=PANEL,
    ),
]
BootstrapController: TypeAlias = Annotated[
    str | None,
    Option(
        "--bootstrap-controller",
        metavar="HOST:PORT",
        help="The controllers, comma-separated, of a running quorum (aclog or Kafka), whose log is followed.",
        rich_help_panel=PANEL,
    ),
]
BootstrapServer: TypeAlias = Annotated[
    str | None,
    Option(
        "--bootstrap-server",
        metavar="HOST:PORT",
        help="The brokers, comma-separated, of a running cluster (aclog or Kafka), read through the admin API: ACLs "
        "without ids, SCRAM users without keys, no history.",
        rich_help_panel=PANEL,
    ),
]
CommandConfig: TypeAlias = Annotated[
    Path | None,
    Option(
        "--command-config",
        metavar="FILE",
        help="Client properties for the two flags above, as for Kafka's tools: security.protocol, sasl.*, ssl.*.",
        rich_help_panel=PANEL,
    ),
]
AsOf: TypeAlias = Annotated[
    str | None,
    Option(
        "--as-of",
        metavar="N|TIME",
        help="With a log: the state up to and including offset N-1, or before the first batch later than TIME: "
        "[cyan]2026-11-20T10:00:00Z[/], [cyan]'yesterday 18:00'[/], [cyan]-3d[/].",
        rich_help_panel=PANEL,
    ),
]
Timezone: TypeAlias = Annotated[
    str | None,
    Option(
        "--timezone",
        metavar="ZONE",
        help="The zone of times without one, and of times printed as text: [cyan]Europe/Berlin[/], [cyan]+02:00[/], "
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

    def is_given(self) -> bool:
        """Return whether any flag names a source."""
        named = (self.log, self.snapshot, self.acls, self.ref, self.bootstrap_controller, self.bootstrap_server)
        return any(flag is not None for flag in named)

    def files(self) -> dict[str, str | None]:
        """Return the flags that name a file which may be stdin, and what is given for them."""
        return {"--acls": self.acls, "--topics": self.topics_file}

    def topics(self) -> "NameFile | None":
        """Return the topics that exist, to be read when they are needed; None if no flag names a file."""
        from aclog.sources.acl_lines import NameFile

        return None if self.topics_file is None else NameFile(self.topics_file)

    def choose(
        self, notify: Callable[[str], None] | None = None, *, topics: "NameFile | None" = None
    ) -> "ChosenSource":
        """Return the source that is given; notes of its recovery go to `notify`, by default to stderr.

        `topics`: those of `topics`, if the command also reads them.

        Raises:
            ConfigError: not exactly one source, an invalid address, or a bad properties file.

        """
        from aclog.sources.choice import choose_source
        from aclog.terminal.output import note

        return choose_source(self.selection(topics), notify or note)

    def selection(self, topics: "NameFile | None" = None) -> "SourceSelection":
        """Return what is given. Raises ConfigError: flags that do not go together."""
        from aclog.sources.choice import SourceSelection
        from aclog.terminal.output import use_zone

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


def parse_modules(texts: Iterable[str]) -> dict[str, str]:
    """Return the directory of each module by its source. Raises ConfigError: no `=`, or one source twice."""
    directories: dict[str, str] = {}
    for text in texts:
        # A source may hold `=` (`git::https://host/repository?ref=v1`); a path almost never does.
        source, equals, directory = text.rpartition("=")
        if not equals or not source or not directory:
            raise ConfigError(f"--module {text!r}: expected SOURCE=DIR, such as acme/acl/kafka=vendor/acl")
        if directories.setdefault(source, directory) != directory:
            raise ConfigError(f"--module {source!r}: two directories: {directories[source]} and {directory}")
    return directories


# The state of a context, as the flags that would name it: for what a command takes besides its first source.


def context_source(context: "Context") -> SourceFlags:
    """Return the source of a context; warn if others can read the secrets of its login.

    Raises:
        ConfigError: it is a ZooKeeper, which only some commands read.

    """
    if context.kind == "zookeeper":
        raise ConfigError(f"context {context.name} is {context.address}: expected a log, files of rules or a cluster")
    if context.command_config is not None:
        from aclog.sources.contexts import warn_of_readers

        warn_of_readers(context.command_config)
    is_path = context.kind in {"log", "snapshot"}
    return SourceFlags(
        **{context.kind.replace("-", "_"): Path(context.value) if is_path else context.value},  # type: ignore[arg-type]
        acls_format=None if context.acls_format is None else AclsFormat(context.acls_format),
        modules=[f"{source}={path}" for source, path in context.modules.items()],
        topics_file=context.topics,
        command_config=context.command_config,
        timezone=context.timezone,
    )


def tell_what_decides(context: "Context", settings: Iterable[str]) -> None:
    """Note that settings of a context decide, besides the rules; nothing without settings."""
    from aclog.terminal.output import note

    if text := ", ".join(settings):
        note(f"decided with settings of context {context.name}: {text}")


def context_authorizer(context: "Context") -> AuthorizerFlags:
    """Return a context's settings of the authorizer, with Kafka's defaults for the rest, and print them as a note."""
    tell_what_decides(context, context.decides().values())
    return AuthorizerFlags(
        super_users=context.super_users,
        allow_everyone=bool(context.allow_everyone),
        no_allow_everyone=context.allow_everyone is False,
        semantics=Semantics(context.semantics or Semantics.KAFKA),
        cidr=context.cidr,
    )


# How many entries of a state may be removed at once before an operator has to accept it.


DEFAULT_PERCENT = 20.0
_ALWAYS_FINE = 9
"""Fewer removals than ten are what people do, unless nothing is left."""


@frozen(kw_only=True)
class RemovalLimit:
    """A share of all entries, in percent: more than that, if it is ten or more, or all of them, is suspicious.

    A source that answers "none" for "I do not know" looks like a removal of everything. `accepted` is how many may go
    nevertheless, once.
    """

    percent: float = DEFAULT_PERCENT
    accepted: int | None = None

    def is_exceeded(self, removed: int, total: int) -> bool:
        """Return whether the removal of so many of all entries has to be accepted."""
        if removed <= 0:
            return False
        return removed >= total or (removed > _ALWAYS_FINE and 100 * removed > self.percent * total)

    def is_accepted(self, removed: int) -> bool:
        """Return whether an operator has accepted the removal of so many."""
        return self.accepted is not None and removed <= self.accepted


# The flags of commands that may remove many entries because another place does not show them.


@frozen(kw_only=True)
class RemovalFlags:
    """How much may be removed at once, and what an operator has accepted beyond that."""

    max_removal: Annotated[
        float,
        Option(
            "--max-removal",
            metavar="PERCENT",
            help="Refuse to remove more than this share at once (if ten entries or more), or all.",
        ),
    ] = DEFAULT_PERCENT
    accept_removal: Annotated[
        int | None,
        Option(
            "--accept-removal",
            metavar="N",
            help="Accept one such removal, of at most N entries.",
            show_default="none",
        ),
    ] = None

    def limit(self) -> RemovalLimit:
        """Return the limit. Raises ConfigError: not a percentage, or nothing to accept."""
        if self.accept_removal is not None and self.accept_removal < 1:
            raise ConfigError(f"--accept-removal {self.accept_removal}: expected 1 or more")
        if not 0 < self.max_removal <= 100:
            raise ConfigError(f"--max-removal {self.max_removal:g}: expected a percentage above 0 and at most 100")
        return RemovalLimit(percent=self.max_removal, accepted=self.accept_removal)


# The flags of commands that follow a cluster until they are stopped.


_MAX_GIVE_UP_S = 366 * 86_400.0


@frozen(kw_only=True)
class FollowerFlags:
    """How a command that follows a cluster is watched, and when it ends by itself."""

    http: Annotated[
        str | None,
        Option(
            "--http",
            metavar="HOST:PORT",
            help="Serve /metrics, /healthz and /readyz here, without authentication.",
            show_default="nowhere",
        ),
    ] = None
    give_up_after: Annotated[
        float | None,
        Option(
            "--give-up-after",
            metavar="SECONDS",
            help="End with exit code 2 after this long without success.",
            show_default="never",
        ),
    ] = None

    def refuse(self, flag: str) -> None:
        """Refuse both flags for a command that does not follow without `flag`. Raises ConfigError: one is given."""
        option = "--http" if self.http is not None else "--give-up-after" if self.give_up_after is not None else None
        if option is not None:
            raise ConfigError(f"{option}: only together with {flag}")

    def address(self) -> "HostPort | None":
        """Return the address of --http. Raises ConfigError: not one HOST:PORT."""
        from aclog.sources.server_flags import parse_servers

        addresses = parse_servers("--http", self.http)
        if len(addresses) > 1:
            raise ConfigError(f"--http {self.http}: expected one HOST:PORT")
        return addresses[0] if addresses else None

    def patience(self) -> float | None:
        """Return the seconds of --give-up-after. Raises ConfigError: out of range."""
        seconds = self.give_up_after
        if seconds is not None and not 0 < seconds <= _MAX_GIVE_UP_S:
            raise ConfigError(
                f"--give-up-after {seconds:g}: expected seconds above 0, and at most {_MAX_GIVE_UP_S:g} (a year)"
            )
        return seconds
