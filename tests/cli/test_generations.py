"""Which generation of Kafka decides: named, stated by the brokers of a log, or unknown, and then both answers."""

import json
from itertools import pairwise

import pytest

from aclog.analysis.rule_tests.case import CaseSubject, parse_resource
from aclog.analysis.rule_tests.expectations import Cannot
from aclog.authorizer.acl import FileOrigin
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.cli.flags.common import AuthorizerFlags
from aclog.cli.follow import FollowerStatus, FollowOptions, _Follower
from aclog.cli.test_follow import Guard, GuardOptions, Verdicts
from aclog.metalog.records import FeatureLevelRecord, OpaqueRecord, RecordType, UnregisterBrokerRecord
from aclog.ops.policies import settings_of
from aclog.snapshots.publisher import Followed
from aclog.sources.choice import SourceSelection, choose_source
from aclog.sources.logs import LogSource
from aclog.terminal.columns import OutputFormat
from tests.support.builders.acls import acl, acl_record, acl_row
from tests.support.builders.records import controller_registration
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import registration as broker
from tests.support.cli.command import aclog

RANGE, DENIED = "10.0.0.0/8", "10.1.0.0/16"
RULES = (
    acl("orders", "User:a", RANGE),
    acl("orders", "User:b"),
    acl("orders", "User:b", DENIED, permission_type=AclPermissionType.DENY),
)
BY_A = ("--principal", "User:a", "--operation", "READ", "--topic", "orders", "--host", "10.1.2.3")
BY_B = ("--principal", "User:b", *BY_A[2:])
WHO = ("--operation", "READ", "--topic", "orders")
ALTER = acl("kafka-cluster", "User:a", RANGE, AclOperation.ALTER, resource_type=ResourceType.CLUSTER)
"""An ACL with a range that matters to what controllers decide."""
TO_ALTER = ("--principal", "User:a", "--operation", "ALTER", "--cluster", "--host", "10.1.2.3")
UPGRADED = "on nodes upgraded from Kafka 4.3 to Kafka 4.4"
WARNING = "1 host of ACLs such as 10.0.0.0/8 is a range, which Kafka 4.4 matches and Kafka 4.3 does not"


def log_of(path, *batches):
    """A log of these batches of records, after one with the rules."""
    rules = [acl_record(number + 1, rule) for number, rule in enumerate(RULES)]
    write_log(path, rules, *batches)
    return "--log", path


def controller(number, level):
    """The registration of a controller."""
    value = controller_registration(number, level)
    return OpaqueRecord(api_key=RecordType.REGISTER_CONTROLLER_RECORD, version=0, value=value)


def objects(result):
    return [json.loads(line) for line in result.ok().lines]


def warnings(result):
    return [line for line in result.err.splitlines() if line.startswith("aclog: warning:")]


@pytest.fixture
def unstated(tmp_path):
    """A log without a broker."""
    return log_of(tmp_path / "unstated")


@pytest.fixture
def old(tmp_path):
    """A log whose brokers are of Kafka 4.3.1."""
    return log_of(tmp_path / "old", [broker(1, 30), broker(2, 30)])


@pytest.fixture
def new(tmp_path):
    """A log whose brokers are of Kafka 4.4.0."""
    return log_of(tmp_path / "new", [broker(1, 33), broker(2, 33)])


@pytest.fixture
def rolling(tmp_path):
    """A log of a cluster that is being upgraded."""
    return log_of(tmp_path / "rolling", [broker(1, 30), broker(2, 30)], [broker(2, 33)])


def test_the_brokers_of_a_log_state_it(old, new):
    assert aclog("authorize", *old, *BY_A).out == "DENIED DefaultDeny\n"
    assert aclog("authorize", *new, *BY_A).ok().out.startswith("ALLOWED MatchingAcl(")
    assert aclog("authorize", *old, *BY_B).ok().out.startswith("ALLOWED MatchingAcl(")
    denied = aclog("authorize", *new, *BY_B)
    assert (denied.code, warnings(denied)) == (1, [])
    assert f"host={DENIED}" in denied.out
    assert "User:a" not in aclog("who-can", *old, *WHO).ok().out
    assert (
        f"User:a: READ, DESCRIBE on TOPIC orders, from {RANGE}".replace(", DESCRIBE", "")
        in aclog("who-can", *new, *WHO).ok().out
    )


