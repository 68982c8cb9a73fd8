"""The flags of `aclog context add`, each of which is a key of the context."""

from pathlib import Path
from typing import Annotated, Any

import typer
from attrs import field, frozen

from aclog.cli.flags import source
from aclog.cli.flags.authorizer import flag_generation
from aclog.cli.flags.source import parse_modules
from aclog.metalog.errors import ConfigError
from aclog.sources.contexts.context import KINDS
from aclog.terminal.output_format import OutputFormat

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
        typer.Option(
            "--zookeeper",
            metavar="HOST:PORT",
            help="The ZooKeeper of a Kafka up to 3.9; several servers and a chroot as in zookeeper.connect.",
            rich_help_panel=source.PANEL,
        ),
    ] = None
    zk_tls_config_file: Annotated[
        Path | None,
        typer.Option(
            "--zk-tls-config-file",
            metavar="FILE",
            help="Its zookeeper.* properties: TLS, timeouts.",
            rich_help_panel=source.PANEL,
        ),
    ] = None

    def values(self) -> dict[str, Any]:
        """Return the keys of the context.

        Raises:
            ConfigError: not exactly one source, an invalid address, or a bad properties file.

        """
        self._check()
        found = {
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
        values = {key: value for key, value in found.items() if value is not None}
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
        typer.Option(
            "--super-users",
            metavar="USERS",
            help="Principals that are allowed everything, in the syntax of the broker's [cyan]super.users[/].",
            rich_help_panel=_SETTINGS,
        ),
    ] = None
    allow_everyone: Annotated[
        bool,
        typer.Option(
            "--allow-everyone-if-no-acl-found",
            metavar="",
            help="As the broker property of that name.",
            rich_help_panel="Settings (if no ACL matches)",
        ),
    ] = False
    no_allow_everyone: Annotated[
        bool,
        typer.Option(
            "--no-allow-everyone-if-no-acl-found",
            metavar="",
            help="It is false, where a running cluster does not show that.",
            rich_help_panel="Settings: --no-allow-everyone-if-no-acl-found",
        ),
    ] = False
    semantics: Annotated[
        str | None,
        typer.Option(
            "--semantics",
            metavar="kafka|documented",
            help="As Kafka 4.3.1 decides, or as its documentation says.",
            rich_help_panel=_SETTINGS,
        ),
    ] = None
    kafka_version: Annotated[
        str | None,
        typer.Option(
            "--kafka-version", metavar="V", help="The Kafka that decides, such as 4.3.1.", rich_help_panel=_SETTINGS
        ),
    ] = None
    cidr: Annotated[
        bool,
        typer.Option("--cidr", metavar="", help="The same as --kafka-version 4.4.", rich_help_panel=_SETTINGS),
    ] = False
    timezone: source.Timezone = None
    format: Annotated[
        OutputFormat | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="How commands print what they list, where they know this format.",
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
            from aclog.authorizer.config import parse_super_users

            parse_super_users(self.super_users)
        if self.timezone is not None:
            from aclog.snapshots.zones import parse_zone

            parse_zone(self.timezone)
        flag_generation(self.kafka_version, self.cidr or None)
        found = {
            "super-users": self.super_users,
            "allow-everyone-if-no-acl-found": self.allow_everyone or (False if self.no_allow_everyone else None),
            "semantics": self.semantics,
            "kafka-version": self.kafka_version,
            "cidr": self.cidr or None,
            "timezone": self.timezone,
            "format": None if self.format is None else str(self.format),
        }
        return {key: value for key, value in found.items() if value is not None}


def check_name(name: str) -> str:
    """Return the name of a context. Raises ConfigError: one that nobody could type."""
    if not name or name.startswith("-") or not name.isprintable() or any(each.isspace() for each in name):
        raise ConfigError(f"{name[:80]!r} is no name of a context: expected a word, such as prod or eu/prod")
    return name


def _path(path: Path | None) -> str | None:
    return None if path is None else str(path.expanduser().absolute())
