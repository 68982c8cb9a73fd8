"""`aclog report`: the access of a source in one file, for auditors."""

import os
import re
import shlex
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from attrs import field, frozen

from aclog.cli.flags.common import (
    ACCESSES_PANEL,
    AccessesFormat,
    AccessesTimezone,
    AuthorizerFlags,
    SourceFlags,
)
from aclog.cli.flags.repository import choice_of_lint, settings_of_lint
from aclog.cli.options import Group, Option
from aclog.cli.transfer.output import is_written_through, open_output
from aclog.metalog.errors import ConfigError, printable
from aclog.metalog.text_forms import comma_parts

if TYPE_CHECKING:
    from aclog.ops.report import Chart, Matrix, Report, Section, Table, UseOfAcls
    from aclog.sources.choice import ChosenSource

app = Group()

_SECTIONS = "numbers, access, changes, everyone, admins, lint, unused"


@frozen(kw_only=True)
class ReportFlags:
    """Where the report goes, what is in it, and what shows the use of ACLs."""

    out: Annotated[
        Path,
        Option("--out", "-o", metavar="FILE", help="The report: a file .html or .md.", show_default=False),
    ]
    sections: Annotated[
        str | None,
        Option("--sections", metavar="A,B,C", help=f"Only these sections: {_SECTIONS}.", show_default="all"),
    ] = None
    index: Annotated[
        Path | None,
        Option(
            "--index",
            metavar="DIR",
            help="Report unused ACLs by this index of last use, of [cyan]aclog accesses index[/].",
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
    accesses_timezone: AccessesTimezone = "UTC"
    days: Annotated[
        int,
        Option("--days", metavar="N", min=1, help="The days of accesses that count.", rich_help_panel=ACCESSES_PANEL),
    ] = 90

    @property
    def workers(self) -> int | None:
        """The default number of processes that read the accesses."""
        return None

    def selected(self) -> "tuple[Section, ...]":
        """Return the sections, in their order. Raises ConfigError: an unknown one."""
        from aclog.ops.report import Section

        if self.sections is None:
            return tuple(Section)
        names = [part.strip() for part in comma_parts(self.sections)]
        for name in names:
            if name not in set(Section):
                raise ConfigError(f"--sections: no section {name[:80]!r}: expected some of {_SECTIONS}")
        return tuple(each for each in Section if each in names)

    def check(self) -> None:
        """Raise ConfigError: a file of another kind, or both an index and accesses."""
        if self.out.suffix.lower() not in (".html", ".md"):
            raise ConfigError(f"--out {self.out}: expected a file .html or .md")
        if self.index is not None and self.accesses:
            raise ConfigError("--index and --accesses: expected one of them")


@app.command()
def report(flags: ReportFlags, source: SourceFlags, authorizer: AuthorizerFlags) -> None:
    """Write a report on the access of a source into one file: HTML without scripts or network, or Markdown.

    It contains the estate in numbers, who reaches what, the changes of a log over
    time, access that is open to everyone, administrators and the findings of
    lint; with --index or --accesses also unused ACLs. Each claim is followed by
    the command line that computes it again, for the state that is named above by
    its end offset and digest. Tables show the first rows, and how many more there
    are. HTML requires the extra `web`.

    [bold]Examples[/]

      aclog report DIR -o audit.html
      aclog report DIR -o audit.md --sections numbers,everyone,admins --super-users 'User:admin'
      aclog report --log DIR --as-of 2026-11-01 -o october.html --index usage
    """
    flags.check()
    sections = flags.selected()
    is_html = flags.out.suffix.lower() == ".html"
    if is_html:
        from aclog.ops.extras import need_web_extra

        need_web_extra()
    if flags.index is not None or flags.accesses:
        from aclog.ops.extras import need_usage_extra

        need_usage_extra()
    from aclog.metalog.primitives import current_time_ms
    from aclog.ops.report import ReportQuestion, Section
    from aclog.ops.report import report as make
    from aclog.sources.repository import RepositorySettings
    from aclog.terminal.output import note

    topics = source.topics()
    choice = source.choose(topics=topics)
    image = choice.image()
    words = _source_words(source, None if choice.source.log is None else image.end_offset)
    deciding = shlex.join(authorizer.words())
    settings = settings_of_lint(authorizer) if Section.LINT in sections else RepositorySettings()
    lint_choice, topics = choice_of_lint(source, settings, choice, topics)
    with ExitStack() as stack:
        value = make(
            ReportQuestion(
                choice=choice,
                image=image,
                stated=authorizer,
                settings=settings,
                lint_choice=lint_choice,
                topics=topics,
                accepted=source.accept_unread,
                command=lambda text: " ".join(filter(None, (f"aclog {text}", words, deciding))),
                bare_command=lambda text: f"aclog {text} {words}".rstrip(),
                sections=sections,
                unused=_use_of(flags, choice, source, authorizer, image.end_offset, words, stack),
                now=current_time_ms(),
            )
        )
    text = html_text(value) if is_html else "\n".join(markdown_lines(value)) + "\n"
    data = text.encode("utf-8", "backslashreplace")
    path = flags.out if is_written_through(flags.out) else flags.out.resolve()
    with open_output(path, binary=False, mode=_mode(path)) as file:
        file.write(data)
    note(f"{flags.out}: {len(data):,} bytes")


def _mode(path: Path) -> int:
    """Return the mode of a file, or that of a new one."""
    with suppress(FileNotFoundError):
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _source_words(source: SourceFlags, as_of: int | None) -> str:
    """Return the flags of a source, at an end offset of its log: the same state, however long the log has become."""
    named = [*source.named(), ("--timezone", source.timezone), ("--as-of", as_of)]
    return _words((flag, value) for flag, value in named if value is not None)


def _words(flags: Iterable[tuple[str, object]]) -> str:
    """Return flags and their values as words of a shell: as one word if the value begins with a hyphen."""
    pairs = ((flag, str(value)) for flag, value in flags)
    words = ((f"{flag}={text}",) if text.startswith("-") else (flag, text) for flag, text in pairs)
    return shlex.join(chain.from_iterable(words))


def _use_of(
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


def _use_by_index(path: Path, days: int, choice: "ChosenSource", words: str, stack: ExitStack) -> "UseOfAcls":
    from aclog.ops.report import UseOfAcls
    from aclog.ops.unused import unused_acls, unused_objects, unused_premises
    from aclog.usage.index.usage_index import UsageIndex
    from aclog.usage.unused_report import UnusedQuestion
    from aclog.usage.window import DAY

    index = stack.enter_context(UsageIndex.open(path))
    answers = unused_acls(index, choice, UnusedQuestion(days=days, gap=DAY, until=None, ignored=()))
    own = _words((("--index", path), ("--days", days)))
    return UseOfAcls(
        window=f"in {days} days before the latest access of the index",
        objects=unused_objects(answers),
        command=" ".join(filter(None, ("aclog accesses unused", words, own))),
        premises=list(unused_premises(answers)),
        has_reasons=True,
    )


def _use_by_accesses(
    flags: ReportFlags,
    choice: "ChosenSource",
    source: SourceFlags,
    authorizer: AuthorizerFlags,
    as_of: int | None,
) -> "UseOfAcls":
    from aclog.ops.policies import settings_of
    from aclog.ops.report import UseOfAcls
    from aclog.ops.usage import AccessLog, use_of_acls

    use = use_of_acls(AccessLog.of(flags), choice, settings_of(authorizer), flags.days, None, authorizer.configs())
    own: list[tuple[str, object]] = [("--accesses", path) for path in flags.accesses]
    if flags.accesses_format is not None:
        own.append(("--accesses-format", flags.accesses_format))
    if flags.accesses_timezone != "UTC":
        own.append(("--accesses-timezone", flags.accesses_timezone))
    words = _source_words(source, as_of), _words((*own, ("--days", flags.days))), shlex.join(authorizer.words())
    return UseOfAcls(
        window=f"in {flags.days} days before the latest access of the log",
        objects=use.objects(),
        command=" ".join(filter(None, ("aclog accesses usage", *words))),
        premises=list(use.premises()),
        has_reasons=False,
    )


# The file.


def html_text(report: "Report") -> str:
    """Return the report as one HTML document: no script, no address, every name escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("aclog.cli"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = printable
    return environment.get_template("report.html").render(report=report)


def markdown_lines(report: "Report") -> Iterator[str]:
    """Yield the report as Markdown, with every name escaped."""
    yield f"# Access report of {_escaped(report.source)}"
    yield ""
    yield from _markdown_table(("fact", "value"), report.facts)
    yield ""
    yield f"The digest again: {_code(report.digest_command)}"
    if report.unless is not None:
        yield ""
        yield f"**Every answer holds unless {_escaped(report.unless)}.**"
    for section in report.sections:
        yield ""
        yield f"## {section.title}"
        if section.missing is not None:
            yield ""
            yield f"Not in this report: {_escaped(section.missing)}."
        for part in section.parts:
            yield ""
            yield _escaped(part.text)
            yield ""
            if part.chart is not None:
                yield from _chart_lines(part.chart)
            if part.matrix is not None:
                yield from _matrix_lines(part.matrix)
            if part.table is not None:
                yield from _table_lines(part.table)
            yield _code(part.command)


def _escaped(text: str) -> str:
    from aclog.analysis.rows.report import markdown_text

    return markdown_text(printable(text))


def _code(text: str) -> str:
    """Return a code span, whose fence is longer than any run of backticks in the text."""
    text = printable(text)
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence}{' ' if longest else ''}{text}{' ' if longest else ''}{fence}"


def _markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(map(_escaped, heads))} |"
    yield "|---" * len(heads) + "|"
    yield from (f"| {' | '.join(map(_escaped, row))} |" for row in rows)


def _table_lines(table: "Table") -> Iterator[str]:
    yield from _markdown_table(table.heads, table.rows)
    yield ""
    if table.more:
        yield f"And {table.more:,} more."
        yield ""


def _matrix_lines(matrix: "Matrix") -> Iterator[str]:
    rows = [(name, *(cell.text for cell in cells)) for name, cells in matrix.rows]
    yield from _markdown_table(("principal", *matrix.columns), rows)
    yield ""
    if matrix.more:
        yield f"And {matrix.more:,} more principals with fewer ACLs."
        yield ""
    if matrix.more_groups:
        yield f"And {matrix.more_groups:,} more groups of topics, which the column TOPIC covers."
        yield ""


def _chart_lines(chart: "Chart") -> Iterator[str]:
    rows = [(bar.label, f"{bar.added:,}", f"{bar.removed:,}") for bar in chart.bars if bar.added or bar.removed]
    yield from _markdown_table((f"{chart.period} from", "added", "removed"), rows)
    yield ""
