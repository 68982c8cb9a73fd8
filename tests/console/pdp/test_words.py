"""Types and actions: one form of each counts, in every step of a decision; what only looks like one is none."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.console.pdp.mapping import parse_mapping, read_mapping
from aclog.metalog.errors import ConfigError
from tests.support.builders.acls import acl
from tests.support.cli.command import aclog
from tests.support.web.asgi import post
from tests.support.web.points import HeldSource, image_of, point_of

ONE, SEARCH = "/access/v1/evaluation", "/access/v1/search/action"
EVERYTHING = [acl("*", "User:*", operation=AclOperation.ALL, resource_type=kind) for kind in (2, 3, 5, 6)]
LOOKALIKES = str.maketrans({"i": "\u0131", "s": "\u017f", "k": "\u212a", "I": "\u0130", "S": "\u017f", "K": "\u212a"})


def app_of(mapping, *rules):
    return point_of(HeldSource(image_of(*(rules or EVERYTHING))), mapping).app()


def asked(kind, action, properties=None, *, who="User"):
    return {
        "subject": {"type": who, "id": "a", "properties": properties or {}},
        "action": {"name": action},
        "resource": {"type": kind, "id": "t"},
    }


def decision(app, *question, **more):
    return post(app, ONE, asked(*question, **more)).json["decision"]


def found_actions(app, kind):
    found = post(app, SEARCH, {key: value for key, value in asked(kind, "").items() if key != "action"}).json
    return {each["name"] for each in found["results"]}


def test_a_mapping_with_actions_closes_every_type_that_it_does_not_name():
    app = app_of(parse_mapping({"action": {"topic": {"view": "READ"}}}, "it"))
    for kind in ("topic", "TOPIC", "Topic", "tOPIC", "group", "GROUP", "Group", "transactional_id"):
        for action in ("READ", "read", "WRITE", "write", "Write", "view"):
            is_open = kind in ("topic", "TOPIC") and action == "view"
            assert decision(app, kind, action) is is_open, (kind, action)
        assert found_actions(app, kind) == ({"view"} if kind in ("topic", "TOPIC") else set())
    for closed in ({}, {"resource": {"r": "TOPIC", "s": "TOPIC"}}):
        given = {**closed, "action": {"r": {"view": "READ"}} if closed else {}}
        app = app_of(parse_mapping(given, "it"))
        assert [decision(app, kind, "READ") for kind in ("r", "s", "topic", "TOPIC")] == [False] * 4
        assert decision(app, "s", "view") is False


@pytest.mark.parametrize("mapping", [{}, {"resource": {"topic": "TOPIC", "site": "TOPIC"}}])
def test_only_ascii_is_a_word(mapping):
    app = app_of(parse_mapping(mapping, "it"))
    assert decision(app, "topic", "WRITE") is True
    for kind, action in (
        ("top\u0131c", "WRITE"),
        ("topic", "wr\u0131te"),
        ("topic", "WR\u0130TE"),
        ("topic", "de\u017fcribe"),
    ):
        reply = post(app, ONE, asked(kind, action)).json
        assert reply["decision"] is False
        assert "expected ASCII" in reply["context"]["reason"]
    assert decision(app, "topic", "WRITE", who="U\u017fer") is False, "whom no DENY of User:a would meet"


@given(
    action=st.sampled_from([each.name for each in AclOperation]),
    kind=st.sampled_from([each.name for each in ResourceType]),
    fold=st.sampled_from([str, str.lower]),
)
def test_no_lookalike_of_a_word_is_one(everything, action, kind, fold):
    for one, other in (
        (fold(kind).translate(LOOKALIKES), fold(action)),
        (fold(kind), fold(action).translate(LOOKALIKES)),
    ):
        if not (one + other).isascii():
            assert decision(everything, one, other) is False


@pytest.fixture(scope="module")
def everything():
    return app_of(parse_mapping({}, "it"))


@pytest.mark.parametrize("mapping", [{}, {"resource": {"topic": "TOPIC"}}, {"action": {"topic": {"read": "READ"}}}])
def test_case_counts_unless_the_mapping_says_otherwise(mapping):
    exact, any_case = (app_of(parse_mapping({**mapping, "case": case}, "it")) for case in ("exact", "any"))
    for kind, action in (("Topic", "read"), ("topic", "Read"), ("tOpic", "READ")):
        assert decision(exact, kind, action) is False
        assert decision(any_case, kind, action) is True
        assert decision(any_case, kind.translate(LOOKALIKES), action) is False
    assert decision(exact, "topic", "read") is decision(any_case, "topic", "read") is True
    assert (
        found_actions(any_case, "ToPiC") == found_actions(any_case, "topic") == found_actions(exact, "topic") != set()
    )


def test_a_word_in_another_case_is_named():
    app = app_of(parse_mapping({"resource": {"record": "TOPIC"}, "action": {"record": {"view": "READ"}}}, "it"))
    for question, reason in (
        (("Record", "view"), "resource 'Record' is not mapped: did you mean 'record'?"),
        (("record", "VIEW"), "action 'VIEW' is not mapped: did you mean 'view'?"),
        (("record", "edit"), "action 'edit' is not mapped"),
    ):
        assert post(app, ONE, asked(*question)).json["context"]["reason"] == reason


TEXTS = (
    "NO", "no", "yes", "on", "off", "y", "12:30", "1:2:3", "2026-01-02", "2026-01-02T03:04:05Z", "1_000", "0b11", "=",
    ".", "1.2.3", "NaN",
)  # fmt: skip
VALUES = {
    "true": True, "False": False, "null": None, "~": None, "10": 10, "1e3": 1000, "-1.5": -1.5, "0x1F": 31, "0o17": 15,
    ".5": 0.5, "1.0": 1,
}  # fmt: skip


def mapping_of(tmp_path, text, name="m.yaml"):
    (tmp_path / name).write_text(text)
    return read_mapping(tmp_path / name)


@pytest.mark.parametrize(("written", "value"), [*zip(TEXTS, TEXTS, strict=True), *VALUES.items()])
def test_values_of_yaml_are_those_that_a_question_can_have(tmp_path, written, value):
    """By YAML 1.1, NO is false, 12:30 is 750 and a date an object: the case never fits, and the next one decides."""
    text = f"subject:\n  User:\n    - {{when: {{x: {written}}}, to: 'Blocked:{{id}}'}}\n    - {{to: 'User:{{id}}'}}\n"
    app = app_of(mapping_of(tmp_path, text), acl("t", "User:a"))
    assert decision(app, "topic", "READ", {"x": value}) is False
    assert decision(app, "topic", "READ", {"x": [value]}) is True
    assert decision(app, "topic", "READ") is True


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{x: 010}", 'begins with a zero: expected the number 10, or "010"'), ("{x: -007}", "expected the number -7"),
        ("{x: .inf}", "not a JSON number"), ("{x: [.nan]}", "not a JSON number"), ("{x: 1e999}", "not a JSON number"),
        ("{x: !!timestamp 2026-01-02}", "the tag"), ("{x: !!binary aGk=}", "the tag"), ("{x: !!set {a}}", "the tag"),
        ("{x: !secret a}", "the tag !secret"), ("{x: !!int a}", "is no int"), ("{true: a}", "the key true is no text"),
        ("{1: a}", "the key 1 is no text"), ("{<<: {a: 1}}", "merges nothing"),
        (f"{{x: {'9' * 5000}}}", "5,000 digits"),
    ],
)  # fmt: skip
def test_what_no_question_can_have_is_refused(tmp_path, written, said):
    text = f"subject:\n  user:\n    - when: {written}\n      to: 'User:{{id}}+x'\n    - to: 'User:{{id}}'\n"
    with pytest.raises(ConfigError, match=r"m\.yaml") as caught:
        mapping_of(tmp_path, text)
    assert said in str(caught.value)


def test_a_mapping_in_json_is_json(tmp_path):
    cases = [{"when": {"x": "\U0001f600", "y": 1e3, "z": "010"}, "to": "Blocked:{id}"}, {"to": "User:{id}"}]
    app = app_of(
        mapping_of(tmp_path, json.dumps({"subject": {"User": cases}}, indent="\t"), "m.json"), acl("t", "User:a")
    )
    assert decision(app, "topic", "READ", cases[0]["when"]) is False
    with pytest.raises(ConfigError, match=r"m\.json:1: duplicate key 'subject'"):
        mapping_of(tmp_path, '{"subject":{},"subject":{}}', "m.json")


@pytest.mark.parametrize(
    ("wanted", "same", "others"),
    [
        ([True], [True], ([1], [1.0], [True, True], [])), ([1], [1.0], ([True], ["1"])), ([0], [0], ([False], [None])),
        ({"a": [True]}, {"a": [True]}, ({"a": [1]}, {"a": True}, {})), ([[1]], [[1.0]], ([[True]], [1])),
        ({"a": 1}, {"a": 1.0}, ({"a": True}, {"a": 1, "b": 1})),
    ],
)  # fmt: skip
def test_true_is_not_one_in_lists_and_objects(wanted, same, others):
    cases = [{"when": {"x": wanted}, "to": "Blocked:{id}"}, {"to": "User:{id}"}]
    app = app_of(parse_mapping({"subject": {"User": cases}}, "it"), acl("t", "User:a"))
    assert decision(app, "topic", "READ", {"x": same}) is False
    for other in others:
        assert decision(app, "topic", "READ", {"x": other}) is True, other


CHECKED = """\
subject:
  user:
    - {when: {role: admin}, to: "User:{id}+admin"}
    - {when: {x: [NO], role: admin}, to: "User:{id}+x"}
    - {to: "User:{id}"}
