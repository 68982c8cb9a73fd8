"""A report on a change: rows with what is counted for each, as lines of text or as a table in markdown."""

import re
from collections.abc import Iterable, Iterator, Sequence

from attrs import field, frozen

from aclog.analysis.by_generation import only_on
from aclog.analysis.regions.region import Request
from aclog.analysis.regions.region_text import hosts_text, who_text
from aclog.analysis.rows.row import Bound, Row
from aclog.analysis.rows.row_text import bound_text, claim_text, directions_text, summary_text
from aclog.authorizer.acl import AclOperation, ResourceType, StandardAcl, code_name
from aclog.authorizer.explanation_text import located_text
from aclog.authorizer.generation import Generation
from aclog.authorizer.origin import NO_ORIGINS, FileOrigin, Origins, TwoOrigins
from aclog.authorizer.premises import ALL_KNOWN, Premises
from aclog.metalog.printable import printable

_LINKED = re.compile(r"(?<![\w.])[@#](?=\w)|\b(?:https?|ftp):(?=//)|\bwww(?=\.)", re.IGNORECASE)
"""What begins a mention or a link."""
_NOTHING = "&#8203;"
"""A blank of no width, which ends one."""

TITLES = ("change", "who", "what", "from", "decided before by", "decided after by", "example")


@frozen(kw_only=True)
class ReportRow:
    """A row; how many existing topics its names hold and how many of some accesses it flips, if that is known."""

    row: Row
    topics: int | None = None
    accesses: int | None = None
    origins: TwoOrigins = field(factory=TwoOrigins)
    """Where the rules of both sides stand."""
    places: tuple[FileOrigin, ...] = ()
    """Where the changed rules behind it stand, those of the second side first."""
    only: Generation | None = None
    """That of Kafka by which alone it is so, if several may decide."""

    def __str__(self) -> str:
        return "\n".join(map(printable, row_lines(self)))

    def counts(self) -> str:
        """Return such as `12 topics exist, 340 accesses flip`; empty if nothing is known."""
        found = []
        if self.topics is not None:
            most = "up to " if self.row.bound in (Bound.NAMES, Bound.ALL) else ""
            found.append(f"{most}{self.topics:,} topic{' exists' if self.topics == 1 else 's exist'}")
        if self.accesses is not None:
            found.append(f"{self.accesses:,} access{' flips' if self.accesses == 1 else 'es flip'}")
        return ", ".join(found)


def request_text(request: Request) -> str:
    """Return such as `User:a READ TOPIC 'orders' from 10.0.0.1`."""
    operation, kind = code_name(AclOperation, request.operation), code_name(ResourceType, request.resource_type)
    return f"{request.principal} {operation} {kind} {request.resource_name!r} from {request.host}"


def decided_by_text(rule: StandardAcl | str | None, origins: Origins = NO_ORIGINS) -> str:
    """Return a deciding rule as text, and where it stands; None: Kafka's authorizer throws on the request."""
    if rule is None:
        return "no answer (Kafka's authorizer throws)"
    return rule if isinstance(rule, str) else located_text(rule, origins)


def row_lines(report: ReportRow) -> Iterator[str]:
    """Yield the lines of a row."""
    row = report.row
    claim = f"{who_text(row.principals)}: {claim_text(row)}, from {hosts_text(row.hosts)}{bound_text(row)}"
    yield f"{directions_text(row)}  {claim}{only_on(report.only)}"
    if row.summary is not None:
        yield f"  {summary_text(row, row.summary)}"
    before, after = _decided_by(report)
    yield f"  such as {_example(row)}: {before}; now {after}"
    if report.counts():
        yield f"  {report.counts()}"


def markdown_lines(rows: Sequence[ReportRow], premises: Premises = ALL_KNOWN) -> Iterator[str]:
    """Yield a table, and a line that says how many rows it has.

    `premises`: what could turn that there is no row.
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
    r"""Escape what markdown would take for more than text, such as `*`, which is common in ACLs.

    GitHub and GitLab also notify whom `@name` names, make links of addresses and of `#12`, and set what stands between
    two `$` as a formula, where `User:ad{}min` reads `User:admin`; a stranger chose them.
    """
    escaped = "".join(f"\\{character}" if character in r"\|*_<>[]`~" else character for character in text)
    return _LINKED.sub(rf"\g<0>{_NOTHING}", escaped.replace("&", "&amp;")).replace("$", "&#36;")


def _example(row: Row) -> str:
    return request_text(row.witness) + ("" if row.legal else " (no topic can have such a name)")