@pytest.mark.parametrize("flags", [("--kafka-version", "4.3.1"), ("--no-cidr",)])
def test_a_flag_takes_precedence(new, flags):
    answer = aclog("authorize", *new, *BY_A, *flags)
    assert (answer.code, answer.out, warnings(answer)) == (1, "DENIED DefaultDeny\n", [])


@pytest.mark.parametrize("flags", [("--kafka-version", "4.4"), ("--kafka-version", "4.4.0", "--cidr"), ("--cidr",)])
def test_of_the_new_generation_as_well(old, flags):
    assert warnings(aclog("authorize", *old, *BY_A, *flags).ok()) == []


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (("--kafka-version", "4.4", "--no-cidr"), "--kafka-version 4.4 and --no-cidr differ: expected one of them"),
        (("--kafka-version", "4.3.1", "--cidr"), "--kafka-version 4.3.1 and --cidr differ: expected one of them"),
        (("--kafka-version", "4.5.0"), "Kafka 4.5.0 is not supported: expected a version up to 4.4"),
        (("--kafka-version", "new"), "'new' is not a version of Kafka: expected one such as 4.3.1 or 4.4.0"),
    ],
)
def test_flags_that_cannot_be(old, flags, complaint):
    refused = aclog("authorize", *old, *BY_A, *flags)
    assert (refused.code, refused.out) == (2, "")
    assert refused.complaint.endswith(complaint)


def test_a_decision_is_the_strictest_and_the_other_is_named(unstated):
    for asked, denying in ((BY_A, "4.3"), (BY_B, "4.4")):
        answer = aclog("authorize", *unstated, *asked)
        first, second = answer.lines
        assert (answer.code, first.startswith("DENIED "), first.endswith(f" (on Kafka {denying} only)")) == (
            1,
            True,
            True,
        )
        assert second.startswith(f"Kafka {'4.4' if denying == '4.3' else '4.3'}: ALLOWED MatchingAcl(")
        assert WARNING.replace("1 host", "2 hosts").replace("is a range", "are ranges") in answer.err
        (row,) = (json.loads(line) for line in aclog("authorize", *unstated, *asked, "--format", "json").lines)
        assert (row["decision"], row["generation"]) == ("DENIED", denying)
        assert [each["decision"] for each in row["otherGenerations"]] == ["ALLOWED"]


def test_what_both_decide_alike_is_one_answer(unstated):
    asked = (*BY_B[:-1], "11.0.0.1")
    answer = aclog("authorize", *unstated, *asked).ok()
    assert (len(answer.lines), warnings(answer)) == (1, [])


def test_without_a_range_nothing_is_said(tmp_path):
    path = tmp_path / "log"
    write_log(path, [acl_record(1, acl("orders", "User:a", "10.0.0.0/99"))])
    for words in (("authorize", "--log", path, *BY_A), ("who-can", "--log", path, *WHO)):
        answer = aclog(*words)
        assert "Kafka 4.4" not in answer.out + answer.err


def test_requests_are_decided_by_both(unstated):
    asked = [
        {"principal": who, "host": host, "operation": "READ", "resourceType": "TOPIC", "resourceName": "orders"}
        for who in ("User:a", "User:b")
        for host in ("10.1.2.3", "11.0.0.1")
    ]
    lines = "\n".join(map(json.dumps, asked)).encode()
    found = objects(aclog("authorize", *unstated, "--requests", "-", stdin=lines))
    assert [(each["decision"], each.get("allowedOnlyOn")) for each in found] == [
        ("DENIED", ["4.4"]),
        ("DENIED", None),
        ("DENIED", ["4.3"]),
        ("ALLOWED", None),
    ]


