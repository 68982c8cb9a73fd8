"""Commands that plan, review, test and judge, where several generations of Kafka may decide: the answers of each."""

import json
from itertools import product
from pathlib import Path
from random import Random

import pytest

from aclog.authorizer.acl import StandardAclWithId, in_cidr, object_of_rule
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, AclPermissionType, ResourceType
from aclog.authorizer.settings import Settings
from aclog.metalog.records import FeatureLevelRecord, UnregisterBrokerRecord
from tests.cli.test_generations import BY_A, DENIED, RANGE, RULES, WHO, log_of, objects, warnings
from tests.snapshots.test_kafka_history import controller
from tests.support.builders.acls import acl, acl_record
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import registration as broker
from tests.support.cli.command import aclog
from tests.support.cli.repository import Repository
from tests.support.models.engine_answers import decided, engine

ONLY_NEW, ONLY_OLD = " (on Kafka 4.4 only)", " (on Kafka 4.3 only)"
GONE = UnregisterBrokerRecord(broker_id=1, broker_epoch=1)
CLOSED = "--no-allow-everyone-if-no-acl-found"
SETTLED = "state it with --kafka-version V"
DAY_MS = 86_400_000


@pytest.fixture
def unstated(tmp_path):
    """A log without a broker."""
    return log_of(tmp_path / "unstated")


@pytest.fixture
def rolling(tmp_path):
    """A log of a cluster that is being upgraded."""
    return log_of(tmp_path / "rolling", [broker(1, 30), broker(2, 30)], [broker(2, 33)])


@pytest.fixture
def new(tmp_path):
    """A log whose brokers are of Kafka 4.4.0."""
    return log_of(tmp_path / "new", [broker(1, 33)])


def written(path: Path, rows) -> Path:
    path.write_text("".join(f"{json.dumps(each)}\n" for each in rows))
    return path


def rules_file(path: Path, *rules) -> Path:
    return written(path, map(object_of_rule, rules))


# Plans


def plan_of(source, tmp_path, *rules, more=()):
    rules_file(tmp_path / "want.jsonl", *rules)
    journal, out = tmp_path / "own.journal", tmp_path / "PLAN"
    words = ("plan", *source, "--want", tmp_path / "want.jsonl", "--journal", journal, "--out", out, CLOSED, *more)
    return aclog(*words), out


def test_a_plan_is_of_the_kafka_that_the_brokers_of_its_log_run(unstated, rolling, new, tmp_path):
    added = acl("orders", "User:c", RANGE)
    gained = f"GAINED  User:c: READ, DESCRIBE on TOPIC orders, from {RANGE}"
    for source, expected, generations in ((new, gained, ["4.4"]), (rolling, gained + ONLY_NEW, ["4.3", "4.4"])):
        shown, out = plan_of(source, tmp_path, added)
        assert (shown.code, f"  {expected}" in shown.lines) == (1, True), shown
        assert json.loads(out.read_text().splitlines()[0])["settings"]["generations"] == generations
    shown, _ = plan_of(rolling, tmp_path, added)
    assert (
        "- Kafka 4.3 or Kafka 4.4 may decide: the brokers differ: broker 1 runs Kafka 4.3, broker 2 runs Kafka 4.4; "
        "differences between them are marked"
    ) in shown.lines
    shown, _ = plan_of(unstated, tmp_path, added)
    assert "the version of the brokers" in shown.out
    for version, expected in (("4.3.1", False), ("4.4.0", True)):
        shown, out = plan_of(rolling, tmp_path, added, more=("--kafka-version", version))
        assert (gained in shown.out, ONLY_NEW in shown.out) == (expected, False)
        assert "generations" not in json.loads(out.read_text().splitlines()[0])["settings"]


def test_a_plan_is_of_the_kafka_that_the_level_of_its_log_implies(tmp_path):
    """No broker is registered, and none of an older Kafka could be."""
    at_33 = FeatureLevelRecord(name="metadata.version", feature_level=33)
    shown, out = plan_of(log_of(tmp_path / "log", [at_33]), tmp_path, acl("orders", "User:c", RANGE))
    assert f"  GAINED  User:c: READ, DESCRIBE on TOPIC orders, from {RANGE}" in shown.lines
    assert "may decide" not in shown.out
    assert json.loads(out.read_text().splitlines()[0])["settings"]["generations"] == ["4.4"]


