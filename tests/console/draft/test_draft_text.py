"""Texts of drafts: each form alone and mixed, lines that are none, and limits."""

import json

import pytest

from aclog.authorizer.acl import object_of_rule
from aclog.authorizer.acls_image import Action
from aclog.console import draft
from aclog.console.draft import KeptTexts, read_draft
from aclog.metalog.errors import ConfigError
from aclog.planning.plan import plan_lines
from aclog.sources.acl_lines import change_line
from tests.support.builders.acls import acl
from tests.support.web.drafts import plan_of

A, B = acl("a", "User:x"), acl("b", "User:x")


def said(text: str) -> list[tuple[bool, str, int]]:
    found = read_draft(text, cidr=False)
    assert not found.problems
    return [(each.added, each.acl.resource_name, each.origin.line) for each in found.changes if each.origin]


def test_every_form_in_one_text() -> None:
    lines = [
        "# a remark",
        change_line(Action.REMOVE, object_of_rule(A)),
        "",
        json.dumps({**object_of_rule(B), "id": None}),
        "  - ALLOW User:x READ on TOPIC c  ",
        "ALLOW User:x READ on TOPIC d\r",
    ]
    assert said("\n".join(lines)) == [(False, "a", 2), (True, "b", 4), (False, "c", 5), (True, "d", 6)]


def test_a_line_that_is_none_is_named_and_the_rest_is_read() -> None:
    found = read_draft('ALLOW User:x READ on TOPIC a\nwhat?\n{"action":"ADD"}\n{"x":1}\n{', cidr=False)
    assert [each.acl for each in found.changes] == [A]
    assert [each.line for each in found.problems] == [2, 3, 4, 5]
    assert "expected the key rule" in found.problems[1].text
    assert 'expected a rule, or {"action":"ADD"' in found.problems[2].text


def test_what_kafka_would_refuse_to_create_is_a_problem_and_may_be_removed() -> None:
    line = "ALLOW colonless READ on TOPIC a"
    [problem] = read_draft(line, cidr=False).problems
    assert "CreateAcls refuses it" in problem.text
    assert len(read_draft(f"- {line}", cidr=False).changes) == 1


def test_a_plan_is_opened_whole_or_step_by_step() -> None:
    lines = list(plan_lines(plan_of(added=[B], removed=[A])))
    found = read_draft("\r\n".join(lines), cidr=False)
    assert {(each.added, each.acl) for each in found.changes} == {(True, B), (False, A)}
    assert found.notes == ("A plan for --log /d, made at 2026-01-01T00:00:00Z by me",)
    more = read_draft("\n".join((*lines, "ALLOW User:x READ on TOPIC c")), cidr=False)
    assert len(more.changes) == 3
    assert "its steps are read as written here" in more.notes[0]
    assert not more.problems


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draft, "MOST_CHANGES", 2)
    with pytest.raises(ConfigError, match="more than 2 changes"):
        read_draft("x\n" * 3, cidr=False)
    with pytest.raises(ConfigError, match="more than 2,000,000 bytes"):
        read_draft("é" * 1_000_001, cidr=False)
    assert "more than 16,384 characters" in read_draft("A" * 20_000, cidr=False).problems[0].text


def test_large_texts_are_kept_the_newest_only() -> None:
    kept = KeptTexts(most=2, most_bytes=100)
    first, second = kept.keep("a" * 40), kept.keep("b" * 40)
    assert kept.keep("a" * 40) == first
    third = kept.keep("c" * 40)
    assert (kept.get(first), kept.get(second), kept.get(third)) == ("a" * 40, None, "c" * 40)
    large = kept.keep("d" * 1000)
    assert (kept.get(first), kept.get(large)) == (None, "d" * 1000)
