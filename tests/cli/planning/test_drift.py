"""`aclog drift`: what is missing, what was left over, and what is nobody's drift; once, and again and again."""

import json
import signal
import subprocess
import sys

import pytest
from jsonschema import Draft202012Validator

from aclog.authorizer.acl import object_of_rule
from aclog.cli.schema import schema_of
from tests.cli.planning.test_plan_and_apply import A, B, C, D, Source, add
from tests.support.cli.command import Result, aclog


@pytest.fixture
def source(tmp_path):
    return Source(tmp_path)


def drift(source: Source, *flags) -> Result:
    return aclog("drift", "--log", source.log, "--want", source.rules, "--journal", source.journal, *flags)


def remove(source: Source, each) -> None:
    aclog("acls", "remove", "--log", source.log, "--allow-principal", each.principal, "--topic", each.resource_name,
          "--operation", "READ", "--force").ok()  # fmt: skip


def test_what_is_as_it_should_be_is_no_drift_and_neither_is_what_others_have(source):
    source.make(A, B)
    add(source.log, C)
    found = drift(source)
    assert (found.code, found.lines) == (0, [f"{source.log}: no drift; 1 rule is neither desired nor managed"])
    assert drift(source, "--format", "jsonl").lines == []


def test_missing_and_left_over_rules_are_told_apart(source):
    source.make(A, B)
    remove(source, A)
    source.want(A, C)
    found = drift(source, "--format", "jsonl")
    assert found.code == 1
    lines = [json.loads(line) for line in found.lines]
    for line in lines:
        Draft202012Validator(schema_of("drift")).validate(line)
    assert [(line["kind"], line["resourceName"], line["owned"]) for line in lines] == [
        ("LEFTOVER", "b", True), ("MISSING", "a", True), ("MISSING", "c", False),
    ]  # fmt: skip
    text = drift(source)
    assert text.lines[1].endswith("it was applied")
    assert text.lines[2].endswith("it was never applied")
    assert "2 desired rules missing, 1 managed rule no longer desired" in text.lines[3]


def test_an_answer_that_knows_nothing_is_trouble_and_no_drift(source, tmp_path):
    source.make(A)
    remove(source, A)
    assert "returned no ACLs, but" in drift(source).complaint
    assert drift(source).code == 2
    source.log.rename(tmp_path / "away")
    assert "expected the same target" in drift(source).complaint
    assert drift(source, "--want", tmp_path / "none").code == 2
    assert "only together with --follow" in drift(source, "--interval", "1").complaint


@pytest.mark.slow(4)
def test_followed_each_drift_is_told_once_and_so_is_its_mend(source):
    source.make(A, B)
    command = ["drift", "--log", source.log, "--want", source.rules, "--journal", source.journal, "--follow",
               "--interval", "0.1", "--format", "jsonl"]  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-m", "aclog", *map(str, command)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        remove_at = iter(process.stdout)
        remove(source, A)
        assert_event(next(remove_at), "DRIFTED", "MISSING", A)
        add(source.log, A)
        assert_event(next(remove_at), "MENDED", "MISSING", A)
        source.want(A)
        assert_event(next(remove_at), "DRIFTED", "LEFTOVER", B)
        source.want(A, B, D)
        told = sorted((next(remove_at), next(remove_at)), key=lambda line: json.loads(line)["event"])
        assert_event(told[0], "DRIFTED", "MISSING", D)
        assert_event(told[1], "MENDED", "LEFTOVER", B)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def assert_event(line: str, event: str, kind: str, each) -> None:
    value = json.loads(line)
    Draft202012Validator(schema_of("drift-event")).validate(value)
    assert (value["event"], value["kind"]) == (event, kind)
    assert {key: value[key] for key in object_of_rule(each)} == object_of_rule(each)


def test_without_a_journal_it_says_that_nothing_can_be_left_over(source):
    source.make(A, B)
    source.journal = source.home / "typo"
    source.want(A)
    found = drift(source)
    assert found.code == 0
    assert "typo does not exist yet, so no rule is managed (recorded as applied or adopted)" in found.err
