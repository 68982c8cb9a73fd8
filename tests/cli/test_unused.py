"""`aclog unused`: the report, the change, and the proof over a log."""

import json
from datetime import UTC, datetime

import pytest

from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.sources.choice import AclsSource
from aclog.usage.decisions.intervals import Rules
from aclog.usage.index.usage_index import UsageIndex
from tests.support.cli.command import aclog
from tests.support.models.estates import Request
from tests.support.usage.indexed_timelines import take
from tests.support.usage.timelines import DAY, Access

BEGIN = 20_000
RULES = [
    ("User:a", "READ", "ALLOW"),
    ("User:*", "READ", "ALLOW"),
    ("User:b", "WRITE", "ALLOW"),
    ("User:c", "ALL", "DENY"),
]
SUMMARY = """\
     ACLs  removable  verdict
        2          2  never matched
        2          1  matched, never needed
        0          0  needed
        0          0  not judged
"""


def rule(principal, operation, permission) -> dict[str, str]:
    return {
        "resourceType": "TOPIC", "resourceName": "orders", "patternType": "LITERAL", "principal": principal,
        "host": "*", "operation": operation, "permissionType": permission,
    }  # fmt: skip


def access(day: float, broker: str | None = "1", principal: str = "User:a") -> Access:
    request = Request(
        principal=principal, host="10.0.0.1", operation=AclOperation.READ, resource_type=ResourceType.TOPIC,
        resource_name="orders",
    )  # fmt: skip
    return Access(time=BEGIN * DAY + int(day * DAY), broker=broker, request=request)


def line(each: Access) -> str:
    time = datetime.fromtimestamp(each.time / 1_000_000, UTC).isoformat()
    return json.dumps({
        "timestamp": time, "principal": each.request.principal, "host": each.request.host, "operation": "READ",
        "resourceType": "TOPIC", "resourceName": "orders",
    })  # fmt: skip


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Four rules, ten days of one client, and the index of them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "acls.jsonl").write_text("\n".join(json.dumps(rule(*each)) for each in RULES))
    found = [access(hours / 24) for hours in range(240)]
    (tmp_path / "accesses.jsonl").write_text("\n".join(map(line, found)))
    with UsageIndex.create(tmp_path / "index") as index:
        take(index, found, Rules.of_image(AclsSource("acls.jsonl").image().acls), own_time=False)
    return tmp_path


UNUSED = ("unused", "--acls", "acls.jsonl", "--index", "index")
NINE = ("--days", "9")


def answers(*more: str) -> dict[str, tuple[str, bool]]:
    rows = map(
        json.loads, aclog(*UNUSED, *(() if "--days" in more else NINE), *more, "--format", "jsonl").out.splitlines()
    )
    return {row["principal"]: (row["answer"], row["removable"]) for row in rows}


def test_what_is_unused_and_the_change_that_removes_it(place):
    found = aclog(*UNUSED, *NINE, "--out", "change.jsonl", "--accesses", "accesses.jsonl")
    assert found.code == 1
    assert found.out.startswith("window: 2024-10-04T00:00:00.000Z to 2024-10-13T23:00:00.000Z; brokers: 1\n")
    assert SUMMARY in found.out
    assert "240 accesses of the window decided again without the removable rules: all the same" in found.err
    changes = [json.loads(each) for each in (place / "change.jsonl").read_text().splitlines()]
    gone = {(each["rule"]["principal"], each["rule"]["permissionType"]): each["action"] for each in changes}
    assert gone.pop(("User:a", "ALLOW"), None) or gone.pop(("User:*", "ALLOW"))
    assert gone == {("User:b", "ALLOW"): "REMOVE", ("User:c", "DENY"): "REMOVE"}
    assert changes[-1]["rule"]["permissionType"] == "DENY"  # nothing opens on the way
    flips = aclog("diff", "--acls", "acls.jsonl", "--change", "change.jsonl", "--accesses", "accesses.jsonl")
    assert "0 of the accesses flip" in flips.out
    assert aclog(*UNUSED, *NINE, "--out", "acls.jsonl").complaint.startswith("acls.jsonl: exists already")


@pytest.mark.parametrize(
    ("before", "now"),
    [(("--super-users", "User:a", "--kafka-version", "4.4"), "4.4"), (("--kafka-version", "4.3"), "4.4")],
)
def test_accesses_that_other_settings_decided_prove_nothing(tmp_path, monkeypatch, before, now):
    """The rules of a former super user, and ranges before Kafka 4.4, would be needed by the same accesses today."""
    monkeypatch.chdir(tmp_path)
    allows = [rule("User:a", "READ", "ALLOW"), rule("User:b", "READ", "ALLOW"), rule("User:c", "READ", "ALLOW")]
    allows[0]["host"] = "10.0.0.0/8"
    (tmp_path / "acls.jsonl").write_text("\n".join(map(json.dumps, allows)))
    days = [[access(0), access(1)], [access(day, principal="User:b") for day in (2, 3, 4)]]
    words = ("--acls", "acls.jsonl", "--index", "index")
    for number, (settings, accesses) in enumerate(zip((before, ("--kafka-version", now)), days, strict=True)):
        (tmp_path / f"{number}.jsonl").write_text("".join(f"{line(each)}\n" for each in accesses))
        aclog("usage-index", *words, "--accesses", f"{number}.jsonl", *settings).ok()
    whole = ("--days", "4", "--gap", "9d")
    never = ("NEVER_MATCHED", True)
    assert answers(*whole) == {"User:a": ("NOT_JUDGED", False), "User:b": ("NEEDED", False), "User:c": never}
    assert (
        "User:a READ on TOPIC LITERAL 'orders' from 10.0.0.0/8: accesses were decided by" in aclog(*UNUSED, *whole).out
    )
    proof = aclog(*UNUSED, *whole, "--accesses", "0.jsonl", "--accesses", "1.jsonl")
    assert "5 accesses of the window decided again without the removable rules: all the same" in proof.err
    assert answers("--days", "1", "--gap", "9d")["User:a"] == never


