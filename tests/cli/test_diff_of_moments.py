"""Two moments of one log, each decided by the Kafka of its nodes then: what an upgrade in between changes is named so.

Beside a naive reference: every request of a small world, decided for every node of both moments.
"""

import json
from collections import defaultdict
from ipaddress import ip_address, ip_network
from itertools import product
from random import Random

import pytest

import aclog as library
from aclog.authorizer.codes import AclOperation, AclPermissionType, ResourceType
from aclog.authorizer.settings import Generation, Settings, controllers_decide
from aclog.console.pages.page import url
from aclog.console.web.app import WebConsole
from aclog.metalog.records import FeatureLevelRecord, RemoveAccessControlEntryRecord, UnregisterBrokerRecord
from aclog.snapshots.deciding_kafka import DecidingKafka, NodeIds, NodeKafkas, generation_pairs
from tests.cli.test_generations import RANGE, RULES, controller
from tests.cli.test_premise_walk import console_on_source
from tests.support.builders.acls import acl, acl_record
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import registration as broker
from tests.support.cli.command import aclog
from tests.support.web.asgi import ask

LEVEL = {"4.3": 30, "4.4": 33}
BY_UPGRADE = "by the upgrade from Kafka 4.3 to Kafka 4.4"
UPGRADED = "on nodes upgraded from Kafka 4.3 to Kafka 4.4"
BY_A = f"GAINED  User:a: READ, DESCRIBE on TOPIC orders, from {RANGE}"
BY_B = "LOST  User:b: READ on TOPIC orders, from 10.1.0.0/16"
OLD, ROLLING, NEW = 5, 6, 7
"""Moments of the log of `upgraded`."""


@pytest.fixture
def upgraded(tmp_path):
    """A log of a cluster of two brokers that are upgraded one after the other."""
    rules = [acl_record(number + 1, rule) for number, rule in enumerate(RULES)]
    return write_log(tmp_path / "log", rules, [broker(1, 30), broker(2, 30)], [broker(2, 33)], [broker(1, 33)])


def diff(log, since, until, *more):
    return aclog("diff", "--log", log, "--as-of", since, "--to-as-of", until, *more)


def rows_of(result):
    """The first line of each row, and the lines between reports."""
    return [line for line in result.lines if line and not line.startswith(("  ", "2 rows"))]


def test_an_upgrade_between_two_moments_makes_its_rows(upgraded):
    found = diff(upgraded, OLD, NEW)
    assert (found.code, rows_of(found)) == (1, [f"{BY_A} ({BY_UPGRADE})", f"{BY_B} ({BY_UPGRADE})"])
    note = "another Kafka decides on the second state: all brokers run Kafka 4.3; then all brokers run Kafka 4.4"
    assert f"aclog: note: {note}\n" in found.err
    assert "warning" not in found.err
    back = rows_of(diff(upgraded, NEW, OLD))
    assert {line.partition(" (")[2] for line in back} == {"by the downgrade from Kafka 4.4 to Kafka 4.3)"}
    alike = diff(upgraded, OLD, NEW, "--kafka-version", "4.4").ok()
    assert (alike.out, "another Kafka" in alike.err) == ("no difference: every request is decided the same\n", False)


@pytest.mark.parametrize(("since", "until", "other"), [(OLD, ROLLING, "Kafka 4.3"), (ROLLING, NEW, "Kafka 4.4")])
def test_while_nodes_differ_each_is_by_its_own(upgraded, since, until, other):
    found = diff(upgraded, since, until)
    same = [f"On {other}:", "no difference: every request is decided the same"]
    changed = ["On nodes upgraded from Kafka 4.3 to Kafka 4.4:", f"{BY_A} ({BY_UPGRADE})", f"{BY_B} ({BY_UPGRADE})"]
    assert (found.code, rows_of(found)) == (1, [*same, *changed] if until == ROLLING else [*changed, *same])
    assert "warning: the brokers differ: broker 1 runs Kafka 4.3, broker 2 runs Kafka 4.4" in found.err
    lines = [json.loads(line) for line in diff(upgraded, since, until, "--format", "jsonl").lines]
    assert [(line["change"], line["kafka"], line["generation"]) for line in lines] == [
        ("GAINED", {"old": "4.3", "new": "4.4"}, "4.4"),
        ("LOST", {"old": "4.3", "new": "4.4"}, "4.4"),
    ]
    proof = aclog("check", "no-new-access", "--log", upgraded, "--as-of", since, "--to-as-of", until)
    assert (proof.code, proof.lines[0].partition(":")[0], proof.lines[1]) == (1, "REFUTED", f"{BY_A} ({UPGRADED})")


