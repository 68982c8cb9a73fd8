"""Suggestions, against a brute force over the authorizer that knows nothing of indexes and regions."""

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from attrs import evolve

from aclog.analysis.intents import Intent
from aclog.authorizer.acl import ResourcePattern, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.interface import Action, InvalidRequestError, RequestContext
from aclog.authorizer.settings import Settings
from aclog.authorizer.standard import build_authorizer
from aclog.usage.counting import AccessCounter, SeenAccesses
from aclog.usage.decisions.intervals import Rules
from aclog.usage.needs import Needs
from aclog.usage.suggestion import Question, suggest
from aclog.usage.suggestion_proof import SuggestionError, prove
from tests.support.builders.acls import acl

READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE
GROUP, PREFIXED, DENY = ResourceType.GROUP, PatternType.PREFIXED, AclPermissionType.DENY
ANY_HOST = "10.9.9.9"
HOSTS = ("*", "10.0.0.1", "10.0.0.2")
TOPICS = ("a.1", "a.2", "a.3", "a.b.1", "a.b.2", "b-1", "b-2", "b", "*", "*x", "c")
PRINCIPALS = ("User:p", "User:q", "User:r")
OPERATIONS = (READ, WRITE, DESCRIBE, AclOperation.DELETE, AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS)


def image_of(rules) -> AclsImage:
    return AclsImage.from_acls(StandardAclWithId(id=None, acl=rule) for rule in rules)


def counted(accesses) -> pa.Table:
    """COUNTED of (principal, host, operation, resource type, name), each at the time of its place."""
    texts = [(who, host, op.name, kind.name, name) for who, host, op, kind, name in accesses]
    counter = AccessCounter(SeenAccesses(None))
    counter.add([pa.array(column, pa.string()) for column in zip(*texts, strict=True)], np.arange(len(texts)))
    return counter.table()


def read(principal, name, operation=READ, host=ANY_HOST, kind=ResourceType.TOPIC):
    return principal, host, operation, kind, name


def suggested(rules, accesses, settings=None, **question):
    """The suggestion, proved."""
    settings, table, image = settings or Settings(), counted(accesses), image_of(rules)
    needs = Needs.of(table, Rules.of_image(image), settings)
    found = suggest(needs, rules, Question(settings=settings, **question))
    assert prove(image, found.acls, table, settings).replayed == len(accesses)
    return found


def deciding(rules, settings):
    authorizer = build_authorizer(
        image_of(rules), super_users=";".join(settings.super_users), allow_everyone=settings.allow_everyone
    )

    def decide(access) -> bool | None:
        who, host, operation, kind, name = access
        action = Action(operation=operation, resource_pattern=ResourcePattern(resource_type=kind, name=name))
        try:
            (answer,) = authorizer.authorize(RequestContext(principal=who, host=host), (action,))
        except InvalidRequestError:
            return None
        return bool(answer)

    return decide


def random_rule(random):
    name = random.choice(TOPICS)
    prefixed = random.random() < 0.5
    return acl(
        random.choice(("a.", "a.b.", "b", "b-", "*", name[:1])) if prefixed else name,
        random.choice((*PRINCIPALS, "User:*", "none" if random.random() < 0.1 else "User:*")),
        random.choice(HOSTS),
        random.choice((*OPERATIONS, AclOperation.ALL)),
        pattern_type=PREFIXED if prefixed else PatternType.LITERAL,
        permission_type=DENY if random.random() < 0.2 else AclPermissionType.ALLOW,
    )


EVERYTHING = [
    (who, host, op, ResourceType.TOPIC, name)
    for who in (*PRINCIPALS, "User:stranger")
    for host in (*HOSTS[1:], ANY_HOST)
    for op in OPERATIONS
    for name in (*TOPICS, "a.b.new", "a.new", "new", "b-new", "*new")
]


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.sample(8)
def test_nothing_lost_and_nothing_new(seed):
    random = Random(seed)
    rules = list({random_rule(random): None for _ in range(random.randrange(1, 25))})
    supers = frozenset({"User:r"} if random.random() < 0.2 else ())
    settings = Settings(allow_everyone=random.random() < 0.4, super_users=supers)
    before = deciding(rules, settings)
    accesses = random.choices(EVERYTHING, k=150)
    principals = frozenset({"User:p"} if random.random() < 0.3 else ())
    found = suggested(rules, accesses, settings, fold=random.choice([None, 2, 3]), principals=principals)
    after = deciding(found.acls, settings)
    assert [each for each in set(accesses) if (before(each) is True) != (after(each) is True)] == []
    assert [each for each in EVERYTHING if after(each) and not before(each)] == []
    if principals:
        assert {rule for rule in rules if rule.principal != "User:p"} <= set(found.acls)
    # the least: without any one of its rules, an access flips or a request is opened
    for rule in (each for each in found.rules if each.evidence.accesses and not settings.allow_everyone):
        left = deciding([each for each in found.acls if each != rule.acl], settings)
        assert any(left(each) != after(each) for each in [*accesses, *EVERYTHING]), rule


def names_of(found):
    return {(r.acl.resource_name, r.acl.pattern_type == PREFIXED) for r in found.rules}


TEAM = acl("team.", "User:p", pattern_type=PREFIXED)