def test_a_log_that_the_index_has_not_seen_refutes_it(place):
    (place / "later.jsonl").write_text(line(access(5, principal="User:b")).replace('"READ"', '"WRITE"'))
    said = aclog(*UNUSED, *NINE, "--accesses", "later.jsonl", "--out", "change.jsonl")
    text = (
        "1 access would be decided differently without the removable rules, such as User:b 10.0.0.1 WRITE TOPIC "
        "orders: "
    )
    assert (said.code, text in said.complaint) == (2, True)
    assert not (place / "change.jsonl").exists()


def test_a_hole_leaves_nothing_judged(place):
    assert {answer for answer, _ in answers("--days", "20").values()} == {"NOT_JUDGED"}
    found = aclog(*UNUSED, "--days", "20")
    assert found.code == 0
    assert "gap: no log lines of broker 1 before 2024-10-04T00:00:00.000Z\n" in found.out
    with UsageIndex.open(place / "index", writable=True) as index:
        rules = Rules.of_image(AclsSource("acls.jsonl").image().acls)
        take(index, [access(each, broker="2") for each in (0, 0.5, 1, 4, 5, 5.5)], rules, own_time=False)
        take(index, [access(each / 2, broker=None) for each in range(20)], rules, own_time=False)
    found = aclog(*UNUSED, *NINE, "--format", "jsonl", "--gap", "2d").out
    rows = [json.loads(each) for each in found.splitlines()]
    reason = "no log lines of broker 2 from 2024-10-05T00:00:00.000Z to 2024-10-08T00:00:00.000Z, and 1 more gap"
    assert {row["reason"] for row in rows} == {reason}
    assert answers("--gap", "2d", "--ignore-broker", "2")["User:b"] == ("NEVER_MATCHED", True)
    assert answers("--gap", "13h", "--ignore-broker", "2")["User:b"] == ("NEVER_MATCHED", True)
    assert answers("--gap", "12h", "--ignore-broker", "2")["User:b"] == ("NOT_JUDGED", False)
    assert answers("--gap", "12h", "--ignore-broker", "2", "--ignore-broker", "none")["User:b"][0] == "NEVER_MATCHED"
    # the window ends before the silence, and has its last day whole
    assert answers("--days", "1", "--until", "2024-10-05T06:00:00Z", "--gap", "1d")["User:b"][0] == "NEVER_MATCHED"


def test_what_is_needed_and_what_is_new(place):
    (place / "acls.jsonl").write_text(
        "\n".join(json.dumps(rule(*each)) for each in (*RULES, ("User:n", "READ", "ALLOW")))
    )
    with UsageIndex.open(place / "index", writable=True) as index:
        rules = Rules.of_image(AclsSource("acls.jsonl").image().acls)
        take(index, [access(9.99, principal="User:x")], rules, own_time=False)
    assert answers() == {
        "User:*": ("NEEDED", False), "User:a": ("NEVER_NEEDED", True), "User:b": ("NEVER_MATCHED", True),
        "User:c": ("NEVER_MATCHED", True), "User:n": ("NOT_JUDGED", False),
    }  # fmt: skip
    said = aclog(*UNUSED, *NINE).out
    assert "from *: last at 2024-10-13T23:45:36.000Z by User:x from 10.0.0.1\n" in said
    assert (
        "User:n READ on TOPIC LITERAL 'orders' from *: known to the index only since 2024-10-13T23:45:36.000Z" in said
    )


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--gap", "30m"), "--gap '30m': expected hours, days or weeks, such as 6h, 1d or 2w"),
        (("--ignore-broker", "7"), "--ignore-broker '7': expected one of 1"),
        (("--until", "5"), "--until 5: expected a time, such as 2026-11-20T10:00:00Z"),
        (("--days", "100000"), "a window of 100000 days: expected 1 to 36600"),
        (("--out", "-"), "--out -: expected a file: what was found goes to stdout"),
    ],
)
def test_bad_input(place, words, complaint):
    said = aclog(*UNUSED, *words)
    assert (said.code, said.complaint) == (2, complaint)


def test_an_index_without_accesses(place):
    UsageIndex.create(place / "new").close()
    said = aclog("unused", "--acls", "acls.jsonl", "--index", "new")
    assert (said.code, said.complaint) == (
        2,
        "new/usage.sqlite: no accesses yet: add some with `aclog accesses index`",
    )


def test_a_missing_index_names_the_command_that_makes_it(tmp_path):
    message = aclog("unused", "--accesses", "a.jsonl", "--log", tmp_path).complaint
    hint = "`aclog accesses usage --days N` needs an access log only; `aclog accesses index` makes one"
    assert message == f"Missing option '--index': {hint} (see `aclog unused --help`)"
    message = aclog("unused", "--index", tmp_path / "none", "--log", tmp_path).complaint
    assert message.endswith("expected a directory with usage.sqlite, which `aclog accesses index` makes")