def test_the_same_cluster_by_other_names_is_no_proof(upgraded, tmp_path, monkeypatch):
    """A node that is upgraded between two sources counts, where these may be of one cluster."""
    rules = [acl_record(number + 1, rule) for number, rule in enumerate(RULES)]
    log = write_log(tmp_path / "rolling", [broker(1, 33), broker(2, 30)], rules, [broker(2, 33)], [broker(3, 30)])
    since, until = len(rules) + 2, len(rules) + 4
    aclog("snapshot", "create", "--log", log, "--as-of", since, "--out", tmp_path / "then").ok()
    (checkpoint,) = (tmp_path / "then").glob("*.checkpoint")
    monkeypatch.chdir(tmp_path)
    for first in (("--log", log, "--as-of", since), ("--snapshot", checkpoint)):
        for second in (("--to-log", "rolling", "--to-as-of", until), ("--to-log", log, "--to-as-of", until)):
            proof = aclog("check", "equal", *first, *second)
            assert (proof.code, proof.lines[0].partition(":")[0]) == (1, "REFUTED"), proof


def test_a_named_kafka_for_the_second_moment_leaves_the_nodes_of_the_first(tmp_path):
    """One broker runs 4.4 before and after: what it loses is no effect of an upgrade."""
    number, rule = next((number, rule) for number, rule in enumerate(RULES) if rule.host == RANGE)
    log = write_log(
        tmp_path / "log", [broker(1, 30), broker(2, 33)], [acl_record(number, rule)],
        [RemoveAccessControlEntryRecord(id=acl_record(number, rule).id)],
    )  # fmt: skip
    for named in ((), ("--to-kafka-version", "4.4")):
        result = diff(log, 3, 4, *named)
        assert result.code == 1, result
        assert any(line.startswith("LOST") for line in result.lines), result
    assert aclog("check", "equal", "--log", log, "--as-of", 3, "--to-as-of", 4, "--to-kafka-version", "4.4").code == 1


def test_every_form_names_the_upgrade(upgraded):
    for form in ("markdown", "table", "csv", "sarif"):
        known, rolling = (diff(upgraded, *each, "--format", form).out for each in ((OLD, NEW), (ROLLING, NEW)))
        if form in ("table", "csv"):
            header = "BY KAFKA" if form == "table" else "kafka"
            assert known.splitlines()[0].endswith(header)
            assert all(
                ("4.4 after 4.3" if form == "table" else '""new"":""4.4""') in line for line in known.splitlines()[1:]
            )
        elif form == "markdown":
            assert known.count(BY_UPGRADE) == rolling.count(BY_UPGRADE) == 2
            assert "### nodes upgraded from Kafka 4.3 to Kafka 4.4" in rolling
        else:
            results = json.loads(known)["runs"][0]["results"]
            assert [each["properties"]["kafka"] for each in results] == [{"old": "4.3", "new": "4.4"}] * 2
    plain = diff(upgraded, OLD, OLD, "--format", "csv").ok()
    assert plain.lines[0].endswith("accesses")


def test_the_other_surfaces_agree(upgraded):
    """The console and the shell at the same moments, and the library, which refuses to give one answer for two."""
    spans = ((OLD, NEW), (OLD, ROLLING), (ROLLING, NEW))
    with console_on_source(("--log", str(upgraded)), settings=Settings(is_kafka_stated=False)) as console:
        for since, until in spans:
            page = url("/changes", **{"from": since}, to=until, format="json")
            reply = ask(WebConsole(console=console).app(), "GET", page).json
            lines = [json.loads(line) for line in diff(upgraded, since, until, "--format", "jsonl").lines]
            assert reply["data"] == lines if "data" in reply else lines
            assert {row["what"] for row in reply["difference"]["rows"]} == {
                f"READ, DESCRIBE on TOPIC orders ({BY_UPGRADE})", f"READ on TOPIC orders ({BY_UPGRADE})",
            }  # fmt: skip
            walked = aclog("shell", "--log", upgraded, "diff", "--of", "access", since, until, "--format", "jsonl")
            assert [json.loads(line) for line in walked.lines] == lines
    with library.open_log(upgraded) as log:
        changed = log.image(as_of=OLD).diff(log.image(as_of=NEW))
        assert [each["kafka"] for each in changed.json_lines()] == [{"old": "4.3", "new": "4.4"}] * 2
        assert str(changed).count(BY_UPGRADE) == 2
        assert not log.image(as_of=OLD).diff(log.image(as_of=NEW), kafka_version="4.4")
        with pytest.raises(library.ConfigError, match=r"the brokers differ.*kafka_version"):
            log.image(as_of=ROLLING).diff(log.image(as_of=NEW))


