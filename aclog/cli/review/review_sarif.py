"""A review as one SARIF log: what is gained and lost, proofs and tests that fail, and new findings of lint."""

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from attrs import evolve

from aclog.analysis.by_generation import only_on
from aclog.analysis.lint_report.lint_report import LintReport
from aclog.analysis.lint_report.sarif_report import sarif_log as lint_log
from aclog.analysis.regions.region_json import JsonObject
from aclog.analysis.review.document import Item
from aclog.analysis.review.review import Review
from aclog.analysis.rows.row_report import ReportRow
from aclog.analysis.rows.sarif import sarif_log as difference_log
from aclog.authorizer.change_place import ChangePlace
from aclog.cli.repository_files import repository_path

_PROOF, _TEST = "proof-refuted", "rule-test-fails"


def sarif_log(review: Review, new: LintReport, *, version: str) -> JsonObject:
    """Return the log; `new` is the report on the findings that the change brings."""
    log: dict[str, Any] = dict(lint_log(new, ChangePlace(), version=version, uri_of=repository_path))
    (run,) = log["runs"]
    changed: dict[str, Any] = dict(difference_log([*map(_from_top, review.rows)], version=version, path=None))
    (other,) = changed["runs"]
    run["tool"]["driver"]["rules"] += [
        *other["tool"]["driver"]["rules"],
        _rule(_PROOF, "What must not change does"),
        _rule(_TEST, "A test of rules fails"),
    ]
    refuted = (
        Item(text=f"{each.text}{only_on(each.only)}", details=each.details) for each in review.proofs if not each.holds
    )
    run["results"] += [*other["results"], *_results(_PROOF, refuted), *_results(_TEST, review.tests.failures)]
    return log


def _from_top(report: ReportRow) -> ReportRow:
    """Return a row whose places are paths from the top of the repository, as code scanning wants them."""
    return evolve(report, places=tuple(evolve(place, file=repository_path(place.file)) for place in report.places))


def _rule(name: str, text: str) -> JsonObject:
    return {"id": name, "shortDescription": {"text": text}}


def _results(rule: str, items: Iterable[Item]) -> Iterator[JsonObject]:
    for item in items:
        text = "\n".join((item.text, *item.details))
        yield {"ruleId": rule, "level": "error", "message": {"text": text}, "locations": _locations(item)}


def _locations(item: Item) -> list[JsonObject]:
    if item.origin is None:
        return []
    place = {
        "artifactLocation": {"uri": quote(repository_path(item.origin.file), safe="/:", errors="surrogateescape")},
        "region": {"startLine": item.origin.line},
    }
    return [{"physicalLocation": place}]