def test_many_names_become_their_longest_prefix():
    accesses = [read("User:p", f"team.in.{n}") for n in range(5)]
    found = suggested([TEAM], accesses)
    assert names_of(found) == {("team.in.", True)}
    (rule,) = found.rules
    assert (rule.evidence.accesses, rule.evidence.first, rule.evidence.last, rule.names) == (5, 0, 4, 5)
    assert rule.replaces == (TEAM,)
    assert rule.why == (
        "READ was used on 5 names under it (5 or more become a prefix); no others exist there; already allowed "
        "by ALLOW User:p READ on TOPIC PREFIXED 'team.' from *"
    )
    assert len(names_of(suggested([TEAM], accesses[:4]))) == 4
    assert len(names_of(suggested([TEAM], accesses, fold=6))) == 5
    assert len(names_of(suggested([TEAM], accesses, fold=None))) == 5


@pytest.mark.parametrize(
    ("more_rules", "more_accesses", "topics", "reason"),
    [
        ([acl("team.in.x", "User:q", operation=WRITE)], [read("User:q", "team.in.x", WRITE)], (), "only by others"),
        ([acl("team.in.x", "User:*", permission_type=DENY)], [], (), "deny a part of the prefix"),
        ([], [], [f"team.in.more{n}" for n in range(3)], "3 other existing names under it"),
    ],
)
def test_a_prefix_that_is_not_safe(more_rules, more_accesses, topics, reason):
    accesses = [read("User:p", f"team.in.{n}") for n in range(5)]
    assert len(suggested([TEAM, *more_rules], accesses).acls) < 5 or more_accesses or more_rules
    found = suggested([TEAM, *more_rules], [*accesses, *more_accesses], topics=frozenset(topics))
    assert ("team.in.", True) not in names_of(found)
    assert reason in found.refused[0]


def test_a_topic_that_others_write_may_be_read():
    writing = [read("User:q", f"team.in.{n}", WRITE) for n in range(5)]
    found = suggested(
        [TEAM, acl("team.", "User:q", operation=WRITE, pattern_type=PREFIXED)],
        [*writing, *(read("User:p", f"team.in.{n}") for n in range(5))],
    )
    assert {(r.acl.principal, r.acl.resource_name) for r in found.rules} == {
        ("User:p", "team.in."), ("User:q", "team.in."),
    }  # fmt: skip


def test_names_that_only_literals_allow_stay():
    rules = [acl(f"team.{n}", "User:p") for n in range(9)]
    found = suggested(rules, [read("User:p", f"team.{n}") for n in range(9)])
    assert set(found.acls) == set(rules)
    assert "do not allow the whole prefix" in found.refused[0]


def test_hosts_and_denies():
    rules = [
        acl("t", "User:p", "10.0.0.1"), acl("t", "User:*", "10.0.0.2"), acl("u", "User:p"),
        acl("u", "User:*", "10.0.0.2", permission_type=DENY), acl("t", "User:q", permission_type=DENY),
    ]  # fmt: skip
    found = suggested(rules, [read("User:p", "t", host=h) for h in HOSTS[1:]] + [read("User:p", "u")])
    assert set(found.acls) == {
        acl("t", "User:p", "10.0.0.1"), acl("t", "User:p", "10.0.0.2"), acl("u", "User:p"),
        acl("u", "User:*", "10.0.0.2", permission_type=DENY),
    }  # fmt: skip


def test_describe_is_implied():
    rules = [acl("", "User:*", operation=AclOperation.ALL, pattern_type=PREFIXED)]
    accesses = [read("User:p", "t", op) for op in (DESCRIBE, READ)] + [read("User:q", "t", DESCRIBE)]
    assert set(suggested(rules, accesses).acls) == {acl("t", "User:p"), acl("t", "User:q", operation=DESCRIBE)}


def test_intents():
    everything = [acl("*", "User:*", operation=AclOperation.ALL, resource_type=kind) for kind in (2, 3, 5)]
    accesses = [
        read("User:c", "t"), read("User:c", "g", kind=GROUP), read("User:w", "t", WRITE),
        read("User:s", "app", kind=GROUP), read("User:s", "app-log"), read("User:s", "app-log", WRITE),
        read("User:x", "t", WRITE), read("User:x", "id", WRITE, kind=ResourceType.TRANSACTIONAL_ID),
        read("User:d", "t", AclOperation.DELETE), read("User:r", "t"),
    ]  # fmt: skip
    found = {}
    for rule in suggested(everything, accesses).rules:
        found.setdefault(rule.acl.principal, set()).update(rule.intents)
    assert found == {
        "User:c": {Intent.CONSUME}, "User:w": {Intent.PRODUCE}, "User:r": set(), "User:d": {Intent.ADMIN},
        "User:s": {Intent.STREAM, Intent.PRODUCE, Intent.CONSUME}, "User:x": {Intent.PRODUCE, Intent.TRANSACT},
    }  # fmt: skip


def test_ranges_of_hosts():
    rules = [acl("t", "User:p", "10.0.0.0/8"), acl("t", "User:p", "10.0.0.1")]
    image = image_of(rules).with_options(documented=False, cidr=True)
    settings, table = Settings(cidr=True), counted([read("User:p", "t", host=h) for h in HOSTS[1:]])
    needs = Needs.of(table, Rules.of_image(image), settings)
    found = suggest(needs, rules, Question(settings=settings))
    prove(image, found.acls, table, settings)
    assert found.acls == rules[:1]


def test_an_unsound_suggestion_is_found_out():
    rules, table = [TEAM], counted([read("User:p", "team.a")])
    image = image_of(rules)
    with pytest.raises(SuggestionError, match="LOST"):
        prove(image, [], table, Settings())
    with pytest.raises(SuggestionError, match="GAINED"):
        prove(image, [evolve(TEAM, resource_name="tea")], table, Settings())
