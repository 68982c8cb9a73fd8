"""Batches of questions: the same bytes and counts as of questions that are decided one by one, without a cache."""

import json
from unittest.mock import patch

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType
from aclog.authorizer.settings import Settings
from aclog.authorizer.standard import ALL_KNOWN, Premise, Premises
from aclog.console.pdp import deciding, mapping
from aclog.console.pdp.authzen import AuthZen
from aclog.console.pdp.deciding import Answer, Decider, KafkaRequest, parse_evaluation
from aclog.console.pdp.mapping import BadRequestError, NotReadyError, default_mapping, parse_body, read_mapping
from aclog.metalog.native import native
from aclog.metalog.records import RemoveAccessControlEntryRecord
from aclog.snapshots.image import Image
from aclog.terminal.columns import json_text
from tests.support.builders.acls import acl, acl_record
from tests.support.runs.profiles import examples
from tests.support.web.points import ASSETS, image_of

DENY, PREFIXED = AclPermissionType.DENY, PatternType.PREFIXED
RULES = (
    acl("t", "User:a"),
    acl("t", "User:b", operation=AclOperation.ALL),
    acl("u", "User:*"),
    acl("u", "User:b", permission_type=DENY),
    acl("t", "User:c", pattern_type=PREFIXED),
    acl("tu", "User:c", permission_type=DENY, pattern_type=PREFIXED, operation=AclOperation.WRITE),
    acl("*", "User:d", operation=AclOperation.DESCRIBE),
    acl("!", "User:a"),
    acl("t", "User:\u00e9", host="10.0.0.1"),
    acl("record-1", "User:alice"),
)
RANGES = (*RULES, acl("u", "User:a", host="127.0.0.0/8", permission_type=DENY), acl("t", "User:d", host="127.0.0.1/32"))


def changed() -> Image:
    """Return an image with changes since its base was built: the base has the rules of some requests only."""
    base = (acl("v", "User:b", permission_type=DENY), acl("t", "User:d"), *RULES)
    records = [acl_record(number, rule) for number, rule in enumerate(base, 1)]
    image = AclsImage.empty().apply(records).merged()
    removed = RemoveAccessControlEntryRecord(id=records[2].id)
    return Image(acls=image.apply([removed, acl_record(100, acl("t", "User:d", permission_type=DENY))]))


def decider_of(image, own=None, *, premises=ALL_KNOWN, certified=False):
    """Return a decider whose offset shows in its answers."""
    mapped = read_mapping(ASSETS / "authzen-mapping.yaml") if certified else default_mapping()
    return evolve(Decider.of(image, own or Settings(), mapped, premises), offset=1_234)


OPEN = Settings(super_users=frozenset({"User:a", "User:*"}), allow_everyone=True)
UNKNOWN = Premises((Premise(name="super.users", problem="hidden", unless="it is one", settled_by="--super-users"),))
DECIDERS = {
    "rules": decider_of(image_of(*RULES)),
    "no rules": decider_of(image_of()),
    "open to everyone": decider_of(image_of(*RULES), OPEN),
    "open where no rule is": decider_of(image_of(*(each for each in RULES if each.resource_name != "*")), OPEN),
    "changed": decider_of(changed()),
    "ranges": decider_of(image_of(*RANGES), Settings(cidr=True)),
    "one of two generations": decider_of(image_of(*RANGES), Settings(is_kafka_stated=False)),
    "a principal without a colon": decider_of(image_of(*RULES, acl("t", "b")), Settings()),
    "unknown premises": decider_of(image_of(*RULES), premises=UNKNOWN),
    "a mapping": decider_of(image_of(*RULES), certified=True),
}
PAST = decider_of(image_of(acl("t", "User:d")))


def state(newest):
    """Return the states of an API: the newest, and one of the past."""

    def at(as_of):
        if as_of is None:
            return newest
        if as_of != "1":
            raise BadRequestError(f"no moment {as_of}")
        return PAST

    return at


def answer_of(newest, question):
    """Return the answer to one question, as an object of JSON, without any of the short cuts."""
    if not isinstance(question, dict):
        return {"decision": False, "context": {"error": {"status": 400, "message": "expected an object"}}}
    try:
        parsed = parse_evaluation(question)
        decider = state(newest)(parsed.circumstances.as_of)
    except BadRequestError as error:
        return {"decision": False, "context": {"error": {"status": 400, "message": str(error)}}}
    asked = decider.request_of(parsed.subject, parsed.action, parsed.resource, parsed.circumstances.host)
    answer = asked if isinstance(asked, Answer) else decider._decided(asked)
    context = {} if answer.rule is None else {"rule": answer.rule}
    context |= {"reason": answer.reason, "offset": decider.offset}
    context |= {"premises": answer.unknown} if answer.unknown else {}
    context |= {"allowedOnlyOn": answer.only_on} if answer.only_on else {}
    return {"decision": answer.decision, "context": context}


