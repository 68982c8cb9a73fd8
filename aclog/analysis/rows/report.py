"""The report of a change: text, JSON lines, SARIF, Arrow, pandas and HTML."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

from attrs import field, frozen

from aclog.analysis.policy import only_on
from aclog.analysis.regions import (
    Direction,
    JsonObject,
    Request,
    decided_by_object,
    hosts_text,
    request_object,
    who_text,
)
from aclog.analysis.rows.row import Bound, Row, bound_text, claim_text, directions_text, summary_text, what_text
from aclog.authorizer.acl import AclOperation, ResourceType, StandardAcl, code_name
from aclog.authorizer.explain import located_text
from aclog.authorizer.origin import NO_ORIGINS, FileOrigin, Origins, TwoOrigins
from aclog.authorizer.premises import ALL_KNOWN, Premises
from aclog.authorizer.settings import Generation
from aclog.installation import needs_extra
from aclog.metalog.errors import ConfigError, plural, printable

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


# The report of a change: rows with counts, as lines of text or as a table in Markdown.


_LINKED = re.compile(r"(?<![\w.])[@#](?=\w)|\b(?:https?|ftp):(?=//)|\bwww(?=\.)", re.IGNORECASE)
"""The beginning of a mention or a link."""
_NOTHING = "&#8203;"
"""A zero-width space, which breaks a mention or a link."""

TITLES = ("change", "who", "what", "from", "decided before by", "decided after by", "example")


@frozen(kw_only=True)
class ReportRow:
    """A row, with the number of existing topics and of flipped accesses that it covers, if known."""

    row: Row
    topics: int | None = None
    accesses: int | None = None
    origins: TwoOrigins = field(factory=TwoOrigins)
    """The locations of the ACLs of both sides."""
    places: tuple[FileOrigin, ...] = ()
    """The locations of the changed ACLs behind the row, those of the second side first."""
    only: Generation | None = None
    """The only generation of Kafka in which the row holds, if several may decide."""

    def __str__(self) -> str:
        return "\n".join(map(printable, row_lines(self)))

    def counts(self) -> str:
        """Return such as `covers 12 existing topics, 1 access is decided differently`; empty without counts."""
        parts = []
        if self.topics is not None:
            most = "up to " if self.row.bound in (Bound.NAMES, Bound.ALL) else ""
            parts.append(f"covers {most}{plural(self.topics, 'existing topic')}")
        if self.accesses is not None:
            parts.append(f"{self.accesses:,} access{' is' if self.accesses == 1 else 'es are'} decided differently")
        return ", ".join(parts)


def request_text(request: Request) -> str:
    """Return such as `User:a READ TOPIC 'orders' from 10.0.0.1`."""
    operation, kind = code_name(AclOperation, request.operation), code_name(ResourceType, request.resource_type)
    return f"{request.principal} {operation} {kind} {request.resource_name!r} from {request.host}"


def decided_by_text(rule: StandardAcl | str | None, origins: Origins = NO_ORIGINS) -> str:
    """Return the text of a deciding ACL with its location; None: Kafka's authorizer throws on the request."""
    if rule is None:
        return "no answer (Kafka's authorizer throws)"
    return rule if isinstance(rule, str) else located_text(rule, origins)


def row_lines(report: ReportRow) -> Iterator[str]:
    """Yield the lines of text of a row."""
    row = report.row
    claim = f"{who_text(row.principals)}: {claim_text(row)}, from {hosts_text(row.hosts)}{bound_text(row)}"
    yield f"{directions_text(row)}  {claim}{only_on(report.only)}"
    if row.summary is not None:
        yield f"  {summary_text(row, row.summary)}"
    before, after = _decided_by(report)
    yield f"  for example {_example(row)} (before: {before}; after: {after})"
    if report.counts():
        yield f"  {report.counts()}"


def markdown_lines(rows: Sequence[ReportRow], premises: Premises = ALL_KNOWN) -> Iterator[str]:
    """Yield a table, or a line if there are no rows.

    `premises`: the unknown premises that could refute "no difference".
    """
    if not rows:
        yield f"{premises.decided('No difference')}."
        return
    counted = any(row.counts() for row in rows)
    titles = (*TITLES, "counts") if counted else TITLES
    yield _markdown_row(titles)
    yield _markdown_row("---" for _ in titles)
    for report in rows:
        cells = row_cells(report)
        yield _markdown_row((*cells, report.counts()) if counted else cells)