def test_a_plan_without_a_range_says_nothing_of_it(unstated, tmp_path):
    shown, out = plan_of(unstated, tmp_path, acl("other", "User:c"))
    assert "may decide" not in shown.out
    assert "generations" not in json.loads(out.read_text().splitlines()[0])["settings"]


def test_a_grant_holds_on_each_of_them(new, rolling):
    """Where all brokers match the range, nothing is missing."""
    asked = ("--principal", "User:a", "--intent", "consume", "--topic", "orders", "--group", "g", "--host", "10.1.2.3")
    for source, topics in ((new, []), (rolling, ["orders"])):
        shown = aclog("grant", *source, *asked, CLOSED, "--format", "jsonl")
        steps = map(json.loads, shown.lines)
        assert [each["rule"]["resourceName"] for each in steps if each["rule"]["resourceType"] == "TOPIC"] == topics
    assert "- Kafka 4.3 or Kafka 4.4 may decide: the brokers differ" in aclog("grant", *rolling, *asked, CLOSED).out


def test_a_revocation_says_what_one_of_them_still_allows(tmp_path):
    path = tmp_path / "log"
    rules = (acl("orders", "User:a"), acl("orders", "User:*", RANGE))
    write_log(path, [acl_record(number + 1, rule) for number, rule in enumerate(rules)])
    asked = ("--principal", "User:a", "--intent", "consume", "--topic", "orders")
    shown = aclog("revoke", "--log", path, *asked, CLOSED)
    assert shown.code == 1
    assert [line for line in shown.lines if line.startswith("still allowed: ")] == [
        f"still allowed: User:a: READ on TOPIC orders, from {RANGE}{ONLY_NEW}"
    ]


# Tests of rules


@pytest.fixture
def rule_tests(tmp_path):
    """One that holds on Kafka 4.4 only, one on 4.3 only, and one on both."""
    path = tmp_path / "tests.yaml"
    path.write_text(
        "tests:\n"
        "  - {principal: 'User:a', host: 10.1.2.3, can: {READ: ['topic:orders']}}\n"
        "  - {principal: 'User:b', host: 10.1.2.3, can: {READ: ['topic:orders']}}\n"
        "  - {principal: 'User:b', host: 11.0.0.1, can: {READ: ['topic:orders']}}\n"
    )
    return path


def test_a_test_that_holds_on_one_of_them_only_fails_and_says_so(unstated, rule_tests):
    result = aclog("test", rule_tests, *unstated)
    assert result.code == 1
    assert SETTLED in result.err
    found = [line for line in result.lines if line.startswith("  found: ")]
    assert [line[-len(ONLY_OLD) :] for line in found] == [ONLY_OLD, ONLY_NEW]
    rows = [json.loads(line) for line in aclog("test", rule_tests, *unstated, "--format", "jsonl").lines]
    assert [row["verdict"] for row in rows if "case" in row] == ["FAILED", "FAILED", "PASSED"]
    assert [row["failures"][0]["generation"] for row in rows if row.get("verdict") == "FAILED"] == ["4.3", "4.4"]


def test_a_failure_is_explained_by_a_kafka_on_which_it_is_one(unstated, rule_tests):
    """User:c can on none, which comes first; User:a can on 4.4 only."""
    rule_tests.write_text(
        "tests: [{who_can: {'READ topic:orders': ['User:b', 'User:c']}, host: 10.1.2.3}]\n",
    )
    lines = aclog("test", rule_tests, *unstated).lines
    assert next(line for line in lines if line.startswith("  found: ")) == "  found: User:c cannot"
    decided = [line.strip() for line in lines if "decided by" in line]
    assert len(decided) == 1
    deciding = [line.strip() for line in lines if line.strip().startswith("decides: ")]
    assert [line.removeprefix("decides: ") for line in deciding] == [decided[0].split("decided by ")[1]]