def test_a_rule_that_was_added_meanwhile_is_no_work_of_the_upgrade(tmp_path):
    later = acl("orders", "User:late", RANGE)
    log = write_log(tmp_path / "log", [acl_record(1, RULES[0]), broker(1, 30)], [broker(1, 33), acl_record(2, later)])
    found = rows_of(diff(log, 2, 4))
    assert found == [f"{BY_A} ({BY_UPGRADE})", f"GAINED  User:late: READ, DESCRIBE on TOPIC orders, from {RANGE}"]


def test_an_upgrade_of_the_same_state_is_named_so(upgraded):
    found = aclog("diff", "--log", upgraded, "--as-of", OLD, "--to-kafka-version", "4.4")
    assert rows_of(found) == [f"{BY_A} ({BY_UPGRADE})", f"{BY_B} ({BY_UPGRADE})"]
    assert "another Kafka" not in found.err, "a flag names it"


def test_accesses_are_simulated_by_the_nodes_of_both_moments(tmp_path):
    """READ flips where brokers were upgraded; of a controller that was upgraded, only what it decides."""
    rules = [acl("t", "User:a", RANGE), acl("t", "User:a", RANGE, AclOperation.CREATE)]
    records = [acl_record(number + 1, rule) for number, rule in enumerate(rules)]
    log = write_log(
        tmp_path / "log", [*records, broker(1, 30), controller(9, 30)], [controller(9, 33)], [broker(1, 33)]
    )
    log_of_accesses = tmp_path / "accesses.jsonl"
    access = {"principal": "User:a", "host": "10.0.0.1", "resourceType": "TOPIC", "resourceName": "t", "timestamp": 1}
    lines = [json.dumps(access | {"operation": operation}) for operation in ("READ", "CREATE")]
    log_of_accesses.write_text("\n".join(lines))
    flips = []
    for since, until in ((4, 5), (5, 6), (4, 6)):
        moments = ("--log", log, "--as-of", since, "--to-as-of", until)
        simulated = aclog("simulate", *moments, "--accesses", log_of_accesses, "--format", "jsonl")
        flips.append({json.loads(line)["operation"] for line in simulated.lines})
        counted = aclog("diff", *moments, "--accesses", log_of_accesses)
        assert f"{len(flips[-1])} of the accesses flip" in counted.out
    assert flips == [{"CREATE"}, {"READ", "CREATE"}, {"READ", "CREATE"}]


# Beside a naive reference


PRINCIPALS, HOSTS, TOPICS = ("User:a", "User:b"), ("10.0.0.1", "10.0.0.9", "11.0.0.1"), ("orders", "pay")
RULE_HOSTS = ("*", "10.0.0.1", "10.0.0.0/8", "10.0.0.0/30", "10.0.0.0/8")
OPERATIONS = (AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE)
REQUESTS = tuple(product(PRINCIPALS, HOSTS, OPERATIONS, TOPICS))


def random_rule(random: Random):
    return acl(
        random.choice((*TOPICS, "*")),
        random.choice((*PRINCIPALS, "User:*")),
        random.choice(RULE_HOSTS),
        random.choice((*OPERATIONS, AclOperation.ALL)),
        permission_type=random.choice((AclPermissionType.ALLOW,) * 2 + (AclPermissionType.DENY,)),
    )


def matches(rule, request, generation: str) -> bool:
    principal, host, operation, name = request
    is_range = "/" in rule.host and generation == "4.4" and ip_address(host) in ip_network(rule.host)
    return (
        rule.principal in (principal, "User:*")
        and rule.operation in (operation, AclOperation.ALL)
        and rule.resource_name in (name, "*")
        and (rule.host in ("*", host) or is_range)
    )