def _decided_by(report: ReportRow) -> tuple[str, str]:
    row, origins = report.row, report.origins
    return decided_by_text(row.before, origins.old), decided_by_text(row.after, origins.new)


def row_cells(report: ReportRow) -> tuple[str, ...]:
    """Return the cells of a row, under TITLES."""
    row = report.row
    what = claim_text(row) + bound_text(row)
    if row.summary is not None:
        what = f"{what}: {summary_text(row, row.summary)}"
    return (
        directions_text(row),
        who_text(row.principals),
        what,
        hosts_text(row.hosts),
        *_decided_by(report),
        _example(row),
    )


def _markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(markdown_text(cell) for cell in cells)} |"


def markdown_text(text: str) -> str:
    r"""Escape characters with a meaning in Markdown, such as `*`, which is common in ACLs.

    GitHub and GitLab also notify users named `@name`, link addresses and `#12`, and render text between two `$` as a
    formula, in which `User:ad{}min` reads `User:admin`. Names are untrusted input.
    """
    escaped = "".join(f"\\{character}" if character in r"\|*_<>[]`~" else character for character in text)
    return _LINKED.sub(rf"\g<0>{_NOTHING}", escaped.replace("&", "&amp;")).replace("$", "&#36;")


def _example(row: Row) -> str:
    return request_text(row.witness) + ("" if row.legal else " (not a legal topic name)")


# The report of a change as SARIF 2.1.0, for code scanning: a result for each row, at the lines of its ACLs.


SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_STDIN = "stdin"
_NAMES = {Direction.GAINED: "access-gained", Direction.LOST: "access-lost"}
_ABOUT = {Direction.GAINED: "Denied requests become allowed", Direction.LOST: "Allowed requests become denied"}


def sarif_log(rows: Sequence[ReportRow], *, version: str, path: str | None, refs: Collection[str] = ()) -> JsonObject:
    """Return a SARIF 2.1.0 log with a result for each row, at the lines of the changed ACLs behind it.

    `path` is the file for results without a known location, if any. `refs`: the commits of files, whose names begin
    with a commit and a colon, as no path in a repository does.
    """
    driver: JsonObject = {
        "name": "aclog",
        "version": version,
        "rules": [
            {"id": _NAMES[direction], "shortDescription": {"text": _ABOUT[direction]}} for direction in Direction
        ],
    }
    run = {"tool": {"driver": driver}, "results": [_result(report, path, refs) for report in rows]}
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(report: ReportRow, path: str | None, refs: Collection[str]) -> JsonObject:
    row = report.row
    logical = [{"name": what_text([clause]), "kind": "resource"} for clause in row.clauses]
    places = [_physical(_without_ref(place.file, refs), place.line) for place in report.places if place.file != _STDIN]
    if not places and path is not None:
        places = [_physical(_without_ref(path, refs), 1)]
    first: JsonObject = {"logicalLocations": logical, **(places[0] if places else {})}
    properties: JsonObject = {
        "witness": request_object(row.witness),
        "old": decided_by_object(row.before, report.origins.old),
        "new": decided_by_object(row.after, report.origins.new),
        "topics": report.topics,
        "accesses": report.accesses,
        "generation": None if report.only is None else report.only.value,
    }
    return {
        "ruleId": _NAMES[row.directions[0]],
        "level": "warning",
        "message": {"text": "\n".join(row_lines(report))},
        "locations": [first, *places[1:]],
        "properties": {key: value for key, value in properties.items() if value is not None},
    }


def _physical(path: str, line: int) -> JsonObject:
    uri = quote(path, errors="surrogateescape")  # the name of a file may not be UTF-8
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": line}}}


def _without_ref(path: str, refs: Collection[str]) -> str:
    return next((path.removeprefix(f"{ref}:") for ref in refs if path.startswith(f"{ref}:")), path)


