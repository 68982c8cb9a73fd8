import asyncio
import re
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from attrs import evolve

from aclog.authorizer.acls_image import RuleChange, content_of
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType
from aclog.authorizer.settings import Generation, Settings
from aclog.client.connection import Role
from aclog.client.errors import UnreachableError
from aclog.config.node_config import ClientSecurity, HostPort
from aclog.metalog.errors import ConfigError, LogError, MetadataError, StaleError
from aclog.metalog.records import FeatureLevelRecord
from aclog.planning.plan import Batching, RefusedError
from aclog.planning.planner import ordered
from aclog.protocol.api_keys import DESCRIBE_ACLS, DESCRIBE_CONFIGS, DESCRIBE_QUORUM
from aclog.protocol.headers import RequestError
from aclog.protocol.responses import BROKER_APIS
from aclog.snapshots.image import METADATA_VERSION, Image
from aclog.targets import cluster
from aclog.targets.cluster import MOST_REMOVED, ServerPlace, open_server_place
from tests.support.builders.acls import acl
from tests.support.fakes.broker import FakeBroker
from tests.support.kafka.server import free_port

DENY = AclPermissionType.DENY
RULES = [acl("orders"), acl("payments", "User:b"), acl("o", "User:ops", pattern_type=PatternType.PREFIXED)]
LONG_S = 60.0
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@contextmanager
def place_of(broker, patience=LONG_S, notify=str):
    with open_server_place([broker.address], ClientSecurity(), Role.BROKER, notify) as place:
        place.patience = patience
        yield place


@contextmanager
def two_brokers(first=RULES, second=RULES):
    with FakeBroker(first) as one, FakeBroker(second) as other:
        one.others = [other.address]
        yield one, other


def contents(acls):
    return {content_of(each) for each in acls}


def steps(adds=(), removes=()):
    changes = [RuleChange(acl=each, added=True, where="") for each in adds]
    changes += [RuleChange(acl=each, added=False, where="") for each in removes]
    return ordered(changes, Batching.RULE)


def apply(place, some_steps):
    """What the engine does: write each piece, and read it back."""
    there = set()
    for piece in place.pieces(some_steps):
        place.write(piece)
        there |= place.read_back([step.acl for step in piece])
    return there


# reading


def test_all_brokers_are_asked():
    with two_brokers() as (one, other), place_of(one) as place:
        one.committed, one.applied, other.applied = 70, 69, 71
        state = place.read()
        assert (state.contents, state.end_offset, place.identity()) == (contents(RULES), 70, "the-cluster")
        assert one.told == other.told == [frozenset(RULES)]


def test_a_broker_that_is_behind_is_refused():
    with two_brokers() as (one, other), place_of(one, 0.1) as place:
        one.committed, one.applied, other.applied = 70, 69, 68
        behind = f"{other.address}: broker 2 is behind: .* up to offset 68, and 69 is committed"
        with pytest.raises(StaleError, match=behind):
            place.read()
        assert not other.told, "what it would say is of no use"


def test_a_leader_that_knows_no_mark_yet_is_asked_again():
    with FakeBroker(RULES) as one, place_of(one, 0.1) as place:
        one.committed = -1
        with pytest.raises(StaleError, match="without a high-water mark yet"):
            place.read()
        assert not one.told
        place.patience = LONG_S
        threading.Timer(0.2, setattr, (one, "committed", 1)).start()
        assert place.read().contents == contents(RULES)


def test_a_broker_that_catches_up_is_waited_for():
    with two_brokers(second=RULES[:1]) as (one, other), place_of(one) as place:
        one.committed, one.applied, other.applied = 70, 69, 68

        def catch_up():
            other.rules = list(RULES)
            other.applied = 69

        threading.Timer(0.2, catch_up).start()
        assert place.read().contents == contents(RULES)
        assert other.told == [frozenset(RULES)]