def is_allowed(rules, request, generation: str) -> bool:
    of = [rule.permission_type for rule in rules if matches(rule, request, generation)]
    return AclPermissionType.DENY not in of and AclPermissionType.ALLOW in of


def random_history(random: Random):
    """Batches of records, and after each the rules and the Kafka of the nodes, by id."""
    rules, brokers, controllers, number = {}, {}, {}, 0
    batches, states = [], []
    level = random.choice
    for step in range(8):
        kind = (
            random.choice(("rules", "rules", "broker", "broker", "broker", "controller", "gone")) if step else "first"
        )
        batch = []
        if kind == "first":
            brokers = {each: level(("4.3", "4.3", "4.4")) for each in range(1, random.randint(2, 4))}
            controllers = {9: level(("4.3", "4.4"))}
            batch = [broker(each, LEVEL[kafka]) for each, kafka in brokers.items()]
            batch.append(controller(9, LEVEL[controllers[9]]))
        if kind in ("first", "rules"):
            for _ in range(4):
                rule = random_rule(random)
                if rule not in rules.values():
                    number += 1
                    rules[number] = rule
                    batch.append(acl_record(number, rule))
        if kind == "rules" and len(rules) > 4:
            gone = random.choice(sorted(rules))
            of_it = acl_record(gone, rules[gone]).id
            if not any(each.id == of_it for each in batch):
                del rules[gone]
                batch.append(RemoveAccessControlEntryRecord(id=of_it))
        if kind == "broker":
            one = random.randint(1, 4)
            brokers[one] = level(("4.3", "4.4"))
            batch = [broker(one, LEVEL[brokers[one]])]
        if kind == "controller":
            controllers[9] = level(("4.3", "4.4"))
            batch = [controller(9, LEVEL[controllers[9]])]
        if kind == "gone" and len(brokers) > 1:
            one = random.choice(sorted(brokers))
            del brokers[one]
            batch = [UnregisterBrokerRecord(broker_id=one, broker_epoch=one)]
        if batch:
            batches.append(batch)
            states.append((tuple(rules.values()), dict(brokers), dict(controllers)))
    return batches, states


def moves(before, after):
    """What each node decides by, before and after; one that left or came is taken for one of the others."""

    def own(nodes, kafka):
        return kafka if kafka in nodes.values() else min(nodes.values())

    for node in before.keys() | after.keys():
        kafkas = before.get(node), after.get(node)
        yield own(before, kafkas[0] or kafkas[1]), own(after, kafkas[1] or kafkas[0])


def expected_changes(old, new):
    """Each request that some node decides otherwise, with the Kafka before and after of these nodes."""
    changes = defaultdict(set)
    by_role = (moves(old[1], new[1]), False), (moves(old[2], new[2]), True)
    for pairs, is_controller in by_role:
        for request, (was, now) in product(REQUESTS, set(pairs)):
            if is_controller and not controllers_decide(ResourceType.TOPIC, request[2]):
                continue
            before, after = is_allowed(old[0], request, was), is_allowed(new[0], request, now)
            if before is not after:
                alone = was != now and is_allowed(old[0], request, now) is after
                changes[request, "GAINED" if after else "LOST"].add((now, (was, now) if alone else None))
    return changes


def claimed_changes(lines, all_pairs):
    """The same of the lines of `--format jsonl`; a line without a generation is of all nodes."""
    changes = defaultdict(set)
    for line in lines:
        kafka = line.get("kafka")
        alone = None if kafka is None else (kafka["old"], kafka["new"])
        generations = {line["generation"]} if "generation" in line else {now for _, now in all_pairs}
        for request in REQUESTS:
            if holds(line, request):
                changes[request, line["change"]] |= {(generation, alone) for generation in generations}
    return changes


