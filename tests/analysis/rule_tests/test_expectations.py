"""Resources and rules as tests write them."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.analysis.rule_tests.case import parse_resource, resource_text
from aclog.analysis.rule_tests.expectations import parse_rule_text, rule_text
from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.metalog.errors import ConfigError
from tests.support.analysis.policies import random_rule


@pytest.mark.parametrize(
    ("text", "kind", "name", "pattern"),
    [
        ("topic:bill.in", ResourceType.TOPIC, "bill.in", PatternType.LITERAL),
        ("topic:bill.*", ResourceType.TOPIC, "bill.", PatternType.PREFIXED),
        ("topic:*", ResourceType.TOPIC, "", PatternType.PREFIXED),
        (r"topic:\*", ResourceType.TOPIC, "*", PatternType.LITERAL),
        (r"group:a\\\**", ResourceType.GROUP, r"a\*", PatternType.PREFIXED),
        (r"group:DOM\app", ResourceType.GROUP, r"DOM\app", PatternType.LITERAL),
        (r"group:a\\b", ResourceType.GROUP, r"a\\b", PatternType.LITERAL),
        ("cluster", ResourceType.CLUSTER, "kafka-cluster", PatternType.LITERAL),
        ("transactional_id:x:y", ResourceType.TRANSACTIONAL_ID, "x:y", PatternType.LITERAL),
        ("delegation-token:t", ResourceType.DELEGATION_TOKEN, "t", PatternType.LITERAL),
        ("user:User:bob", ResourceType.USER, "User:bob", PatternType.LITERAL),
    ],
)
def test_a_resource_is_what_its_text_says(text, kind, name, pattern):
    assert parse_resource(text) == ResourcePattern(resource_type=kind, name=name, pattern_type=pattern)


@pytest.mark.parametrize(
    "text", ["bill.in", "topic", "topic:", "topics:a", "topic:a*b", r"topic:a\\*b", "topic:**", "cluster:x"]
)
def test_no_resource_is_refused_with_what_was_expected(text):
    with pytest.raises(ConfigError, match="expected"):
        parse_resource(text)


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
)
def test_every_name_has_a_text(name, pattern):
    resource = ResourcePattern(resource_type=ResourceType.GROUP, name=name, pattern_type=pattern)
    assert parse_resource(resource_text(resource)) == resource


@given(st.integers(0, 2**32 - 1).map(Random))
def test_a_rule_is_what_its_short_form_says(random):
    rule, other = random_rule(random, odd=0), random_rule(random, odd=0)
    said = parse_rule_text(rule_text(rule))
    assert said.is_of(rule)
    assert parse_rule_text(str(said)) == said
    same = [
        (each.operation, each.permission_type, each.pattern_type, each.resource_name, each.principal, each.host)
        for each in (rule, other)
    ]
    assert said.is_of(other) is (same[0] == same[1])


def test_what_is_not_said_may_be_anything_but_a_rule_allows():
    said = parse_rule_text("READ prefixed bill.")
    assert (said.permission, said.operation, said.principal, said.host) == (
        AclPermissionType.ALLOW,
        AclOperation.READ,
        None,
        None,
    )
    assert not said.is_of("DefaultDeny")
    assert parse_rule_text("defaultdeny").is_of("DefaultDeny")
    assert parse_rule_text('DENY all literal "a b" for "User:CN=x, O=y"').principal == "User:CN=x, O=y"


@pytest.mark.parametrize(
    "text", ["", "READ bill", "READ match x", "FLY literal x", "READ literal a b", 'READ literal "a']
)
def test_no_rule_is_refused(text):
    with pytest.raises(ConfigError):
        parse_rule_text(text)