def test_an_explanation_is_given_for_each(unstated):
    shown = aclog("explain", *unstated, *BY_A)
    titles = [line for line in shown.lines if line.startswith("On Kafka ")]
    assert titles == ["On Kafka 4.3:", "On Kafka 4.4:"]
    answer = json.loads(aclog("explain", *unstated, *BY_A, "--format", "json").out)
    assert (answer["decision"], answer["generation"]) == ("DENIED", "4.3")
    assert answer["otherGenerations"]["4.4"]["decision"] == "ALLOWED"


def test_who_is_added_by_which(unstated):
    lines = [line for line in aclog("who-can", *unstated, *WHO).ok().lines if not line.startswith(" ")]
    assert lines == [
        "User:b: READ on TOPIC orders, from any host (on Kafka 4.3 only)",
        f"User:a: READ on TOPIC orders, from {RANGE} (on Kafka 4.4 only)",
        f"User:b: READ on TOPIC orders, from any host except {DENIED} (on Kafka 4.4 only)",
    ]
    rows = objects(aclog("who-can", *unstated, *WHO, "--format", "jsonl"))
    assert [each["generation"] for each in rows] == ["4.3", "4.4", "4.4"]
    rows = objects(aclog("what-can", *unstated, "--principal", "User:b", "--format", "jsonl"))
    assert {each.get("generation") for each in rows} == {"4.3", "4.4"}


@pytest.mark.parametrize(
    ("words", "generation"),
    [
        (("not-granted", *WHO, "--principal", "User:a"), "4.4"),
        (("only", *WHO, "--principal", "User:b"), "4.4"),
        (("no-new-access", "--kafka-version", "4.3", "--to-kafka-version", "4.4"), None),
        (("equal", "--to-kafka-version", "4.4"), None),
    ],
)
def test_nothing_is_proved_that_one_of_them_refutes(unstated, words, generation):
    name, *rest = words
    refuted = aclog("check", name, *unstated, *rest)
    assert refuted.code == 1, refuted
    assert refuted.out.startswith("REFUTED: ")
    assert ("(on Kafka 4.4 only)" in refuted.out) is (generation is not None)
    rows = [json.loads(line) for line in aclog("check", name, *unstated, *rest, "--format", "jsonl").lines]
    assert (rows[0]["verdict"], {row.get("generation") for row in rows[1:]}) == ("REFUTED", {generation})


def test_what_one_of_them_cannot_refute_is_proved_for_both(unstated):
    proved = aclog("check", "not-granted", *unstated, "--operation", "WRITE", "--topic", "orders").ok()
    assert proved.out.startswith("PROVED: ")


def test_an_upgrade_changes_what_ranges_say(unstated, rolling, new):
    for source in (unstated, rolling):
        changed = aclog("diff", *source, "--to-kafka-version", "4.4")
        assert changed.code == 1
        rows = [line.partition(":")[0] for line in changed.lines if line.startswith(("GAINED", "LOST"))]
        assert rows[:2] == ["GAINED  User", "LOST  User"]
        assert f"from {RANGE}" in changed.out
        assert f"from {DENIED}" in changed.out
    assert aclog("diff", *new, "--to-kafka-version", "4.4").ok().out.startswith("no difference")


def test_an_upgrade_is_told_rule_by_rule_and_never_as_a_whole(tmp_path):
    rules = [
        acl(f"t{number}", "User:*" if number % 9 == 0 else f"User:{number % 7}", f"10.{number}.0.0/16")
        for number in range(90)
    ]
    rules += [acl("t", "User:z", pattern_type=PatternType.PREFIXED), acl("*", "User:y", "10.1.0.0/16")]
    path = tmp_path / "log"
    write_log(path, [acl_record(number + 1, rule) for number, rule in enumerate(rules)])
    rows = [line for line in aclog("diff", "--log", path, "--to-kafka-version", "4.4").lines if line[0] != " "]
    assert len(rows) > 80
    assert not [line for line in rows if "everything" in line or "from any host" in line]


