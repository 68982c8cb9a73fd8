"""Foreign things in Kafka's terms, and back: nothing is taken for another, and what could be is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import AclOperation, ResourceType
from aclog.console.pdp.mapping import default_mapping, parse_mapping
from aclog.console.pdp.mapping_file import read_mapping
from aclog.metalog.errors import ConfigError
from tests.support.web.points import ASSETS

ADMIN = {"user": [{"when": {"role": "admin"}, "to": "User:{id}+admin"}, {"to": "User:{id}"}]}


def test_by_default_types_are_kafkas_and_actions_its_operations():
    mapping = default_mapping()
    assert mapping.subjects.forward("User", "alice", {})[1] == "User:alice"
    assert mapping.subjects.forward("a:b", "alice", {}) is None
    target, name = mapping.resources.forward("topic", "orders", {})
    assert (target.resource_type, name) == (ResourceType.TOPIC, "orders")
    assert mapping.resources.forward("record", "orders", {}) is None
    assert mapping.operation("topic", "read", {}) is AclOperation.READ
    assert mapping.operation("topic", "all", {}) is None
    assert "READ" in mapping.actions("TOPIC")
    assert mapping.actions("record") == []


def test_the_first_case_that_fits_counts():
    mapping = parse_mapping({"subject": ADMIN}, "it")
    assert mapping.subjects.forward("user", "bob", {"role": "admin", "x": 1})[1] == "User:bob+admin"
    assert mapping.subjects.forward("user", "bob", {"role": "user"})[1] == "User:bob"
    assert mapping.subjects.forward("user", "bob", {})[1] == "User:bob"
    assert mapping.subjects.forward("group", "bob", {}) is None


def test_an_id_is_never_taken_for_another_thing():
    """`bob+admin` without the role would be `bob` with it."""
    mapping = parse_mapping({"subject": ADMIN}, "it")
    assert mapping.subjects.forward("user", "bob+admin", {}) is None
    assert mapping.subjects.forward("user", "", {}) is None


@given(
    foreign=st.text("ab+dmin:{}", max_size=12),
    properties=st.dictionaries(st.just("role"), st.sampled_from(["admin", "user", True, 1, None])),
)
def test_what_is_mapped_is_read_back_as_it_was(foreign, properties):
    mapping = parse_mapping({"subject": ADMIN}, "it")
    found = mapping.subjects.forward("user", foreign, properties)
    if found is not None:
        thing = mapping.subjects.backward("user", None, found[1])
        assert thing is not None
        assert thing.id == foreign
        assert mapping.subjects.forward("user", thing.id, dict(thing.properties)) == found


def test_true_is_not_one():
    mapping = parse_mapping(
        {"resource": {"r": "TOPIC"}, "action": {"r": {"d": [{"when": {"soft": True}, "to": "ALTER"}]}}}, "it"
    )
    assert mapping.operation("r", "d", {"soft": True}) is AclOperation.ALTER
    assert mapping.operation("r", "d", {"soft": 1}) is None


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "expected an object"),
        ({"subjects": {}}, "expected subject or resource"),
        ({"subject": {"user": 5}}, "expected a text, or cases"),
        ({"subject": {"user": "User:x"}}, "expected {id} in it, once"),
        ({"subject": {"user": "User:{id}{id}"}}, "expected {id} in it, once"),
        ({"subject": {"user": "{id}"}}, "expected a type of principal before the id"),
        ({"subject": {"user": [{"to": "User:{id}"}, {"when": {"a": 1}, "to": "User:{id}+a"}]}}, "case 2 never counts"),
        (
            {"subject": {"user": [{"when": {"a": 1}, "to": "User:{id}"}, {"to": "User:{id}+a"}]}},
            "the narrower one first",
        ),
        ({"subject": {"user": [{"when": {"a": 1}, "to": "User:{id}"}, {"to": "User:{id}"}]}}, "the narrower one first"),
        ({"resource": {"r": "TOPICS"}}, "expected one of TOPIC"),
        ({"resource": {"r": "TOPIC:x"}}, "expected {id} in it, once"),
        ({"resource": {"r": "TOPIC"}, "action": {"r": {"x": "ALL"}}}, "expected one of READ"),
        ({"resource": {"r": "TOPIC"}, "action": {"s": {"x": "READ"}}}, "there is no such resource"),
        ({"resource": {"r": [{"when": [], "to": "TOPIC"}]}}, "when: expected an object"),
        ({"envoy": {"subject": "user"}}, "expected the keys subject and resource"),
    ],
)
def test_what_cannot_be_meant_is_refused(value, said):
    with pytest.raises(ConfigError, match=r".") as caught:
        parse_mapping(value, "it")
    assert said in str(caught.value)


def test_files_are_read_whole_or_not_at_all(tmp_path):
    assert read_mapping(ASSETS / "authzen-mapping.yaml").subjects.cases("user") is not None
    path = tmp_path / "m.yaml"
    for text, said in (("a: 1\na: 2", "a"), ("[" * 5000, "nested"), ("{", "m.yaml"), ("", "one document")):
        path.write_text(text)
        with pytest.raises(ConfigError, match=said):
            read_mapping(path)
