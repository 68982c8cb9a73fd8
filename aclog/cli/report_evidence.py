"""What a report shows besides the source: flags, and the use of ACLs, drift and tests that they name."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from attrs import field

from aclog.cli.flags.accesses import ACCESSES_PANEL, AccessesFormat, AccessesTimezone
from aclog.cli.flags.common import AuthorizerFlags
from aclog.cli.flags.many_requests import AskedFlags
from aclog.cli.flags.source import SourceFlags
from aclog.cli.options import Option
from aclog.metalog.errors import ConfigError
from aclog.metalog.text_forms import comma_parts
from aclog.metalog.values import frozen

if TYPE_CHECKING:
    from aclog.analysis.policy import Policy
    from aclog.cli.flags.target import TargetFlags
    from aclog.ops.report import CommandLine, Drifting, Section, Tested, UseOfAcls, WhoCan
    from aclog.ops.usage import AccessLog
    from aclog.snapshots.image import Image
    from aclog.sources.choice import ChosenSource
    from aclog.sources.repository import RepositorySettings
    from aclog.usage.unused_report import UnusedReport

_SECTIONS = "who-can, numbers, access, changes, everyone, admins, lint, unused, drift, tests"
_EVIDENCE_PANEL = "Drift, tests and signature"


@frozen(kw_only=True)
class ReportFlags:
    """Where the report goes, what is in it, and what shows the use of ACLs."""

    out: Annotated[
        Path,
        Option("--out", "-o", metavar="FILE", help="The report: a file .html, .md or .pdf.", show_default=False),
    ]
    sections: Annotated[
        str | None,
        Option(
            "--sections",
            metavar="A,B,C",
            help=f"Only these sections: {_SECTIONS}.",
            show_default="all, those with flags of their own if given",
        ),
    ] = None
    browser: Annotated[
        str | None,
        Option(
            "--browser",
            metavar="PROGRAM",
            help="For a PDF: the Chromium, Chrome or Edge that prints it; also [cyan]ACLOG_BROWSER[/].",
            show_default="the first on the PATH",
        ),
    ] = None
    index: Annotated[
        str | None,
        Option(
            "--index",
            metavar="DIR",
            help="Report unused ACLs by this index of last use, which the command [cyan]aclog accesses index[/] "
            "writes; or s3://BUCKET/PREFIX or abfss://...",
            show_default=False,
            rich_help_panel=ACCESSES_PANEL,
        ),
    ] = None
    accesses: Annotated[
        list[str],
        Option(
            "--accesses",
            metavar="PATH",
            help="Report unused ACLs by this access log; can be repeated.",
            show_default=False,
            rich_help_panel=ACCESSES_PANEL,
        ),
    ] = field(factory=list)
    accesses_format: AccessesFormat = None
    accesses_timezone: AccessesTimezone = None
    days: Annotated[
        int | None,
        Option(
            "--days",
            metavar="N",
            min=1,
            help="The days of accesses that count.",
            show_default="90; of an access log, fewer if all ACLs are younger",
            rich_help_panel=ACCESSES_PANEL,
        ),
    ] = None
    want: Annotated[
        str | None,
        Option(
            "--want",
            metavar="PATH",
            help="Report drift from these desired rules; the source is a log or a cluster. Needs [cyan]--journal[/].",
            show_default=False,
            rich_help_panel=_EVIDENCE_PANEL,
        ),
    ] = None
    journal: Annotated[
        Path | None,
        Option(
            "--journal",
            metavar="FILE",
            help="The journal of these rules, as of [cyan]aclog drift[/].",
            show_default=False,
            rich_help_panel=_EVIDENCE_PANEL,
        ),
    ] = None
    tests: Annotated[
        list[str],
        Option(
            "--tests",
            metavar="FILE",
            help="Report the results of the tests of rules in FILE (see [cyan]aclog test[/]); can be repeated.",
            show_default=False,
            rich_help_panel=_EVIDENCE_PANEL,
        ),
    ] = field(factory=list)
    sign: Annotated[
        Path | None,
        Option(
            "--sign",
            metavar="KEY",
            help="Also write FILE.minisig, a signature by this secret key of minisign; the passphrase is read from "
            "the terminal.",
            show_default=False,
            rich_help_panel=_EVIDENCE_PANEL,
        ),
    ] = None
    passphrase_file: Annotated[
        Path | None,
        Option(
            "--passphrase-file",
            metavar="FILE",
            help="With [cyan]--sign[/]: a file whose first line is the passphrase of the key.",
            show_default=False,
            rich_help_panel=_EVIDENCE_PANEL,
        ),
    ] = None

    @property
    def workers(self) -> int | None:
        """The default number of processes that read the accesses."""
        return None

    def selected(self, *, is_asked: bool) -> "tuple[Section, ...]":
        """Return the sections, in their order; `is_asked`: whether flags describe an access in question.

        Raises:
            ConfigError: an unknown one, or not that of the access in question.

        """
        from aclog.ops.report import Section

        if self.sections is None:
            given = {Section.WHO_CAN: is_asked, Section.DRIFT: self.want is not None, Section.TESTS: bool(self.tests)}
            return tuple(each for each in Section if given.get(each, True))
        names = [part.strip() for part in comma_parts(self.sections)]
        for name in names:
            if name not in set(Section):
                raise ConfigError(f"--sections: no section {name[:80]!r}: expected some of {_SECTIONS}")
        if is_asked and Section.WHO_CAN not in names:
            raise ConfigError(
                "--sections: the flags of an access, such as --topic, are of the section who-can: expected it too"
            )
        return tuple(each for each in Section if each in names)

    def accesses_of_lint(self) -> list[str]:
        """Return the access logs that lint also reads: it detects their form, and reads no stream a second time."""
        from aclog.sources.accesses import is_stream

        is_detected = self.accesses_format is None or "%" not in self.accesses_format
        return [] if not is_detected or any(map(is_stream, self.accesses)) else self.accesses

    def check(self) -> None:
        """Raise ConfigError: a file of another kind, or flags that exclude each other."""
        suffix = self.out.suffix.lower()
        if suffix not in (".html", ".md", ".pdf"):
            raise ConfigError(f"--out {self.out}: expected a file .html, .md or .pdf")
        if self.browser is not None and suffix != ".pdf":
            raise ConfigError("--browser: only with --out FILE.pdf")
        if self.index is not None and self.accesses:
            raise ConfigError("--index and --accesses: expected one of them")
        if (self.want is None) is not (self.journal is None):
            raise ConfigError("--want and --journal: expected both, or neither")
        if self.passphrase_file is not None and self.sign is None:
            raise ConfigError("--passphrase-file: only together with --sign")


# The principals with the access in question.


def who_can_of(
    flags: AskedFlags, choice: "ChosenSource", image: "Image", authorizer: AuthorizerFlags, command: "CommandLine"
) -> "Callable[[Policy], WhoCan]":
    """Return what lists the principals with the access in question, by the policy of the reported state."""
    return lambda policy: _who_can(flags, choice, image, authorizer, command, policy)


def _who_can(
    flags: AskedFlags,
    choice: "ChosenSource",
    image: "Image",
    authorizer: AuthorizerFlags,
    command: "CommandLine",
    policy: "Policy",
) -> "WhoCan":
    from aclog.analysis.regions import EVERYONE
    from aclog.analysis.who_can import granted, with_extents
    from aclog.cli.answers import dated, is_super, since_cells
    from aclog.ops.check import Asked
    from aclog.ops.near import no_principal, unknown_topics
    from aclog.ops.report import WhoCan
    from aclog.ops.why import rows_since

    needs, query, resources = flags.needs(), flags.query(EVERYONE, None), flags.resources()
    listed = [each for each in with_extents(granted(policy, needs, query), resources) if not is_super(each)]
    has_history = choice.source.log is not None
    since = None
    if has_history:
        queries = [need.query(EVERYONE, None) for need in needs] or [query]
        is_stated = authorizer.generation is not None
        since = rows_since(choice.source, image.end_offset, policy, queries, is_kafka_stated=is_stated)
    words = [word for flag, value in flags.named() for word in _words_of(flag, value)]
    return WhoCan(
        access=Asked(operation=flags.operation, intent=flags.intent, resources=resources).text("some", None),
        rows=((part, *since_cells(began)) for each in listed for part, began in dated(each, since)),
        has_history=has_history,
        notes=[
            *(unknown_topics(resources, image) if listed else no_principal(policy, resources, image)),
            *_super_users_texts(policy, choice, authorizer),
            *([] if has_history else ["the source has no history: since when is unknown"]),
        ],
        command=command(" ".join(("who-can", *words, *(["--since"] if has_history else [])))),
    )


def _words_of(flag: str, value: str | None) -> Sequence[str]:
    return (flag,) if value is None else (flag_words([(flag, value)]),)


def _super_users_texts(policy: "Policy", choice: "ChosenSource", authorizer: AuthorizerFlags) -> Iterator[str]:
    """Yield the super users, or that the source cannot have them; nothing if a running cluster hides them."""
    from aclog.authorizer.settings import SUPER_USERS_CONFIG
    from aclog.ops.policies import SUPER_USERS_UNKNOWN, lacks_super_users

    if lacks_super_users(choice, authorizer):
        yield SUPER_USERS_UNKNOWN
    elif SUPER_USERS_CONFIG not in choice.premises(authorizer.configs()).names:
        users = sorted(policy.settings.super_users)
        more = f" and {len(users) - _MOST_USERS:,} more" if len(users) > _MOST_USERS else ""
        yield f"super users, who may do everything: {', '.join(users[:_MOST_USERS]) or 'none'}{more}"


_MOST_USERS = 20


# The use of ACLs.


def source_words(source: SourceFlags, as_of: int | None) -> str:
    """Return the flags of a source, at an end offset of its log: the same state, however long the log has become."""
    named = [*source.named(), ("--timezone", source.timezone), ("--as-of", as_of)]
    return flag_words((flag, value) for flag, value in named if value is not None)


def flag_words(flags: Iterable[tuple[str, object]]) -> str:
    """Return flags and their values as words of a shell: as one word if the value begins with a hyphen."""
    pairs = ((flag, str(value)) for flag, value in flags)
    words = ((f"{flag}={text}",) if text.startswith("-") else (flag, text) for flag, text in pairs)
    return shlex.join(chain.from_iterable(words))


def use_of(
    flags: ReportFlags,
    choice: "ChosenSource",
    source: SourceFlags,
    authorizer: AuthorizerFlags,
    end_offset: int,
    words: str,
    stack: ExitStack,
) -> "Callable[[], UseOfAcls] | None":
    """Return what reads the use of ACLs; None if neither an index nor accesses are given.

    `end_offset`, `words`: of the reported state.
    """
    if flags.index is not None:
        index = flags.index
        return lambda: _use_by_index(index, flags.days, choice, words, stack)
    # `aclog accesses usage` judges each access by the rules of its time only without --as-of.
    as_of = None if source.as_of is None else end_offset
    return (lambda: _use_by_accesses(flags, choice, source, authorizer, as_of)) if flags.accesses else None


def _use_by_index(path: str, days: int | None, choice: "ChosenSource", words: str, stack: ExitStack) -> "UseOfAcls":
    from aclog.ops.report import UseOfAcls
    from aclog.ops.unused import unused_acls, unused_objects, unused_premises
    from aclog.ops.usage import DEFAULT_DAYS
    from aclog.usage.index.stored import reading_index
    from aclog.usage.unused import MEANINGS
    from aclog.usage.unused_report import UnusedQuestion
    from aclog.usage.window import DAY

    index, days = stack.enter_context(reading_index(path)), days or DEFAULT_DAYS
    answers = unused_acls(index, choice, UnusedQuestion(days=days, gap=DAY, until=None, ignored=()))
    own = flag_words((("--index", path), ("--days", days)))
    return UseOfAcls(
        window=_window(days, "index"),
        meanings=MEANINGS,
        objects=unused_objects(answers),
        command=" ".join(filter(None, ("aclog accesses unused", words, own))),
        premises=list(unused_premises(answers)),
        evidence=list(_index_rows(answers)),
    )


def _window(days: int, what: str) -> str:
    return f"in the {'day that ends' if days == 1 else f'{days:,} days that end'} with the latest access of the {what}"


def _index_rows(answers: "UnusedReport") -> Iterator[tuple[str, str]]:
    """Yield what the answers of an index rest on."""
    from aclog.terminal.output import time_text

    window, covered = answers.unused.window, answers.index.coverage()
    yield "window", f"{time_text(window.start // 1000)} to {time_text(window.until // 1000)}"
    is_inside = (covered.last >= window.start) & (covered.first <= window.until)
    yield "accesses in its hours", f"{int(covered.rows[is_inside].sum()):,}"
    yield "denied, SHA-256 of the access logs", "not in an index"


def _use_by_accesses(
    flags: ReportFlags,
    choice: "ChosenSource",
    source: SourceFlags,
    authorizer: AuthorizerFlags,
    as_of: int | None,
) -> "UseOfAcls":
    from aclog.ops.policies import settings_of
    from aclog.ops.report import UseOfAcls
    from aclog.ops.usage import DEFAULT_DAYS, AccessLog, use_of_acls, youth_text
    from aclog.terminal.output import as_of_text, note
    from aclog.usage.evidence import totals_text
    from aclog.usage.unused import MEANINGS

    log, settings = AccessLog.of(flags), settings_of(authorizer)
    use = use_of_acls(log, choice, settings, flags.days, None, authorizer.configs())
    window, zone = use.report.window, log.assumed_zone()
    days, counts = (window.until - window.start).days, use.report.counts
    longest = ", the longest in which an ACL can be judged" if flags.days is None and days < DEFAULT_DAYS else ""
    outside = f"; {counts.outside:,} outside the window" if counts.outside else ""
    if zone:
        note(zone)
    if text := youth_text(use.report):
        note(text)
    own: list[tuple[str, object]] = [("--accesses", path) for path in flags.accesses]
    if flags.accesses_format is not None:
        own.append(("--accesses-format", flags.accesses_format))
    if flags.accesses_timezone is not None:
        own.append(("--accesses-timezone", flags.accesses_timezone))
    words = source_words(source, as_of), flag_words((*own, ("--days", days))), shlex.join(authorizer.words())
    return UseOfAcls(
        window=_window(days, "log"),
        meanings=MEANINGS,
        objects=use.with_reasons(),
        command=" ".join(filter(None, ("aclog accesses usage", *words))),
        premises=[*use.premises(), *([zone] if zone else [])],
        totals=totals_text(use.report),
        evidence=[
            ("window", f"{as_of_text(window.start)} to {as_of_text(window.until)}{longest}"),
            ("accesses evaluated", f"{counts.decided:,} of {counts.total:,} read{outside}"),
            ("denied", f"{use.report.denials or 0:,}"),
            *_digest_rows(log),
        ],
    )


def _digest_rows(log: "AccessLog") -> Iterator[tuple[str, str]]:
    """Yield the SHA-256 of what was read of each file, and which input has none."""
    copies = []
    for file, digest in log.digests():
        if digest is None:
            copies.append(file.path)
        else:
            yield f"SHA-256 of {file.path}, {file.size:,} bytes", digest
    if copies:
        from aclog.ops.usage import few

        yield "no SHA-256: a stream, or from a table or an object store", few(copies)


# Drift and tests.


def drift_of_source(flags: ReportFlags, source: SourceFlags) -> "Callable[[], Drifting] | None":
    """Return what reads the drift of the source from desired rules; None without these.

    Raises:
        ConfigError: the source is no target of a plan, or not its newest state.

    """
    if flags.want is None or flags.journal is None:
        return None
    from aclog.cli.flags.target import TargetFlags

    target = TargetFlags(
        log=source.log_directory(),
        bootstrap_server=source.bootstrap_server,
        bootstrap_controller=source.bootstrap_controller,
        command_config=source.command_config,
    )
    named = [(flag, value) for flag, value in source.named() if flag in _TARGETS]
    if source.as_of is not None or not named:
        raise ConfigError("--want: drift is that of the newest state of a log or a cluster: expected such a source")
    own = flag_words((*named, ("--want", flags.want), ("--journal", flags.journal)))
    want, journal = flags.want, flags.journal
    return lambda: _drifting(target, want, journal, f"aclog drift {own}")


_TARGETS = ("--log", "--bootstrap-server", "--bootstrap-controller", "--command-config")


def _drifting(target: "TargetFlags", want: str, journal: Path, command: str) -> "Drifting":
    from aclog.authorizer.acl import acl_text
    from aclog.authorizer.acls_image import acl_of_content
    from aclog.cli.drift_report import look
    from aclog.cli.flags.commands import DriftFlags
    from aclog.cli.flags.plans import WantFlags
    from aclog.cli.plan import wanted_of
    from aclog.ops.plan import read_wanted_rules
    from aclog.ops.report import Drifting

    desired = read_wanted_rules(wanted_of(WantFlags(want=want))).rules
    drift = look(target, desired, DriftFlags(journal=journal))
    premises = drift.place.premises
    return Drifting(
        rows=[(each.kind.value, acl_text(acl_of_content(each.content))) for each in drift.drift],
        foreign=drift.foreign,
        command=command,
        unless=premises.unless() if premises else None,
    )


def tests_of_source(
    flags: ReportFlags, choice: "ChosenSource", settings: "RepositorySettings", given: frozenset[str], command: str
) -> "Callable[[], Tested] | None":
    """Return what runs the tests of rules on the source; None without tests.

    `given`: the settings of the authorizer that flags give, by their names in AuthorizerSettings: they win over those
    of a file.
    """
    return (lambda: _tested(flags.tests, choice, settings, given, command)) if flags.tests else None


def _tested(
    files: list[str], choice: "ChosenSource", settings: "RepositorySettings", given: frozenset[str], command: str
) -> "Tested":
    from aclog.ops.report import Tested
    from aclog.ops.test import SelectedTests, load_tests, run_files

    selection = SelectedTests(files=files, choose=lambda chosen: (choice, chosen), source_wins=True, settings_win=given)
    results = list(run_files(load_tests(selection, settings)))
    failed = [
        (f"{outcome.case.origin.file}:{outcome.case.origin.line}", outcome.case.test, outcome.failures[0].actual)
        for result in results
        for outcome in result.outcomes
        if not outcome.passed
    ]
    return Tested(cases=sum(len(each.outcomes) for each in results), failed=failed, command=command)
