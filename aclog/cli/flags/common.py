"""Flags that many commands share: output, sources and states, authorizers, accesses, windows."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeAlias, TypeVar

import attrs
import click
from attrs import evolve, field

from aclog.authorizer.acl import parse_name
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.authorizer.settings import Generation, named_generation
from aclog.cli.options import Option
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.ops.removal_limit import DEFAULT_PERCENT, RemovalLimit
from aclog.terminal.columns import ROW_FORMATS, Column, OutputFormat, Row, json_text
from aclog.terminal.output import emit, page_output

if TYPE_CHECKING:
    from aclog.config.node_config import HostPort


# Groups of command-line flags: attrs classes whose fields are annotated as aclog.cli.options expects. Most are neither
# compared nor printed: the methods for it would take a third of the time in which commands start.


_Group = TypeVar("_Group")


def group_from(group: type[_Group], values: Mapping[str, Any]) -> _Group:
    """Return the group with those of its fields that are in `values`; the others have their defaults."""
    return group(**{field.alias: values[field.name] for field in attrs.fields(group) if field.name in values})  # type: ignore[arg-type]


# Values of flags: enum names with their completions, and text as UTF-8 regardless of the locale.


_Enum = TypeVar("_Enum", bound=IntEnum)

OPERATIONS = tuple(op for op in AclOperation if op not in {AclOperation.UNKNOWN, AclOperation.ANY})
RESOURCE_TYPES = tuple(kind for kind in ResourceType if kind not in {ResourceType.UNKNOWN, ResourceType.ANY})
PATTERN_TYPES = tuple(kind for kind in PatternType if kind is not PatternType.UNKNOWN)


TOPIC_HELP = "A topic; [cyan]'pii-*'[/] is all that begin with pii-."
GROUP_HELP = r"A consumer group; [cyan]'g*'[/] is all that begin with g, [cyan]'g\*'[/] a name with a star."
_PATTERN_HELP = (
    "Read names as Kafka's commands do: [cyan]literal[/], exactly these names; [cyan]prefixed[/], all "
    "names with this prefix. [dim]Default: 'x*' is prefixed, other names are literal[/]"
)
"""Of the flags that name the resources of a question."""
_QUESTION_PATTERNS = (PatternType.LITERAL, PatternType.PREFIXED)


def pattern_type_option(panel: str, *, more: str = "") -> Option:
    """Return the flag that selects whether the names of a question are prefixes; `more`: a sentence for its help."""
    return Option(
        "--resource-pattern-type",
        parser=named(_QUESTION_PATTERNS),
        autocompletion=completions(_QUESTION_PATTERNS),
        metavar="TYPE",
        help=f"{_PATTERN_HELP}{more}",
        rich_help_panel=panel,
    )


def named(values: Sequence[_Enum]) -> Callable[[str], _Enum]:
    """Return a parser of the names of these values; its BadParameter lists the accepted names."""

    def parse(text: str) -> _Enum:
        try:
            return parse_name(values, text)
        except ConfigError as error:
            raise click.BadParameter(str(error)) from error

    return parse


def completions(values: Sequence[IntEnum]) -> Callable[[str], list[str]]:
    """Return a completer of the names of these values, for shell completion."""
    return lambda incomplete: [value.name for value in values if value.name.startswith(incomplete.upper())]


def typed_text(text: str) -> str:
    """Return a name from the command line as UTF-8 text.

    Python decodes arguments by the locale and turns bytes it cannot decode into surrogates; names in a log are UTF-8.

    Raises:
        ConfigError: the name is not UTF-8.

    """
    try:
        return text if text.isascii() else os.fsencode(text).decode()
    except UnicodeError:
        # Under an ASCII locale fsencode refuses a name that has been decoded already: that one is fine.
        if not any("\ud800" <= character <= "\udfff" for character in text):
            return text
    raise ConfigError(f"{ascii(text)[:100]} is not UTF-8")


# Files of which only one can be stdin.


STDIN = "-"


def check_one_stdin(files: Mapping[str, str | None]) -> None:
    """Check the values of flags that name files: the second one to read stdin would find it empty.

    Raises:
        ConfigError: two or more of them are `-`.

    """
    readers = [f"{flag} -" for flag, path in files.items() if path == STDIN]
    if len(readers) > 1:
        raise ConfigError(f"{' and '.join(readers)}: only one of them can be stdin")


def stdin_among(accesses: Sequence[str]) -> dict[str, str | None]:
    """Return --accesses as check_one_stdin takes it: its paths may include stdin."""
    return {"--accesses": STDIN if STDIN in accesses else None}


# Single flags that several commands share.


TargetLog: TypeAlias = Annotated[Path, Option("--log", metavar="DIR", help="The log directory.", show_default=False)]
ShowSecrets: TypeAlias = Annotated[
    bool,
    Option(
        "--show-secrets", metavar="", help="Print salts, keys and HMACs, which are shown as [cyan]***[/] otherwise."
    ),
]
KeepOddRules: TypeAlias = Annotated[
    bool,
    Option(
        "--keep-odd-rules",
        metavar="",
        help="Also write ACLs that CreateAcls rejects, with a warning: for the export of a log that has some.",
    ),
]


class ExportFormat(StrEnum):
    """Encoding of an exported state or history, or the format of another tool for the ACLs of a state."""

    AVRO = "avro"
    JSONL = "jsonl"
    KAFKA_ACLS = "kafka-acls"
    KSM = "ksm"
    STRIMZI = "strimzi"
    TERRAFORM = "terraform"
    KAFKA_GITOPS = "kafka-gitops"
    JIKKOU = "jikkou"

    @property
    def is_for_acls_only(self) -> bool:
        """Whether it holds the ACLs of a state and nothing else."""
        return self not in {ExportFormat.AVRO, ExportFormat.JSONL}


# The flags that select how a list or an answer is printed.


PANEL = "Output"

Columns: TypeAlias = Annotated[
    str | None,
    Option(
        "--columns",
        metavar="A,B,C",
        help="Show only these columns, in this order. Their names are the keys in JSON. Without [cyan]--format[/], "
        "the output is a table.",
        rich_help_panel=PANEL,
    ),
]
NoPager: TypeAlias = Annotated[
    bool, Option("--no-pager", metavar="", help="Show long output without a pager.", rich_help_panel=PANEL)
]


@frozen(kw_only=True)
class Output:
    """How a command prints its rows: the format, and the keys of the chosen columns, none for all."""

    form: OutputFormat
    columns: tuple[str, ...] = ()

    @property
    def is_rows(self) -> bool:
        """Whether the format is one of rows; else the command prints it in its own way."""
        return self.form in ROW_FORMATS

    def print_rows(self, columns: Sequence[Column], rows: Iterable[Row]) -> None:
        """Print the rows of a list. Raises as aclog.terminal.tables.print_rows."""
        from aclog.terminal.tables import print_rows

        print_rows(columns, rows, self.form, keys=self.columns)

    def print_answer(self, answer: Row, columns: Sequence[Column], rows: Iterable[Row]) -> None:
        """Print the answer to one question: as one JSON object, or what it lists as rows. Raises as print_rows."""
        if self.form in (OutputFormat.JSON, OutputFormat.JSONL) and not self.columns:
            emit(json_text(answer))
        else:
            self.print_rows(columns, rows)


@frozen(kw_only=True, eq=False, repr=False)
class OutputFlags:
    """What the commands that list or answer have besides `--format`."""

    columns: Columns = None
    no_pager: NoPager = False

    def choose(
        self,
        form: OutputFormat | None,
        *,
        pipe: OutputFormat,
        terminal: OutputFormat | None = None,
        is_live: bool = False,
    ) -> Output:
        """Return how to print, if `form` is the value of `--format`: without it as in a `pipe` or on a `terminal`.

        From now on what is printed goes through a pager, unless it is live: a stream that never ends.

        Raises:
            ConfigError: columns are chosen for a format that has none.

        """
        keys = _keys(self.columns)
        if form is None and keys:
            form = OutputFormat.TABLE
        if form is None:
            form = terminal if terminal is not None and sys.stdout.isatty() else pipe
        if keys and form not in ROW_FORMATS:
            raise ConfigError(f"--columns: {form} has no columns: expected --format {', '.join(ROW_FORMATS)}")
        if not self.no_pager and not is_live:
            page_output()
        return Output(form=form, columns=keys)


def format_option(*formats: OutputFormat, default: str, help: str = "How to print it.") -> Option:  # noqa: A002 - click's
    """Return the option `--format` with these values; `default` describes the output without it."""
    return Option(
        "--format",
        metavar=f"[{'|'.join(formats)}]",
        parser=_parser(formats),
        autocompletion=_completer(formats),
        help=help,
        show_default=default,
        rich_help_panel=PANEL,
        aliases=("--output", "-o"),
    )


def _parser(formats: Iterable[OutputFormat]) -> Callable[[str], OutputFormat]:
    by_name = {form.value: form for form in formats}

    def parse(text: str) -> OutputFormat:
        """Return the format of this name."""
        if isinstance(text, OutputFormat):  # a default
            return text
        if text not in by_name:
            raise click.BadParameter(f"{text!r} is not one of {', '.join(map(repr, by_name))}.")
        return by_name[text]

    return parse


def _completer(formats: Sequence[OutputFormat]) -> Callable[[str], list[str]]:
    return lambda incomplete: [form.value for form in formats if form.startswith(incomplete)]


def _keys(text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    keys = tuple(key.strip() for key in text.split(","))
    if not all(keys):
        raise ConfigError(f"--columns {text[:80]!r}: expected keys with commas between them")
    return keys


# Flags of the commands that serve over the web.


TlsCert: TypeAlias = Annotated[
    Path | None,
    Option("--tls-cert", metavar="FILE", help="The server's certificate chain (PEM).", show_default=False),
]
TlsKey: TypeAlias = Annotated[
    Path | None, Option("--tls-key", metavar="FILE", help="Its private key (PEM).", show_default=False)
]
BaseUrl: TypeAlias = Annotated[
    str | None,
    Option("--base-url", metavar="URL", help="How clients reach it.", show_default="that of --listen"),
]
AuditFile: TypeAlias = Annotated[
    Path | None, Option("--audit", metavar="FILE", help="Append a line of JSON for each answer.")
]
HealthListen: TypeAlias = Annotated[
    str | None,
    Option(
        "--health-listen",
        metavar="HOST:PORT",
        help="Also listen here, without TLS or login, for /healthz, /readyz and /metrics: outside of the limits on "
        "connections to --listen. Bind it to an address that only your monitoring reaches.",
        show_default=False,
    ),
]


# The flags that configure the authorizer of a decision.


_PANEL = "Authorizer"


def _text(value: str | None) -> str:
    """Return what decides by the value of a flag: flags are equal that decide the same."""
    return value or ""


class Semantics(StrEnum):
    """Which behavior to follow where Kafka 4.3.1 departs from its own documentation."""

    KAFKA = "kafka"
    DOCUMENTED = "documented"


@frozen(kw_only=True)
class AuthorizerFlags:
    """Broker properties that affect decisions besides the ACLs, and the semantics."""

    super_users: Annotated[
        str | None,
        Option(
            "--super-users",
            metavar="USERS",
            help="Principals that are allowed everything, in the syntax of the broker's [cyan]super.users[/]: "
            "[cyan]'User:a;User:b'[/].",
            rich_help_panel=_PANEL,
        ),
    ] = field(default=None, eq=_text)
    """None if nothing gives them: none, or in a running cluster those that it has set."""
    allow_everyone: Annotated[
        bool,
        Option(
            "--allow-everyone-if-no-acl-found",
            metavar="",
            help="Allow access to resources that no ACL matches, as the broker property of that name does.",
            rich_help_panel="Authorizer (if no ACL matches)",
        ),
    ] = False
    # Two flags, as a flag with its opposite would be wider than a terminal.
    no_allow_everyone: Annotated[
        bool,
        Option(
            "--no-allow-everyone-if-no-acl-found",
            metavar="",
            help="Deny it, regardless of the context. [dim]The default[/]",
            rich_help_panel="Authorizer: --no-allow-everyone-if-no-acl-found",
        ),
    ] = field(default=False, eq=False)
    semantics: Annotated[
        Semantics,
        Option(
            "--semantics",
            metavar="kafka|documented",
            help="[cyan]kafka[/] decides as Kafka 4.3.1 does; [cyan]documented[/] lets an ACL on '*' also cover names "
            "that begin with '*'.",
            rich_help_panel=_PANEL,
        ),
    ] = Semantics.KAFKA
    kafka_version: Annotated[
        str | None,
        Option(
            "--kafka-version",
            metavar="V",
            show_default=False,
            help="The Kafka version that decides, such as 4.3.1: from 4.4 on, the host of an ACL may be a range, such "
            "as 10.0.0.0/8. [dim]Default: the version of the source's brokers, if known[/]",
            rich_help_panel=_PANEL,
        ),
    ] = None
    cidr: Annotated[
        bool | None,
        Option(
            "--cidr/--no-cidr",
            metavar="",
            show_default=False,
            help="The same as [cyan]--kafka-version 4.4[/], or 4.3.",
            rich_help_panel=_PANEL,
        ),
    ] = None

    def __attrs_post_init__(self) -> None:
        flag_generation(self.kafka_version, self.cidr)
        if self.allow_everyone and self.no_allow_everyone:
            raise ConfigError(
                "--allow-everyone-if-no-acl-found and --no-allow-everyone-if-no-acl-found: expected one of them"
            )

    def warn_of_super_users(self, flag: str = "--super-users") -> None:
        """Warn of super users that are likely a mistake; `flag` named them. Raises ConfigError: one without a colon."""
        from aclog.authorizer.settings import super_user_mistakes
        from aclog.terminal.output import warn

        for mistake in super_user_mistakes(self.super_users):
            warn(f"{flag}: {mistake}")

    def configs(self) -> frozenset[str]:
        """Return the properties of brokers whose values are given."""
        from aclog.authorizer.settings import ALLOW_EVERYONE_CONFIG, SUPER_USERS_CONFIG

        values = {
            SUPER_USERS_CONFIG: self.super_users is not None,
            ALLOW_EVERYONE_CONFIG: self.allow_everyone or self.no_allow_everyone,
        }
        return frozenset(name for name, is_given in values.items() if is_given)

    def words(self) -> Iterator[str]:
        """Yield these flags as words of a command line."""
        if self.super_users is not None:
            yield from ("--super-users", self.super_users)
        if self.allow_everyone:
            yield "--allow-everyone-if-no-acl-found"
        if self.no_allow_everyone:
            yield "--no-allow-everyone-if-no-acl-found"
        if self.documented:
            yield from ("--semantics", "documented")
        if self.generation is not None:
            yield from ("--kafka-version", self.generation.value)

    @property
    def generation(self) -> Generation | None:
        """The generation of the Kafka that decides; None if no flag names it."""
        return flag_generation(self.kafka_version, self.cidr)

    def of_generation(self, generation: Generation) -> Self:
        """Return the same flags for a Kafka of this generation."""
        return evolve(self, kafka_version=None, cidr=generation.has_ranges)

    @property
    def documented(self) -> bool:
        """Whether decisions follow Kafka's documentation instead of Kafka 4.3.1."""
        return self.semantics is Semantics.DOCUMENTED