def test_a_difference_is_shown_by_generation(unstated, tmp_path):
    (tmp_path / "before").write_text("")
    changed = aclog("diff", "--acls", tmp_path / "before", "--to-log", unstated[1])
    assert changed.code == 1
    assert [line for line in changed.lines if line.startswith("On ")] == ["On Kafka 4.3:", "On Kafka 4.4:"]
    table = aclog("diff", "--acls", tmp_path / "before", "--to-log", unstated[1], "--format", "markdown")
    assert [line for line in table.lines if line.startswith("#")] == ["### Kafka 4.3", "### Kafka 4.4"]
    found = aclog("diff", "--acls", tmp_path / "before", "--to-log", unstated[1], "--format", "sarif")
    (run,) = json.loads(found.out)["runs"]
    first_lines = [result["message"]["text"].partition("\n")[0] for result in run["results"]]
    assert [line.partition(" (on ")[2] for line in first_lines] == ["Kafka 4.3 only)", *["Kafka 4.4 only)"] * 2]
    assert [result["properties"]["generation"] for result in run["results"]] == ["4.3", "4.4", "4.4"]


def test_files_of_rules_are_decided_as_the_cluster_they_are_compared_with(new, old, tmp_path):
    (tmp_path / "none").write_text("")
    for source, expected in ((new, True), (old, False)):
        shown = aclog("diff", *source, "--to-acls", tmp_path / "none")
        assert ("User:a" in shown.out, "version of its brokers" in shown.err) == (expected, False)


def test_brokers_that_differ_are_named(rolling):
    answer = aclog("authorize", *rolling, *BY_A)
    assert "the brokers differ: broker 1 runs Kafka 4.3, broker 2 runs Kafka 4.4, and 2 hosts" in answer.err
    assert answer.out.startswith("DENIED DefaultDeny (on Kafka 4.3 only)\nKafka 4.4: ALLOWED ")


def test_time_travel_takes_the_brokers_of_the_moment(tmp_path):
    gone = UnregisterBrokerRecord(broker_id=1, broker_epoch=1)
    source = log_of(tmp_path / "log", [broker(1, 30)], [broker(2, 33)], [gone])
    ends = {4: "DENIED DefaultDeny\n", 5: "DENIED DefaultDeny (on Kafka 4.3 only)\n", 6: "ALLOWED Matching"}
    for end, expected in ends.items():
        assert aclog("authorize", *source, *BY_A, "--as-of", end).out.startswith(expected), end


def test_lint_states_which_generation_it_is_about_and_advises_nothing_then(unstated, new):
    of_one = [line for line in objects_of_lint(unstated) if " only)" in line["lost"]]
    assert {line["lint"] for line in of_one} >= {"04", "10"}
    for line in of_one:
        assert line["fix"].startswith("# State the Kafka version")
        assert "emove" not in line["fix"]
    assert not {"04", "10"} & {line["lint"] for line in objects_of_lint(new)}


def objects_of_lint(source):
    return [json.loads(line) for line in aclog("lint", *source, "--format", "jsonl").lines]


def test_a_broker_version_names_it_for_lint(unstated):
    found = {
        json.loads(line)["lint"]
        for line in aclog("lint", *unstated, "--format", "jsonl", "--broker-version", "4.4.0").lines
    }
    assert not {"04", "10"} & found


def test_no_fix_is_made_that_one_of_them_needs(unstated, tmp_path):
    """The DENY that 4.4 enforces stays, though 4.3 has no use for it: what is removed is neutral on each."""
    fixed = aclog("lint", *unstated, "--fix", tmp_path / "fix.jsonl", "--no-allow-everyone-if-no-acl-found")
    assert "0 changes for 0 findings, proved to change no decision" in fixed.err
    assert "the version of the brokers" in fixed.err
    assert (tmp_path / "fix.jsonl").read_text() == ""