def answers_of(newest, body):
    """Return the answers to a batch."""
    shared = {key: body[key] for key in ("subject", "action", "resource", "context") if key in body}
    stop = {"deny_on_first_deny": False, "permit_on_first_permit": True}.get(
        (body.get("options") or {}).get("evaluations_semantic")
    )
    answers = []
    for each in body["evaluations"]:
        answers.append(answer_of(newest, {**shared, **each} if isinstance(each, dict) else each))
        if answers[-1]["decision"] is stop:
            break
    return answers


def _entity(types, ids):
    usual = st.fixed_dictionaries({"type": types, "id": ids})
    odd = st.fixed_dictionaries(
        {},
        optional={
            "type": st.one_of(types, st.none(), st.integers()),
            "id": st.one_of(ids, st.just(""), st.integers()),
            "properties": st.one_of(st.none(), st.just({"role": "admin"}), st.just([])),
        },
    )
    return st.one_of(usual, usual, usual, odd, st.none(), st.just("x"))


_subjects = _entity(
    st.sampled_from(["User", "User", "User", "user", "Group", "a:b", "\u0131", ""]),
    st.sampled_from(["a", "b", "c", "d", "e", "\u00e9", "*", "a:b", "alice", "bob+admin", "x" * 2000]),
)
_resources = _entity(
    st.sampled_from(["topic", "topic", "topic", "TOPIC", "Topic", "group", "cluster", "record", "broker"]),
    st.sampled_from(["t", "u", "v", "tu", "tuv", "!", "!a", "*", "t*", "t\\*", "t\u00e9", "record-1", "1", "x" * 2000]),
)
_names = st.sampled_from(["READ", "READ", "write", "DESCRIBE", "ALL", "any", "delete", "Read", ""])
_actions = st.one_of(_names.map(lambda name: {"name": name}), st.sampled_from([None, {}, {"name": 1}, "READ"]))
_contexts = st.sampled_from([None, {}, {"as_of": 1}, {"as_of": "2"}, {"host": "10.0.0.1"}, {"ip": "x"}, []])
# Few words, so that questions share rules: a rule of one must not be the answer of another.
_plain = st.builds(
    lambda user, action, name: {
        "subject": {"type": "User", "id": user}, "action": {"name": action}, "resource": {"type": "topic", "id": name},
    },
    st.sampled_from(["a", "b", "c", "d"]),
    st.sampled_from(["READ", "READ", "WRITE", "DESCRIBE"]),
    st.sampled_from(["t", "u", "v", "tu"]),
)  # fmt: skip
_parts = {"subject": _subjects, "action": _actions, "resource": _resources, "context": _contexts}
_questions = st.one_of(_plain, _plain, _plain, st.fixed_dictionaries({}, optional=_parts), st.sampled_from([None, 1]))
_semantics = st.sampled_from(["execute_all", "deny_on_first_deny", "permit_on_first_permit"])
_options = st.one_of(st.none(), st.just({}), _semantics.map(lambda each: {"evaluations_semantic": each}))
_batches = st.builds(
    lambda shared, questions, options: {**shared, "evaluations": questions, "options": options},
    st.one_of(st.just({}), st.fixed_dictionaries({}, optional=_parts)),
    st.one_of(st.lists(_plain, min_size=12, max_size=20), st.lists(_questions, min_size=1, max_size=12)),
    _options,
)


@pytest.mark.parametrize("name", DECIDERS)
@given(_batches)
@settings(max_examples=examples(60))
def test_a_batch_is_answered_as_its_questions_one_by_one(name, body):
    decider = DECIDERS[name]
    expected = answers_of(decider, body)
    api = AuthZen(state=state(decider))
    reply = api.evaluations(body)
    assert reply.text == f'{{"evaluations":[{",".join(map(json_text, expected))}]}}'
    decisions = [answer["decision"] for answer in expected]
    assert (reply.allowed, reply.denied) == (decisions.count(True), decisions.count(False))
    for question in body["evaluations"]:
        answer = answer_of(decider, question)
        if "error" not in answer["context"]:
            assert api.evaluation(question).text == json_text(answer)


def test_without_a_state_a_batch_has_no_answer():
    def not_ready(as_of):
        raise NotReadyError("no state was read yet")

    with pytest.raises(NotReadyError):
        AuthZen(state=not_ready).evaluations({"evaluations": [None]})


def test_answers_that_are_kept_have_the_offset_of_their_state():
    decider = decider_of(image_of(*RULES))
    request = KafkaRequest("User:a", "127.0.0.1", AclOperation.READ, 2, "t")
    text, decision = decider.decided(request)
    later, _ = evolve(decider, offset=5_678).decided(request)
    assert decision
    assert later == text.replace('"offset":1234}', '"offset":5678}') != text