def test_a_broker_that_answers_with_nothing_is_refused():
    says = r"node 1 at .* 3, node 2 at .* 0; 3 differ, such as .*only node 1 has"
    with two_brokers(second=[]) as (one, _), place_of(one, 0.1) as place, pytest.raises(StaleError, match=says):
        place.read()


def test_so_is_the_whole_answer_if_the_one_that_was_asked_is_empty():
    says = "only node 2 has"
    with two_brokers(first=[]) as (one, _), place_of(one, 0.1) as place, pytest.raises(StaleError, match=says):
        place.read()


def test_while_another_writes_no_two_answers_need_be_alike():
    with two_brokers() as (one, other), place_of(one) as place:
        numbers = iter(range(1000))

        def next_rules():
            return [*RULES, acl(f"by-another-{next(numbers)}")]

        one.next_rules = other.next_rules = next_rules
        assert contents(RULES) < place.read().contents


def test_but_what_one_broker_misses_all_the_time_is_found_while_another_writes():
    with two_brokers() as (one, other), place_of(one, 0.3) as place:
        numbers = iter(range(100_000))

        def changing(rules):
            return lambda: [*rules, acl(f"by-another-{next(numbers)}")]

        one.next_rules, other.next_rules = changing(RULES), changing(RULES[1:])
        with pytest.raises(StaleError, match="1 differ, such as ALLOW User:app READ on TOPIC LITERAL 'orders'"):
            place.read()


def test_a_serving_broker_that_cannot_be_reached_is_refused():
    with FakeBroker(RULES) as one, place_of(one, 0.1) as place:
        one.others = [HostPort(host="127.0.0.1", port=free_port())]
        with pytest.raises(UnreachableError, match=r"node 2 .* each broker that serves must be reachable from here"):
            place.read()


def test_a_broker_that_died_is_no_matter_once_it_is_fenced():
    with FakeBroker(RULES) as one, place_of(one) as place:
        one.others = [HostPort(host="127.0.0.1", port=free_port())]
        threading.Timer(0.2, one.others.clear).start()
        assert place.read().contents == contents(RULES)


def test_without_the_right_nothing_is_read():
    with FakeBroker(RULES) as one, place_of(one) as place:
        one.refusals[DESCRIBE_ACLS] = 31, "Request Request(x) needs DESCRIBE permission."
        with pytest.raises(RequestError, match=r"DescribeAcls: not authorized: .* needs DESCRIBE on the cluster$"):
            place.read()
        one.refusals[DESCRIBE_QUORUM] = -1, None
        with pytest.raises(RequestError, match="DescribeQuorum: error -1"):
            place.read()


def test_while_a_leader_is_elected_it_asks_again():
    with FakeBroker(RULES) as one, place_of(one, 0.1) as place:
        one.refusals[DESCRIBE_QUORUM] = 7, "no leader"
        with pytest.raises(UnreachableError, match="DescribeQuorum: no leader"):
            place.read()
        place.patience = LONG_S
        threading.Timer(0.2, one.refusals.clear).start()
        assert place.read().contents == contents(RULES)


@pytest.mark.parametrize("code", [31, 35])
def test_a_service_that_tells_no_mark_is_read_by_comparison(code):
    said = []
    with two_brokers() as (one, _), place_of(one, notify=said.append) as place:
        one.refusals[DESCRIBE_QUORUM] = code, "not here"
        for _ in range(2):
            state = place.read()
            assert (state.contents, state.end_offset) == (contents(RULES), None)
        assert len(said) == 1
        assert "does not return the quorum's high-water mark" in said[0]


def test_a_node_of_another_cluster_is_never_asked():
    with two_brokers() as (one, other), place_of(one, 0.1) as place:
        other.cluster_id = "another-cluster"
        says = f"{other.address}: a node of cluster another-cluster: expected one of cluster the-cluster"
        with pytest.raises(LogError, match=says):
            place.read()
        assert not other.told


