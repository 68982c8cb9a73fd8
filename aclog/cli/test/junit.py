"""Results of tests as JUnit XML, which CI systems show."""

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET  # only written here

from aclog.analysis.rule_tests.failure_text import failure_lines
from aclog.cli.test.results import MOST_EXPLAINED, FileResult
from aclog.metalog.printable import printable


def write_junit(path: Path, results: Sequence[FileResult]) -> None:
    """Write a suite for each file, with a test case for each case. Raises OSError."""
    root = ET.Element("testsuites", _counts(results))
    for result in results:
        failed = 0
        suite = ET.SubElement(root, "testsuite", {"name": printable(result.path), **_counts([result])})
        for outcome in result.outcomes:
            case = outcome.case
            element = ET.SubElement(
                suite,
                "testcase",
                {
                    "name": printable(f"{case.test}: {case.text}"),
                    "classname": printable(result.path),
                    "file": printable(case.origin.file),
                    "line": str(case.origin.line),
                },
            )
            if not outcome.passed:
                message = printable(outcome.failures[0].found)
                failure = ET.SubElement(element, "failure", {"message": message, "type": "failure"})
                failed += 1
                if failed <= MOST_EXPLAINED:
                    failure.text = "\n".join(map(printable, failure_lines(outcome, result.rules.state)))
    ET.indent(root)
    path.write_bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n")


def _counts(results: Sequence[FileResult]) -> dict[str, str]:
    outcomes = [outcome for result in results for outcome in result.outcomes]
    failed = sum(not outcome.passed for outcome in outcomes)
    return {"tests": str(len(outcomes)), "failures": str(failed), "errors": "0"}
