"""`aclog report`: the access of a source in one file, for auditors."""

import os
import re
import shlex
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from getpass import getpass
from pathlib import Path
from typing import TYPE_CHECKING

from aclog.cli.flags.common import AuthorizerFlags
from aclog.cli.flags.many_requests import AskedFlags
from aclog.cli.flags.repository import choice_of_lint, given_settings, settings_of_lint
from aclog.cli.flags.source import SourceFlags
from aclog.cli.options import Group
from aclog.cli.report_evidence import ReportFlags, drift_of_source, source_words, tests_of_source, use_of, who_can_of
from aclog.cli.transfer.output import is_written_through, open_output
from aclog.metalog.errors import ConfigError, printable

if TYPE_CHECKING:
    from aclog.ops.report import Chart, Matrix, Report, Table
    from aclog.security.minisign import SecretKey

app = Group()


@app.command()
def report(flags: ReportFlags, source: SourceFlags, access: AskedFlags, authorizer: AuthorizerFlags) -> None:
    """Write a report on the access of a source into one file: HTML without scripts or network, Markdown, or PDF.

    It contains the ACLs in numbers, who reaches what, the changes of a log over
    time, access that is open to everyone, administrators and the findings of
    lint; with --index or --accesses also unused ACLs, with --want drift, and with
    --tests the results of access tests. Each claim is followed by the command
    line that computes it again, for the state that is named above by its end
    offset and digest. Tables show the first rows, and how many more there are.
    HTML and PDF require the extra `web`; PDF is printed by Chromium, Chrome or Edge.

    With --topic and the other flags of `aclog who-can`, the report begins with the
    principals with this access, and since when: all operations, or --operation.

    [bold]Examples[/]

      aclog report DIR -o audit.html
      aclog report DIR -o audit.pdf
      aclog report DIR -o payments.md --operation READ --topic 'payments.*' --sections who-can
      aclog report DIR -o audit.md --sections numbers,everyone,admins --super-users 'User:admin'
      aclog report --log DIR --as-of 2026-11-01 -o october.html --index usage
      aclog report DIR -o audit.html --want kafka --journal prod.journal --tests rules.yaml --sign minisign.key
    """
    flags.check()
    is_asked = access.is_given()
    if is_asked:
        access.check(takes_any=True)
    sections = flags.selected(is_asked=is_asked)
    suffix, browser = flags.out.suffix.lower(), None
    if suffix != ".md":
        from aclog.ops.extras import need_web_extra

        need_web_extra()
    if suffix == ".pdf":
        from aclog.cli.transfer.pdf import find_browser

        browser = find_browser(flags.browser)
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
    key = None if flags.sign is None else _key(flags.sign, flags.passphrase_file)
    own = source_words(source, None if choice.source.log is None else image.end_offset)
    deciding = shlex.join(authorizer.words())
    is_lint = Section.LINT in sections
    test_settings = settings_of_lint(authorizer) if is_lint or flags.tests else RepositorySettings()
    settings = test_settings if is_lint else RepositorySettings()
    testing = " ".join(filter(None, ("aclog test", shlex.join(flags.tests), own, deciding)))
    lint_choice, topics = choice_of_lint(source, settings, choice, topics)

    def command(text: str) -> str:
        """Return the command line of `aclog` with these words, about the reported state."""
        return " ".join(filter(None, (f"aclog {text}", own, deciding)))

    with ExitStack() as stack:
        if flags.accesses:
            from aclog.usage.accesses.objects import copied_once

            stack.enter_context(copied_once())  # lint and the use of ACLs read the same objects
        value = make(
            ReportQuestion(
                choice=choice,
                image=image,
                stated=authorizer,
                settings=settings,
                lint_choice=lint_choice,
                topics=topics,
                accesses=flags.accesses_of_lint() if is_lint else (),
                accepted=source.accept_unread,
                command=command,
                bare_command=lambda text: f"aclog {text} {own}".rstrip(),
                sections=sections,
                who_can=who_can_of(access, choice, image, authorizer, command) if is_asked else None,
                unused=use_of(flags, choice, source, authorizer, image.end_offset, own, stack),
                drift=drift_of_source(flags, source),
                tests=tests_of_source(flags, choice, test_settings, frozenset(given_settings(authorizer)), testing),
                now=current_time_ms(),
            )
        )
    data = _data(value, suffix, browser)
    path = flags.out if is_written_through(flags.out) else flags.out.resolve()
    signature = None if key is None else key.signature(data, _comment(path, value)).encode()
    with open_output(path, binary=browser is not None, mode=_mode(path)) as file:
        file.write(data)
    note(f"{flags.out}: {len(data):,} bytes")
    if key is not None and signature is not None:
        beside = path.with_name(f"{path.name}.minisig")
        with open_output(beside, binary=False, mode=_mode(beside)) as file:
            file.write(signature)
        note(f"{flags.out}.minisig: verified by minisign -Vm {shlex.quote(str(flags.out))} -P {key.public_text}")


