"""Paths of resources: Kafka's, round trips, and names that ZooKeeper rejects."""

import pytest
from hypothesis import given

from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.codes import PatternType, ResourceType
from aclog.metalog.errors import DecodeError, EncodeError
from aclog.zookeeper.znodes import is_sensitive, paths_of, pattern_of, resource_path, sequence_of
from tests.zkstore.znodes.patterns import patterns


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


@given(patterns)
def test_a_path_round_trips(pattern):
    assert pattern_of(resource_path(pattern)) == pattern


@pytest.mark.parametrize("directory", ["Group", "ConsumerGroup", "CONSUMER_GROUP"])
def test_legacy_directories_of_groups_are_accepted(directory):
    group = ResourcePattern(resource_type=ResourceType.GROUP, name="g")
    assert pattern_of(f"/kafka-acl/{directory}/g") == group
    assert f"/kafka-acl/{directory}/g" in paths_of(group)


@pytest.mark.parametrize(
    "path", ["/kafka-acl", "/kafka-acl/Topic", "/kafka-acl/Topic/", "/kafka-acl/Foo/x", "/x/Topic"]
)
def test_other_paths_are_no_resources(path):
    with pytest.raises(DecodeError, match="expected the path of a resource"):
        pattern_of(path)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (ResourcePattern(resource_type=0, name="n"), "resource type UNKNOWN"),
        (ResourcePattern(resource_type=1, name="n"), "resource type ANY"),
        (ResourcePattern(resource_type=2, name="n", pattern_type=2), "pattern type MATCH"),
        (ResourcePattern(resource_type=2, name="a/b"), "expected no /"),
        (ResourcePattern(resource_type=2, name=""), "non-empty"),
        (ResourcePattern(resource_type=2, name="a\ud800"), r"expected no U\+D800 \(at 1\)"),
    ],
)
def test_resources_without_a_path(pattern, message):
    with pytest.raises(EncodeError, match=message):
        resource_path(pattern)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("acl_changes_0000000012", 12),
        ("acl_changes_", None),
        ("x", None),
        ("acl_changes_1x", None),
        (f"acl_changes_{'1' * 5000}", None),
    ],
)
def test_sequence_numbers(name, number):
    assert sequence_of(name) == number


@pytest.mark.parametrize(
    ("path", "sensitive"),
    [
        ("/config", False),
        ("/config/users", True),
        ("/config/users/ann", True),
        ("/config/users/ann/clients", True),
        ("/config/usersx", False),
        ("/config/changes/config_change_1", False),
        ("/delegation_token", False),
        ("/delegation_token/tokens", True),
        ("/delegation_token/token_changes", False),
        ("/kafka-acl/Topic/t", False),
    ],
)
def test_users_and_tokens_are_sensitive(path, sensitive):
    assert is_sensitive(path) is sensitive
