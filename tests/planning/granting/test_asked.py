"""What intents ask for on the resources that are named, and what is refused before anything is read."""

import re

import pytest
from attrs import evolve

from aclog.analysis.intents import Intent
from aclog.authorizer.acl import ResourcePattern, StandardAcl
from aclog.authorizer.acls_image import content_of
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.settings import Settings
from aclog.metalog.errors import ConfigError
from aclog.planning.granting import AccessRequest, IntentResources, asked_needs, grant, revoke, shared, stranded
from aclog.planning.plan import RefusedError
from tests.support.kafka.intent_trials import KINDS, TYPES, trials

TOPIC, GROUP, TRANSACTION = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
PREFIXED, ALLOW = PatternType.PREFIXED, AclPermissionType.ALLOW
A = "User:a"


def pattern(kind, name, pattern_type=PatternType.LITERAL) -> ResourcePattern:
    return ResourcePattern(resource_type=kind, name=name, pattern_type=pattern_type)


def rule(kind, name, operation, *, principal=A, pattern_type=PatternType.LITERAL, permission=ALLOW) -> StandardAcl:
    return StandardAcl(
        resource_type=kind,
        resource_name=name,
        pattern_type=pattern_type,
        principal=principal,
        host="*",
        operation=AclOperation[operation],
        permission_type=permission,
    )


def asked(intent, *named, inputs=(), outputs=(), principal=A, whole=True) -> AccessRequest:
    resources = IntentResources(named=tuple(named), inputs=tuple(inputs), outputs=tuple(outputs))
    return AccessRequest(principal=principal, needs=asked_needs(Intent(intent), resources, whole=whole))


def contents(*rules) -> set[bytes]:
    return {content_of(each) for each in rules}


@pytest.mark.parametrize("kind", KINDS)
def test_the_rules_are_those_with_which_real_clients_worked_and_of_which_none_can_go(kind):
    """As recorded on a real Kafka (tests/analysis/test_intent_trials.py)."""
    trial = next(each for each in trials([kind], "run") if each.name.endswith("with all rules"))
    user = trial.client["user"]
    named = {key: pattern(TYPES[key], trial.client[key]) for key in KINDS[kind].named}
    streams = KINDS[kind].intent is Intent.STREAM
    inputs = [named.pop("input")] if streams else []
    outputs = [named.pop("output")] if streams else []
    wanted = asked(KINDS[kind].intent, *named.values(), inputs=inputs, outputs=outputs, principal=f"User:{user}")
    beside = {(trial.client[key], operation.name) for key, operation in KINDS[kind].beside}
    worked = {
        (each["resourceType"], each["patternType"], each["resourceName"], each["operation"])
        for each in trial.rules
        if (each["resourceName"], each["operation"]) not in beside
    }
    found = grant(wanted, set(), Settings())
    assert {
        (ResourceType(each.resource_type).name, PatternType(each.pattern_type).name, each.resource_name,
         AclOperation(each.operation).name)
        for each in found.added
    } == worked  # fmt: skip
    granted = contents(*found.added)
    assert set(revoke(wanted, granted, Settings()).removed) == set(found.added)
    assert grant(wanted, granted, Settings()).added == ()


def test_what_else_a_removed_rule_gave_is_kept_and_what_still_allows_it_is_named():
    everything, wide = rule(TOPIC, "t", "ALL"), rule(TOPIC, "t", "WRITE", principal="User:*")
    found = revoke(asked("produce", pattern(TOPIC, "t")), contents(everything, wide), Settings())
    assert found.removed == (everything,)
    kept = {AclOperation(each.operation).name for each in found.added}
    assert kept == {"READ", "CREATE", "DELETE", "ALTER", "ALTER_CONFIGS"}
    assert [each.permission.rules for each in found.still] == [(wide,)]


def test_what_is_of_no_use_alone_is_not_kept():
    found = revoke(
        asked("transact", pattern(TRANSACTION, "x"), whole=False), contents(rule(TRANSACTION, "x", "ALL")), Settings()
    )
    assert (len(found.removed), found.added) == (1, ())


def test_a_rule_on_more_than_is_asked_stays_and_is_named():
    wide, reads = rule(TOPIC, "t", "WRITE", pattern_type=PREFIXED), rule(TOPIC, "t1", "READ")
    found = revoke(asked("produce", pattern(TOPIC, "t1")), contents(wide, reads), Settings())
    assert (found.removed, found.added) == ((), ())
    assert [each.permission.rules for each in found.still] == [(wide,)]


def test_what_answers_two_needs_is_listed_once():
    """`*` as a group's literal name is every group: the rule on a prefix answers for both."""
    needs = asked("consume", pattern(TOPIC, "t"), pattern(ResourceType.GROUP, "ab", PREFIXED), whole=False).needs
    group = next(need for need in needs if need.resource_type == ResourceType.GROUP)
    everywhere = evolve(group, patterns=(pattern(ResourceType.GROUP, "*"),))
    wide = rule(ResourceType.GROUP, "ab", "READ", pattern_type=PREFIXED, principal="User:*")
    revocation = revoke(AccessRequest(principal=A, needs=(group, everywhere)), contents(wide), Settings())
    assert [each.permission.rules for each in revocation.still] == [(wide,)]