# Rows in the forms of notebooks and data frames: Arrow, pandas and HTML.


MOST_ROWS = 20
"""The most rows of an HTML table: a notebook stores its output."""
MOST_CHARACTERS = 80
"""The most characters of a cell."""

Cell: TypeAlias = str | int | bool | None


class Kind(StrEnum):
    """The type of a column."""

    TEXT = "text"
    NUMBER = "number"
    TIME = "time"
    """In ms since 1970; negative if unknown."""
    FLAG = "flag"


def arrow_table(kinds: Mapping[str, Kind], rows: Iterable[Sequence[Cell]]) -> "pa.Table":
    """Return rows as an Arrow table; times are timestamps in UTC.

    Raises:
        ConfigError: pyarrow is not installed.

    """
    try:
        import pyarrow as pa  # noqa: PLC0415  # an extra
    except ImportError:
        raise ConfigError(needs_extra("to_arrow", "pyarrow", "parquet")) from None
    types = {
        Kind.TEXT: pa.string(),
        Kind.NUMBER: pa.int64(),
        Kind.TIME: pa.timestamp("ms", "UTC"),
        Kind.FLAG: pa.bool_(),
    }
    columns = _columns(kinds, rows)
    return pa.table({name: pa.array(columns[name], types[kind]) for name, kind in kinds.items()})


def pandas_frame(kinds: Mapping[str, Kind], rows: Iterable[Sequence[Cell]]) -> "pd.DataFrame":
    """Return rows as a data frame; times are timestamps in UTC.

    Raises:
        ConfigError: pandas is not installed.

    """
    try:
        import pandas as pd  # noqa: PLC0415  # an extra
    except ImportError:
        raise ConfigError("to_pandas needs pandas: pip install pandas") from None
    columns: dict[str, Any] = _columns(kinds, rows)
    for name, kind in kinds.items():
        if kind is Kind.TIME:
            columns[name] = pd.to_datetime(pd.Series(columns[name], dtype="Int64"), unit="ms", utc=True)
        elif kind is Kind.TEXT:
            columns[name] = pd.Series(columns[name], dtype="object")
    return pd.DataFrame(columns, columns=list(kinds))


def html_table(titles: Sequence[str], rows: Iterable[Sequence[Cell]], *, caption: str, total: int | None = None) -> str:
    """Return the first rows as an HTML table, escaped; `total` is the number of all rows, if known."""
    first_rows = list(islice(rows, MOST_ROWS + 1))
    more = len(first_rows) > MOST_ROWS
    head = "".join(f"<th>{_html(title)}</th>" for title in titles)
    body = "".join(f"<tr>{''.join(f'<td>{_html(cell)}</td>' for cell in row)}</tr>" for row in first_rows[:MOST_ROWS])
    rest = "more" if total is None else f"{total - MOST_ROWS:,} more"
    foot = f'<tr><td colspan="{len(titles)}">... and {rest}</td></tr>' if more else ""
    return (
        f"<table><caption>{_html(caption, 4 * MOST_CHARACTERS)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}{foot}</tbody></table>"
    )


def html_text(text: str) -> str:
    """Return lines as preformatted HTML, with the limits of a table."""
    lines = text.splitlines()
    escaped = [_html(line, 2 * MOST_CHARACTERS) for line in lines[: 2 * MOST_ROWS]]
    if len(lines) > len(escaped):
        escaped.append(f"... and {len(lines) - len(escaped):,} more lines")
    return f"<pre>{'<br>'.join(escaped)}</pre>"


def _html(cell: Cell, most: int = MOST_CHARACTERS) -> str:
    text = printable("" if cell is None else str(cell))
    return escape(text if len(text) <= most else f"{text[: most - 1]}\u2026")


def _columns(kinds: Mapping[str, Kind], rows: Iterable[Sequence[Cell]]) -> dict[str, list[Cell]]:
    values = list(zip(*rows, strict=True)) or [()] * len(kinds)
    columns = {name: list(column) for name, column in zip(kinds, values, strict=True)}
    for name, kind in kinds.items():
        if kind is Kind.TIME:
            columns[name] = [None if not isinstance(time, int) or time < 0 else time for time in columns[name]]
    return columns
