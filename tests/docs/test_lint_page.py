"""docs/lint.md has a section for each lint, as its class has it."""

import re

import pytest

from aclog.analysis.lint_report import LINTS
from tests.docs import lint_page

PAGE = lint_page.PAGE.read_text("utf-8")


def test_the_page_is_as_the_classes_have_it():
    assert lint_page.written(PAGE) == PAGE, "run: .venv/bin/python -m tests.docs.lint_page"


def test_the_page_lists_the_catalogue():
    entries = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
    assert [entry.splitlines()[0] for entry in entries] == [f"{lint.id} {lint.name}" for lint in LINTS]
    for lint, entry in zip(LINTS, entries, strict=True):
        kind = "exact" if lint.exact else "heuristic"
        assert re.match(rf"{lint.severity.value}, {kind}[.;]", entry.splitlines()[2]), lint.id
        assert ("Example: " in entry, "Fix: " in entry) == (True, True), lint.id


@pytest.mark.parametrize("lint", LINTS, ids=lambda lint: lint.id)
def test_a_lint_has_sentences_where_it_has_text(lint):
    assert not lint.title.endswith(".")
    sentences = (lint.rationale, lint.example, lint.fix, lint.fix_details)
    assert all(text.endswith(".") for text in sentences if text), lint.id