def test_nothing_is_written_to_a_cluster_that_took_the_address_of_another():
    new = acl("new")
    with FakeBroker(RULES) as one, place_of(one, 0.1) as place:
        place.read()
        [piece] = place.pieces(steps(adds=[new]))
        one.cut_all()
        one.cluster_id = "another-cluster"
        for _ in range(2):  # the connection is found to be lost, at the latest by the first request
            with pytest.raises(LogError):
                place.write(piece)
        assert new not in one.rules


def test_brokers_with_zookeeper_have_no_quorum_to_ask():
    apis = tuple(api for api in BROKER_APIS if api.api_key != DESCRIBE_QUORUM)
    with FakeBroker(RULES, apis=apis) as one, place_of(one) as place:
        one.applied = 12
        state = place.read()
        assert (state.contents, state.end_offset) == (contents(RULES), None)


# settings


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        ({"authorizer.class.name": STANDARD}, Settings()),
        # As a real Kafka answers: it hides what only its authorizer knows, and leaves out what is not set.
        ({"authorizer.class.name": STANDARD, "super.users": None}, Settings()),
        ({"authorizer.class.name": STANDARD, "allow.everyone.if.no.acl.found": None}, None),
        ({"authorizer.class.name": "com.example.Own"}, None),
        ({"authorizer.class.name": "com.example.Own", "allow.everyone.if.no.acl.found": "false"}, None),
        ({}, None),
        (
            {
                "authorizer.class.name": STANDARD,
                "super.users": "User:a;User:b",
                "allow.everyone.if.no.acl.found": "TRUE",
            },
            Settings(super_users=frozenset({"User:a", "User:b"}), allow_everyone=True),
        ),
    ],
)
def test_settings(configs, expected):
    with FakeBroker() as one, place_of(one) as place:
        one.configs = configs
        assert place.settings() == expected


def test_settings_are_unknown_where_brokers_tell_different_ones_or_none():
    with two_brokers() as (one, other), place_of(one) as place:
        one.configs = {"authorizer.class.name": STANDARD}
        other.configs = {"authorizer.class.name": STANDARD, "allow.everyone.if.no.acl.found": "true"}
        assert place.settings() is None
        other.configs = one.configs
        assert place.settings() == Settings()
        other.refusals[DESCRIBE_CONFIGS] = 31, None
        assert place.settings() is None


@pytest.mark.parametrize(
    ("code", "text", "said"),
    [
        (31, "Request(...)@1f", "broker 1: the user of --command-config needs DESCRIBE_CONFIGS on the cluster"),
        (7, "too slow", "on broker 1: too slow"),
    ],
)
def test_only_a_refusal_is_a_lack_of_rights(code, text, said):
    with FakeBroker() as one, place_of(one) as place:
        one.refusals[DESCRIBE_CONFIGS] = code, text
        assert place.settings() is None
        notes = [premise.note() for premise in place.premises(frozenset()).unknown]
        assert notes
        assert all(re.search(said, note) for note in notes), notes


def test_brokers_are_asked_once_for_settings_and_premises():
    with FakeBroker() as one, place_of(one) as place:
        one.configs = {"authorizer.class.name": STANDARD, "super.users": None}
        assert place.settings() == Settings()
        one.refusals[DESCRIBE_CONFIGS] = 31, None
        assert place.premises(frozenset()).names == ("super.users",)
        assert place.settings() is None
        assert set(place.premises(frozenset()).names) == {"super.users", "allow.everyone.if.no.acl.found"}


def test_the_kafka_of_controllers_is_what_the_level_of_their_log_implies(monkeypatch):
    """No broker is registered there, and none of an older Kafka could be."""
    level = FeatureLevelRecord(name=METADATA_VERSION, feature_level=33)
    image = evolve(Image.EMPTY, features=Image.EMPTY.features.apply([level]))
    quorum = SimpleNamespace(image=lambda: image, close=lambda: None)
    monkeypatch.setattr(cluster, "QuorumSource", lambda *_: quorum)
    nodes = SimpleNamespace(role=Role.CONTROLLER, servers=(), security=ClientSecurity(), notify=str)
    with asyncio.Runner() as runner:
        assert ServerPlace(runner, nodes).kafka([acl("orders", host="10.0.0.0/8")]).generations == (Generation.V4_4,)


