"""Findings as a SARIF 2.1.0 log, for code scanning: a rule for each lint, a result for each finding."""

from collections.abc import Callable, Iterable
from hashlib import sha256
from urllib.parse import quote

from aclog.analysis.lint.catalogue import LINTS, Lint
from aclog.analysis.lint.finding import Severity
from aclog.analysis.lint_report.lint_report import LintReport
from aclog.analysis.lint_report.located_finding import LocatedFinding, LocatedRule, located_object, rule_object
from aclog.analysis.lint_report.mend import mend_text
from aclog.analysis.regions.region_json import JsonObject
from aclog.analysis.rows.sarif import SARIF_SCHEMA
from aclog.authorizer.acl import ResourceType, acl_text, code_name
from aclog.authorizer.change_place import ChangePlace

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning"}
_STDIN = "stdin"
"""The file of a rule that was read from there: no place to go to."""
_FINGERPRINT = "aclogFinding/v1"
_INDEX = {lint.id: number for number, lint in enumerate(LINTS)}


def sarif_log(
    report: LintReport, place: ChangePlace, *, version: str, uri_of: Callable[[str], str] = lambda file: file
) -> JsonObject:
    """Return a log of all findings, suppressed ones too; `uri_of` returns a file's path from the repository's root."""
    run: JsonObject = {
        "tool": {"driver": {"name": "aclog", "version": version, "rules": [lint_descriptor(lint) for lint in LINTS]}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(found, place, uri_of) for found in (*report.findings, *report.suppressed)],
    }
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def lint_descriptor(lint: Lint) -> JsonObject:
    """Return a lint as a reportingDescriptor."""
    text = f"{lint.harm}\nMend: {lint.mend}"
    return {
        "id": lint.id,
        "name": lint.name,
        "shortDescription": {"text": lint.title},
        "fullDescription": {"text": lint.harm},
        "help": {"text": text, "markdown": f"{lint.harm}\n\n**Mend:** {lint.mend}"},
        "defaultConfiguration": {"level": _LEVELS[lint.severity]},
        "properties": {"precision": "very-high" if lint.exact else "medium", "tags": ["security", "kafka", "acl"]},
    }


def fingerprint(found: LocatedFinding) -> str:
    """Return what tells a finding from others, wherever its lines move: its lint and the contents of its rules."""
    contents = sorted(repr(sorted(rule_object(rule.acl).items())) for rule in found.rules)
    return sha256("\n".join((found.finding.lint, *contents)).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _result(found: LocatedFinding, place: ChangePlace, uri_of: Callable[[str], str]) -> JsonObject:
    finding = found.finding
    rules = "; ".join(acl_text(rule.acl) for rule in found.rules[:3])
    more = f" and {len(found.rules) - 3:,} more" if len(found.rules) > 3 else ""
    first, *others = found.rules
    result: JsonObject = {
        "ruleId": finding.lint,
        "ruleIndex": _INDEX[finding.lint],
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{found.lint.title}: {rules}{more}\n{finding.lost}\nMend: {finding.advice}"},
        "locations": [_location(first, uri_of, 0)],
        "partialFingerprints": {_FINGERPRINT: fingerprint(found)},
        "properties": {"rules": [located_object(rule) for rule in found.rules], "fix": mend_text(finding, place)},
    }
    related = _related(first, others, uri_of)
    if related:
        result["relatedLocations"] = related
    by = found.suppressed_by
    # An empty array says that it is known to be none.
    result["suppressions"] = (
        [] if by is None else [{"kind": "external", "status": "accepted", "justification": f"{by.reason} ({by.where})"}]
    )
    return result


def _related(first: LocatedRule, others: Iterable[LocatedRule], uri_of: Callable[[str], str]) -> list[JsonObject]:
    pairs = [(first, number) for number in range(1, len(list(first.files())))]
    pairs += [(rule, number) for rule in others for number in range(max(1, len(list(rule.files()))))]
    return [
        {"id": place, **_location(rule, uri_of, number), "message": {"text": acl_text(rule.acl)}}
        for place, (rule, number) in enumerate(pairs, 1)
    ]


def _location(rule: LocatedRule, uri_of: Callable[[str], str], number: int) -> JsonObject:
    kind = code_name(ResourceType, rule.acl.resource_type)
    location: JsonObject = {
        "logicalLocations": [{"fullyQualifiedName": acl_text(rule.acl), "name": f"{kind} {rule.acl.resource_name}"}]
    }
    files = list(rule.files())
    if number < len(files) and files[number].file != _STDIN:
        location["physicalLocation"] = {
            "artifactLocation": {"uri": quote(uri_of(files[number].file), safe="/:", errors="surrogateescape")},
            "region": {"startLine": files[number].line},
        }
    return location