def test_settings_files_name_it(unstated, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "aclog.toml").write_text('[authorizer]\nkafka-version = "4.4.0"\n')
    found = {json.loads(line)["lint"] for line in aclog("lint", *unstated, "--format", "jsonl").lines}
    assert not {"04", "10"} & found
    (tmp_path / "aclog.toml").write_text('[authorizer]\nkafka-version = "4.9"\n')
    refused = aclog("lint", *unstated)
    assert "aclog.toml:2" in refused.complaint
    assert "Kafka 4.9 is not supported" in refused.complaint
    (tmp_path / "aclog.toml").write_text('[authorizer]\nkafka-version = "4.4"\ncidr = false\n')
    refused = aclog("lint", *unstated)
    assert "aclog.toml:2: authorizer.kafka-version 4.4 and cidr = false differ: expected one" in refused.complaint


def test_a_context_names_it(unstated, tmp_path, monkeypatch):
    config = tmp_path / "config.toml"
    config.write_text(f'[contexts.it]\nlog = "{unstated[1]}"\nkafka-version = "4.4.0"\n')
    monkeypatch.setenv("ACLOG_CONFIG", str(config))
    answer = aclog("authorize", "-c", "it", *BY_A).ok()
    assert "kafka-version=4.4.0" in answer.err
    assert aclog("authorize", "-c", "it", *BY_A, "--kafka-version", "4.3").out == "DENIED DefaultDeny\n"


def test_a_broker_that_is_upgraded_is_a_change_to_who_follows(rolling, capsys):
    """A registration changes decisions as an ACL does: those of each broker, at the time of its upgrade."""
    log, gone = rolling[1], UnregisterBrokerRecord(broker_id=1, broker_epoch=1)
    log_of(
        log, [broker(1, 30), broker(2, 30), broker(3, 30)], [broker(2, 33)], [broker(3, 33)], [gone], [broker(3, 33)]
    )
    images = [LogSource(log, lambda _: None).image_at(offset) for offset in (3, 6, 7, 8, 9, 10)]
    settings = settings_of(AuthorizerFlags())
    options = FollowOptions(settings=settings, topics=None, format=OutputFormat.TEXT, http=None, give_up_after=None)
    follower = _Follower(choice=choose_source(SourceSelection(log=log)), options=options)
    shown = []
    for before, after in pairwise(images):
        follower.show(Followed(before=before, after=after, changes=()))
        shown.append(capsys.readouterr().out.splitlines())
    first, *upgrades, last = ([line for line in lines if not line.startswith("    ")] for lines in shown)
    # Both generations might have decided before the first broker registered, and only the old one did then.
    assert first[0].endswith(": all brokers run Kafka 4.3")
    for lines, headline in zip(
        upgrades,
        (
            ": the brokers differ: brokers 1, 3 run Kafka 4.3, broker 2 runs Kafka 4.4",
            ": the brokers differ: broker 1 runs Kafka 4.3, brokers 2, 3 run Kafka 4.4",
            ": all brokers run Kafka 4.4",  # the clients of the one that left are decided by the others
        ),
        strict=True,
    ):
        assert lines[0].endswith(headline)
        assert lines[1:] == [
            f"  GAINED  User:a: READ, DESCRIBE on TOPIC orders, from {RANGE} ({UPGRADED})",
            f"  LOST  User:b: READ on TOPIC orders, from {DENIED} ({UPGRADED})",
        ]
    assert last == []


def test_each_request_of_an_intent_is_decided_by_those_who_decide_it(tmp_path):
    """Controllers of 4.3 beside brokers of 4.4 decide on CREATE, ALTER and DELETE, and not on DESCRIBE."""
    names = ("CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")
    rules = [acl_record(9 + at, acl("orders", "User:a", RANGE, AclOperation[name])) for at, name in enumerate(names)]
    source = log_of(tmp_path / "log", [broker(1, 33), controller(3, 30)], rules)
    asked = ("--principal", "User:a", "--topic", "orders", "--host", "10.1.2.3")
    shown = aclog("explain", *source, *asked, "--intent", "admin", "--format", "json", "--origins").denied()
    requests = {each["operation"]: each for each in json.loads(shown.out)["requests"]}
    for name, request in requests.items():
        alone = aclog("explain", *source, *asked, "--operation", name, "--format", "json", "--origins")
        assert request == json.loads(alone.out), name
    assert {each["decision"] for each in requests.values()} == {"ALLOWED", "DENIED"}
    assert requests["DESCRIBE"]["decision"] == "ALLOWED"
    assert len([line for line in shown.err.splitlines() if "CIDR range" in line]) == 1