# writing


def test_denies_are_there_before_any_allow_is_sent():
    deny, allow = acl("new", permission_type=DENY), acl("new", "User:b")
    with FakeBroker(RULES) as one, place_of(one) as place:
        one.refused_rules[deny] = 44, "the policy"
        with pytest.raises(RequestError, match=r"CreateAcls: the policy: DENY User:app READ on TOPIC LITERAL 'new'"):
            apply(place, steps(adds=[allow, deny]))
        assert one.rules == RULES
        one.refused_rules.clear()
        assert apply(place, steps(adds=[allow, deny])) == {allow, deny}
        assert one.rules == [*RULES, deny, allow]


def test_what_is_removed_is_named_exactly():
    near = [
        RULES[0],
        acl("orders", host="10.0.0.1"),
        acl("orders", operation=AclOperation.ALL),
        acl("orders", permission_type=DENY),
        acl("orders", pattern_type=PatternType.PREFIXED),
        acl("*"),
        acl("orders", "User:*"),
    ]
    with FakeBroker(near) as one, place_of(one) as place:
        assert apply(place, steps(removes=[RULES[0]])) == set()
        assert one.rules == near[1:]


@pytest.mark.parametrize(
    "wide",
    [
        acl("orders", operation=AclOperation.ANY),
        acl("orders", pattern_type=PatternType.MATCH),
        acl("orders", pattern_type=PatternType.ANY),
        acl("orders", permission_type=AclPermissionType.ANY),
        acl("orders", resource_type=1),
        acl("orders", operation=99),
    ],
)
def test_what_would_match_other_rules_is_never_sent(wide):
    with FakeBroker(RULES) as one, place_of(one) as place:
        for some in steps(removes=[wide]), steps(adds=[wide]):
            with pytest.raises(ConfigError, match="expected one rule, not a filter"):
                place.pieces([*steps(adds=[acl("new")]), *some])
        assert one.rules == RULES


def test_nothing_is_sent_of_a_plan_with_a_rule_that_kafka_refuses():
    with FakeBroker() as one, place_of(one) as place:
        with pytest.raises(ConfigError, match=r"the cluster would refuse it: Could not parse principal from `nobody`"):
            apply(place, steps(adds=[acl("new"), acl("new", "nobody")]))
        assert one.rules == []


def test_it_waits_until_the_broker_shows_what_the_controller_has_written():
    late = acl("late")
    with FakeBroker(RULES) as one, place_of(one) as place:
        shown = iter([RULES, RULES, [*RULES, late]])
        one.next_rules = lambda: next(shown)
        assert apply(place, steps(adds=[late])) == {late}
        place.patience = 0.05
        one.next_rules = lambda: RULES
        assert apply(place, steps(adds=[acl("never")])) == set()


def test_what_was_written_is_read_back_from_another_broker_if_the_first_is_gone():
    new = acl("new")
    with (
        two_brokers() as (one, other),
        open_server_place([one.address, other.address], ClientSecurity(), Role.BROKER, str) as place,
    ):
        [piece] = place.pieces(steps(adds=[new]))
        place.write(piece)
        other.rules = [*RULES, new]
        with one.down():
            assert place.read_back([new]) == {new}
        assert len(other.told) == 1


@pytest.mark.parametrize("closed", [False, True])
def test_removals_that_may_be_told_apart_are_in_requests_of_their_own(closed):
    rules = [acl(f"t-{number // 2}", f"User:{number}") for number in range(8)]
    wide = acl("t-", pattern_type=PatternType.PREFIXED)
    with FakeBroker([*rules, wide]) as one, place_of(one) as place:
        if closed:
            one.configs = {"authorizer.class.name": STANDARD}
        apply(place, steps(removes=[*rules, wide]))
        assert not one.rules
        sizes = [len(each) for each in one.deleted_at_once]
        assert sizes == ([9] if closed else [4, 4, 1])
        assert closed or one.deleted_at_once[-1][0].resource_name == "t-", "the widest goes last"


