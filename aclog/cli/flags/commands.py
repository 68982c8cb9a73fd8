"""Flags of single commands, which a command and its report share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from attrs import field

from aclog.cli.flags import common
from aclog.cli.flags.accesses import AccessesFormat, AccessesTimezone, Gap, WindowFlags, Workers
from aclog.cli.flags.common import Columns, NoPager, Output, OutputFlags, format_option
from aclog.cli.flags.many_requests import SecondSettingsFlags, SecondStateFlags
from aclog.cli.flags.plans import JournalFile, OtherJournals
from aclog.cli.flags.question import AnswerFlags, AnswerFormat
from aclog.cli.options import Argument, Option
from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen
from aclog.sources.formats.format import AclsFormat
from aclog.terminal.columns import ROW_FORMATS, OutputFormat

if TYPE_CHECKING:
    from aclog.ops.usage import SuggestOptions
    from aclog.sources.acl_lines import NameFile


# The flags of `aclog console`.


_PANEL = "Findings"


@frozen(kw_only=True, eq=False, repr=False)
class ConsoleFlags:
    """Where it listens, and who may see it."""

    listen: Annotated[
        str,
        Option(
            "--listen",
            metavar="HOST:PORT",
            help="Where to listen; port 0 is any free one, which it prints.",
            show_default=True,
        ),
    ] = "127.0.0.1:8080"
    login: Annotated[
        str | None,
        Option(
            "--login",
            metavar="FILE|oidc|oidc:FILE",
            help="The users of the console: a file with a principal and the hash of a password per line; or those of "
            "an OpenID Connect provider, which variables or a file name. Users without DESCRIBE on the cluster see "
            "their own permissions. [dim]Default: every user of this machine, who sees everything[/]",
            show_default=False,
        ),
    ] = None
    hash_password: Annotated[
        str | None,
        Option(
            "--hash-password",
            metavar="PRINCIPAL",
            help="Prompt for a password, print its line for the file of --login, and exit.",
        ),
    ] = None
    tls_cert: common.TlsCert = None
    tls_key: common.TlsKey = None
    base_url: common.BaseUrl = None
    health_listen: common.HealthListen = None
    trusted_proxy: Annotated[
        str | None,
        Option(
            "--trusted-proxy",
            metavar="ADDRESS",
            help="A proxy in front of it, whose X-Forwarded-For has the client's address. [dim]Default: the address "
            "that connects[/]",
            show_default=False,
        ),
    ] = None
    audit: common.AuditFile = None
    no_open: Annotated[
        bool,
        Option("--no-open", metavar="", help="Do not open the browser. It opens only if stdout is a terminal."),
    ] = False
    edit: Annotated[
        bool,
        Option(
            "--edit",
            metavar="",
            help="Let users plan and apply drafts in the pages, as [cyan]aclog plan[/] and [cyan]aclog apply[/] do, "
            "with [cyan]--journal[/]; with a login, only users with ALTER on the cluster. SOURCE must be a target.",
        ),
    ] = False


@frozen(kw_only=True, eq=False, repr=False)
class FindingsFlags:
    """By what findings are looked for."""

    config: Annotated[
        Path | None,
        Option(
            "--config",
            metavar="FILE",
            help="Settings of lint, and suppressions. [dim]Default: the nearest aclog.toml, up to the repository's "
            "root[/]",
            rich_help_panel=_PANEL,
        ),
    ] = None
    ignore: Annotated[
        Path | None,
        Option(
            "--ignore",
            metavar="FILE",
            help="Suppressions of lint, as TOML: [cyan]\\[\\[ignore]][/] tables.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    index: Annotated[
        str | None,
        Option(
            "--index",
            metavar="DIR",
            help="Unused rules: the index that [cyan]aclog accesses index[/] keeps; or s3://BUCKET/PREFIX or abfss://...",
            rich_help_panel=_PANEL,
        ),
    ] = None
    accesses: Annotated[
        list[str],
        Option(
            "--accesses",
            metavar="PATH",
            help="Unused rules, and lint: an access log, as [cyan]aclog accesses usage[/] reads it; with "
            "[cyan]--index[/], to prove the result. Can be repeated.",
            rich_help_panel=_PANEL,
        ),
    ] = field(factory=list)
    accesses_format: AccessesFormat = None
    accesses_timezone: AccessesTimezone = None
    workers: Workers = None
    days: Annotated[
        int | None,
        Option(
            "--days",
            metavar="N",
            min=1,
            help="The length of the window of accesses, in days. [dim]Default: 90; of an access log fewer, "
            "if all rules are younger[/]",
            rich_help_panel=_PANEL,
        ),
    ] = None
    gap: Gap = "1d"
    ignore_broker: Annotated[
        list[str],
        Option(
            "--ignore-broker",
            metavar="ID",
            help="With [cyan]--index[/]: a broker whose silence is not a gap. Can be repeated.",
            rich_help_panel=_PANEL,
        ),
    ] = field(factory=list)
    want: Annotated[
        str | None,
        Option(
            "--want",
            metavar="PATH",
            help="Drift: all desired rules of a source, as [cyan]aclog drift[/] reads them; with [cyan]--journal[/].",
            rich_help_panel=_PANEL,
        ),
    ] = None
    want_format: Annotated[
        AclsFormat | None,
        Option("--want-format", metavar="FORMAT", help="The format of these files.", rich_help_panel=_PANEL),
    ] = None
    journal: Annotated[
        Path | None,
        Option(
            "--journal",
            metavar="FILE",
            help="The record of the rules that this source has applied, and so manages.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    other_journals: Annotated[
        list[Path],
        Option(
            "--other-journal",
            metavar="FILE",
            help="The journal of another source for the same target. Can be repeated.",
            rich_help_panel=_PANEL,
        ),
    ] = field(factory=list)
    tests: Annotated[
        list[str],
        Option(
            "--tests",
            metavar="FILE",
            help="Tests of rules, as [cyan]aclog test[/] reads them. Can be repeated.",
            rich_help_panel=_PANEL,
        ),
    ] = field(factory=list)


# The flags of `aclog pdp`.


@frozen(kw_only=True, eq=False, repr=False)
class PdpFlags:
    """Where it listens, which clients it serves, and how foreign questions are mapped."""

    listen: Annotated[str, Option("--listen", metavar="HOST:PORT", help="Where to listen.", show_default=True)] = (
        "127.0.0.1:8180"
    )
    mapping: Annotated[
        Path | None,
        Option(
            "--mapping",
            metavar="FILE",
            help="The mapping of foreign subjects, resources and actions to Kafka's, as JSON or YAML. [dim]Default: "
            "types are Kafka's, and actions its operations[/]",
            show_default=False,
        ),
    ] = None
    check_mapping: Annotated[
        bool,
        Option(
            "--check-mapping",
            help="Print what each type and action of the mapping becomes, which cases are unreachable and which "
            "spellings are rejected, and exit.",
        ),
    ] = False
    tls_cert: common.TlsCert = None
    tls_key: common.TlsKey = None
    tls_client_ca: Annotated[
        Path | None,
        Option(
            "--tls-client-ca",
            metavar="FILE",
            help="Accept only clients with a certificate of these authorities (PEM).",
            show_default=False,
        ),
    ] = None
    base_url: common.BaseUrl = None
    health_listen: common.HealthListen = None
    tokens: Annotated[
        Path | None,
        Option("--tokens", metavar="FILE", help="Bearer tokens of the accepted clients, one per line."),
    ] = None
    audit: common.AuditFile = None
    decision_log: Annotated[
        Path | None,
        Option(
            "--decision-log",
            metavar="FILE",
            help="Append an event of OPA's decision log for each answer of OPA's data API.",
        ),
    ] = None
    max_age: Annotated[
        float,
        Option("--max-age", metavar="SECONDS", help="Decide nothing from a state that is unconfirmed for longer."),
    ] = 60.0
    workers: Annotated[
        int,
        Option(
            "--workers",
            metavar="N",
            help="How many processes answer: one per core at most, on Linux.",
            show_default=True,
        ),
    ] = 1


# The flags of `aclog migrate`, in groups.


_FROM = "ZooKeeper (exactly one)"
_TO = "Metadata log (exactly one)"


@frozen(kw_only=True, eq=False, repr=False)
class ZooKeeperFlags:
    """The ZooKeeper, and whether it is read or written."""

    zookeeper: Annotated[
        str | None,
        Option(
            "--zookeeper",
            metavar="HOST:PORT",
            help="Migrate from this ZooKeeper; several servers and a chroot as in zookeeper.connect.",
            rich_help_panel=_FROM,
        ),
    ] = None
    to_zookeeper: Annotated[
        str | None,
        Option(
            "--to-zookeeper",
            metavar="HOST:PORT",
            help="Migrate back: write the state of --log to this ZooKeeper.",
            rich_help_panel=_FROM,
        ),
    ] = None
    zk_tls_config_file: Annotated[
        Path | None,
        Option(
            "--zk-tls-config-file",
            metavar="FILE",
            help="zookeeper.* properties: TLS, timeouts, zookeeper.set.acl.",
            rich_help_panel=_FROM,
        ),
    ] = None


@frozen(kw_only=True, eq=False, repr=False)
class MetadataLogFlags:
    """The metadata log, directly or as part of a Kafka node."""

    log: Annotated[
        Path | None,
        Option("--log", metavar="DIR", help="A log directory of aclog; created if missing.", rich_help_panel=_TO),
    ] = None
    bootstrap_checkpoint: Annotated[
        Path | None,
        Option(
            "--bootstrap-checkpoint",
            metavar="FILE",
            help="What the first start of a formatted Kafka controller reads: its [cyan]bootstrap.checkpoint[/], from "
            "Kafka 4.4 on its 0-0 checkpoint, or the directory that has it. A bootstrap.checkpoint is created if "
            "missing, unless the directory is formatted.",
            rich_help_panel=_TO,
        ),
    ] = None
    bootstrap_controller: Annotated[
        str | None,
        Option(
            "--bootstrap-controller",
            metavar="HOST:PORT",
            help="A running quorum (aclog or Kafka): ACLs only, in batches.",
            rich_help_panel=_TO,
        ),
    ] = None
    command_config: Annotated[
        Path | None,
        Option(
            "--command-config",
            metavar="FILE",
            help="Client properties for the quorum: security.protocol, sasl.*, ssl.*.",
            rich_help_panel=_TO,
        ),
    ] = None


@frozen(kw_only=True, eq=False, repr=False)
class ModeFlags:
    """What to do, when to switch over, and what not to refuse."""

    dry_run: Annotated[bool, Option("--dry-run", metavar="", help="Print the changes, and write nothing.")] = False
    compare: Annotated[
        bool, Option("--compare", metavar="", help="Only compare contents and decisions; exit 1 if they differ.")
    ] = False
    follow: Annotated[
        bool,
        Option("--follow", metavar="", help="Follow changes until [cyan]switch[/] is typed, then switch over."),
    ] = False
    until_quiet: Annotated[
        float | None,
        Option(
            "--until-quiet",
            metavar="SECONDS",
            help="Follow changes until none arrives for this long, then switch over.",
            show_default=False,
        ),
    ] = None
    replace: Annotated[
        bool, Option("--replace", metavar="", help="Remove entries that only the target has, instead of failing.")
    ] = False
    skip_unreadable: Annotated[
        bool,
        Option("--skip-unreadable", metavar="", help="Leave out entries that cannot be read, instead of failing."),
    ] = False
    force: Annotated[bool, Option("--force", metavar="", help="Write even if the log belongs to a Kafka node.")] = False


# The flags of `aclog test`.


TestFiles: TypeAlias = Annotated[
    list[str],
    Argument(
        metavar="FILE...",
        help="Tests: YAML, or JSON lines of requests with their decisions ([cyan]*.jsonl[/]; [cyan]-[/] is stdin). "
        "[dim]Default: those of aclog.toml[/]",
        show_default=False,
    ),
]


@frozen(kw_only=True, eq=False, repr=False)
class RunFlags:
    """Which tests are run, what else is measured, and how it is reported."""

    files: TestFiles = field(factory=list)
    run: Annotated[
        list[str],
        Option("--run", metavar="GLOB", help="Only tests whose names match; can be repeated.", show_default=False),
    ] = field(factory=list)
    coverage: Annotated[bool, Option("--coverage", metavar="", help="Also list the rules that no test exercises.")] = (
        False
    )
    min_coverage: Annotated[
        float | None,
        Option(
            "--min-coverage",
            metavar="P",
            min=0,
            max=100,
            help="Fail if fewer than P percent of the rules are exercised.",
        ),
    ] = None
    mutate: Annotated[
        bool,
        Option(
            "--mutate",
            metavar="",
            help="Also fail if a rule can be removed, widened or flipped (ALLOW to DENY or back) while all tests still "
            "pass.",
        ),
    ] = False
    junit: Annotated[Path | None, Option("--junit", metavar="FILE", help="Also write the results as JUnit XML.")] = None
    format: AnswerFormat = None
    columns: Columns = None
    no_pager: NoPager = False
    schema: Annotated[
        bool, Option("--schema", metavar="", help="Print the JSON schema of YAML tests, for editors, and exit.")
    ] = False

    def output(self, *, is_live: bool = False) -> Output:
        """Return how to print. Raises as AnswerFlags.choose."""
        return AnswerFlags(format=self.format, columns=self.columns, no_pager=self.no_pager).choose(is_live=is_live)


# The flags of `aclog test` besides running tests: following a log, and recording.


_FOLLOWING = "Guardrails (with --follow)"
_RECORDING = "Recording"


@frozen(kw_only=True, eq=False, repr=False)
class GuardFlags:
    """Running tests on each committed change."""

    follow: Annotated[
        bool,
        Option(
            "--follow",
            metavar="",
            help="Run the tests on each change of a log as it is committed, until Ctrl-C, and print those that turn "
            "red or green.",
            rich_help_panel=_FOLLOWING,
        ),
    ] = False
    exit_on_red: Annotated[
        bool,
        Option(
            "--exit-on-red", metavar="", help="End with exit code 1 when a test is red.", rich_help_panel=_FOLLOWING
        ),
    ] = False
    webhook: Annotated[
        str | None,
        Option(
            "--webhook",
            metavar="URL",
            help="When a test turns red or green, post a JSON object to URL. User and password in URL are sent as HTTP "
            "basic authentication.",
            show_default=False,
            rich_help_panel=_FOLLOWING,
        ),
    ] = None

    def check(self, flags: RunFlags) -> None:
        """Check the flags beside --follow. Raises ConfigError: one is about a single run."""
        _refuse_single_run(flags, "--follow")

    def refuse(self) -> None:
        """Refuse the flags of --follow without it. Raises ConfigError: one is given."""
        for flag, value in (("--exit-on-red", self.exit_on_red), ("--webhook", self.webhook is not None)):
            if value:
                raise ConfigError(f"{flag}: only together with --follow")


@frozen(kw_only=True, eq=False, repr=False)
class RecordFlags:
    """Writing tests of the present decisions."""

    record: Annotated[
        Path | None,
        Option(
            "--record",
            metavar="FILE",
            help="Run no tests; write a new file of tests. They expect the present decisions, and access that was "
            "revoked earlier in the log to stay denied.",
            show_default=False,
            rich_help_panel=_RECORDING,
        ),
    ] = None
    accesses: Annotated[
        str | None,
        Option(
            "--accesses",
            metavar="PATH",
            help="With --record: write tests only for the requests in this access log (formats: see [cyan]aclog "
            "accesses usage[/]).",
            show_default=False,
            rich_help_panel=_RECORDING,
        ),
    ] = None

    def is_given(self) -> bool:
        """Return whether to record. Raises ConfigError: --accesses without --record."""
        if self.record is None and self.accesses is not None:
            raise ConfigError("--accesses: only together with --record")
        return self.record is not None

    def check(self, flags: RunFlags, guard: GuardFlags) -> None:
        """Check the flags beside --record. Raises ConfigError: one is about running tests."""
        if flags.files or flags.run:
            raise ConfigError("--record writes tests: expected no FILE and no --run")
        if guard.follow:
            raise ConfigError("--record and --follow: expected one of them")
        guard.refuse()
        _refuse_single_run(flags, "--record")


def _refuse_single_run(flags: RunFlags, beside: str) -> None:
    values = {
        "--coverage": flags.coverage,
        "--min-coverage": flags.min_coverage is not None,
        "--mutate": flags.mutate,
        "--junit": flags.junit is not None,
    }
    for flag in (flag for flag, is_given in values.items() if is_given):
        raise ConfigError(f"{flag}: not together with {beside}")


# The flags of `aclog accesses suggest` besides the source and the access log.


SUGGESTION_PANEL = "Suggestion"


@frozen(kw_only=True, eq=False, repr=False)
class SuggestFlags:
    """What is suggested, and where it is written."""

    principal: Annotated[
        list[str],
        Option(
            "--principal",
            metavar="PRINCIPAL",
            help="Only replace the rules of this principal; those of all others stay. Can be repeated. "
            "[dim]Default: all rules[/]",
            show_default=False,
            rich_help_panel=SUGGESTION_PANEL,
        ),
    ] = field(factory=list)
    fold: Annotated[
        str,
        Option(
            "--fold",
            metavar="N",
            help="If a principal used N or more names with the same host and operation: one rule on their longest "
            "common prefix, if it allows nothing that is denied now, and little that was not used; [cyan]none[/]: "
            "never.",
            rich_help_panel=SUGGESTION_PANEL,
        ),
    ] = "5"
    explain: Annotated[
        bool,
        Option(
            "--explain",
            metavar="",
            help="Print why a rule has a prefix, and why other names were not folded.",
            rich_help_panel=SUGGESTION_PANEL,
        ),
    ] = False
    out: Annotated[
        Path | None,
        Option(
            "--out",
            metavar="FILE",
            help="Write all desired rules, as [cyan]acls list --format jsonl[/] prints rules.",
            show_default=False,
            rich_help_panel=SUGGESTION_PANEL,
        ),
    ] = None

    def least(self) -> int | None:
        """Return the number in --fold; None for never. Raises ConfigError: not a number, or under 2."""
        text = self.fold.strip()
        if text == "none":
            return None
        if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) < 2:
            raise ConfigError(f"--fold {self.fold[:40]!r}: expected a number of at least 2, or none")
        return int(text)

    def options(self, window: WindowFlags, topics: "NameFile | None") -> "SuggestOptions":
        """Return what is suggested, by the accesses of a window. Raises ConfigError: a flag is not valid."""
        from aclog.ops.usage import SuggestOptions

        return SuggestOptions(
            days=window.days,
            until=window.end(),
            principals=frozenset(self.principal),
            fold=self.least(),
            topics=topics,
        )


# The flags of `aclog diff` besides the two states.


@frozen(kw_only=True, eq=False, repr=False)
class DiffFlags:
    """Names that the two states have differently, what is counted, and the format."""

    map_names: Annotated[
        list[str],
        Option(
            "--map-names",
            metavar="OLD=NEW",
            help="Compare names of topics, groups and transactional ids with the prefix OLD in the first state to "
            "names with NEW in the second one; can be repeated.",
        ),
    ] = field(factory=list)
    accesses: Annotated[
        str | None,
        Option(
            "--accesses",
            metavar="PATH",
            help="Count which of these accesses are decided differently: an access log in any form that [cyan]aclog "
            "usage[/] reads; "
            "[cyan]-[/] is stdin.",
            show_default=False,
        ),
    ] = None
    follow: Annotated[
        bool,
        Option(
            "--follow",
            metavar="",
            help="Instead of a second state: print the effective change of each commit, until Ctrl-C.",
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
    if target.is_given() or settings.is_given():
        raise ConfigError("--follow compares each state of the log with the next: expected no second state")
    if report.map_names or report.accesses is not None:
        raise ConfigError("--follow: expected neither --map-names nor --accesses")
    if report.columns is not None:
        raise ConfigError("--follow: expected no --columns")


# The flags of `aclog drift`.


_LEAST_SECONDS, _MOST_SECONDS = 0.1, 86_400.0


@frozen(kw_only=True, eq=False, repr=False)
class DriftFlags:
    """Whose rules are looked at, and whether again and again."""

    journal: JournalFile
    other_journals: OtherJournals = field(factory=list)
    follow: Annotated[
        bool,
        Option(
            "--follow",
            metavar="",
            help="Check repeatedly, and print each rule that drifts or is fixed, until Ctrl-C.",
        ),
    ] = False
    interval: Annotated[
        float | None,
        Option(
            "--interval",
            metavar="SECONDS",
            help="With [cyan]--follow[/]: the time between two checks. [dim]Default: 1 for a log, 30 for a cluster[/]",
            show_default=False,
        ),
    ] = None

    def journals(self) -> tuple[Path, list[Path]]:
        """Return the journal, and those of others."""
        return self.journal, self.other_journals

    def seconds(self, *, is_log: bool) -> float:
        """Return the time between two looks. Raises ConfigError: --interval is out of range."""
        if self.interval is None:
            return 1.0 if is_log else 30.0
        if not _LEAST_SECONDS <= self.interval <= _MOST_SECONDS:
            raise ConfigError(f"--interval {self.interval:g}: expected {_LEAST_SECONDS:g} to {_MOST_SECONDS:g} seconds")
        return self.interval