def test_controllers_count_for_what_they_decide_and_for_nothing_else(tmp_path):
    upgraded = [broker(1, 30), controller(3, 33)]
    source = log_of(tmp_path / "log", upgraded, [acl_record(9, ALTER)])
    for asked in (BY_A, BY_B):  # a broker alone decides who reads
        assert warnings(aclog("authorize", *source, *asked)) == []
        assert "(on Kafka" not in aclog("who-can", *source, *WHO).ok().out
        assert aclog("check", "not-granted", *source, *WHO, "--principal", "User:a").ok().out.startswith("PROVED")
    answer = aclog("authorize", *source, *TO_ALTER)
    assert answer.lines[0] == "DENIED DefaultDeny (on Kafka 4.3 only)"
    assert answer.lines[1].startswith("Kafka 4.4: ALLOWED ")
    assert "the nodes differ: broker 1 runs Kafka 4.3, controller 3 runs Kafka 4.4, and 2 hosts" in answer.err
    assert "the nodes differ" in aclog("explain", *source, *TO_ALTER).denied().err
    refuted = aclog("check", "not-granted", *source, "--operation", "ALTER", "--cluster", "--principal", "User:a")
    assert (refuted.code, "(on Kafka 4.4 only)" in refuted.out) == (1, True)
    asked = [
        {"principal": "User:a", "host": "10.1.2.3", "operation": operation, "resourceType": kind, "resourceName": name}
        for operation, kind, name in (("READ", "TOPIC", "orders"), ("ALTER", "CLUSTER", "kafka-cluster"))
    ]
    lines = "\n".join(map(json.dumps, asked)).encode()
    found = objects(aclog("authorize", *source, "--requests", "-", stdin=lines))
    assert [each.get("allowedOnlyOn") for each in found] == [None, ["4.4"]]


def test_controllers_that_state_nothing_may_be_any(tmp_path):
    source = log_of(tmp_path / "log", [broker(1, 33)], [acl_record(9, ALTER)])
    assert aclog("authorize", *source, *BY_A).ok().out.startswith("ALLOWED MatchingAcl(")
    answer = aclog("authorize", *source, *TO_ALTER)
    assert (answer.code, "the version of the controllers" in answer.err) == (1, True)
    log_of(source[1], [broker(1, 33), controller(3, 33)], [acl_record(9, ALTER)])
    assert aclog("authorize", *source, *TO_ALTER).ok().out.startswith("ALLOWED MatchingAcl(")


def test_rules_in_files_are_decided_by_controllers_too(tmp_path):
    """The log has no range that matters to a controller, and the files that it is compared with have one."""
    source = log_of(tmp_path / "log", [broker(1, 33), controller(3, 30)])
    other = log_of(tmp_path / "other", [acl_record(9, ALTER)])
    rules = tmp_path / "rules.jsonl"
    rules.write_text(aclog("acls", "list", *other, "--format", "jsonl").ok().out)
    changed = aclog("diff", *source, "--to-acls", rules)
    assert "the nodes differ: controller 3 runs Kafka 4.3, broker 1 runs Kafka 4.4" in changed.err
    assert [line for line in changed.lines if line.startswith(("On ", "GAINED"))] == [
        "On Kafka 4.3:",
        "On Kafka 4.4:",
        f"GAINED  User:a: ALTER, DESCRIBE on CLUSTER, from {RANGE}",
    ]


def test_at_a_level_of_the_newer_kafka_no_older_node_decides(tmp_path):
    at_33 = FeatureLevelRecord(name="metadata.version", feature_level=33)
    source = log_of(tmp_path / "log", [at_33], [acl_record(9, ALTER)])
    for asked in (BY_A, TO_ALTER):
        assert warnings(aclog("authorize", *source, *asked).ok()) == []