def test_describe_stays_with_what_implies_it_and_goes_with_the_rest():
    write, describe = rule(TOPIC, "t", "WRITE"), rule(TOPIC, "t", "DESCRIBE")
    found = revoke(asked("consume", pattern(TOPIC, "t"), whole=False), contents(write, describe), Settings())
    assert (found.removed, found.added, found.still) == ((describe,), (), ())


def test_what_stops_with_a_group_is_told():
    used, other = rule(TOPIC, "t", "READ"), rule(TOPIC, "u", "READ")
    group, theirs = rule(GROUP, "g", "READ"), rule(TOPIC, "v", "READ", principal="User:b")
    held = contents(used, other, group, theirs, rule(TOPIC, "w", "WRITE"))
    question = asked("consume", pattern(TOPIC, "t"), pattern(GROUP, "g"))
    (found,) = stranded(revoke(question, held, Settings()), held, A)
    assert (found.lost, found.operation, found.topics) == (
        (pattern(GROUP, "g"),), AclOperation.READ, (pattern(TOPIC, "u"),)
    )  # fmt: skip
    only_topic = revoke(asked("consume", pattern(TOPIC, "t"), whole=False), held, Settings())
    assert list(stranded(only_topic, held, A)) == []
    alone = contents(used, group, theirs)
    assert list(stranded(revoke(question, alone, Settings()), alone, A)) == []
    everything = contents(rule(TOPIC, "t", "ALL"), rule(TRANSACTION, "x", "WRITE"))
    transact = revoke(asked("transact", pattern(TRANSACTION, "x"), whole=False), everything, Settings())
    assert [each.topics for each in stranded(transact, everything, A)] == [(pattern(TOPIC, "t"),)]


def test_whose_names_a_prefix_opens_too():
    theirs = [rule(TOPIC, "pay.eu", "READ", principal="User:b"), rule(TOPIC, "pay.", "ALL", principal="User:c",
                                                                      pattern_type=PREFIXED)]  # fmt: skip
    others = [
        rule(TOPIC, "pa", "READ", principal="User:d", pattern_type=PREFIXED),
        rule(TOPIC, "pay.eu", "READ"),
        rule(TOPIC, "pay.us", "READ", principal="User:e", permission=AclPermissionType.DENY),
        rule(GROUP, "pay.eu", "READ", principal="User:f"),
    ]
    added = grant(asked("produce", pattern(TOPIC, "pay.", PREFIXED)), contents(*theirs, *others), Settings()).added
    found = shared(added, contents(*theirs, *others))
    assert [(each.principal, [p.name for p in each.patterns]) for each in found] == [
        ("User:b", ["pay.eu"]),
        ("User:c", ["pay."]),
    ]
    assert shared([rule(TOPIC, "pay.eu", "WRITE")], contents(*theirs, *others)) == ()


def test_what_a_rule_denies_whole_is_refused_and_a_part_is_named():
    denies = rule(TOPIC, "pay.x", "DESCRIBE", principal="User:*", permission=AclPermissionType.DENY)
    with pytest.raises(RefusedError, match=r"DESCRIBE on TOPIC pay\.x, from any host would stay denied by DENY User"):
        grant(asked("produce", pattern(TOPIC, "pay.x")), contents(denies), Settings())
    found = grant(asked("produce", pattern(TOPIC, "pay.", PREFIXED)), contents(denies), Settings())
    assert len(found.added) == 1
    assert [str(each.region) for each in found.overruled] == ["User:a: DESCRIBE on TOPIC pay.x, from any host"]
    assert [each.rule for each in found.overruled] == [denies]


@pytest.mark.parametrize(
    ("intent", "named", "more", "message"),
    [
        ("consume", [(TOPIC, "t")], {}, "intent consume: missing --group: expected every resource"),
        ("transact", [(TOPIC, "t")], {}, "intent transact: missing --transactional-id: expected every resource"),
        ("produce", [], {}, "intent produce: no resource named"),
        ("produce", [(GROUP, "g")], {}, "intent produce: expected resources of type TOPIC, not GROUP"),
        ("produce", [(TOPIC, "pay.*")], {}, "an ACL does not expand * inside a name: expected 'pay.'"),
        ("produce", [(TOPIC, "a b")], {}, "not a legal topic name"),
        ("produce", [(TOPIC, "")], {}, "a TOPIC with an empty name"),
        ("produce", [(TOPIC, "t")], {"inputs": [(TOPIC, "i")]}, "expected --topic"),
        ("stream", [(GROUP, "app"), (TOPIC, "t")], {}, "expected --input-topic and --output-topic"),
        ("stream", [], {"inputs": [(TOPIC, "i")]}, "expected one literal --group: the application id"),
        ("stream", [(GROUP, "app")], {}, "expected --input-topic or --output-topic: the topics"),
        ("produce", [(TOPIC, "*", PREFIXED)], {}, "expected a literal name: a literal * is every name"),
        ("stream", [(GROUP, "app"), (TRANSACTION, "other")], {}, "expected --transactional-id app"),
    ],
)
def test_what_is_refused(intent, named, more, message):
    resources = {key: [pattern(*each) for each in value] for key, value in more.items()}
    with pytest.raises(ConfigError, match=re.escape(message)):
        asked(intent, *(pattern(*each) for each in named), **resources)