@pytest.mark.skipif(native is None, reason="the native core determines the rule")
def test_a_rule_is_put_into_words_once(monkeypatch):
    decider = decider_of(image_of(*RULES))
    worded, decided = [], Decider._decided
    monkeypatch.setattr(Decider, "_decided", lambda self, request: worded.append(request) or decided(self, request))
    for name in ("t", "t1", "t2", "t3"):
        for user in ("a", "c", "nobody"):
            decider.decided(KafkaRequest(f"User:{user}", "127.0.0.1", AclOperation.READ, 2, name))
    assert len(worded) == 3


def test_what_is_kept_is_bounded(monkeypatch):
    monkeypatch.setattr(deciding, "_REMEMBERED", 2)
    monkeypatch.setattr(deciding, "_MOST_MEANINGS", 3)
    decider = decider_of(image_of(*(acl(f"t{number}", "User:a") for number in range(9)), acl("x" * 9_000, "User:a")))
    for _ in range(2):
        for name in (*(f"t{number}" for number in range(9)), "x" * 9_000):
            assert decider.plainly_decided(("User", "a", "READ", "topic", name))[1]
            decider.plainly_decided((f"User-{name}", "a", "READ", "topic", name))
            assert len(decider._by_key) <= 2
            assert len(decider._meanings) <= 3
    kept = [*decider._meanings, *(text for text, _ in decider._by_key.values())]
    assert len(str(kept)) < 5_000


_users = st.sampled_from(["User:a", "User:b", "User:c", "User:d", "User:\u00e9", "User:*", "b", "User:z"])
_requests = st.builds(
    KafkaRequest, _users, st.sampled_from(["127.0.0.1", "10.0.0.1"]), st.sampled_from([3, 3, 4, 8, 0, 99]),
    st.sampled_from([2, 2, 2, 3, 0, 99]),
    st.sampled_from(["t", "u", "v", "tu", "tux", "!", "*", "", "kafka-cluster"]),
)  # fmt: skip


@pytest.mark.parametrize("name", DECIDERS)
@given(st.lists(_requests, min_size=10, max_size=20))
@settings(max_examples=examples(50))
def test_requests_with_one_key_have_one_decision(name, asked):
    decider = DECIDERS[name]
    for request in asked:
        answer = decider._decided(request)
        assert decider.decide(request) == answer
        assert decider.decided(request) == (answer.text(decider.offset), answer.decision)


_texts = st.text(st.sampled_from('a:"\\ \u00e9\n{}'), max_size=4).map(json.dumps)
_blanks = st.sampled_from(["", "", "", "", " ", "\t", "\n"])


def _written(value):
    """Return JSON with duplicate names and blanks."""
    return st.one_of(
        st.builds(
            lambda members, blank: "{" + ",".join(f"{k}{blank}:{v}" for k, v in members) + "}",
            st.lists(st.tuples(_texts, value), max_size=3),
            _blanks,
        ),
        st.lists(value, max_size=3).map(lambda each: f"[{','.join(each)}]"),
    )


_scalars = st.one_of(_texts, st.sampled_from(["1", "1.5", "1e999", "NaN", "null", "true", '":"', '"a": ', "9" * 5000]))
_json = st.recursive(_scalars, _written, max_leaves=12)


def outcome(data):
    """Return the object in a body, or the error."""
    try:
        return repr(parse_body(data))
    except BadRequestError as error:
        return str(error)


def without_short_cut(data):
    with patch.object(mapping, "_usual", lambda data: None):
        return outcome(data)


@given(_written(_json).map(str.encode))
@settings(max_examples=examples(300))
def test_a_body_is_read_as_by_a_check_of_each_object(data):
    assert outcome(data) == without_short_cut(data)


@pytest.mark.parametrize(
    "data",
    [
        b"", b" ", b"[]", b"1", b"\xff", b"\xef\xbb\xbf{}", b'{"a":1,"a":1}', b'{"a":1,"a" :1}', b'{"a" :1,"a" :":"}',
        b'{"a":{"b":1,"b":":"},"c":2}', b'{"a":"\\ud800"}', b'{"a":NaN}', b"[" * 2000,
        b'{"a":' * 31 + b"{}" + b"}" * 31, b'{"a":' * 32 + b"{}" + b"}" * 32, b'{"a":' * 2000 + b"1" + b"}" * 2000,
    ],
)  # fmt: skip
def test_an_invalid_body_has_the_error_of_a_check_of_each_object(data):
    assert outcome(data) == without_short_cut(data)


def test_a_usual_body_takes_the_short_cut():
    question = {"subject": {"type": "User", "id": "spiffe://a"}, "action": {"name": "READ"}}
    for separators in ((", ", ": "), (",", ":"), (", ", " : ")):
        assert mapping._usual(json.dumps(question, separators=separators).encode()) == question
    assert mapping._usual(b'{"a":1,"a":1}') is None