def holds(line, request) -> bool:
    principal, host, operation, name = request
    hosts, principals = line["hosts"], line["principals"]

    def in_one(entries) -> bool:
        return any(ip_address(host) in ip_network(each) if "/" in each else each == host for each in entries)

    from_host = in_one(hosts["in"]) if "in" in hosts else (
        in_one(hosts["cidr"]) if "cidr" in hosts else True
    ) and host not in hosts["except"] and not in_one(hosts["except"])  # fmt: skip
    named = any(
        part["literal"] == name
        if "literal" in part
        else name.startswith(part["prefix"])
        and not name.startswith(tuple(part["exceptPrefixes"]))
        and name not in part["exceptLiterals"]
        for part in line["names"]
    )
    return (
        operation.name in line["operations"]
        and (principal in principals["in"] if "in" in principals else principal not in principals["except"])
        and from_host
        and named
    )


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.sample(12)
def test_it_is_as_every_node_decides_at_each_moment(tmp_path, seed):
    random = Random(f"moments {seed}")
    batches, states = random_history(random)
    log = write_log(tmp_path / "log", *batches)
    ends = [sum(map(len, batches[: number + 1])) for number in range(len(batches))]
    for _ in range(4):
        first, last = random.randrange(len(states)), random.randrange(len(states))
        lines = [json.loads(line) for line in diff(log, ends[first], ends[last], "--format", "jsonl").lines]
        old, new = states[first], states[last]
        pairs = {*moves(old[1], new[1]), *moves(old[2], new[2])}
        expected, claimed = expected_changes(old, new), claimed_changes(lines, pairs)
        has_ranges = any("/" in rule.host for rule in (*old[0], *new[0]))
        if not has_ranges:  # then it matters to nobody which Kafka decides
            expected, claimed = (
                {key: {alone for _, alone in found} for key, found in each.items()} for each in (expected, claimed)
            )
        assert claimed.keys() == expected.keys(), (first, last)
        for key, found in expected.items():
            if found != claimed[key]:
                # A line of all nodes is of those of controllers, too, which decide only some requests.
                assert found <= claimed[key], (key, found, claimed[key])
                assert {alone for _, alone in found} == {alone for _, alone in claimed[key]}, (key, found, claimed[key])


def test_a_state_that_states_nothing_is_decided_as_the_other_one():
    known = DecidingKafka(generations=(Generation.V4_4,), stated=Generation.V4_4)
    nothing = DecidingKafka(generations=tuple(Generation), hosts=(RANGE,))
    unclear = DecidingKafka(
        generations=tuple(Generation), hosts=(RANGE,), nodes=NodeKafkas(unknown=NodeIds(brokers=(1,)))
    )
    for pair in ((known, nothing), (nothing, known)):
        [(key, found)] = generation_pairs(*pair).items()
        assert (key, found.old, found.new) == (None, Generation.V4_4, Generation.V4_4)
    assert [str(key) for key in generation_pairs(unclear, known)] == [
        "nodes upgraded from Kafka 4.3 to Kafka 4.4", "Kafka 4.4",
    ]  # fmt: skip


def test_nodes_of_another_log_may_be_the_same_nodes(upgraded, tmp_path):
    """Two logs in the middle of an upgrade: an id that both have may be a node that was upgraded, or another one."""
    rules = [acl_record(number + 1, rule) for number, rule in enumerate(RULES)]
    other = write_log(tmp_path / "other", rules, [broker(1, 33), broker(2, 30)])
    result = aclog("diff", "--log", upgraded, "--as-of", ROLLING, "--to-log", other)
    assert [line for line in rows_of(result) if line.startswith("On ")] == [
        "On Kafka 4.3:", "On nodes upgraded from Kafka 4.3 to Kafka 4.4:",
        "On nodes downgraded from Kafka 4.4 to Kafka 4.3:", "On Kafka 4.4:",
    ]  # fmt: skip
    here = write_log(tmp_path / "here", rules, [broker(1, 30), broker(2, 33)], [broker(1, 33), broker(2, 30)])
    swapped = rows_of(diff(here, 5, 7))
    assert [line for line in swapped if line.startswith("On ")] == [
        "On nodes upgraded from Kafka 4.3 to Kafka 4.4:", "On nodes downgraded from Kafka 4.4 to Kafka 4.3:",
    ]  # fmt: skip


def test_a_level_of_the_newer_kafka_says_that_the_rest_was_upgraded(tmp_path):
    rules = [acl_record(number + 1, rule) for number, rule in enumerate(RULES)]
    level = FeatureLevelRecord(name="metadata.version", feature_level=33)
    log = write_log(tmp_path / "log", rules, [broker(1, 30), broker(2, 33)], [broker(1, 33), level])
    assert [line for line in rows_of(diff(log, 5, 7)) if line.startswith("On ")] == [
        "On nodes upgraded from Kafka 4.3 to Kafka 4.4:", "On Kafka 4.4:",
    ]  # fmt: skip
