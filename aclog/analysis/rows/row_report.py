"""A report on a change: rows with what is counted for each, as lines of text, a table in markdown, or SARIF."""

from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote

from attrs import frozen

from aclog.analysis.regions.region import Direction, Request
from aclog.analysis.regions.region_json import JsonObject, decided_by_object, request_object
from aclog.analysis.rows.row import Row
from aclog.analysis.rows.row_text import directions_text, hosts_text, summary_text, what_text, who_text
from aclog.authorizer.acl import AclOperation, ResourceType, StandardAcl, code_name
from aclog.authorizer.explanation_text import acl_text

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_TITLES = ("change", "who", "what", "from", "decided before by", "decided after by", "example")
_NAMES = {Direction.GAINED: "access-gained", Direction.LOST: "access-lost"}
_ABOUT = {Direction.GAINED: "Requests that were denied are allowed", Direction.LOST: "Allowed requests are denied"}


@frozen(kw_only=True)
class ReportRow:
    """A row; how many existing topics its names hold and how many of some accesses it flips, if that is known."""

    row: Row
    topics: int | None = None
    accesses: int | None = None

    def counts(self) -> str:
        """Return such as `12 topics exist, 340 accesses flip`; empty if nothing is known."""
        found = []
        if self.topics is not None:
            found.append(f"{self.topics:,} topic{' exists' if self.topics == 1 else 's exist'}")
        if self.accesses is not None:
            found.append(f"{self.accesses:,} access{' flips' if self.accesses == 1 else 'es flip'}")
        return ", ".join(found)


def request_text(request: Request) -> str:
    """Return such as `User:a READ TOPIC 'orders' from 10.0.0.1`."""
    operation, kind = code_name(AclOperation, request.operation), code_name(ResourceType, request.resource_type)
    return f"{request.principal} {operation} {kind} {request.resource_name!r} from {request.host}"


def decided_by_text(rule: StandardAcl | str | None) -> str:
    """Return a deciding rule as text; None is that of a request on which Kafka's authorizer throws."""
    if rule is None:
        return "no answer (Kafka's authorizer throws)"
    return rule if isinstance(rule, str) else acl_text(rule)


def row_lines(report: ReportRow) -> Iterator[str]:
    """Yield the lines of a row."""
    row = report.row
    yield f"{directions_text(row)}  {who_text(row.principals)}: {what_text(row.clauses)}, from {hosts_text(row.hosts)}"
    if row.summary is not None:
        yield f"  {summary_text(row, row.summary)}"
    yield f"  such as {_example(row)}: {decided_by_text(row.before)}; now {decided_by_text(row.after)}"
    if report.counts():
        yield f"  {report.counts()}"


def markdown_lines(rows: Sequence[ReportRow]) -> Iterator[str]:
    """Yield a table, and a line that says how many rows it has."""
    if not rows:
        yield "No difference."
        return
    counted = any(row.counts() for row in rows)
    titles = (*_TITLES, "counts") if counted else _TITLES
    yield _markdown_row(titles)
    yield _markdown_row("---" for _ in titles)
    for report in rows:
        cells = _cells(report.row)
        yield _markdown_row((*cells, report.counts()) if counted else cells)


def _cells(row: Row) -> tuple[str, ...]:
    what = what_text(row.clauses)
    if row.summary is not None:
        what = f"{what}: {summary_text(row, row.summary)}"
    return (
        directions_text(row),
        who_text(row.principals),
        what,
        hosts_text(row.hosts),
        decided_by_text(row.before),
        decided_by_text(row.after),
        _example(row),
    )


def _markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(markdown_text(cell) for cell in cells)} |"


def markdown_text(text: str) -> str:
    r"""Escape what markdown would take for more than text; `*` is common in ACLs."""
    return "".join(f"\\{character}" if character in r"\|*_<>[]`" else character for character in text)


def _example(row: Row) -> str:
    return request_text(row.witness) + ("" if row.legal else " (no topic can have such a name)")


def sarif_log(rows: Sequence[ReportRow], *, version: str, path: str | None) -> JsonObject:
    """Return a SARIF 2.1.0 log with a result for each row; `path` is the file to which they belong, if any."""
    driver: JsonObject = {
        "name": "aclog",
        "version": version,
        "rules": [
            {"id": _NAMES[direction], "shortDescription": {"text": _ABOUT[direction]}} for direction in Direction
        ],
    }
    run = {"tool": {"driver": driver}, "results": [_result(report, path) for report in rows]}
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(report: ReportRow, path: str | None) -> JsonObject:
    row = report.row
    location: JsonObject = {
        "logicalLocations": [{"name": what_text([clause]), "kind": "resource"} for clause in row.clauses]
    }
    if path is not None:
        location["physicalLocation"] = {"artifactLocation": {"uri": quote(path)}, "region": {"startLine": 1}}
    properties: JsonObject = {
        "witness": request_object(row.witness),
        "old": decided_by_object(row.before),
        "new": decided_by_object(row.after),
        "topics": report.topics,
        "accesses": report.accesses,
    }
    return {
        "ruleId": _NAMES[row.directions[0]],
        "level": "warning",
        "message": {"text": "\n".join(row_lines(report))},
        "locations": [location],
        "properties": {key: value for key, value in properties.items() if value is not None},
    }
