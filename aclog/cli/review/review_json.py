"""A review as JSON lines: the verdict, then each difference, finding and failure with its `kind`."""

from collections.abc import Iterator

from aclog.analysis.by_generation import generation_object
from aclog.analysis.lint_report.json_report import json_lines as lint_lines
from aclog.analysis.lint_report.lint_report import LintReport
from aclog.analysis.regions.region_json import JsonObject
from aclog.analysis.review.review import Review
from aclog.analysis.review.verdict import Kind
from aclog.authorizer.acl import AclOperation, ResourceType, code_name
from aclog.authorizer.change_place import ChangePlace
from aclog.cli.differing import difference_objects


def json_lines(review: Review, new: LintReport) -> Iterator[JsonObject]:
    """Yield the objects (docs/commands.md); `new` is the report on the findings that the change brings."""
    found = review.found
    yield {
        "kind": "verdict",
        "verdict": "FAILS" if review.fails else "PASSES",
        "found": [kind.value for kind in Kind if kind in found],
        "failOn": [kind.value for kind in Kind if kind in review.fail_on],
        "testsPassed": review.tests.passed,
        "checksChanged": list(review.own_checks),
        "doubts": list(review.doubts),
        **_generations(review),
    }
    for line in difference_objects(review.comparisons):
        yield {"kind": "difference", **line}
    for proof in review.proofs:
        yield {"kind": "proof", "text": proof.text, "holds": proof.holds, **generation_object(proof.only)}
    for failure in review.tests.failures:
        yield {"kind": "test", "text": failure.text, "details": list(failure.details)}
    for line in lint_lines(new, ChangePlace()):
        yield {"kind": "finding", **line}
    for each in review.flipped:
        yield {
            "kind": "accesses",
            "change": each.direction.value,
            "principal": each.principal,
            "operation": code_name(AclOperation, each.operation),
            "resourceType": code_name(ResourceType, each.resource_type),
            "resourceNames": list(each.names),
            "accesses": each.accesses,
            **generation_object(each.only),
        }


def _generations(review: Review) -> JsonObject:
    several = [each.value for each in review.comparisons if each is not None]
    return {"generations": several} if several else {}
