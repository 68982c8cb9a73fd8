"""A report on a change as SARIF 2.1.0, for code scanning: a result for each row, at the lines of its rules."""

from collections.abc import Collection, Sequence
from urllib.parse import quote

from aclog.analysis.regions.region import Direction
from aclog.analysis.regions.region_json import JsonObject, decided_by_object, request_object
from aclog.analysis.rows.row_report import ReportRow, row_lines
from aclog.analysis.rows.row_text import what_text

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_STDIN = "stdin"
_NAMES = {Direction.GAINED: "access-gained", Direction.LOST: "access-lost"}
_ABOUT = {Direction.GAINED: "Requests that were denied are allowed", Direction.LOST: "Allowed requests are denied"}


def sarif_log(rows: Sequence[ReportRow], *, version: str, path: str | None, refs: Collection[str] = ()) -> JsonObject:
    """Return a SARIF 2.1.0 log with a result for each row, at the lines of the changed rules behind it.

    `path` is the file to which those belong of which none is known, if any. `refs`: commits that files are of; the
    names of these begin with one and a colon, which no path in a repository does.
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
    uri = quote(path, errors="surrogateescape")  # the name of a file need not be text
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": line}}}


def _without_ref(path: str, refs: Collection[str]) -> str:
    return next((path.removeprefix(f"{ref}:") for ref in refs if path.startswith(f"{ref}:")), path)
