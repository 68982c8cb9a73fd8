"""The flags of a state source, and the values of a context that name one."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from attrs import evolve, field

from aclog.cli.flags.common import STDIN, AuthorizerFlags, Semantics, check_one_stdin
from aclog.cli.options import Argument, FilePath, Option, complete_contexts
from aclog.metalog.errors import NO_SUCH_PATH, ConfigError
from aclog.metalog.values import frozen
from aclog.pipeline.output_directory import Place, local_directory, place_of
from aclog.sources.formats.format import AclsFormat

if TYPE_CHECKING:
    from aclog.sources.acl_lines import NameFile
    from aclog.sources.choice import ChosenSource, SourceSelection
    from aclog.sources.contexts import Context
    from aclog.sources.read_options import ModuleInputs


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


def complete_sources(incomplete: str) -> list[str]:
    """Return the contexts that begin so, and the paths; what is in a commit after a colon; none if paths alone do."""
    if ":" in incomplete:
        return complete_refs(incomplete)
    contexts = complete_contexts(incomplete)
    if not contexts:
        return []  # shells complete paths themselves
    directory, slash, _ = incomplete.rpartition("/")
    start = Path(directory + slash)
    with suppress(OSError):
        names = (f"{directory}{slash}{each.name}{'/' * each.is_dir()}" for each in start.iterdir())
        return [*contexts, *sorted(name for name in names if name.startswith(incomplete))][:_MOST]
    return contexts


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


SOURCE_PANEL = "State source (exactly one)"
FILES_PANEL = "Rule files"

SourceWord: TypeAlias = Annotated[
    str | None,
    Argument(
        metavar="SOURCE",
        help="Where the ACLs are read: a log directory, a checkpoint, files of ACLs, [cyan]HOST:PORT[/], "
        "[cyan]GITREF:PATH[/] or the name of a context. aclog detects which; or use one of the flags below.",
        show_default=False,
        autocompletion=complete_sources,
    ),
]
"""Taken as the value of one of the flags by aclog.cli.flags.positional, before they are read."""

_LOG_HELP = (
    "A directory of segments and checkpoints: one of aclog's, or the [cyan]__cluster_metadata-0[/] of a stopped Kafka "
    "node (or a copy of it)."
)
LogDir: TypeAlias = Annotated[Path | None, Option("--log", metavar="DIR", help=_LOG_HELP, rich_help_panel=SOURCE_PANEL)]


def log_place(text: str) -> Place:
    """Return the directory of a log, or its URI, which `aclog spark` reads. Raises ConfigError: as place_of."""
    place = place_of(text)
    return FilePath()(place) if isinstance(place, Path) else place


LogPlace: TypeAlias = Annotated[
    Place | None,
    Option("--log", metavar="DIR", help=_LOG_HELP, parser=log_place, rich_help_panel=SOURCE_PANEL),
]
SnapshotFile: TypeAlias = Annotated[
    Path | None,
    Option("--snapshot", metavar="FILE", help="A checkpoint file of Kafka or aclog.", rich_help_panel=SOURCE_PANEL),
]
AclsPath: TypeAlias = Annotated[
    str | None,
    Option(
        "--acls",
        metavar="PATH",
        help="A file or a directory of ACLs: JSON lines, the output of [cyan]acls list --format jsonl[/] (the id is "
        "optional), or files of GitOps tools; [cyan]-[/] is stdin, gzip is detected.",
        rich_help_panel=SOURCE_PANEL,
    ),
]
GitRef: TypeAlias = Annotated[
    str | None,
    Option(
        "--ref",
        metavar="GITREF:PATH",
        autocompletion=complete_refs,
        help="The same as of a commit, without a checkout: [cyan]origin/main:kafka[/]; [cyan]:kafka[/] is the index.",
        rich_help_panel=SOURCE_PANEL,
    ),
]
AclsFormatFlag: TypeAlias = Annotated[
    AclsFormat | None,
    Option(
        "--acls-format",
        metavar="FORMAT",
        help=f"The format of these files: {', '.join(AclsFormat)}. [dim]Default: auto, found out for each[/]",
        rich_help_panel=FILES_PANEL,
    ),
]
Modules: TypeAlias = Annotated[
    list[str],
    Option(
        "--module",
        metavar="SOURCE=DIR",
        help="Where the Terraform module of this source is, if not in [cyan].terraform/modules[/]; can be repeated.",
        rich_help_panel=FILES_PANEL,
    ),
]
Exclude: TypeAlias = Annotated[
    list[str],
    Option(
        "--exclude",
        metavar="GLOB",
        help="Files that are not read, as a line of a .gitignore in this directory; can be repeated.",
        rich_help_panel=FILES_PANEL,
    ),
]
AcceptUnread: TypeAlias = Annotated[
    list[str],
    Option(
        "--accept-unread",
        metavar="KIND",
        help="Content that may stay unread, by its kind, or its KIND:NAME, as notes show them; can be repeated.",
        rich_help_panel=FILES_PANEL,
    ),
]
VarFiles: TypeAlias = Annotated[
    list[str],
    Option(
        "--var-file",
        metavar="FILE",
        help="Values of Terraform's variables, after [cyan]terraform.tfvars[/] and [cyan]*.auto.tfvars[/]; can be "
        "repeated.",
        rich_help_panel=FILES_PANEL,
    ),
]
Vars: TypeAlias = Annotated[
    list[str],
    Option(
        "--var",
        metavar="NAME=VALUE",
        help="The value of a variable of Terraform, which wins over files; can be repeated.",
        rich_help_panel=FILES_PANEL,
    ),
]
Workspace: TypeAlias = Annotated[
    str | None,
    Option(
        "--workspace",
        metavar="NAME",
        help="The workspace of Terraform ([cyan]terraform.workspace[/]). [dim]Default: default[/]",
        rich_help_panel=FILES_PANEL,
    ),
]
TopicsFile: TypeAlias = Annotated[
    str | None,
    Option(
        "--topics",
        metavar="FILE",
        help="Existing topics, one per line: for the [cyan]MATCH[/] of jikkou, and for counts. [dim]Default: those of "
        "the log or cluster that is read[/]",
        rich_help_panel=SOURCE_PANEL,
    ),
]
BootstrapController: TypeAlias = Annotated[
    str | None,
    Option(
        "--bootstrap-controller",
        metavar="HOST:PORT",
        help="The controllers, comma-separated, of a running quorum (aclog or Kafka), whose log is followed.",
        rich_help_panel=SOURCE_PANEL,
    ),
]
BootstrapServer: TypeAlias = Annotated[
    str | None,
    Option(
        "--bootstrap-server",
        metavar="HOST:PORT",
        help="The brokers, comma-separated, of a running cluster (aclog or Kafka), read through the admin API: ACLs "
        "without ids, SCRAM users without keys, no history.",
        rich_help_panel=SOURCE_PANEL,
    ),
]
CommandConfig: TypeAlias = Annotated[
    Path | None,
    Option(
        "--command-config",
        metavar="FILE",
        help="Client properties for the two flags above, as for Kafka's tools: security.protocol, sasl.*, ssl.*.",
        rich_help_panel=SOURCE_PANEL,
    ),
]
AsOf: TypeAlias = Annotated[
    str | None,
    Option(
        "--as-of",
        metavar="N|TIME",
        help="With a log: the state up to and including offset N-1, or before the first batch later than TIME: "
        "[cyan]2026-11-20T10:00:00Z[/], [cyan]'yesterday 18:00'[/], [cyan]-3d[/].",
        rich_help_panel=SOURCE_PANEL,
    ),
]
Timezone: TypeAlias = Annotated[
    str | None,
    Option(
        "--timezone",
        metavar="ZONE",
        help="The time zone of times that state none, and of times printed as text: [cyan]Europe/Berlin[/], "
        "[cyan]+02:00[/], [cyan]local[/]. [dim]Default: $ACLOG_TIMEZONE, or UTC[/]",
        rich_help_panel=SOURCE_PANEL,
    ),
]


@frozen(kw_only=True)
class SourceFlags:
    """Exactly one state source, and the moment to read it at."""

    source_word: SourceWord = None
    log: LogPlace = None
    snapshot: SnapshotFile = None
    acls: AclsPath = None
    ref: GitRef = None
    acls_format: AclsFormatFlag = None
    modules: Modules = field(factory=list)
    exclude: Exclude = field(factory=list)
    accept_unread: AcceptUnread = field(factory=list)
    var_files: VarFiles = field(factory=list)
    variables: Vars = field(factory=list)
    workspace: Workspace = None
    topics_file: TopicsFile = None
    bootstrap_controller: BootstrapController = None
    bootstrap_server: BootstrapServer = None
    command_config: CommandConfig = None
    as_of: AsOf = None
    timezone: Timezone = None

    def log_directory(self) -> Path | None:
        """Return the directory of the log. Raises ConfigError: its URI is in another store."""
        return None if self.log is None else local_directory(self.log, "--log", "a log is read as files")

    def is_given(self) -> bool:
        """Return whether any flag names a source."""
        named = (self.log, self.snapshot, self.acls, self.ref, self.bootstrap_controller, self.bootstrap_server)
        return any(flag is not None for flag in named)

    def named(self) -> Iterator[tuple[str, str]]:
        """Yield the flags that name the source and how its files are read, with their values, without the moment."""
        flags: dict[str, Path | str | list[str] | None] = {
            "--log": self.log,
            "--snapshot": self.snapshot,
            "--acls": self.acls,
            "--ref": self.ref,
            "--acls-format": self.acls_format,
            "--module": self.modules,
            "--exclude": self.exclude,
            "--accept-unread": self.accept_unread,
            "--var-file": self.var_files,
            "--var": self.variables,
            "--workspace": self.workspace,
            "--topics": self.topics_file,
            "--bootstrap-controller": self.bootstrap_controller,
            "--bootstrap-server": self.bootstrap_server,
            "--command-config": self.command_config,
        }
        for flag, value in flags.items():
            values = value if isinstance(value, list) else [value]
            yield from ((flag, str(each)) for each in values if each is not None)

    def files(self) -> dict[str, str | None]:
        """Return the flags that name a file which may be stdin, and what is given for them."""
        return {"--acls": self.acls, "--topics": self.topics_file}

    def topics(self) -> "NameFile | None":
        """Return the topics that exist, to be read when they are needed; None if no flag names a file."""
        from aclog.sources.acl_lines import NameFile

        return None if self.topics_file is None else NameFile(self.topics_file)

    def choose(
        self,
        notify: Callable[[str], None] | None = None,
        *,
        topics: "NameFile | None" = None,
        notes_clusters: bool = True,
    ) -> "ChosenSource":
        """Return the source that is given; notes of its recovery go to `notify`, by default to stderr.

        `topics`: those of `topics`, if the command also reads them. `notes_clusters`: whether a note states that the
        rules of several clusters are read as those of one.

        Raises:
            ConfigError: not exactly one source, an invalid address, or a bad properties file.

        """
        from aclog.sources.choice import choose_source
        from aclog.terminal.output import note

        return choose_source(evolve(self.selection(topics), notes_clusters=notes_clusters), notify or note)

    def inputs(self) -> "ModuleInputs":
        """Return what the root modules of Terraform get. Raises ConfigError: a value without a name."""
        return module_inputs(self.var_files, self.variables, self.workspace)

    def selection(self, topics: "NameFile | None" = None) -> "SourceSelection":
        """Return what is given. Raises ConfigError: flags that do not go together."""
        from aclog.sources.choice import SourceSelection, parse_accepted
        from aclog.terminal.output import use_zone

        check_one_stdin(self.files())
        if self.timezone is not None:
            use_zone(self.timezone)
        if self.acls_format is not None and self.acls is None and self.ref is None:
            raise ConfigError("--acls-format: expected --acls PATH or --ref GITREF:PATH")
        if self.topics_file not in (None, STDIN) and not Path(self.topics_file or "").exists():
            raise ConfigError(f"{self.topics_file}: {NO_SUCH_PATH}")  # also where no rule needs a topic
        return SourceSelection(
            exclude=tuple(self.exclude),
            accept_unread=parse_accepted(self.accept_unread),
            log=self.log_directory(),
            snapshot=self.snapshot,
            acls=self.acls,
            ref=self.ref,
            form=self.acls_format or AclsFormat.AUTO,
            modules=parse_modules(self.modules),
            inputs=self.inputs(),
            topics=topics or self.topics(),
            bootstrap_controller=self.bootstrap_controller,
            bootstrap_server=self.bootstrap_server,
            command_config=self.command_config,
            as_of=self.as_of,
        )


def module_inputs(var_files: Iterable[str], variables: Iterable[str], workspace: str | None) -> "ModuleInputs":
    """Return what the root modules of Terraform get. Raises ConfigError: a value without a name."""
    from aclog.sources.choice import parse_values
    from aclog.sources.read_options import ModuleInputs

    return ModuleInputs(var_files=tuple(var_files), values=parse_values(variables), workspace=workspace)


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
