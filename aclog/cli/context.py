"""The `aclog context` commands."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from attrs import field
from click.exceptions import Exit

from aclog.cli.app import is_about_contexts
from aclog.cli.flags import source
from aclog.cli.flags.common import Output, OutputFlags, flag_generation, format_option
from aclog.cli.flags.source import parse_modules
from aclog.cli.options import Argument, Group, Option, chosen_context, complete_contexts
from aclog.metalog.errors import ConfigError, MetadataError
from aclog.metalog.values import frozen
from aclog.sources.contexts import KINDS, ChosenContext, Context, ContextFile, shown_value, warn_of_readers
from aclog.terminal.columns import ROW_FORMATS, Column, OutputFormat, json_text
from aclog.terminal.output import emit, say, warn
from aclog.terminal.tables import print_rows

# The flags of `aclog context add`, each of which is a key of the context.


_SETTINGS = "Settings"


@frozen(kw_only=True)
class NamedSourceFlags:
    """The source that gets a name."""

    log: source.LogDir = None
    snapshot: source.SnapshotFile = None
    acls: source.AclsPath = None
    ref: source.GitRef = None
    acls_format: source.AclsFormatFlag = None
    modules: source.Modules = field(factory=list)
    topics_file: source.TopicsFile = None
    bootstrap_controller: source.BootstrapController = None
    bootstrap_server: source.BootstrapServer = None
    command_config: source.CommandConfig = None
    zookeeper: Annotated[
        str | None,
        Option(
            "--zookeeper",
            metavar="HOST:PORT",
            help="The ZooKeeper ensemble of a Kafka cluster up to version 3.9. Write several servers and a chroot as "
            "in zookeeper.connect.",
            rich_help_panel=source.SOURCE_PANEL,
        ),
    ] = None
    zk_tls_config_file: Annotated[
        Path | None,
        Option(
            "--zk-tls-config-file",
            metavar="FILE",
            help="Its zookeeper.* properties: TLS, timeouts.",
            rich_help_panel=source.SOURCE_PANEL,
        ),
    ] = None

    def values(self) -> dict[str, Any]:
        """Return the keys of the context.

        Raises:
            ConfigError: not exactly one source, an invalid address, or a bad properties file.

        """
        self._check()
        settings = {
            "log": _path(self.log),
            "snapshot": _path(self.snapshot),
            "acls": None if self.acls is None else "-" if self.acls == "-" else _path(Path(self.acls)),
            "ref": self.ref,
            "bootstrap-controller": self.bootstrap_controller,
            "bootstrap-server": self.bootstrap_server,
            "zookeeper": self.zookeeper,
            "acls-format": None if self.acls_format is None else str(self.acls_format),
            "modules": {name: _path(Path(each)) for name, each in parse_modules(self.modules).items()} or None,
            "topics": None if self.topics_file is None else _path(Path(self.topics_file)),
            "command-config": _path(self.command_config),
            "zookeeper-config": _path(self.zk_tls_config_file),
        }
        values = {key: value for key, value in settings.items() if value is not None}
        if sum(kind in values for kind in KINDS) != 1:
            raise ConfigError(f"exactly one source must be given: {', '.join(f'--{kind}' for kind in KINDS)}")
        return values

    def _check(self) -> None:
        from aclog.sources.server_flags import client_security, parse_servers

        parse_servers("--bootstrap-controller", self.bootstrap_controller)
        parse_servers("--bootstrap-server", self.bootstrap_server)
        client_security(self.command_config)


@frozen(kw_only=True)
class SettingFlags:
    """What decides besides the rules, and how answers are shown."""

    super_users: Annotated[
        str | None,
        Option(
            "--super-users",
            metavar="USERS",
            help="Principals that are allowed everything, in the syntax of the broker's [cyan]super.users[/].",
            rich_help_panel=_SETTINGS,
        ),
    ] = None
    allow_everyone: Annotated[
        bool,
        Option(
            "--allow-everyone-if-no-acl-found",
            metavar="",
            help="As the broker property of that name.",
            rich_help_panel="Settings (if no ACL matches)",
        ),
    ] = False
    no_allow_everyone: Annotated[
        bool,
        Option(
            "--no-allow-everyone-if-no-acl-found",
            metavar="",
            help="State that it is false, where a running cluster does not reveal it.",
            rich_help_panel="Settings: --no-allow-everyone-if-no-acl-found",
        ),
    ] = False
    semantics: Annotated[
        str | None,
        Option(
            "--semantics",
            metavar="kafka|documented",
            help="Decide as Kafka 4.3.1 does, or as its documentation describes.",
            rich_help_panel=_SETTINGS,
        ),
    ] = None
    kafka_version: Annotated[
        str | None,
        Option(
            "--kafka-version", metavar="V", help="The Kafka that decides, such as 4.3.1.", rich_help_panel=_SETTINGS
        ),
    ] = None
    cidr: Annotated[
        bool,
        Option("--cidr", metavar="", help="The same as --kafka-version 4.4.", rich_help_panel=_SETTINGS),
    ] = False
    timezone: source.Timezone = None
    format: Annotated[
        OutputFormat | None,
        Option(
            "--format",
            metavar="FORMAT",
            help="The default format of commands that support it.",
            rich_help_panel=_SETTINGS,
        ),
    ] = None

    def values(self) -> dict[str, Any]:
        """Return the keys of the context.

        Raises:
            ConfigError: a super user without a colon, no such time zone, or a flag with its opposite.

        """
        if self.allow_everyone and self.no_allow_everyone:
            raise ConfigError(
                "--allow-everyone-if-no-acl-found and --no-allow-everyone-if-no-acl-found: expected one of them"
            )
        if self.super_users is not None:
            from aclog.authorizer.settings import parse_super_users

            parse_super_users(self.super_users)
        if self.timezone is not None:
            from aclog.snapshots.moments import parse_zone

            parse_zone(self.timezone)
        flag_generation(self.kafka_version, self.cidr or None)
        settings = {
            "super-users": self.super_users,
            "allow-everyone-if-no-acl-found": self.allow_everyone or (False if self.no_allow_everyone else None),
            "semantics": self.semantics,
            "kafka-version": self.kafka_version,
            "cidr": self.cidr or None,
            "timezone": self.timezone,
            "format": None if self.format is None else str(self.format),
        }
        return {key: value for key, value in settings.items() if value is not None}


def check_name(name: str) -> str:
    """Return the name of a context. Raises ConfigError: a name that no user could type."""
    if not name or name.startswith("-") or not name.isprintable() or any(each.isspace() for each in name):
        raise ConfigError(f"{name[:80]!r} is no name of a context: expected a word, such as prod or eu/prod")
    return name


def _path(path: Path | None) -> str | None:
    return None if path is None else str(path.expanduser().absolute())


# The `aclog context` commands.


app = Group(
    name="context",
    help="Name clusters and logs with their settings once, and use them in every command by -c NAME.",
    no_args_is_help=True,
)

ContextArgument: TypeAlias = Annotated[
    str, Argument(metavar="NAME", help="The context.", autocompletion=complete_contexts, show_default=False)
]


def _used() -> "ChosenContext | None":
    """Return the context that commands use now; warn of one that cannot be used, which must not hide the others."""
    from aclog.metalog.errors import ConfigError
    from aclog.terminal.output import warn

    try:
        return chosen_context()
    except ConfigError as error:
        warn(str(error))
        return None


@app.command("list")
@is_about_contexts
def list_(
    output: OutputFlags,
    format_: Annotated[OutputFormat | None, format_option(*ROW_FORMATS, default="table")] = None,
) -> None:
    """List the contexts; * marks the current one.

    [bold]Example[/]

      aclog context list
    """
    from aclog.sources.contexts import read_context_file

    file, choice = read_context_file(), _used()
    name = None if choice is None else choice.context.name
    if not print_contexts(file, name, output.choose(format_, pipe=OutputFormat.TABLE)):
        raise Exit(2)


@app.command()
@is_about_contexts
def show(
    name: Annotated[
        str | None,
        Argument(
            metavar="[NAME]",
            help="The context.",
            autocompletion=complete_contexts,
            show_default="the one that commands use now",
        ),
    ] = None,
    json: Annotated[bool, Option("--json", metavar="", help="One JSON object.")] = False,
) -> None:
    """Show a context with its client properties, whose secrets are shown as ***.

    [bold]Examples[/]

      aclog context show
      aclog context show prod --json
    """
    from aclog.metalog.errors import ConfigError
    from aclog.sources.contexts import choose_context

    used = chosen_context() if name is None else _used()
    choice = used if name is None else choose_context(name)
    if choice is None:
        raise ConfigError("no context is used now: expected NAME, or `aclog context use NAME`")
    print_context(choice.context, used, OutputFormat.JSON if json else OutputFormat.TEXT)


@app.command()
@is_about_contexts
def add(
    name: Annotated[str, Argument(metavar="NAME", help="The new context.", show_default=False)],
    source: NamedSourceFlags,
    settings: SettingFlags,
    use: Annotated[bool, Option("--use", metavar="", help="Make it the current one.")] = False,
    replace: Annotated[bool, Option("--replace", metavar="", help="Replace a context of this name.")] = False,
) -> None:
    """Give a source a name, with the settings that belong to it.

    Passwords stay in the file of --command-config, which is not copied.

    [bold]Examples[/]

      aclog context add prod --bootstrap-server HOST:9092 --command-config FILE
      aclog context add night --log /backup/__cluster_metadata-0 --super-users User:admin
    """
    from aclog.sources.contexts import add_context, own_file, use_context

    path = own_file()
    add_context(path, check_name(name), {**source.values(), **settings.values()}, replace=replace)
    if use:
        use_context(path, name)
    say(f"{path}: context {name} {'added, and used from now on' if use else 'added: use it by -c ' + name}")


@app.command()
@is_about_contexts
def use(
    name: Annotated[
        str | None, Argument(metavar="[NAME]", help="The context.", autocompletion=complete_contexts)
    ] = None,
    none: Annotated[bool, Option("--none", metavar="", help="No context: commands name their source.")] = False,
) -> None:
    """Use a context in all commands that name neither a source nor another context.

    A command that writes names the context and asks for confirmation. The
    variable ACLOG_CONTEXT takes precedence; an empty one selects no context.

    [bold]Examples[/]

      aclog context use prod
      aclog context use --none
    """
    import os

    from aclog.metalog.errors import ConfigError
    from aclog.sources.contexts import CONTEXT_VARIABLE as VARIABLE
    from aclog.sources.contexts import own_file, use_context
    from aclog.terminal.output import note

    if (name is None) is not none:
        raise ConfigError("expected either NAME or --none")
    use_context(own_file(), name)
    say("no context is used" if name is None else f"context {name} is used from now on")
    if VARIABLE in os.environ:
        note(f"{VARIABLE}={os.environ[VARIABLE]} is set, and wins")


@app.command()
@is_about_contexts
def remove(name: ContextArgument) -> None:
    """Remove a context from the file; the files that it names stay.

    [bold]Example[/]

      aclog context remove old
    """
    from aclog.sources.contexts import own_file, remove_context

    remove_context(own_file(), name)
    say(f"context {name} removed")


@app.command()
@is_about_contexts
def rename(
    name: ContextArgument,
    new: Annotated[str, Argument(metavar="NEW", help="Its new name.", show_default=False)],
) -> None:
    """Give a context another name.

    [bold]Example[/]

      aclog context rename prod prod-eu
    """
    from aclog.sources.contexts import own_file, rename_context

    rename_context(own_file(), name, check_name(new))
    say(f"context {name} is {new} now")


@app.command()
@is_about_contexts
def path() -> None:
    """Print where the file of contexts is, or would be.

    [bold]Example[/]

      aclog context path
    """
    from aclog.sources.contexts import own_file

    say(own_file())


# Prints contexts: all of them in a list, or one with its client properties, whose secrets are never shown.


COLUMNS = (
    Column(key="current", title="", text=lambda value: "*" if value else ""),
    Column(key="name"),
    Column(key="source"),
    Column(key="address", cut=True),
    Column(key="superUsers", title="SUPER USERS", cut=True, spare=True),
    Column(key="commandConfig", title="COMMAND CONFIG", cut=True, spare=True),
)


def print_contexts(file: ContextFile, current: str | None, output: Output) -> bool:
    """Print a row for each context of the file; `current`: the one that commands use now.

    Returns whether all of them can be used; a warning names the problem of each that cannot.
    """
    rows, is_sound = [], True
    for name in file.names:
        try:
            rows.append(_row(file.context(name), current))
        except ConfigError as error:
            is_sound = False
            warn(str(error))
    print_rows(COLUMNS, rows, output.form, keys=output.columns)
    return is_sound


def print_context(context: Context, current: ChosenContext | None, form: OutputFormat) -> None:
    """Print all that is known of a context, as text or as one JSON object."""
    fields = _object(context)
    if form is OutputFormat.JSON:
        emit(json_text(fields))
        return
    used = f"   # {current.by}" if current is not None and current.context == context else ""
    say(f"{context.name}   {context.place}{used}")
    for key, value in fields.items():
        if isinstance(value, dict):
            say(f"  {key}:")
            for name, text in value.items():
                say(f"    {name}={text}")
        elif key != "name":
            say(f"  {key}: {value if isinstance(value, str) else json_text(value)}")
    if context.command_config is not None:
        warn_of_readers(context.command_config)


def _row(context: Context, current: str | None) -> dict[str, Any]:
    return {
        "current": context.name == current,
        "name": context.name,
        "source": context.kind,
        "address": context.value,
        "superUsers": context.super_users,
        "commandConfig": None if context.command_config is None else str(context.command_config),
    }


def _object(context: Context) -> dict[str, Any]:
    values = {
        "name": context.name,
        context.kind: context.value,
        "acls-format": context.acls_format,
        "modules": dict(context.modules) or None,
        "topics": context.topics,
        "super-users": context.super_users,
        "allow-everyone-if-no-acl-found": context.allow_everyone,
        "semantics": context.semantics,
        "kafka-version": context.kafka_version,
        "cidr": context.cidr if context.kafka_version is None else None,
        "timezone": context.timezone,
        "format": context.format,
    }
    for key, path in (("command-config", context.command_config), ("zookeeper-config", context.zookeeper_config)):
        if path is not None:
            values[key] = str(path)
            values[f"{key} properties"] = dict(_properties(path))
    return {key: value for key, value in values.items() if value is not None}


def _properties(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the properties of a file without secrets; a file that cannot be read is warned of."""
    from aclog.config.properties import read_properties

    try:
        properties, _ = read_properties(path)
    except (MetadataError, OSError) as error:
        warn(f"{path}: {getattr(error, 'strerror', None) or error}")
        return
    for key, value in properties.items():
        yield key, shown_value(key, value)