def flag_generation(kafka_version: str | None, cidr: bool | None, *, prefix: str = "--") -> Generation | None:
    """Return the generation that two flags name; None if none does.

    Raises:
        ConfigError: no version of a known Kafka, or they differ.

    """
    ranges = f"{prefix}cidr" if cidr else f"--no-{prefix.removeprefix('--')}cidr"
    return named_generation(kafka_version, cidr, version_name=f"{prefix}kafka-version", ranges_text=ranges)


# The flags of commands that may remove many entries because another place does not show them.


@frozen(kw_only=True, eq=False, repr=False)
class RemovalFlags:
    """How much may be removed at once, and what an operator has accepted beyond that."""

    max_removal: Annotated[
        float,
        Option(
            "--max-removal",
            metavar="PERCENT",
            help="Refuse if at least ten entries, and more than this percentage of all entries, would be removed; also "
            "refuse if all entries would be removed.",
        ),
    ] = DEFAULT_PERCENT
    accept_removal: Annotated[
        int | None,
        Option(
            "--accept-removal",
            metavar="N",
            help="Accept one removal that exceeds --max-removal, if it removes at most N entries.",
            show_default="none",
        ),
    ] = None

    def limit(self) -> RemovalLimit:
        """Return the limit. Raises ConfigError: not a percentage, or nothing to accept."""
        limit = RemovalLimit(percent=self.max_removal, accepted=self.accept_removal)
        limit.check()
        return limit


# The flags of commands that follow a cluster until they are stopped.


_MAX_GIVE_UP_S = 366 * 86_400.0


@frozen(kw_only=True, eq=False, repr=False)
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
            help="End with exit code 2 if no attempt has succeeded for this many seconds.",
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