def test_a_large_cluster_is_asked_to_remove_few_at_a_time(monkeypatch):
    monkeypatch.setattr(cluster, "_HELD_S", 0.03)
    rules = [acl(f"t-{number}", f"User:{number}") for number in range(MOST_REMOVED + 1)]
    with FakeBroker(rules) as one, place_of(one) as place:
        place.read()
        monkeypatch.setattr(cluster, "_FIRST_COMPARISONS", len(rules))  # of one filter
        one.faults.delay = 0.03
        one.configs = {"authorizer.class.name": STANDARD}
        some = steps(removes=rules[:2])
        assert [len(piece) for piece in place.pieces(steps(removes=rules))] == [MOST_REMOVED, 1]
        apply(place, some)
        assert [len(each) for each in one.deleted_at_once] == [1, 1]


def test_what_one_filter_matches_is_removed_by_one():
    leaving = [acl(f"t-{number}", "User:old") for number in range(MOST_REMOVED + 50)]
    staying = [acl("t-1", "User:new"), acl("t-2", "User:new")]
    with FakeBroker([*leaving, *staying]) as one, place_of(one) as place:
        one.configs = {"authorizer.class.name": STANDARD}
        place.read()
        some = steps(removes=[*leaving, staying[0]])
        assert [len(piece) for piece in place.pieces(some)] == [len(leaving) + 1]
        assert apply(place, some) == set()
        assert one.rules == [staying[1]]
        assert [[each.principal for each in filters] for filters in one.deleted_at_once] == [["User:old", "User:new"]]
        # The cluster was read before: a rule of the same principal that was added again has a filter of its own.
        apply(place, steps(adds=leaving[:3]))
        apply(place, steps(removes=leaving[:2]))
        assert one.rules == [staying[1], leaving[2]]


def test_nothing_is_grouped_before_the_cluster_is_read():
    rules = [acl(f"t-{number}", "User:old") for number in range(3)]
    with FakeBroker([*rules, acl("t-9", "User:old")]) as one, place_of(one) as place:
        one.configs = {"authorizer.class.name": STANDARD}
        apply(place, steps(removes=rules))
        assert one.rules == [acl("t-9", "User:old")]


def test_what_another_writer_added_meanwhile_is_added_again():
    rules, meanwhile = [acl(f"t-{number}", "User:old") for number in range(3)], acl("t-9", "User:old")
    with FakeBroker(rules) as one, place_of(one) as place:
        one.configs = {"authorizer.class.name": STANDARD}
        place.read()
        one.rules.append(meanwhile)
        with pytest.raises(RefusedError, match=r"another writer added .*t-9.*: 1 ACL added again"):
            apply(place, steps(removes=rules))
        assert one.rules == [meanwhile]


def test_it_is_added_again_also_if_another_filter_of_the_request_is_refused():
    rules, meanwhile = [acl(f"t-{number}", "User:old") for number in range(3)], acl("t-9", "User:old")
    refused = acl("orders", "User:b")
    with FakeBroker([*rules, refused]) as one, place_of(one) as place:
        one.configs = {"authorizer.class.name": STANDARD}
        one.refused_rules = {refused: (41, "no controller")}
        place.read()
        one.rules.append(meanwhile)
        with pytest.raises(RefusedError, match=r"another writer added .*t-9.*: 1 ACL added again"):
            apply(place, steps(removes=[*rules, refused]))
        assert one.rules == [refused, meanwhile]


def test_a_server_that_is_gone_leaves_an_error():
    with FakeBroker(RULES) as one, place_of(one, 0.1) as place:
        [piece] = place.pieces(steps(adds=[acl("new")]))
        one.faults.cut = 1 << 30
        with pytest.raises(MetadataError, match=f"{one.address}"):
            place.write(piece)
