"""The flags of commands that check a repository: its settings file, and an authorizer whose settings it may define."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from attrs import evolve

from aclog.cli.flags.common import AuthorizerFlags, Semantics, flag_generation
from aclog.cli.flags.source import SourceFlags, context_source, tell_what_decides
from aclog.cli.options import Option, chosen_context
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.sources.formats.format import AclsFormat

if TYPE_CHECKING:
    from aclog.sources.acl_lines import NameFile
    from aclog.sources.choice import ChosenSource
    from aclog.sources.repository import RepositorySettings


_PANEL = "Authorizer"
_DECIDING = ("super_users", "allow_everyone", "semantics", "cidr")


@frozen(kw_only=True, eq=False, repr=False)
class RepositoryFlags:
    """The settings file, and the flags of AuthorizerFlags, of which each wins over the file only if it is given."""

    config: Annotated[
        Path | None,
        Option(
            "--config",
            metavar="FILE",
            help="Settings of the repository. [dim]Default: the nearest aclog.toml, up to the repository's root[/]",
        ),
    ] = None
    super_users: Annotated[
        str | None,
        Option(
            "--super-users",
            metavar="USERS",
            help="Principals that are allowed everything, in the syntax of the broker's [cyan]super.users[/].",
            rich_help_panel=_PANEL,
        ),
    ] = None
    allow_everyone: Annotated[
        bool,
        Option(
            "--allow-everyone-if-no-acl-found",
            metavar="",
            help="Allow access to resources that no ACL matches, as the broker property of that name does.",
            rich_help_panel="Authorizer: --allow-everyone-if-no-acl-found",
        ),
    ] = False
    no_allow_everyone: Annotated[
        bool,
        Option(
            "--no-allow-everyone-if-no-acl-found",
            metavar="",
            help="Deny it, regardless of the settings of the repository.",
            rich_help_panel="Authorizer: --no-allow-everyone-if-no-acl-found",
        ),
    ] = False
    semantics: Annotated[
        Semantics | None,
        Option(
            "--semantics",
            metavar="kafka|documented",
            help="Decide as Kafka 4.3.1 does, or let an ACL on '*' also cover names that begin with '*'.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    kafka_version: Annotated[
        str | None,
        Option("--kafka-version", metavar="V", help="The Kafka that decides, such as 4.3.1.", rich_help_panel=_PANEL),
    ] = None
    cidr: Annotated[
        bool | None,
        Option(
            "--cidr/--no-cidr",
            metavar="",
            help="The same as [cyan]--kafka-version 4.4[/], or 4.3.",
            show_default=False,
            rich_help_panel=_PANEL,
        ),
    ] = None

    def load(self) -> "RepositorySettings":
        """Return the settings of the file, with those that flags give instead.

        Raises:
            ConfigError: an invalid value in the file, or a flag with its opposite.
            OSError: the file cannot be read.

        """
        from aclog.sources.repository import load_repository_settings

        if self.allow_everyone and self.no_allow_everyone:
            raise ConfigError(
                "--allow-everyone-if-no-acl-found and --no-allow-everyone-if-no-acl-found: expected one of them"
            )
        settings = load_repository_settings(self.config)
        changed = self.overrides()
        return evolve(settings, authorizer=evolve(settings.authorizer, **changed)) if changed else settings

    def overrides(self) -> dict[str, Any]:
        """Return the settings of the authorizer that flags give."""
        return _settings_of_flags(self)


def _settings_of_flags(flags: RepositoryFlags | AuthorizerFlags) -> dict[str, Any]:
    """Return the settings of the authorizer that flags give, by their names in AuthorizerSettings."""
    generation = flag_generation(flags.kafka_version, flags.cidr)
    values = {
        "super_users": flags.super_users,
        "allow_everyone": flags.allow_everyone or (False if flags.no_allow_everyone else None),
        "semantics": flags.semantics,
        "cidr": None if generation is None else generation.has_ranges,
    }
    return {key: value for key, value in values.items() if value is not None}


def authorizer_flags(settings: "RepositorySettings") -> AuthorizerFlags:
    """Return the settings of the authorizer as the flags of all other commands have them."""
    authorizer = settings.authorizer
    return AuthorizerFlags(
        super_users=authorizer.super_users,
        allow_everyone=bool(authorizer.allow_everyone),
        no_allow_everyone=authorizer.allow_everyone is False,
        semantics=Semantics(authorizer.semantics or Semantics.KAFKA),
        cidr=authorizer.cidr,
    )


def source_flags(flags: SourceFlags, settings: "RepositorySettings") -> SourceFlags:
    """Return the source that flags name, else that of the settings with its format; modules and topics for both."""
    source = settings.source
    if not flags.is_given() and source.acls is not None:
        form = None if source.format is None else AclsFormat(source.format)
        flags = evolve(flags, acls=settings.existing_acls(), acls_format=flags.acls_format or form)
    if flags.topics_file is None:
        flags = evolve(flags, topics_file=source.topics)
    if flags.acls is None and flags.ref is None:
        return flags
    named = {text.rpartition("=")[0] for text in flags.modules}
    return evolve(
        flags,
        exclude=[*flags.exclude, *source.exclude],
        accept_unread=[*flags.accept_unread, *source.accept_unread],
        modules=[*flags.modules, *(text for text in source.modules if text.rpartition("=")[0] not in named)],
        var_files=[*source.var_files, *flags.var_files],
        variables=[*source.variables, *flags.variables],
        workspace=flags.workspace or source.workspace,
    )


def settings_of_lint(authorizer: AuthorizerFlags) -> "RepositorySettings":
    """Return the settings by which `aclog lint` finds, of the nearest aclog.toml, with what flags give instead.

    Raises as RepositoryFlags.load.
    """
    from aclog.sources.repository import load_repository_settings

    settings = load_repository_settings()
    return evolve(settings, authorizer=evolve(settings.authorizer, **given_settings(authorizer)))


def given_settings(authorizer: AuthorizerFlags) -> dict[str, Any]:
    """Return the settings of the authorizer that flags give, by their names in AuthorizerSettings."""
    changed = _settings_of_flags(authorizer)
    if not authorizer.documented:
        del changed["semantics"]  # the default, which is no choice
    return changed


def choice_of_lint(
    flags: SourceFlags, settings: "RepositorySettings", choice: "ChosenSource", topics: "NameFile | None"
) -> "tuple[ChosenSource, NameFile | None]":
    """Return a source as `aclog lint` reads it, and the topics that exist: by the settings too.

    `choice`, `topics`: the same by the flags alone. Raises as SourceFlags.choose.
    """
    named = source_flags(flags, settings)
    if named == flags:
        return choice, topics
    names = topics if named.topics_file == flags.topics_file else named.topics()
    is_read_again = flags.acls not in (None, "-") or flags.ref is not None  # by what they exclude
    return (named.choose(topics=names) if is_read_again else choice), names


def rules_of(flags: SourceFlags, settings: "RepositorySettings") -> "tuple[SourceFlags, RepositorySettings]":
    """Return the source that flags or the settings name, and the settings.

    If neither names one, the source and the settings of the authorizer are those of the context of this invocation;
    flags and the settings of the file take precedence.
    """
    named = source_flags(flags, settings)
    choice = None if named.is_given() else chosen_context()
    if choice is None:
        return named, settings
    context, authorizer = choice.context, settings.authorizer
    own = {name: getattr(context, name) for name in _DECIDING if getattr(authorizer, name) is None}
    tell_what_decides(context, (text for name, text in context.decides().items() if name in own))
    source = context_source(context)
    return (
        evolve(source, as_of=flags.as_of, topics_file=named.topics_file or source.topics_file),
        evolve(settings, authorizer=evolve(authorizer, **own)),
    )