def _data(report: "Report", suffix: str, browser: str | None) -> bytes:
    """Return the content of a file with this suffix; `browser`: the program that prints a PDF."""
    if browser is not None:
        from aclog.cli.transfer.pdf import pdf_of

        return pdf_of(html_text(report), browser)
    text = html_text(report) if suffix == ".html" else "\n".join(markdown_lines(report)) + "\n"
    return text.encode("utf-8", "backslashreplace")


_MOST_PASSPHRASE = 1024


def _key(path: Path, passphrase_file: Path | None) -> "SecretKey":
    """Return the key that signs. Raises ConfigError: not such a key, or no passphrase; OSError: it cannot be read."""
    from aclog.security.minisign import MOST_KEY_BYTES, read_secret_key
    from aclog.sources.contexts import warn_of_readers

    def passphrase() -> bytes:
        """Return the passphrase of the key, of the file or of a prompt."""
        if passphrase_file is not None:
            warn_of_readers(passphrase_file)
            with passphrase_file.open("rb") as file:
                return file.readline(_MOST_PASSPHRASE).rstrip(b"\r\n")
        if not sys.stdin.isatty():
            raise ConfigError(f"{path}: the key has a passphrase, and stdin is no terminal: expected --passphrase-file")
        return getpass(f"Passphrase of {printable(str(path))}: ").encode()

    warn_of_readers(path)
    with path.open("rb") as file:
        return read_secret_key(file.read(MOST_KEY_BYTES + 1), str(path), passphrase)


def _comment(path: Path, report: "Report") -> str:
    """Return the trusted comment of a signature: what is signed, and the state that it is about."""
    facts = dict(report.facts)
    about = "".join(
        f"\t{name}:{facts[fact]}" for name, fact in (("offset", "End offset"), ("acls", "SHA-256 of the ACLs"))
    )
    return f"timestamp:{report.made // 1000}\tfile:{printable(path.name)}{about}\thashed"


def _mode(path: Path) -> int:
    """Return the mode of a file, or that of a new one."""
    with suppress(FileNotFoundError):
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


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
    yield f"# Access report: {_code(report.source)}"
    yield ""
    yield from _markdown_table(("fact", "value"), report.facts)
    yield ""
    yield f"To recompute the SHA-256 of the ACLs: {_code(report.digest_command)}"
    if report.unless is not None:
        yield ""
        yield f"**Every answer holds unless {_escaped(report.unless)}.**"
    for section in report.sections:
        yield ""
        yield f"## {section.title}"
        if section.missing is not None:
            yield ""
            yield f"Not in this report: {_escaped(section.missing)}."
        is_apart = True
        for part, command in section.with_commands():
            if is_apart:
                yield ""
            is_apart = command is not None
            yield _escaped(part.text)
            yield ""
            if part.chart is not None:
                yield from _chart_lines(part.chart)
            if part.matrix is not None:
                yield from _matrix_lines(part.matrix)
            if part.table is not None:
                yield from _table_lines(part.table)
            if command is not None:
                yield _code(command)


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
        yield f"And {matrix.more_groups:,} more groups of topics, which the column at least one TOPIC covers."
        yield ""


def _chart_lines(chart: "Chart") -> Iterator[str]:
    rows = [(bar.label, f"{bar.added:,}", f"{bar.removed:,}") for bar in chart.bars if bar.added or bar.removed]
    begin = chart.period if chart.period in ("hour", "day") else f"{chart.period} from"
    yield from _markdown_table((f"{begin} (UTC)", "added", "removed"), rows)
    yield ""
