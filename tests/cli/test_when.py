"""`aclog when` by its own command line; each answer is tried with `aclog authorize --as-of`."""

import json
from pathlib import Path

import pytest

from aclog.metalog.records import BeginTransactionRecord, EndTransactionRecord
from aclog.snapshots.checkpoints import write_checkpoint
from aclog.snapshots.publisher import recover
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import acl, removal
from tests.support.cli.command import aclog

ASK = ("--operation", "READ", "--topic", "t")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(
        tmp_path / "log",
        [acl(1, name="other")],
        [acl(2, name="t")],
        [acl(3, name="t", principal="User:bob"), removal(2)],
        [BeginTransactionRecord(), removal(3)],
        [acl(4, name="pii-a", principal="User:eve"), EndTransactionRecord()],
        [acl(5, name="t")],
    )


def found(*arguments: object) -> list[dict[str, object]]:
    return [json.loads(line) for line in aclog("when", *arguments, "--format", "jsonl").ok().lines]


def offsets(*arguments: object) -> list[tuple[int, int | None]]:
    return [(each["from"]["offset"], each["to"] and each["to"]["offset"]) for each in found(*arguments)]


def test_one_request_is_as_authorize_says_at_every_offset(log):
    for principal in ("User:alice", "User:bob", "User:eve"):
        ask = ("--log", log, *ASK, "--principal", principal)
        intervals = [
            (each["from"]["endOffset"], each["to"]["endOffset"] if each["to"] else None) for each in found(*ask)
        ]
        for offset in range(1, 10):
            allowed = aclog("authorize", *ask, "--as-of", offset).code == 0
            assert allowed == any(start <= offset and (end is None or offset < end) for start, end in intervals)


def test_the_ends_name_their_changes(log):
    first, second = found("--log", log, *ASK, "--principal", "User:alice")
    assert first["from"] == {
        "offset": 1,
        "endOffset": 2,
        "timestamp": 2000,
        "change": {
            "action": "ADD",
            "rule": {
                "resourceType": "TOPIC",
                "resourceName": "t",
                "patternType": "LITERAL",
                "principal": "User:alice",
                "host": "*",
                "operation": "READ",
                "permissionType": "ALLOW",
            },
        },
    }
    assert (first["to"]["offset"], first["to"]["change"]["action"]) == (3, "REMOVE")
    assert (second["from"]["offset"], second["to"]) == (8, None)


def test_text(log):
    lines = aclog("when", "--log", log, *ASK, "--principal", "User:bob").ok().lines
    assert lines == [
        "ALLOWED since offset 2, 1970-01-01T00:00:03.000Z: added ALLOW User:bob READ on TOPIC LITERAL 't' from *",
        "  until offset 5, 1970-01-01T00:00:04.000Z: removed ALLOW User:bob READ on TOPIC LITERAL 't' from *",
    ]
    assert aclog("when", "--log", log, *ASK, "--principal", "User:eve").ok().lines == [
        "never: User:eve READ TOPIC t from any host"
    ]
    assert aclog("when", "--log", log, *ASK, "--principal", "User:eve", "--format", "jsonl").ok().lines == []
    assert aclog("when", "--log", log, *ASK, "--principal", "User:alice").ok().lines[-1] == "  until now"


def test_any_request_of_a_region(log):
    pii = ("--operation", "READ", "--topic", "pii-", "--resource-pattern-type", "prefixed")
    assert offsets("--log", log, *pii, "--except-principal", "User:audit") == [(6, None)]
    assert offsets("--log", log, *pii, "--except-principal", "User:eve") == []
    assert offsets("--log", log, *ASK, "--except-principal", "User:audit") == [(1, 5), (8, None)]
    assert offsets("--log", log, *ASK) == [(1, 3), (8, None), (2, 5)]  # of alice, and of bob


def test_an_intent(tmp_path):
    log = write_log(
        tmp_path / "log",
        [acl(1, name="t")],
        [acl(2, name="g", resource_type=3)],
        [removal(1)],
        [acl(3, name="t"), removal(2)],
    )
    consume = ("--intent", "consume", "--topic", "t", "--principal", "User:alice")
    assert offsets("--log", log, *consume) == [(1, 2)]
    assert offsets("--log", log, *consume, "--group", "other") == []


def test_settings_and_the_end_of_the_history(log):
    assert offsets("--log", log, *ASK, "--super-users", "User:root", "--principal", "User:root") == [(0, None)]
    assert offsets("--log", log, *ASK, "--principal", "User:alice", "--as-of", 3) == [(1, None)]
    assert offsets("--log", log, *ASK, "--principal", "User:alice", "--as-of", "1970-01-01T00:00:02Z") == [(1, None)]


def test_a_history_that_begins_at_a_checkpoint(tmp_path):
    whole = write_log(tmp_path / "whole", [acl(1, name="t")], [acl(2)], [acl(3)])
    short = write_log(tmp_path / "short", [removal(1)], base=3, times=[9000])
    write_checkpoint(recover(whole, 3).image, short)
    lines = aclog("when", "--log", short, *ASK).ok().lines
    assert lines[:2] == [
        "User:alice",
        "  ALLOWED since offset 3 or before, 1970-01-01T00:00:03.000Z: as the history begins",
    ]


def test_what_was_before_a_checkpoint_is_unknown(tmp_path):
    short = write_log(tmp_path / "short", [acl(2, name="t")], base=3, times=[9000])
    write_checkpoint(recover(write_log(tmp_path / "whole", [acl(1)], [acl(3)], [removal(3)]), 3).image, short)
    never = aclog("when", "--log", short, *ASK, "--principal", "User:nobody").ok()
    where = "User:nobody READ TOPIC t from any host"
    assert never.lines == [f"never since offset 3, with which the history begins: {where}"]
    for form in ("text", "jsonl"):
        asked = aclog("when", "--log", short, *ASK, "--format", form).ok()
        assert "the history begins at offset 3: what was before it is unknown" in asked.err


def test_the_last_interval_of_an_older_moment_does_not_last_until_now(log):
    lines = aclog("when", "--log", log, *ASK, "--principal", "User:alice", "--as-of", 3).ok().lines
    assert lines[-1] == "  still so at offset 2, where the history ends (--as-of)"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--operation", "READ"), "no resource is given"),
        (("--topic", "t"), "expected --operation NAME or --intent INTENT"),
        ((*ASK, "--principal", "User:a", "--except-principal", "User:b"), "not both"),
        ((*ASK, "--except-principal", "bob"), "--except-principal 'bob': expected TYPE:NAME"),
        ((*ASK, "--except-principal", "User:*"), "omit the flag"),
        ((*ASK, "--host", "nowhere"), "not an IPv4 or IPv6 address"),
    ],
)
def test_a_malformed_question(log, arguments, complaint):
    result = aclog("when", "--log", log, *arguments)
    assert result.code == 2
    assert complaint in result.complaint
    assert result.out == ""


def test_a_single_state_has_no_history(log, tmp_path):
    checkpoint = write_checkpoint(recover(log, 5).image, tmp_path)
    result = aclog("when", "--snapshot", checkpoint, *ASK)
    assert result.code == 2
    assert "a single state has no history: use --log DIR" in result.complaint