def test_an_upgrade_is_followed_role_by_role(tmp_path, capsys):
    log = tmp_path / "log"
    log_of(log, [broker(1, 30), controller(3, 30), acl_record(9, ALTER)], [controller(3, 33)], [broker(1, 33)])
    images = [LogSource(log, lambda _: None).image_at(offset) for offset in (6, 7, 8)]
    options = FollowOptions(
        settings=settings_of(AuthorizerFlags()), topics=None, format=OutputFormat.TEXT, http=None, give_up_after=None
    )
    follower = _Follower(choice=choose_source(SourceSelection(log=log)), options=options)
    shown = []
    for before, after in pairwise(images):
        follower.show(Followed(before=before, after=after, changes=()))
        shown.append([line for line in capsys.readouterr().out.splitlines() if not line.startswith("    ")])
    first, second = shown
    assert first[0].endswith(": the nodes differ: broker 1 runs Kafka 4.3, controller 3 runs Kafka 4.4")
    only = "(on controllers upgraded from Kafka 4.3 to Kafka 4.4)"
    by_controllers = f"  GAINED  User:a: ALTER, DESCRIBE on CLUSTER, from {RANGE} {only}"
    assert first[1:] == [by_controllers], "no broker decides so yet"
    assert second[0].endswith(": all nodes run Kafka 4.4")
    assert second[1:] == [
        f"  GAINED  User:a: READ, DESCRIBE on TOPIC orders; ALTER, DESCRIBE on CLUSTER, from {RANGE} ({UPGRADED})",
        f"  LOST  User:b: READ on TOPIC orders, from {DENIED} ({UPGRADED})",
    ]


def turn_of(log, offsets, capsys):
    """What turns a test, that User:a must not ALTER the cluster, from one state of a log to another."""
    before, after = (LogSource(log, lambda _: None).image_at(offset) for offset in offsets)
    settings = settings_of(AuthorizerFlags())
    options = GuardOptions(
        settings=settings, jsonl=True, http=None, give_up_after=None, webhook=None, exit_on_red=False
    )
    case = Cannot(
        test="cluster",
        origin=FileOrigin(file="guard.yaml", line=1),
        subject=CaseSubject(principal="User:a"),
        operations=1 << AclOperation.ALTER,
        resource=parse_resource("cluster"),
    )
    guard = Guard(
        choice=choose_source(SourceSelection(log=log)),
        options=options,
        verdicts=Verdicts(cases=[case], settings=settings),
        status=FollowerStatus(),
        hook=None,
    )
    guard.begin(before)
    assert capsys.readouterr().out == ""
    guard.show(Followed(before=before, after=after, changes=None))
    return json.loads(capsys.readouterr().out)


def test_an_upgraded_controller_turns_a_test_of_what_controllers_decide(tmp_path, capsys):
    log = tmp_path / "log"
    log_of(log, [broker(1, 30), controller(3, 30), acl_record(9, ALTER)], [controller(3, 33)])
    turn = turn_of(log, (6, 7), capsys)
    assert (turn["event"], turn["changes"]) == ("RED", [])
    assert turn["software"] == "the nodes differ: broker 1 runs Kafka 4.3, controller 3 runs Kafka 4.4"


def test_the_first_range_that_turns_a_test_is_no_other_software(tmp_path, capsys):
    log = write_log(tmp_path / "log", [acl_record(1, acl("orders", "User:a"))], [acl_record(9, ALTER)])
    turn = turn_of(log, (1, 2), capsys)
    assert (turn["event"], len(turn["changes"])) == ("RED", 1)
    assert "software" not in turn