def test_a_file_of_tests_names_its_kafka(unstated, rule_tests):
    rule_tests.write_text(f"kafka-version: 4.4.0\n{rule_tests.read_text()}")
    result = aclog("test", rule_tests, *unstated)
    assert (result.lines[-1], SETTLED in result.err) == ("3 cases of 3 tests: 2 passed, 1 failed", False)
    assert aclog("test", rule_tests, *unstated, "--kafka-version", "4.3").lines[-1].endswith("2 passed, 1 failed")


def test_mutants_are_judged_by_each_of_them(unstated, rule_tests):
    result = aclog("test", rule_tests, *unstated, "--mutate")
    summaries = [line for line in result.lines if "mutants of rules fail a test" in line]
    assert [line[-len(ONLY_OLD) :] for line in summaries] == [ONLY_OLD, ONLY_NEW]


def test_what_is_recorded_holds_on_each_of_them(unstated, rolling, tmp_path, accesses):
    """The rest is named: what User:a can, on 4.4 only, and what User:b can."""
    for number, source in enumerate((unstated, rolling)):
        out = tmp_path / f"recorded-{number}.yaml"
        recorded = aclog("test", "--record", out, *source).ok()
        left_out = [line for line in recorded.err.splitlines() if "left out, as it does not hold on each Kafka" in line]
        assert {line.split(": ")[-1].split()[0] for line in left_out} >= {"User:a", "User:b"}, recorded.err
        assert not [line for line in out.read_text().splitlines() if line.startswith(("cidr", "kafka-version"))]
        for version in ((), ("--kafka-version", "4.3.1"), ("--kafka-version", "4.4.0")):
            assert ", 0 failed" not in aclog("test", out, *source, *version).ok().lines[-1]
        from_accesses = tmp_path / f"accesses-{number}.yaml"
        recorded = aclog("test", "--record", from_accesses, *source, "--accesses", accesses).ok()
        assert "User:a READ TOPIC 'orders' from 10.1.2.3" in recorded.err
        assert "User:b READ TOPIC 'orders' from 10.1.2.3" in recorded.err
        for version in ("4.3.1", "4.4.0"):
            aclog("test", from_accesses, *source, "--kafka-version", version).ok()
        assert "11.0.0.1" in from_accesses.read_text()


# Fixes of lint


def test_a_fix_is_neutral_on_each_of_them(tmp_path):
    """A DENY that one Kafka enforces stays, and so does an ALLOW that is needless for another reason on each."""
    rules = (
        acl("orders", "User:a"),
        acl("orders", "User:a", RANGE),
        acl("orders", "User:a", "10.1.2.3"),
        acl("pay", "User:a", RANGE),
        acl("pay", "User:a", "10.1.2.3"),
        acl("shut", "User:a", RANGE, permission_type=AclPermissionType.DENY),
        acl("shut", "User:a", "10.1.2.3", permission_type=AclPermissionType.DENY),
        acl("shut", "User:a"),
    )
    path, fix = rules_file(tmp_path / "rules.jsonl", *rules), tmp_path / "fix.jsonl"
    found = aclog("lint", "--acls", path, "--fix", fix, CLOSED)
    assert "proved to change no decision" in found.err
    removed = [json.loads(line)["rule"] for line in fix.read_text().splitlines()]
    assert [(each["resourceName"], each["host"]) for each in removed] == [("orders", "10.1.2.3")]
    for version in ("4.3.1", "4.4.0"):
        aclog("check", "equal", "--acls", path, "--change", fix, "--kafka-version", version, CLOSED).ok()
    alone = aclog("lint", "--acls", path, "--fix", tmp_path / "alone.jsonl", CLOSED, "--kafka-version", "4.4.0")
    assert "pay" in (tmp_path / "alone.jsonl").read_text(), alone


