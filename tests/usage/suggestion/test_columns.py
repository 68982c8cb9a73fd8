"""Grants, intents and wider ACLs from columns, against naive models that look at one object after another."""

from random import Random

import numpy as np
import pytest
from attrs import evolve

from aclog.analysis.intents import Intent
from aclog.authorizer.codes import CLUSTER_NAME, AclOperation, PatternType, ResourceType
from aclog.authorizer.settings import Settings
from aclog.usage.decisions.access_columns import AccessColumns
from aclog.usage.decisions.decisions import ParsedAccess
from aclog.usage.decisions.intervals import Rules
from aclog.usage.needs import Evidence, Needs
from aclog.usage.suggestion import (
    Intents,
    RuleIndex,
    _has,
    _Used,
    allows,
    host_covers,
    is_allow,
    literal_grants,
    without_covered,
)
from tests.support.builders.acls import acl
from tests.usage.suggestion.test_suggestion import ANY_HOST, HOSTS, OPERATIONS, PRINCIPALS, TOPICS, counted, image_of
from tests.usage.suggestion.test_suggestion import random_rule as random_topic_rule

KINDS = (ResourceType.TOPIC, ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER)
RANGES = ("10.0.0.0/8", "10.0.0.0/30", "10.0.0.1/32")


def random_rule(random):
    rule, kind = random_topic_rule(random), random.choice(KINDS)
    host = random.choice((rule.host, rule.host, rule.host, *RANGES))
    if kind == ResourceType.CLUSTER and random.random() < 0.7:
        rule = evolve(rule, resource_name=CLUSTER_NAME)
    return evolve(rule, resource_type=kind, host=host)


def random_access(random):
    kind = random.choice(KINDS)
    name = CLUSTER_NAME if kind == ResourceType.CLUSTER and random.random() < 0.8 else random.choice((*TOPICS, ""))
    # one address in two spellings is one access
    host = random.choice((*HOSTS[1:], "/10.0.0.1", "10.0.0.3", ANY_HOST))
    return random.choice(PRINCIPALS), host, random.choice(OPERATIONS), kind, name


def naive_grants(by_access, present, settings):
    """Yield (ACL, evidence, name, replaced ACLs): the widest host, then the one that covers the most addresses."""
    by_hosts = {}
    for need, evidence in by_access.items():
        key = need.principal, need.operation, need.resource_type, need.resource_name
        by_hosts.setdefault(key, {})[need.host] = evidence
    for (principal, operation, kind, name), hosts in by_hosts.items():
        covering = [rule for rule in present.on_name(kind, name, principal) if allows(rule, operation)]
        left = list(hosts)
        choices = sorted({rule.host for rule in covering}, key=lambda host: (host != "*", host))
        while left:
            covered = {host: [each for each in left if host_covers(host, each, settings)] for host in choices}
            best = "*" if "*" in covered else max(choices, key=lambda host: len(covered[host]))
            used = covered[best]
            behind = [rule for rule in covering if any(host_covers(rule.host, each, settings) for each in used)]
            pattern = PatternType.LITERAL, name
            if (name != CLUSTER_NAME) if kind == ResourceType.CLUSTER else name in {"", "*"}:
                rule = next(rule for rule in behind if host_covers(rule.host, best, settings))
                pattern = rule.pattern_type, rule.resource_name
            granted = acl(pattern[1], principal, best, operation, resource_type=kind, pattern_type=pattern[0])
            yield granted, Evidence.sum_of(hosts[each] for each in used), name, frozenset(behind)
            left = [each for each in left if each not in used]


def needs_and_present(seed):
    random = Random(seed)
    rules = list({random_rule(random): None for _ in range(random.randrange(1, 40))})
    settings = Settings(cidr=random.random() < 0.5, documented=random.random() < 0.5)
    table = counted([random_access(random) for _ in range(150)])
    needs = Needs.of(table, Rules.of_image(image_of(rules)), settings)
    return needs, RuleIndex.of(filter(is_allow, rules), settings), settings


@pytest.mark.parametrize("seed", range(150))
@pytest.mark.sample(20)
def test_literal_grants_are_those_of_a_naive_model(seed):
    needs, present, settings = needs_and_present(seed)
    grants = list(literal_grants(needs, np.arange(len(needs.accesses)), present))
    found = [(each.acl, each.evidence, *each.names, each.replaces) for each in grants]
    assert found == list(naive_grants(needs.by_access, present, settings))
    tops = {each.acl for each in without_covered(grants, settings)}
    for one in {each.acl for each in grants}:
        wider = [
            other for other in {each.acl for each in grants} if other != one and covers_naively(other, one, settings)
        ]
        assert (one in tops) == (not wider), (one, wider)


def covers_naively(wide, narrow, settings):
    if (wide.resource_type, wide.principal) != (narrow.resource_type, narrow.principal):
        return False
    name, star = narrow.resource_name, wide.resource_name == "*" and wide.pattern_type == PatternType.LITERAL
    same = (wide.pattern_type, wide.resource_name) == (narrow.pattern_type, name)
    under = wide.pattern_type == PatternType.PREFIXED and name.startswith(wide.resource_name)
    odd = name.startswith("*") and not settings.documented
    names = same or under or (star and bool(name) and not odd)
    if narrow.pattern_type == PatternType.LITERAL and name == "*":
        names = same  # only LITERAL * is on all names
    return names and allows(wide, narrow.operation) and host_covers(wide.host, narrow.host, settings)


def naive_intents(accesses):
    """The intents of each principal, one access after another."""
    used = {}
    for each in accesses:
        mine = used.setdefault(each.principal, _Used())
        mine.operations[each.resource_type] = mine.operations.get(each.resource_type, 0) | 1 << each.operation
        mine.names.setdefault((each.resource_type, each.operation), set()).add(each.resource_name)
    return {principal: tuple(intent for intent in Intent if _has(intent, mine)) for principal, mine in used.items()}


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.sample(10)
def test_intents_are_those_of_a_naive_model(seed):
    random, kinds = Random(seed), (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
    operations = [each for each in AclOperation if each > AclOperation.ALL]
    accesses = [
        ParsedAccess(
            principal=random.choice(PRINCIPALS),
            host="10.0.0.1",
            operation=random.choice((AclOperation.READ, AclOperation.WRITE, *operations)),
            resource_type=random.choice(kinds),
            resource_name=random.choice(("g", "g-x", "h-y", "t")),
        )
        for _ in range(random.randrange(40))
    ]
    assert Intents.of(AccessColumns.of(accesses))._by_principal == naive_intents(accesses)


def test_one_client_with_many_hosts_keeps_each_host_once():
    hosts = [f"10.1.{number // 250}.{number % 250}" for number in range(500)]
    rules = [acl("t", "User:p", host, AclOperation.READ) for host in hosts]
    table = counted([("User:p", host, AclOperation.READ, ResourceType.TOPIC, "t") for host in hosts])
    settings = Settings()
    needs = Needs.of(table, Rules.of_image(image_of(rules)), settings)
    grants = list(literal_grants(needs, np.arange(len(needs.accesses)), RuleIndex.of(rules, settings)))
    assert {(each.acl, each.evidence.accesses) for each in grants} == {(rule, 1) for rule in rules}
