"""Foreign things in Kafka's terms, and back: nothing is taken for another, and what could be is refused."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.console.pdp.mapping import default_mapping, parse_mapping, read_mapping
from aclog.metalog.errors import ConfigError
from tests.support.web.points import ASSETS

ADMIN = {"user": [{"when": {"role": "admin"}, "to": "User:{id}+admin"}, {"to": "User:{id}"}]}
BOTS = {**ADMIN, "bot": "User:b-{id}"}


def subject(mapping, kind, foreign, properties):
    found = mapping.subject_type(kind)
    return None if found is None else found.forward(foreign, properties)


def resource(mapping, kind, foreign, properties):
    found = mapping.resource_type(kind)
    return None if found is None else found.forward(foreign, properties)


def read_back(mapping, kind, name):
    return mapping.subject_type(kind).backward(None, name)


def operation(mapping, kind, action, properties):
    return mapping.resource_type(kind).operation(action, properties)


def test_by_default_types_are_kafkas_and_actions_its_operations():
    mapping = default_mapping()
    assert subject(mapping, "User", "alice", {})[1] == "User:alice"
    assert subject(mapping, "a:b", "alice", {}) is None
    target, name = resource(mapping, "topic", "orders", {})
    assert (target.resource_type, name) == (ResourceType.TOPIC, "orders")
    assert resource(mapping, "record", "orders", {}) is None
    assert operation(mapping, "topic", "read", {}) is AclOperation.READ
    assert operation(mapping, "topic", "all", {}) is None
    assert "READ" in mapping.resource_type("TOPIC").actions.meanings
    assert mapping.resource_type("record") is None


def test_the_first_case_that_fits_counts():
    mapping = parse_mapping({"subject": ADMIN}, "it")
    assert subject(mapping, "user", "bob", {"role": "admin", "x": 1})[1] == "User:bob+admin"
    assert subject(mapping, "user", "bob", {"role": "user"})[1] == "User:bob"
    assert subject(mapping, "user", "bob", {})[1] == "User:bob"
    assert subject(mapping, "group", "bob", {}) is None


def test_an_id_is_never_taken_for_another_thing():
    """`bob+admin` without the role would be `bob` with it."""
    mapping = parse_mapping({"subject": ADMIN}, "it")
    assert subject(mapping, "user", "bob+admin", {}) is None
    assert subject(mapping, "user", "", {}) is None


def test_an_id_of_one_type_is_never_taken_for_a_thing_of_another():
    """A user `svc-billing` would be the service `billing`."""
    types = {"user": "User:{id}", "service": "User:svc-{id}"}
    subjects = parse_mapping({"subject": types}, "it")
    assert subject(subjects, "user", "svc-billing", {}) is None
    assert read_back(subjects, "user", "User:svc-billing") is None
    assert subject(subjects, "service", "billing", {})[1] == "User:svc-billing"
    assert read_back(subjects, "service", "User:svc-billing").id == "billing"
    assert subject(subjects, "user", "svc-", {})[1] == "User:svc-", "which is no service's"
    kinds = {"table": "TOPIC:{id}", "view": "TOPIC:v.{id}", "job": "GROUP:j.{id}"}
    resources = parse_mapping({"resource": kinds}, "it")
    assert resource(resources, "table", "v.a", {}) is None
    assert resource(resources, "view", "a", {})[1] == "v.a"
    assert resource(resources, "table", "j.a", {})[1] == resource(resources, "job", "a", {})[1] == "j.a", (
        "a topic, a group"
    )


def test_types_with_one_template_are_two_words_for_one_thing():
    subjects = parse_mapping({"subject": {"user": "User:{id}", "person": "User:{id}"}}, "it")
    for kind in ("user", "person"):
        assert subject(subjects, kind, "bob", {})[1] == "User:bob"
        assert read_back(subjects, kind, "User:bob").id == "bob"


def test_a_name_that_is_of_two_types_is_of_neither():
    subjects = parse_mapping({"subject": {"first": "User:a{id}", "last": "User:{id}z"}}, "it")
    for kind, foreign in (("first", "bz"), ("last", "ab")):
        assert subject(subjects, kind, foreign, {}) is None
        assert read_back(subjects, kind, "User:abz") is None
    assert subject(subjects, "first", "b", {})[1] == "User:ab"
    assert subject(subjects, "last", "b", {})[1] == "User:bz"


@given(
    kind=st.sampled_from([*BOTS]),
    foreign=st.text("ab+dmin:{}-", max_size=12) | st.text("ab+-", min_size=1, max_size=3).map("b-{}".format),
    properties=st.dictionaries(st.just("role"), st.sampled_from(["admin", "user", True, 1, None])),
)
def test_what_is_mapped_is_read_back_as_it_was(kind, foreign, properties):
    mapping = parse_mapping({"subject": BOTS}, "it")
    found = subject(mapping, kind, foreign, properties)
    if found is not None:
        [(of, thing)] = [(each, read) for each in BOTS if (read := read_back(mapping, each, found[1])) is not None]
        assert (of, thing.id) == (kind, foreign)
        assert subject(mapping, kind, thing.id, dict(thing.properties)) == found


def test_true_is_not_one():
    mapping = parse_mapping(
        {"resource": {"r": "TOPIC"}, "action": {"r": {"d": [{"when": {"soft": True}, "to": "ALTER"}]}}}, "it"
    )
    assert operation(mapping, "r", "d", {"soft": True}) is AclOperation.ALTER
    assert operation(mapping, "r", "d", {"soft": 1}) is None


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
        ({"envoy": {"subject": "user", "header": "x user", "resource": "topic"}}, "expected the name of a header"),
        ({"envoy": {"subject": "a:b", "header": "x-user", "resource": "topic"}}, "no such subject"),
        ({"envoy": {"subject": "user", "header": "x-user", "resource": "Topic"}}, "did you mean 'TOPIC'?"),
        ({"subject": None}, "subject: expected an object"),
        ({"subject": {"us\u0131r": "User"}}, "expected a word of ASCII"),
        ({"resource": {"r ": "TOPIC"}}, "expected a word of ASCII"),
        ({"resource": {"r": "top\u0131c"}}, "expected one of TOPIC"),
        ({"action": {"topic": {"wr\u0131te": "WRITE"}}}, "expected a word of ASCII"),
        ({"action": {"topic": {"write": "wr\u0131te"}}}, "expected ASCII"),
        ({"action": {"Topic": {"write": "WRITE"}}}, "there is no such resource"),
        ({"action": {"topic": {}, "TOPIC": {}}}, "duplicate resource TOPIC"),
        ({"case": "upper"}, "expected exact or any"),
        ({"case": "any", "resource": {"r": "TOPIC", "R": "GROUP"}}, "r and R are one word"),
        ({"subject": {"user": [{"when": {"a": float("nan")}, "to": "User"}]}}, "not a JSON number"),
        ({"subject": {"user": [{"when": {"a": [date(2026, 1, 1)]}, "to": "User"}]}}, "not a JSON value"),
        ({"subject": {"user": [{"when": {"a": {1: 2}}, "to": "User"}]}}, "the key 1 is no text"),
    ],
)
def test_what_cannot_be_meant_is_refused(value, said):
    with pytest.raises(ConfigError, match=r".") as caught:
        parse_mapping(value, "it")
    assert said in str(caught.value)


def test_files_are_read_whole_or_not_at_all(tmp_path):
    assert read_mapping(ASSETS / "authzen-mapping.yaml").subject_type("user") is not None
    path = tmp_path / "m.yaml"
    for text, said in (("a: 1\na: 2", "a"), ("[" * 5000, "nested"), ("{", "m.yaml"), ("", "one document")):
        path.write_text(text)
        with pytest.raises(ConfigError, match=said):
            read_mapping(path)
