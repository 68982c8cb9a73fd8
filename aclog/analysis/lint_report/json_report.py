"""Findings as JSON lines (docs/commands.md)."""

from collections.abc import Iterator

from aclog.analysis.lint_report.lint_report import LintReport
from aclog.analysis.lint_report.located_finding import LocatedFinding, located_object
from aclog.analysis.lint_report.mend import mend_text
from aclog.analysis.regions.region_json import JsonObject
from aclog.authorizer.change_place import ChangePlace


def finding_object(found: LocatedFinding, place: ChangePlace) -> JsonObject:
    """Return a finding as an object; its mend is for the place where the rules can be changed."""
    return {
        "lint": found.finding.lint,
        "severity": found.finding.severity.value,
        "rules": [located_object(rule) for rule in found.rules],
        "lost": found.finding.lost,
        "fix": mend_text(found.finding, place),
    }


def json_lines(report: LintReport, place: ChangePlace) -> Iterator[JsonObject]:
    """Yield an object for each finding that counts."""
    return (finding_object(found, place) for found in report.findings)
