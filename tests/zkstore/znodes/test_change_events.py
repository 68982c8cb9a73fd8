"""Change events: round trips, spellings of older releases, and malformed events."""

import pytest
from hypothesis import given

from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.codes import ResourceType
from aclog.metalog.errors import DecodeError
from aclog.zookeeper.znodes import LITERAL_TREE, PREFIXED_TREE, decode_event, encode_event, tree_of
from tests.zkstore.znodes.patterns import patterns


@given(patterns)
def test_an_event_round_trips(pattern):
    assert decode_event(tree_of(pattern.pattern_type), encode_event(pattern), path="/e") == pattern


@pytest.mark.parametrize(
    ("tree", "data", "message"),
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
def test_malformed_events(tree, data, message):
    with pytest.raises(DecodeError, match=f"^/changes/1: .*{message}"):
        decode_event(tree, data, path="/changes/1")


@pytest.mark.parametrize(
    "data", [b"GROUP:a:b", b"Group:a:b", b"group:a:b", b"CONSUMER_GROUP:a:b", b"ConsumerGroup:a:b"]
)
def test_spellings_of_literal_events(data):
    assert decode_event(LITERAL_TREE, data, path="/e") == ResourcePattern(resource_type=ResourceType.GROUP, name="a:b")


def test_the_kips_spelling_of_an_extended_event():
    data = b'{"version":1, "resourceType":"Topic", "name":"orgName", "patternType":"PREFIXED"}'
    assert decode_event(PREFIXED_TREE, data, path="/e").name == "orgName"
