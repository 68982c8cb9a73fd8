"""Flags that many commands share: output, sources and states, authorizers, accesses, windows."""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeAlias, TypeVar

import attrs
import click
from attrs import evolve, field, frozen

from aclog.authorizer.acl import parse_name
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.authorizer.settings import Generation, named_generation
from aclog.cli.options import Argument, FilePath, Option, complete_contexts
from aclog.metalog.errors import NO_SUCH_PATH, ConfigError
from aclog.ops.removal_limit import DEFAULT_PERCENT, RemovalLimit
from aclog.pipeline.output_directory import Place, local_directory, place_of
from aclog.sources.formats.format import AclsFormat
from aclog.terminal.columns import ROW_FORMATS, Column, OutputFormat, Row, json_text
from aclog.terminal.output import emit, page_output

if TYPE_CHECKING:
    from datetime import datetime

    from aclog.config.node_config import HostPort
    from aclog.ops.usage import AccessLog, ReadAccesses
    from aclog.sources.acl_lines import NameFile
    from aclog.sources.choice import ChosenSource, SourceSelection
    from aclog.sources.contexts import Context
    from aclog.sources.read_options import ModuleInputs
    from aclog.usage.accesses.table_formats import TableMoment
    from aclog.usage.judging import Each


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


_STDIN = "-"


def check_one_stdin(files: Mapping[str, str | None]) -> None:
    """Check the values of flags that name files: the second one to read stdin would find it empty.

    Raises:
        ConfigError: two or more of them are `-`.

    """
    readers = [f"{flag} -" for flag, path in files.items() if path == _STDIN]
    if len(readers) > 1:
        raise ConfigError(f"{' and '.join(readers)}: only one of them can be stdin")


def stdin_among(accesses: Sequence[str]) -> dict[str, str | None]:
    """Return --accesses as check_one_stdin takes it: its paths may include stdin."""
    return {"--accesses": _STDIN if _STDIN in accesses else None}


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


# The flags of an access log, and of the window of it that counts.


ACCESSES_PANEL = "Accesses"


AccessPaths: TypeAlias = Annotated[
    list[str],
    Option(
        "--accesses",
        metavar="PATH",
        help="The access log: a file, a directory, a glob, s3://BUCKET/PREFIX, or stdin (-). Content: "
        "kafka-authorizer.log in any layout, rotated or compressed; Parquet; JSON lines; or events of aclog, Confluent "
        "or Redpanda. Can be repeated.",
        show_default=False,
        rich_help_panel=ACCESSES_PANEL,
    ),
]
AccessesFormat: TypeAlias = Annotated[
    str | None,
    Option(
        "--accesses-format",
        metavar="FORMAT",
        help="[cyan]kafka-log[/], [cyan]kafka-json[/] (messages of kafka-authorizer.log in JSON lines), "
        "[cyan]parquet[/], [cyan]jsonl[/], [cyan]events[/] (aclog's audit events in Avro), [cyan]events-jsonl[/], "
        "[cyan]ocsf[/] or [cyan]cloudevents[/]; or the layout of the log, as a pattern of log4j: "
        "'%d %p %m (%c)%n'. [dim]Default: recognised by content[/]",
        show_default=False,
        rich_help_panel=ACCESSES_PANEL,
    ),
]
AccessesTimezone: TypeAlias = Annotated[
    str | None,
    Option(
        "--accesses-timezone",
        metavar="ZONE",
        help="The time zone of timestamps that state none; brokers log their local time.",
        show_default="UTC",
        rich_help_panel=ACCESSES_PANEL,
    ),
]
ExplainUnread: TypeAlias = Annotated[
    int,
    Option(
        "--explain-unread",
        metavar="N",
        min=0,
        help="Show the first N lines whose access could not be read, each with the column from which it does not "
        "fit the layout.",
        show_default=False,
        rich_help_panel=ACCESSES_PANEL,
    ),
]
Workers: TypeAlias = Annotated[
    int | None,
    Option(
        "--workers",
        metavar="N",
        min=1,
        help="The number of processes that read the access log.",
        show_default="one per core, and one for a small log",
        rich_help_panel=ACCESSES_PANEL,
    ),
]


VersionAsOf: TypeAlias = Annotated[
    int | None,
    Option(
        "--version-as-of",
        metavar="N",
        help="Of a Delta table, read version N; of an Iceberg table, the snapshot with this id.",
        show_default="the newest",
        rich_help_panel=ACCESSES_PANEL,
    ),
]
TimestampAsOf: TypeAlias = Annotated[
    str | None,
    Option(
        "--timestamp-as-of",
        metavar="TIME",
        help="Read a Delta or Iceberg table as it was at this time.",
        show_default="now",
        rich_help_panel=ACCESSES_PANEL,
    ),
]


