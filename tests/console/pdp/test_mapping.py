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
BOTS = {**ADMIN, "bot": "User:b-{id}"}


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


def test_an_id_of_one_type_is_never_taken_for_a_thing_of_another():
    """A user `svc-billing` would be the service `billing`."""
    types = {"user": "User:{id}", "service": "User:svc-{id}"}
    subjects = parse_mapping({"subject": types}, "it").subjects
    assert subjects.forward("user", "svc-billing", {}) is None
    assert subjects.backward("user", None, "User:svc-billing") is None
    assert subjects.forward("service", "billing", {})[1] == "User:svc-billing"
    assert subjects.backward("service", None, "User:svc-billing").id == "billing"
    assert subjects.forward("user", "svc-", {})[1] == "User:svc-", "which is no service's"
    kinds = {"table": "TOPIC:{id}", "view": "TOPIC:v.{id}", "job": "GROUP:j.{id}"}
    resources = parse_mapping({"resource": kinds}, "it").resources
    assert resources.forward("table", "v.a", {}) is None
    assert resources.forward("view", "a", {})[1] == "v.a"
    assert resources.forward("table", "j.a", {})[1] == resources.forward("job", "a", {})[1] == "j.a", "a topic, a group"


def test_types_with_one_template_are_two_words_for_one_thing():
    subjects = parse_mapping({"subject": {"user": "User:{id}", "person": "User:{id}"}}, "it").subjects
    for kind in ("user", "person"):
        assert subjects.forward(kind, "bob", {})[1] == "User:bob"
        assert subjects.backward(kind, None, "User:bob").id == "bob"


def test_a_name_that_is_of_two_types_is_of_neither():
    subjects = parse_mapping({"subject": {"first": "User:a{id}", "last": "User:{id}z"}}, "it").subjects
    for kind, foreign in (("first", "bz"), ("last", "ab")):
        assert subjects.forward(kind, foreign, {}) is None
        assert subjects.backward(kind, None, "User:abz") is None
    assert subjects.forward("first", "b", {})[1] == "User:ab"
    assert subjects.forward("last", "b", {})[1] == "User:bz"


@given(
    kind=st.sampled_from([*BOTS]),
    foreign=st.text("ab+dmin:{}-", max_size=12) | st.text("ab+-", min_size=1, max_size=3).map("b-{}".format),
    properties=st.dictionaries(st.just("role"), st.sampled_from(["admin", "user", True, 1, None])),
)
def test_what_is_mapped_is_read_back_as_it_was(kind, foreign, properties):
    mapping = parse_mapping({"subject": BOTS}, "it")
    found = mapping.subjects.forward(kind, foreign, properties)
    if found is not None:
        [(of, thing)] = [
            (each, read) for each in BOTS if (read := mapping.subjects.backward(each, None, found[1])) is not None
        ]
        assert (of, thing.id) == (kind, foreign)
        assert mapping.subjects.forward(kind, thing.id, dict(thing.properties)) == found


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