NEVER = "3 ACLs (1 DENY) have a CIDR range as host, which Kafka 4.3 does not match: such a DENY has no effect"
BY_GENERATION = (
    "2 ACLs (1 DENY) have a CIDR range as host, which Kafka 4.4 matches and Kafka 4.3 does not: there such a "
    "DENY has no effect"
)
NO_RANGE = (
    "1 ACL (0 DENY) has a host that looks like a CIDR range, but is not: it matches no client, and such a "
    "DENY has no effect"
)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([broker(1, 30)], [NEVER]),
        ([broker(1, 33)], [NO_RANGE]),
        ([], [f"{BY_GENERATION} (the version of the brokers is unknown)", NO_RANGE]),
        (
            [broker(1, 30), broker(2, 33)],
            [f"{BY_GENERATION} (the brokers differ: broker 1 runs Kafka 4.3, broker 2 runs Kafka 4.4)", NO_RANGE],
        ),
    ],
    ids=["old", "new", "unstated", "rolling"],
)
def test_ranges_are_warned_of_by_what_decides(tmp_path, nodes, expected):
    _, log = log_of(tmp_path / "log", [*nodes, acl_record(9, acl("orders", "User:c", "10.0.0.0/99"))])
    aclog("snapshot", "create", "--log", log, "--out", tmp_path / "out").ok()
    [checkpoint] = (tmp_path / "out").glob("*.checkpoint")
    for words in (("acls", "list", "--log", log), ("log", "verify", log), ("snapshot", "verify", checkpoint)):
        told = [line.partition("warning: ")[2] for line in aclog(*words).ok().err.splitlines()]
        assert [line.partition(". The first: ")[0] for line in told if " DENY) " in line] == expected


@pytest.mark.parametrize("words", [("acls", "list", "--log"), ("log", "verify")])
def test_nothing_is_said_of_ranges_that_every_node_matches(tmp_path, words):
    _, log = log_of(tmp_path / "log", [broker(1, 33), controller(1, 33), acl_record(9, ALTER)])
    assert warnings(aclog(*words, log).ok()) == []


def test_a_range_is_added_without_a_warning_where_all_match_it(tmp_path):
    rule = ("--allow-principal", "User:c", "--operation", "READ", "--topic", "t", "--allow-host")
    for name, level, expected in (("old", 30, 1), ("new", 33, 0)):
        _, log = log_of(tmp_path / name, [broker(1, level), controller(1, level)])
        (log / "leader-epoch-checkpoint").write_text("0\n1\n1 0\n")
        assert len(warnings(aclog("acls", "add", "--log", log, *rule, "10.2.0.0/16").ok())) == expected
        assert len(warnings(aclog("acls", "add", "--log", log, *rule, "10.2.0.0/99").ok())) == 1
        line = json.dumps(acl_row("u", host="10.2.0.0/16")).encode()
        assert len(warnings(aclog("import", "-", "--log", log, stdin=line).ok())) == expected


ALIKE = "this does not matter, as no ACL with a CIDR range as host makes nodes decide differently"
OTHERWISE = (
    "the brokers differ: broker 1 runs Kafka 4.3, broker 2 runs Kafka 4.4, and 2 hosts of ACLs such as 10.0.0.0/8 are "
    "ranges, which Kafka 4.4 matches and Kafka 4.3 does not: nodes decide the same request differently"
)


@pytest.mark.parametrize(
    ("nodes", "level", "text"),
    [
        ([broker(1, 30), controller(1, 30)], "ok", "all nodes run Kafka 4.3"),
        ([broker(1, 33), broker(2, 33)], "ok", "all brokers run Kafka 4.4"),
        ([broker(1, 30), broker(2, 33)], "warn", OTHERWISE),
        (
            [broker(1, 33), controller(3, 30)],
            "ok",
            f"the nodes differ: controller 3 runs Kafka 4.3, broker 1 runs Kafka 4.4; {ALIKE}",
        ),
    ],
)
def test_the_doctor_names_the_kafka_that_decides(tmp_path, monkeypatch, nodes, level, text):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))  # a JVM is for tests of another tier
    source = log_of(tmp_path / "log", nodes)
    rows = [json.loads(line) for line in aclog("doctor", *source, "--format", "jsonl").lines]
    [found] = [row for row in rows if row["check"] == "kafka"]
    assert (found["level"], found["text"]) == (level, text)
    assert bool(found["todo"]) is ("differ" in text)