# Reviews


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository whose main branch has a rule for one address, and the working tree one for a range."""
    made = Repository.create(tmp_path / "repository")
    made.commit({"acls.jsonl": f"{json.dumps(object_of_rule(acl('orders', 'User:a')))}\n"})
    monkeypatch.chdir(made.path)
    rules_file(Path("acls.jsonl"), acl("orders", "User:a"), acl("orders", "User:b", RANGE))
    return made


def test_a_review_shows_what_each_of_them_makes_of_a_change(repository):
    gained = {
        "text": f"GAINED  User:b: READ, DESCRIBE on TOPIC orders, from {RANGE}{ONLY_NEW}",
        "markdown": f"`User:b` gains `READ`, `DESCRIBE` on topic `orders`, from `{RANGE}`{ONLY_NEW}",
    }
    for form, row in gained.items():
        result = aclog("review", "acls.jsonl", "--base", "HEAD", "--format", form)
        assert row in result.out.replace("\\", ""), result
        assert SETTLED in result.out.replace("\\", "")
    verdict, *rows = map(json.loads, aclog("review", "acls.jsonl", "--base", "HEAD", "--format", "jsonl").lines)
    assert verdict["generations"] == ["4.3", "4.4"]
    assert [row["generation"] for row in rows if row["kind"] == "difference"] == ["4.4"]
    (run,) = json.loads(aclog("review", "acls.jsonl", "--base", "HEAD", "--format", "sarif").out)["runs"]
    (result,) = [each for each in run["results"] if each["ruleId"] == "access-gained"]
    assert result["properties"]["generation"] == "4.4"
    assert gained["text"] in result["message"]["text"]


def test_a_review_fails_if_it_does_on_either_of_them(repository):
    Path("aclog.toml").write_text('[review]\nuntouched = ["topic:orders"]\n')
    refuted = aclog("review", "acls.jsonl", "--base", "HEAD")
    assert refuted.code == 1
    assert f"REFUTED: topic:orders is decided differently for at least one request{ONLY_NEW}" in refuted.out
    aclog("review", "acls.jsonl", "--base", "HEAD", "--kafka-version", "4.3", "--fail-on", "proofs,gained").ok()
    Path("aclog.toml").write_text('[review]\nno-gain = ["topic:orders"]\n')
    gained = "REFUTED: at least one principal gains access to topic:orders"
    assert f"{gained}{ONLY_NEW}" in aclog("review", "acls.jsonl", "--base", "HEAD").out
    rules_file(Path("acls.jsonl"), acl("orders", "User:a"), acl("orders", "User:*", "0.0.0.0/0"))
    Path("aclog.toml").unlink()
    opened = aclog("review", "acls.jsonl", "--base", "HEAD")
    assert (opened.code, "everyone gains access" in opened.lines[0]) == (1, True)


def test_a_review_runs_tests_on_each_of_them(repository):
    Path("tests.yaml").write_text("tests: [{principal: 'User:b', can_only: {}}]\n")
    asked = ("review", "acls.jsonl", "--base", "HEAD", "--tests", "tests.yaml", "--fail-on", "tests")
    failing = aclog(*asked)
    assert (failing.code, "1 test fails" in failing.lines[0]) == (1, True)
    assert [line for line in failing.lines if line.startswith("- test fails: ") and line.endswith(ONLY_NEW)]
    aclog(*asked, "--kafka-version", "4.3.1").ok()


# Accesses


ACCESS = {"operation": "READ", "resourceType": "TOPIC", "resourceName": "orders", "timestamp": "2026-11-21T10:00:00Z"}
ACCESSES = [
    ACCESS | {"principal": who, "host": host}
    for who, host in (("User:a", "10.1.2.3"), ("User:b", "10.1.2.3"), ("User:b", "11.0.0.1"), ("User:c", "11.0.0.1"))
]


@pytest.fixture
def accesses(tmp_path):
    return written(tmp_path / "accesses.jsonl", ACCESSES)


def test_a_simulation_shows_what_each_of_them_makes_of_it(unstated, accesses, tmp_path):
    rules_file(tmp_path / "none.jsonl")
    asked = ("simulate", "--accesses", accesses, *unstated, "--to-acls", tmp_path / "none.jsonl")
    rows = [json.loads(line) for line in aclog(*asked, "--format", "jsonl").lines]
    assert sorted((row["principal"], row["host"], row["change"], row.get("generation", "")) for row in rows) == [
        ("User:a", "10.1.2.3", "LOST", "4.4"),
        ("User:b", "10.1.2.3", "LOST", "4.3"),
        ("User:b", "11.0.0.1", "LOST", ""),
    ]
    text = aclog(*asked)
    assert [line for line in text.lines if line.startswith("On ")] == ["On Kafka 4.3:", "On Kafka 4.4:"]
    assert (text.code, SETTLED in text.err) == (1, True)


def test_what_an_unknown_kafka_may_decide_is_not_judged(rolling, unstated, new, accesses):
    for source in (rolling, unstated):
        found = aclog("usage", *source, "--as-of", 6 if source is rolling else 3, "--accesses", accesses)
        assert "UNKNOWN_KAFKA 2" in found.ok().out
        assert SETTLED in found.err
        rows = objects(aclog("usage", *source, "--as-of", 3, "--accesses", accesses, "--format", "jsonl"))
        assert {row["answer"] for row in rows} == {"NOT_JUDGED", "NEEDED"}
        assert not any(row["removable"] for row in rows)
    rows = objects(aclog("usage", *new, "--as-of", 4, "--accesses", accesses, "--format", "jsonl"))
    assert {(row["principal"], row["host"], row["answer"]) for row in rows} == {
        ("User:a", RANGE, "NEEDED"), ("User:b", "*", "NEEDED"), ("User:b", DENIED, "NEEDED"),
    }  # fmt: skip


def test_a_suggestion_is_proved_for_each_of_them(unstated, accesses, tmp_path):
    out = tmp_path / "want.jsonl"
    result = aclog("suggest", *unstated, "--accesses", accesses, "--out", out).ok()
    assert SETTLED in result.err
    kept = {(row["principal"], row["host"]) for row in map(json.loads, out.read_text().splitlines())}
    assert kept == {("User:a", RANGE), ("User:b", "*"), ("User:b", DENIED)}
    for version in ("4.3", "4.4"):
        checked = aclog("check", "no-new-access", *unstated, "--to-acls", out, "--kafka-version", version)
        assert checked.ok().out.startswith("PROVED: ")
        lost = aclog("simulate", "--accesses", accesses, *unstated, "--to-acls", out, "--kafka-version", version)
        assert lost.code == 0


def test_refusals_that_only_one_of_them_makes_are_no_answer(unstated, accesses):
    result = aclog("denied", *unstated, "--accesses", accesses, "--format", "jsonl")
    assert [json.loads(line)["principal"] for line in result.lines] == ["User:c"]
    assert "more requests may be denied than are listed" in result.err


def test_an_index_keeps_what_it_could_not_judge(tmp_path):
    """What the brokers ran at the time of an access decides; while they differ, it is not known."""
    path, begin, hour = tmp_path / "log", 20_000 * DAY_MS, 3_600_000
    rules = (*RULES, acl("pay", "User:a"), acl("pay", "User:z"))
    records = [acl_record(number + 1, rule) for number, rule in enumerate(rules)]
    first = [broker(1, 30), broker(2, 30), *records]
    write_log(path, first, [broker(2, 33)], [GONE], times=[1000, begin + hour, begin + 2 * hour])
    rows = [ACCESSES[-1] | {"timestamp": begin - at * hour} for at in range(0, 72, 6)]
    rows += [each | {"timestamp": begin + at} for at in (3 * hour // 2, 5 * hour // 2) for each in ACCESSES]
    accesses, index = written(tmp_path / "accesses.jsonl", rows), tmp_path / "index"
    added = aclog("usage-index", "--index", index, "--log", path, "--accesses", accesses).ok()
    assert "2 accesses could not be read or decided (UNKNOWN_KAFKA 2; unknown broker 20" in added.err
    for words in (("unused", "--index", index), ("usage", "--accesses", accesses)):
        found = aclog(*words, "--log", path, "--days", 1, "--format", "jsonl")
        answers = {
            (row["principal"], row["resourceName"], row["host"]): row["answer"] for row in map(json.loads, found.lines)
        }
        assert answers.pop(("User:a", "pay", "*")) == "NOT_JUDGED"
        assert answers.pop(("User:z", "pay", "*")) == "NEVER_MATCHED"
        assert set(answers.values()) == {"NEEDED"}
    proof = aclog("unused", "--index", index, "--log", path, "--days", 1, "--accesses", accesses)
    assert "decided again without the removable rules: all the same" in proof.err
    again = aclog("usage-index", "--index", index, "--log", path, "--accesses", accesses, "--kafka-version", "4.4").ok()
    assert "nothing new" in again.out


# When


def test_an_upgrade_begins_and_ends_what_was_allowed(rolling):
    path = rolling[1]
    log_of(path, [broker(1, 30), broker(2, 30)], [broker(2, 33)], [GONE])
    asked = ("when", "--log", path, "--principal", "User:a", *WHO)
    found = aclog(*asked).ok()
    assert [line.partition("Z: ")[2] or line for line in found.lines][-4:] == [
        f"the brokers differ: broker 1 runs Kafka 4.3, broker 2 runs Kafka 4.4{ONLY_NEW}",
        "all brokers run Kafka 4.4",
        "all brokers run Kafka 4.4",
        "  until now",
    ]
    rows = objects(aclog(*asked, "--format", "jsonl"))
    assert [row.get("generation") for row in rows] == ["4.4", "4.4", None]
    assert rows[-1]["from"]["change"] == {
        "action": "KAFKA", "generations": ["4.4"], "text": "all brokers run Kafka 4.4",
    }  # fmt: skip
    table = aclog(*asked, "--format", "csv")
    assert table.lines[0].endswith(",generation")
    known = objects(aclog(*asked, "--format", "jsonl", "--kafka-version", "4.4"))
    assert [(row["from"]["offset"], row["to"]) for row in known] == [(0, None)]
    assert aclog(*asked, "--kafka-version", "4.3").out.startswith("never: ")


def test_without_a_range_when_is_as_before(tmp_path):
    path = tmp_path / "log"
    write_log(path, [acl_record(1, acl("orders", "User:a"))], [broker(1, 30)], [broker(1, 33)])
    table = aclog("when", "--log", path, "--principal", "User:a", *WHO, "--format", "csv")
    assert not table.lines[0].endswith("generation")
    assert len(table.lines) == 2
    assert warnings(table) == []


# Requests that controllers decide


MADE = acl("new", "User:m", RANGE, AclOperation.CREATE)
READ_TOO = acl("new", "User:m", RANGE)
CREATE = ("--principal", "User:m", "--operation", "CREATE", "--topic", "new", "--host", "10.1.2.3")
READ = ("--principal", "User:m", "--operation", "READ", "--topic", "new", "--host", "10.1.2.3")


@pytest.fixture
def upgraded_brokers(tmp_path):
    """A log of a cluster whose brokers were upgraded, and whose controller is upgraded later."""
    rules = [acl_record(number + 1, rule) for number, rule in enumerate((MADE, READ_TOO))]
    path = tmp_path / "split"
    begin = 20_000 * DAY_MS
    write_log(
        path,
        [controller(9, 30), broker(1, 30), *rules],
        [broker(1, 33)],
        [controller(9, 33)],
        times=[1000, begin, begin + 2 * 3_600_000],
    )
    return path


def test_when_is_by_the_nodes_that_decide(upgraded_brokers):
    """A CREATE is forwarded to the controller; the brokers may decide it, too."""
    asked = ("when", "--log", upgraded_brokers, "--format", "jsonl")
    rows = objects(aclog(*asked, *CREATE))
    assert [(row["from"]["offset"], row.get("generation")) for row in rows] == [(4, "4.4"), (5, None)]
    assert [(row["from"]["offset"], row.get("generation")) for row in objects(aclog(*asked, *READ))] == [(4, None)]
    text = aclog("when", "--log", upgraded_brokers, *CREATE).out
    assert "the nodes differ: controller 9 runs Kafka 4.3, broker 1 runs Kafka 4.4 (on Kafka 4.4 only)" in text


def test_an_access_that_the_controller_decided_is_judged_by_its_kafka(upgraded_brokers, tmp_path):
    begin, hour = 20_000 * DAY_MS, 3_600_000
    accesses = [
        {
            "principal": "User:m", "host": "10.1.2.3", "operation": operation, "resourceType": "TOPIC",
            "resourceName": "new", "timestamp": begin + at * hour,
        }
        for operation, at in (("READ", 1), ("CREATE", 1), ("CREATE", 3))
    ]  # fmt: skip
    path = written(tmp_path / "accesses.jsonl", accesses)
    found = aclog("usage", "--log", upgraded_brokers, "--accesses", path, "--days", 1, "--format", "jsonl")
    matched = {row["operation"]: row["matched"] for row in objects(found)}
    assert matched == {"CREATE": 1, "READ": 1}
    text = aclog("usage", "--log", upgraded_brokers, "--accesses", path, "--days", 1)
    assert "UNKNOWN_KAFKA 1" in text.out + text.err


def test_a_plan_is_by_the_nodes_that_decide(tmp_path):
    """The controller of the log still runs 4.3: a rule for it is in doubt, one for brokers is not."""
    path = write_log(tmp_path / "log", [controller(9, 30), broker(1, 33), acl_record(1, acl("a", "User:a"))])
    for rule, marked in ((READ_TOO, False), (MADE, True)):
        shown, out = plan_of(("--log", path), tmp_path, acl("a", "User:a"), rule)
        head = json.loads(out.read_text().splitlines()[0])
        assert head["settings"]["generations"] == (["4.3", "4.4"] if marked else ["4.4"]), shown
        assert ("Kafka 4.3 or Kafka 4.4 may decide: the nodes differ: " in shown.out) is marked
        assert (ONLY_NEW in shown.out) is marked
        out.unlink()


# Usage by the Kafka of the time, beside the engine


PRINCIPALS, HOSTS = ("User:a", "User:b", "User:c"), ("10.0.0.1", "10.0.0.9", "11.0.0.1")
RULE_HOSTS = ("*", "10.0.0.1", "10.0.0.0/8", "10.0.0.0/30", "0.0.0.0/0")


def random_rules(random: Random):
    found = {
        acl(
            random.choice(("orders", "pay", "*")),
            random.choice((*PRINCIPALS, "User:*")),
            random.choice(RULE_HOSTS),
            random.choice((AclOperation.READ, AclOperation.WRITE, AclOperation.ALL)),
            permission_type=random.choice((AclPermissionType.ALLOW,) * 3 + (AclPermissionType.DENY,)),
        )
        for _ in range(random.choice((2, 4, 7)))
    }
    return sorted(found, key=str)


def matching(rule, asked) -> bool:
    """Whether a rule is about a request, its host aside."""
    principal, _, operation, name = asked
    implied = {"DESCRIBE": ("READ", "WRITE")} if rule.permission_type == AclPermissionType.ALLOW else {}
    names = (operation, "ALL", *implied.get(operation, ()))
    return (
        rule.principal in (principal, "User:*")
        and rule.resource_name in (name, "*")
        and AclOperation(rule.operation).name in names
    )


def by_range(rule, asked) -> bool:
    return matching(rule, asked) and in_cidr(rule.host, asked[1])


def letter(rules, asked, *, cidr: bool) -> str:
    image = AclsImage.from_acls(StandardAclWithId(id=None, acl=rule) for rule in rules)
    principal, host, operation, name = asked
    return decided(engine(image, Settings(cidr=cidr)), principal, host, operation, ResourceType.TOPIC.name, name)[0]


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.sample(8)
def test_usage_is_by_the_kafka_of_the_time(tmp_path, seed):
    """What the brokers ran then decides an access; while that is not known, what a range matches is not judged."""
    random = Random(f"kafka {seed}")
    rules, path = random_rules(random), tmp_path / "log"
    begin = 20_000 * DAY_MS
    changes = random.choice(([], [[broker(1, 33)]], [[broker(2, 33)], [broker(1, 33)]], [[broker(2, 33)]]))
    times = [1000, *(begin + (number + 1) * 3_600_000 for number in range(len(changes)))]
    first = [broker(1, 30), broker(2, 33 if random.random() < 0.2 else 30)]
    if changes == [[broker(1, 33)]]:
        first = [broker(1, 30)]
    records = [acl_record(number + 1, rule) for number, rule in enumerate(rules)]
    write_log(path, [*first, *records], *changes, times=times)
    asked = list(product(PRINCIPALS, HOSTS, ("READ", "WRITE", "DESCRIBE"), ("orders", "pay")))
    rows = []
    for number in range(40):
        principal, host, operation, name = random.choice(asked)
        at = begin + 1_800_000 * (number % 8) + number
        rows.append({
            "principal": principal, "host": host, "operation": operation, "resourceType": "TOPIC",
            "resourceName": name, "timestamp": at,
        })  # fmt: skip
    rows.append({**rows[0], "timestamp": begin + 5 * 3_600_000})
    accesses = written(tmp_path / "accesses.jsonl", rows)
    result = aclog("usage", "--log", path, "--accesses", accesses, "--days", 1, "--format", "jsonl")
    found = {
        (row["principal"], row["resourceName"], row["host"], row["operation"], row["permissionType"]): row
        for row in objects(result)
    }

    def generations(at: int) -> list[bool]:
        """Whether a broker knows ranges at a time, each answer once."""
        known = {record.broker_id: record for record in first}
        for time, step in zip(times[1:], changes, strict=True):
            if time <= at:
                known |= {record.broker_id: record for record in step}
        return sorted({record.features[0].max_supported_version >= 32 for record in known.values()})

    end = rows[-1]["timestamp"]
    judged, unknown = [], []
    for row in rows:
        one = (row["principal"], row["host"], row["operation"], row["resourceName"])
        deciding = [generations(at) for at in (row["timestamp"], end)]
        if any(len(each) > 1 for each in deciding) and any(by_range(rule, one) for rule in rules):
            unknown.append((one, deciding))
        else:
            judged.append((one, deciding))
    concerned = {one[0] for one, _ in unknown}
    gone = []
    for rule in rules:
        row = found[
            rule.principal, rule.resource_name, rule.host, AclOperation(rule.operation).name,
            AclPermissionType(rule.permission_type).name,
        ]  # fmt: skip
        others = [each for each in rules if each != rule]
        used = [
            (one, deciding[0][0])
            for one, deciding in judged
            if (matching(rule, one) and rule.host in ("*", one[1])) or (deciding[0][0] and by_range(rule, one))
        ]
        needed = [one for one, cidr in used if letter(rules, one, cidr=cidr) != letter(others, one, cidr=cidr)]
        assert (row["matched"], row["needed"]) == (len(used), len(needed)), rule
        if (rule.principal in concerned or (rule.principal == "User:*" and concerned)) and not needed:
            assert (row["answer"], row["removable"]) == ("NOT_JUDGED", False)
        else:
            assert row["answer"] == ("NEEDED" if needed else "NEVER_NEEDED" if used else "NEVER_MATCHED")
        if row["removable"]:
            gone.append(rule)
    left = [rule for rule in rules if rule not in gone]
    for one, deciding in (*judged, *unknown):
        for cidr in {flag for each in deciding for flag in each}:
            assert letter(rules, one, cidr=cidr) == letter(left, one, cidr=cidr), (one, gone)


def test_a_question_of_one_address_is_not_in_doubt(rolling):
    """Rules with ranges do not make every answer a double one."""
    answer = aclog("authorize", *rolling, *BY_A[:-1], "12.0.0.1")
    assert (answer.code, answer.lines[0], warnings(answer)) == (1, "DENIED DefaultDeny", [])
