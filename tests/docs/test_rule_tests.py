"""The first example of docs/testing-rules.md, run as it is written there."""

import json
import re
from pathlib import Path

from tests.support.builders.acls import acl_row
from tests.support.cli.command import aclog

PAGE = Path(__file__).parents[2] / "docs" / "testing-rules.md"
RULES = (
    acl_row("bill.", principal="User:billing", operation="READ", patternType="PREFIXED"),
    acl_row("billing-", principal="User:billing", operation="READ", resourceType="GROUP", patternType="PREFIXED"),
    acl_row("bill.out", principal="User:billing", operation="WRITE"),
    acl_row("pii.card", principal="User:billing", operation="READ"),
    acl_row("pii.card", principal="User:audit", operation="READ"),
)
"""Of kafka/acls.jsonl, of which the page shows the last two."""


def test_the_first_test_prints_what_the_page_shows(tmp_path, monkeypatch):
    test, shown = re.findall(r"```(?:yaml|console)\n(.*?)```", PAGE.read_text(), re.DOTALL)[:2]
    for directory, name, text in (
        ("kafka", "acls.jsonl", "".join(f"{json.dumps(row)}\n" for row in RULES)),
        ("kafka-tests", "billing.yaml", test),
    ):
        (tmp_path / directory).mkdir()
        (tmp_path / directory / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    command, _, expected = shown.partition("\n")
    assert command == "$ aclog test kafka-tests/billing.yaml"
    assert aclog(*command.split()[2:]).out == expected
