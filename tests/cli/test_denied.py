"""`aclog denied`: what is refused is listed with what would allow it, and `diff` says the same of the change."""

import json

import pytest

from tests.support.cli.command import aclog

RULE = {
    "resourceType": "TOPIC", "resourceName": "orders", "patternType": "LITERAL", "principal": "User:a", "host": "*",
    "operation": "READ", "permissionType": "ALLOW",
}  # fmt: skip
DENY = RULE | {"principal": "User:d", "permissionType": "DENY"}
ACCESS = {
    "principal": "User:b", "host": "10.0.0.1", "operation": "READ", "resourceType": "TOPIC", "resourceName": "orders",
    "timestamp": "2026-11-21T10:00:00Z",
}  # fmt: skip
DESCRIBE = ACCESS | {"operation": "DESCRIBE", "timestamp": "2026-11-21T09:00:00Z"}
LOG = [
    ACCESS | {"principal": "User:a"},
    *[DESCRIBE] * 3,
    *[ACCESS] * 2,
    ACCESS | {"host": "10.0.0.2", "timestamp": None},
    ACCESS | {"principal": "User:d"},
    ACCESS | {"resourceType": "GROUP", "resourceName": "g", "operation": "DESCRIBE"},
    ACCESS | {"resourceName": "*", "principal": "User:e"},
]


def written(path, objects):
    path.write_text("".join(json.dumps(each) + "\n" for each in objects))
    return path


@pytest.fixture
def asked(tmp_path):
    return "--acls", written(tmp_path / "acls", [RULE, DENY]), "--accesses", written(tmp_path / "log", LOG)


def rows(*arguments):
    result = aclog("denied", *arguments, "--format", "jsonl")
    return result.code, {(row["principal"], row["resourceName"]): row for row in map(json.loads, result.lines)}


def test_attempts_and_what_would_allow_them(asked):
    code, found = rows(*asked)
    assert (code, set(found)) == (1, {("User:b", "orders"), ("User:b", "g"), ("User:d", "orders"), ("User:e", "*")})
    bob = found["User:b", "orders"]
    assert (bob["intent"], bob["operations"], bob["attempts"], bob["accesses"]) == (
        "consume", ["READ", "DESCRIBE"], 4, 6,
    )  # fmt: skip
    assert (bob["firstAt"], bob["lastAt"]) == (1_795_251_600_000, 1_795_255_200_000)
    added = [RULE | {"principal": "User:b", "host": host} for host in ("10.0.0.1", "10.0.0.2")]
    assert (bob["missing"], bob["denies"]) == (added, [])
    (rule,) = found["User:b", "g"]["missing"]
    assert (rule["operation"], found["User:b", "g"]["intent"]) == ("DESCRIBE", "consume")
    denied = found["User:d", "orders"]
    assert (denied["missing"], denied["denies"]) == ([], [DENY | {"id": None}])
    assert found["User:e", "*"]["missing"] == []  # a rule on * would allow every topic
    assert rows(*asked, "--principal", "User:d")[1].keys() == {("User:d", "orders")}
    assert [rule["host"] for rule in rows(*asked, "--any-host")[1]["User:b", "orders"]["missing"]] == ["*"]


def test_the_change_mends_exactly_what_no_deny_is_in_the_way_of(asked, tmp_path):
    change = tmp_path / "change"
    text = aclog("denied", *asked, "--out", change)
    assert (text.code, text.lines[0]) == (1, "9 accesses denied (6 distinct requests), 1 allowed")
    assert text.lines[-3:] == [
        "1 denied access: blocked by DENY ACLs, which no new ACL overrides",
        "1 denied access: no new ACL, since it would be invalid or too broad",
        "3 new ALLOW ACLs would allow 7 denied accesses; `--out FILE` writes these ACLs to a file",
    ]
    assert aclog("denied", *asked, "--out", change).code == 1  # the same change again
    diff = aclog("diff", *asked[:2], "--change", change, "--format", "jsonl")
    regions = [json.loads(line) for line in diff.lines]
    assert {region["change"] for region in regions} == {"GAINED"}
    print(regions[0])
    gained = {(tuple(region["principals"]["in"]), region["resourceType"]) for region in regions}
    assert gained == {(("User:b",), "TOPIC"), (("User:b",), "GROUP")}
    flips = aclog("simulate", *asked, "--change", change, "--format", "jsonl")
    mended = [json.loads(line) for line in flips.lines]
    assert sum(row["count"] for row in mended) == 7
    assert {(row["change"], row["principal"]) for row in mended} == {("GAINED", "User:b")}


def test_a_principal_without_a_type_is_a_user_and_every_count_is_of_it(asked, tmp_path):
    whole = aclog("denied", *asked, "--principal", "User:b")
    bare = aclog("denied", *asked, "--principal", "b")
    assert (bare.code, bare.lines, bare.err) == (1, whole.lines, "")
    assert bare.lines[0] == "7 accesses denied (4 distinct requests), 0 allowed"
    assert aclog("denied", *asked, "--principal", "a").lines == ["0 accesses denied (0 distinct requests), 1 allowed"]
    typed = written(tmp_path / "typed", [ACCESS | {"principal": "Team:b"}])
    other = aclog("denied", *asked[:2], "--accesses", typed, "--principal", "b")
    assert (other.code, other.lines) == (2, [])
    assert "the log has no access of User:b, but Team:b: expected TYPE:NAME" in other.complaint
    empty = aclog("denied", *asked, "--principal", "User:")
    assert (empty.code, "expected a user's name, or TYPE:NAME" in empty.complaint) == (2, True)


def test_a_principal_without_accesses_is_noted_with_near_ones(asked):
    result = aclog("denied", *asked, "--principal", "User:B")
    assert (result.code, result.lines) == (0, ["0 accesses denied (0 distinct requests), 0 allowed"])
    assert "note: the log has no access of User:B: did you mean User:b? (upper and lower case differ)" in result.err
    assert "the log has no access of User:zzz\n" in aclog("denied", *asked, "--principal", "zzz").err


def test_nothing_is_refused(tmp_path, asked):
    log = written(tmp_path / "allowed", LOG[:1])
    result = aclog("denied", *asked[:2], "--accesses", log)
    assert (result.code, result.lines) == (0, ["0 accesses denied (0 distinct requests), 1 allowed"])
    empty = written(tmp_path / "empty", [])
    assert aclog("denied", *asked[:2], "--accesses", empty).code == 2