def table_moment(version: int | None, timestamp: str | None) -> "TableMoment":
    """Return the version of a table that two flags name. Raises ConfigError: both do, or it is not a time."""
    from aclog.usage.accesses.table_formats import TableMoment

    return TableMoment(version=version, timestamp=time_of(timestamp, "--timestamp-as-of"))


@frozen(kw_only=True, eq=False, repr=False)
class AccessesFlags:
    """An access log, and how it is read."""

    accesses: AccessPaths
    accesses_format: AccessesFormat = None
    accesses_timezone: AccessesTimezone = None
    version_as_of: VersionAsOf = None
    timestamp_as_of: TimestampAsOf = None
    workers: Workers = None
    explain_unread: ExplainUnread = 0

    def moment(self) -> "TableMoment":
        """Return the version of a table. Raises ConfigError: as table_moment."""
        return table_moment(self.version_as_of, self.timestamp_as_of)

    def open(self, each: "Each | None" = None, *, copies: bool = True) -> "AccessLog":
        """Find the files; `each` reads them, by default processes of this machine. `copies`, errors: AccessLog.of."""
        from aclog.ops.usage import AccessLog  # here: needs the extra `usage`

        return AccessLog.of(self, each, explain=self.explain_unread, moment=self.moment(), copies=copies)


def given_accesses(flags: "ReadAccesses") -> AccessesFlags | None:
    """Return the access log that is given; None if none is."""
    if not flags.accesses:
        return None
    return AccessesFlags(
        accesses=flags.accesses,
        accesses_format=flags.accesses_format,
        accesses_timezone=flags.accesses_timezone,
        workers=flags.workers,
    )


@frozen(kw_only=True, eq=False, repr=False)
class ReplayFlags:
    """An access log over which what was found is proved, if there is one."""

    accesses: Annotated[
        list[str],
        Option(
            "--accesses",
            metavar="PATH",
            help="Prove the result: decide the accesses of this log again without the removable rules; can be "
            "repeated.",
            show_default=False,
            rich_help_panel=ACCESSES_PANEL,
        ),
    ] = field(factory=list)
    accesses_format: AccessesFormat = None
    accesses_timezone: AccessesTimezone = None
    workers: Workers = None


Until: TypeAlias = Annotated[
    str | None,
    Option(
        "--until",
        metavar="TIME",
        help="The end of the window.",
        show_default="the latest access",
        rich_help_panel=ACCESSES_PANEL,
    ),
]


@frozen(kw_only=True, eq=False, repr=False)
class JudgedWindowFlags:
    """The part of an access log that counts; without --days, a window in which ACLs can be judged."""

    days: Annotated[
        int | None,
        Option(
            "--days",
            metavar="N",
            min=1,
            help="The length of the window; older accesses are ignored.",
            show_default="90, or fewer if all ACLs are younger",
            rich_help_panel=ACCESSES_PANEL,
        ),
    ] = None
    until: Until = None


@frozen(kw_only=True, eq=False, repr=False)
class WindowFlags:
    """The part of an access log that counts."""

    days: Annotated[
        int,
        Option(
            "--days",
            metavar="N",
            min=1,
            help="The length of the window; older accesses are ignored.",
            rich_help_panel=ACCESSES_PANEL,
        ),
    ] = 90
    until: Until = None

    def end(self) -> "datetime | None":
        """Return the time in --until; None for the latest access. Raises ConfigError: it is not a time."""
        return window_end(self.until)


def window_end(text: str | None) -> "datetime | None":
    """Return the time in --until, None if it is not given. Raises ConfigError: it is not a time."""
    return time_of(text, "--until")


def time_of(text: str | None, flag: str) -> "datetime | None":
    """Return the time in a flag, None if it is not given. Raises ConfigError: it is not a time."""
    from aclog.metalog.errors import ConfigError
    from aclog.terminal.moment import take_moment

    if text is None:
        return None
    moment = take_moment(text)
    if isinstance(moment, int):
        raise ConfigError(f"{flag} {text}: expected a time, such as 2026-11-20T10:00:00Z")
    return moment


# How long a broker must be silent for it to count as a gap.


_UNITS = {"h": 1, "d": 24, "w": 7 * 24}
_HOUR = 3_600_000_000

Gap: TypeAlias = Annotated[
    str,
    Option(
        "--gap",
        metavar="TIME",
        help="The time without log lines of a broker ([cyan]6h[/], [cyan]1d[/], [cyan]2w[/]) that counts as a gap.",
    ),
]


def gap_us(text: str) -> int:
    """Return --gap in us. Raises ConfigError: it is no time, or under an hour."""
    match = re.fullmatch(r"([0-9]{1,6})([hdw])", text.strip())
    if match is None or not int(match[1]):
        raise ConfigError(f"--gap {text[:40]!r}: expected hours, days or weeks, such as 6h, 1d or 2w")
    return int(match[1]) * _UNITS[match[2]] * _HOUR


# The flags of a state source.


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
        if self.topics_file not in (None, _STDIN) and not Path(self.topics_file or "").exists():
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