resource: {record: TOPIC, page: "TOPIC:p.{id}"}
action: {record: {view: [{when: {deep: true}, to: ALTER}], GET: read}}
envoy: {subject: user, header: X-User, resource: record}
"""


def test_a_mapping_is_explained(tmp_path):
    path = tmp_path / "m.yaml"
    path.write_text(CHECKED)
    result = aclog("pdp", "--mapping", path, "--check-mapping")
    assert result.code == 1
    for line in (
        '  when {"role":"admin"}: User:{id}+admin',
        '  when {"x":["NO"],"role":"admin"}: User:{id}+x',
        "  otherwise: User:{id}",
        "resource record: TOPIC:{id}",
        '    when {"deep":true}: ALTER',
        "    otherwise: not mapped",
        "  action GET: READ",
        "resource page: TOPIC:p.{id}",
        "  no action: `action` does not name it, so that nothing is allowed on it",
        "envoy: the header x-user names the subject user, a path is of record",
        "case: exact",
        "rejected: resource RECORD, Record: not record",
        "rejected: action of record get, Get: not GET",
        f"unreachable: {path}: subject: user: case 2 never counts: an earlier one fits whenever it does",
    ):
        assert line in result.lines
    assert "case 2 never counts" in aclog("pdp", "--mapping", path, "--acls", path).complaint
    path.write_text(CHECKED.replace("x: [NO], role: admin", "role: NO").replace("envoy", "case: any\nenvoy"))
    result = aclog("pdp", "--mapping", path, "--check-mapping").ok()
    assert "case: any: every case of these words is accepted" in result.lines
    assert [line for line in result.lines if line.startswith("rejected: ")] == [
        "rejected: every other word, and every word that is not ASCII"
    ]
    lines = aclog("pdp", "--check-mapping").ok().lines
    assert "resource TOPIC, topic: TOPIC:{id}" in lines
    assert "rejected: action Write: not WRITE" in lines
    path.write_text("subject: [")
    assert aclog("pdp", "--mapping", path, "--check-mapping").code == 2


def test_each_word_of_the_explanation_is_decided_as_it_says(tmp_path):
    """What is printed as accepted is, and what is printed as rejected is not."""
    path = tmp_path / "m.yaml"
    path.write_text("{}")
    app = app_of(read_mapping(path))
    for line in aclog("pdp", "--mapping", path, "--check-mapping").ok().lines:
        kind, _, rest = line.partition(" ")
        words = rest.partition(":")[0].removeprefix("action ").removeprefix("resource ").split(", ")
        if kind == "resource":
            assert [decision(app, word, "READ") for word in words if word.lower() not in ("cluster", "user")].count(
                False
            ) == 0
        elif kind == "rejected:" and rest.startswith("resource "):
            assert not any(decision(app, word, "READ") for word in words)
        elif kind == "rejected:" and rest.startswith("action "):
            assert not any(decision(app, "topic", word) for word in words)
