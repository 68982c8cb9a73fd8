"""docs/lint.md has an entry for each lint, with what the catalogue says of it."""

import re
from pathlib import Path

from aclog.analysis.lint.finding import LINTS

PAGE = Path(__file__).parents[2] / "docs" / "lint.md"


def test_the_page_lists_the_catalogue():
    entries = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]
    assert [entry.splitlines()[0] for entry in entries] == [f"{lint.id} {lint.name}" for lint in LINTS]
    for lint, entry in zip(LINTS, entries, strict=True):
        kind = "exact" if lint.exact else "heuristic"
        assert re.match(rf"{lint.severity.value}, {kind}[.;]", entry.splitlines()[2]), lint.id
        assert ("Example: " in entry, "Fix: " in entry) == (True, True), lint.id
