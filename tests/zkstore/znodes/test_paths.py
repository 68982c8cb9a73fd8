"""Where rules are, and what tells of their changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import PatternType, ResourcePattern, ResourceType
from aclog.metalog.errors import DecodeError, EncodeError
from aclog.zkstore.znodes.change_events import decode_event, encode_event
from aclog.zkstore.znodes.paths import (
    LITERAL_TREE,
    PREFIXED_TREE,
    name_problem,
    paths_of,
    pattern_of,
    resource_path,
    sequence_of,
    tree_of,
)

PATTERNS = st.builds(
    ResourcePattern,
    resource_type=st.sampled_from([kind for kind in ResourceType if kind > 1]),
    name=st.text(min_size=1).filter(lambda name: name_problem(name) is None),
    pattern_type=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
)


@pytest.mark.parametrize(
    ("kind", "pattern_type", "path"),
    [
        (ResourceType.TOPIC, PatternType.LITERAL, "/kafka-acl/Topic/n"),
        (ResourceType.GROUP, PatternType.PREFIXED, "/kafka-acl-extended/prefixed/Group/n"),
        (ResourceType.CLUSTER, PatternType.LITERAL, "/kafka-acl/Cluster/n"),
        (ResourceType.TRANSACTIONAL_ID, PatternType.LITERAL, "/kafka-acl/TransactionalId/n"),
        (ResourceType.DELEGATION_TOKEN, PatternType.LITERAL, "/kafka-acl/DelegationToken/n"),
        (ResourceType.USER, PatternType.PREFIXED, "/kafka-acl-extended/prefixed/User/n"),
    ],
)
def test_paths_are_kafkas(kind, pattern_type, path):
    pattern = ResourcePattern(resource_type=kind, name="n", pattern_type=pattern_type)
    assert resource_path(pattern) == path
    assert pattern_of(path) == pattern


@given(PATTERNS)
def test_a_path_and_an_event_lead_back_to_their_resource(pattern):
    assert pattern_of(resource_path(pattern)) == pattern
    assert decode_event(tree_of(pattern.pattern_type), encode_event(pattern), path="/e") == pattern


@pytest.mark.parametrize("directory", ["Group", "ConsumerGroup", "CONSUMER_GROUP"])
def test_a_groups_older_directories_are_its_own_too(directory):
    group = ResourcePattern(resource_type=ResourceType.GROUP, name="g")
    assert pattern_of(f"/kafka-acl/{directory}/g") == group
    assert f"/kafka-acl/{directory}/g" in paths_of(group)


@pytest.mark.parametrize(
    "path", ["/kafka-acl", "/kafka-acl/Topic", "/kafka-acl/Topic/", "/kafka-acl/Foo/x", "/x/Topic"]
)
def test_other_paths_have_no_rules(path):
    with pytest.raises(DecodeError, match="expected the path of a resource"):
        pattern_of(path)


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        (ResourcePattern(resource_type=0, name="n"), "resource type UNKNOWN"),
        (ResourcePattern(resource_type=1, name="n"), "resource type ANY"),
        (ResourcePattern(resource_type=2, name="n", pattern_type=2), "pattern type MATCH"),
        (ResourcePattern(resource_type=2, name="a/b"), "expected no /"),
        (ResourcePattern(resource_type=2, name=""), "non-empty"),
        (ResourcePattern(resource_type=2, name="a\ud800"), r"expected no U\+D800 \(at 1\)"),
    ],
)
def test_what_has_no_path(pattern, says):
    with pytest.raises(EncodeError, match=says):
        resource_path(pattern)


@pytest.mark.parametrize(
    ("tree", "data", "says"),
    [
        (LITERAL_TREE, b"", "expected TYPE:name"),
        (LITERAL_TREE, b"TOPIC:", "expected TYPE:name"),
        (LITERAL_TREE, b"\xff", "expected UTF-8"),
        (LITERAL_TREE, b"FOO:x", "resource type 'FOO'"),
        (PREFIXED_TREE, b"TOPIC:x", "expected JSON"),
        (PREFIXED_TREE, b'{"version":2}', "version 2: expected 1"),
        (PREFIXED_TREE, b'{"version":1,"resourceType":"TOPIC","name":"x"}', "a patternType"),
        (PREFIXED_TREE, b'{"version":1,"resourceType":"TOPIC","name":"x","patternType":"LITERAL"}', "patternType"),
        (PREFIXED_TREE, b'{"version":1,"resourceType":"FOO","name":"x","patternType":"PREFIXED"}', "resource type"),
    ],
)
def test_events_that_say_nothing(tree, data, says):
    with pytest.raises(DecodeError, match=f"^/changes/1: .*{says}"):
        decode_event(tree, data, path="/changes/1")


@pytest.mark.parametrize(
    "data", [b"GROUP:a:b", b"Group:a:b", b"group:a:b", b"CONSUMER_GROUP:a:b", b"ConsumerGroup:a:b"]
)
def test_spellings_of_events(data):
    assert decode_event(LITERAL_TREE, data, path="/e") == ResourcePattern(resource_type=ResourceType.GROUP, name="a:b")


def test_the_kips_spelling_of_an_extended_event():
    data = b'{"version":1, "resourceType":"Topic", "name":"orgName", "patternType":"PREFIXED"}'
    assert decode_event(PREFIXED_TREE, data, path="/e").name == "orgName"


@pytest.mark.parametrize(
    ("name", "number"),
    [("acl_changes_0000000012", 12), ("acl_changes_", None), ("x", None), ("acl_changes_1x", None)],
)
def test_sequence_numbers(name, number):
    assert sequence_of(name) == number
