"""The decision point's endpoints: decisions, errors, batches, searches, and when nothing is decided."""

import json
import threading
from base64 import urlsafe_b64encode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.authorizer.codes import AclPermissionType, PatternType
from aclog.authorizer.settings import Settings
from aclog.console.http import Hosts
from aclog.console.pdp.app import Tokens, read_tokens
from aclog.console.pdp.mapping import parse_mapping
from aclog.metalog.errors import ConfigError
from tests.support.builders.acls import acl
from tests.support.runs.profiles import examples
from tests.support.web.asgi import ask, post
from tests.support.web.points import HeldSource, certified, image_of, look, point_of

ALICE, BOB = {"type": "user", "id": "alice"}, {"type": "user", "id": "bob"}
BOSS = BOB | {"properties": {"role": "admin"}}
FIRST, SECOND = {"type": "record", "id": "record-1"}, {"type": "record", "id": "record-2"}
OLD = SECOND | {"properties": {"status": "archived"}}
READ, WRITE = {"name": "read"}, {"name": "write"}
SOFT, HARD = ({"name": "delete", "properties": {"soft": soft}} for soft in (True, False))
ONE, MANY = "/access/v1/evaluation", "/access/v1/evaluations"


@pytest.fixture(scope="module")
def app():
    return certified().app()


def asked(subject, action, resource, **more):
    return {"subject": subject, "action": action, "resource": resource, **more}


@pytest.mark.parametrize(
    ("body", "decision"),
    [
        (asked(ALICE, READ, FIRST), True),
        (asked(ALICE, WRITE, FIRST), True),
        (asked(BOB, READ, FIRST), True),
        (asked(BOB, WRITE, FIRST), False),
        (asked(ALICE, WRITE, OLD), False),
        (asked(BOSS, WRITE, OLD), True),
        (asked(ALICE, SOFT, FIRST), True),
        (asked(ALICE, HARD, FIRST), False),
        (asked(ALICE, READ, FIRST, context={"ip": "192.168.1.1", "time": "now"}, foo=[1]), True),
        (asked(ALICE, READ, FIRST, foo=["\U0001f600\u00e9", 1.5e3, [[[[]]]]]), True),
        (asked(ALICE, {"name": "read"}, {"type": "record", "id": "record-1\U0001f600"}), False),
        (asked({"type": "user", "id": "bob+admin"}, WRITE, OLD), False),
        (asked({"type": "ship", "id": "x"}, READ, FIRST), False),
        (asked(ALICE, {"name": "fly"}, FIRST), False),
    ],
)
def test_decisions_by_identifiers_and_properties(app, body, decision):
    reply = post(app, ONE, body, {"X-Request-ID": "r-1"})
    assert (reply.status, reply.headers["x-request-id"]) == (200, "r-1")
    assert reply.json["decision"] is decision
    assert reply.json["context"]["reason"]


def test_the_answer_names_the_rule_and_the_offset(app):
    context = post(app, ONE, asked(ALICE, READ, FIRST)).json["context"]
    assert context["rule"].startswith("MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=record-1")
    assert context["offset"] == 0


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (asked(ALICE, READ, None), {}),
        ({"action": READ, "resource": FIRST}, {}),
        (asked({"type": "user"}, READ, FIRST), {}),
        (asked(ALICE, {"name": 5}, FIRST), {}),
        (asked("alice", READ, FIRST), {}),
        (asked(ALICE | {"properties": []}, READ, FIRST), {}),
        (asked(ALICE, READ, FIRST, context=5), {}),
        (asked(ALICE, READ, FIRST, context={"as_of": []}), {}),
        (b"", {}), (b"{", {}), (b"[]", {}), (b"null", {}), (b"\xff\xfe", {}), (b"[" * 100_000, {}),
        (b'{"subject":{},"subject":{}}', {}), (b'{"a":NaN}', {}), (b"1" * 5000, {}),
        (b'{"a":1e999}', {}), (b'{"a":-Infinity}', {}), (b'{"a":"\\ud800"}', {}), (b'{"\\uDFFF":1}', {}),
        (b'{"a":' + b"[" * 32 + b"]" * 32 + b"}", {}), (b'{"a":' * 33 + b"1" + b"}" * 33, {}),
        (asked(ALICE, READ, FIRST, context={"host": ""}), {}),
        (asked(ALICE, READ, FIRST, context={"host": 5}), {}),
        (asked(ALICE, READ, FIRST), {"content-type": "text/plain"}),
        (b'{"a":"' + b"x" * (5 << 20) + b'"}', {}),
    ],
)  # fmt: skip
def test_what_is_no_question_is_refused(app, body, headers):
    reply = post(app, ONE, body, {"X-Request-ID": "r", **headers})
    assert reply.status == 400
    assert reply.json["error"]
    assert reply.headers["x-request-id"] == "r"


@pytest.mark.parametrize(
    ("key", "field"),
    [("subject", "type"), ("subject", "id"), ("resource", "type"), ("resource", "id"), ("action", "name")],
)
def test_what_is_longer_than_any_name_is_refused(app, key, field):
    body = asked(ALICE, READ, FIRST)
    for size, status in ((32_767, 200), (32_768, 400)):
        long = body | {key: body[key] | {field: "a" * size}}
        assert post(app, ONE, long).status == status
        [answer] = post(app, MANY, long | {"evaluations": [{}]}).json["evaluations"]
        assert answer["decision"] is False
        assert ("error" in answer["context"]) is (status == 400)


def test_a_batch_inherits_whole_entities_and_answers_in_order(app):
    body = {
        "subject": BOB,
        "resource": FIRST,
        "evaluations": [{"action": READ}, {"action": WRITE}, {"subject": ALICE, "action": WRITE}],
    }
    assert [each["decision"] for each in post(app, MANY, body).json["evaluations"]] == [True, False, True]
    body = {"subject": ALICE, "action": READ, "evaluations": [{"resource": FIRST}, {}, 5, {"resource": "x"}]}
    answers = post(app, MANY, body).json["evaluations"]
    assert [each["decision"] for each in answers] == [True, False, False, False]
    assert answers[1]["context"]["error"] == {"status": 400, "message": "resource is missing"}
    assert post(app, MANY, asked(ALICE, READ, FIRST)).json["decision"] is True
    assert post(app, MANY, {"evaluations": 5}).status == 400


@pytest.mark.parametrize(
    ("semantic", "expected"),
    [
        ("execute_all", [True, False, True]),
        ("deny_on_first_deny", [True, False]),
        ("permit_on_first_permit", [True]),
    ],
)
def test_the_three_semantics(app, semantic, expected):
    body = {"subject": BOB, "resource": FIRST, "options": {"evaluations_semantic": semantic},
            "evaluations": [{"action": READ}, {"action": WRITE}, {"action": READ}]}  # fmt: skip
    assert [each["decision"] for each in post(app, MANY, body).json["evaluations"]] == expected
    for guess in ("guess", [], {}, None, 5):
        assert post(app, MANY, body | {"options": {"evaluations_semantic": guess}}).status == 400


def search(app, kind, body):
    reply = post(app, f"/access/v1/search/{kind}", body)
    assert reply.status == 200, reply
    return reply.json


def test_searches_answer_the_types_own_names(app):
    found = search(app, "subject", {"subject": {"type": "user", "id": "ignored"}, "action": READ, "resource": FIRST})
    assert {each["id"] for each in found["results"]} == {"alice", "bob"}
    found = search(app, "subject", {"subject": {"type": "user"}, "action": WRITE, "resource": OLD})
    assert found["results"] == [{"type": "user", "id": "bob", "properties": {"role": "admin"}}]
    found = search(app, "resource", asked(ALICE, READ, {"type": "record"}))
    assert found["results"] == [FIRST]
    found = search(app, "resource", asked(BOSS, WRITE, {"type": "record"}))
    assert found["results"] == [OLD]
    found = search(app, "action", {"subject": ALICE, "resource": FIRST})
    assert [each["name"] for each in found["results"]] == ["read", "write"]
    for body in (
        {"subject": {"type": "ship"}, "action": READ, "resource": FIRST},
        asked(ALICE, READ, {"type": "ship"}),
    ):
        assert search(app, "resource" if body["resource"] == {"type": "ship"} else "subject", body)["results"] == []
    assert post(app, "/access/v1/search/subject", {"subject": {}, "action": READ, "resource": FIRST}).status == 400


def many():
    rules = [acl(f"t{number:03}", f"User:u{number:03}") for number in range(57)]
    rules += [acl("*", "User:all"), acl("t", "User:prefix", pattern_type=PatternType.PREFIXED)]
    return point_of(
        HeldSource(image_of(*rules)), settings=Settings(super_users=frozenset({"User:root"})), topics=("t900", "x")
    )


@pytest.mark.parametrize("limit", [1, 2, 7, 56, 57, 58, 1000])
def test_pages_of_any_size_give_the_same_set(limit):
    app = many().app()
    body = {"subject": {"type": "User", "id": "prefix"}, "action": {"name": "READ"}, "resource": {"type": "TOPIC"}}
    whole = search(app, "resource", body)
    assert (len(whole["results"]), whole["page"]) == (58, {"next_token": "", "count": 58, "total": 58})
    page, found = {"limit": limit}, []
    while True:
        answer = search(app, "resource", body | {"page": page})
        found += answer["results"]
        assert len(answer["results"]) <= limit
        if not answer["page"]["next_token"]:
            break
        page = {"token": answer["page"]["next_token"]}
    assert found == whole["results"]


def test_a_token_is_of_one_request():
    app = many().app()
    body = {"subject": {"type": "User"}, "action": {"name": "READ"}, "resource": {"type": "TOPIC", "id": "t001"}}
    first = search(app, "subject", body | {"page": {"limit": 1}})
    assert {each["id"] for each in search(app, "subject", body)["results"]} == {"u001", "all", "prefix", "root"}
    token = first["page"]["next_token"]
    other = body | {"resource": {"type": "TOPIC", "id": "t002"}, "page": {"token": token}}
    path = "/access/v1/search/subject"
    assert post(app, path, other).status == 400
    assert post(app, path, body | {"page": {"token": token, "limit": 2}}).status == 400
    forged = [urlsafe_b64encode(text).decode() for text in (b"5", b"null", b"{}", b"[1,2,3]", b"[", b'["",1e999,""]')]
    for bad in ({"token": "x"}, {"token": 5}, {"limit": -1}, {"limit": True}, 5, *({"token": one} for one in forged)):
        assert post(app, path, body | {"page": bad}).status == 400


def test_every_result_is_allowed_when_it_is_asked_about(app):
    for subject in (ALICE, BOB, BOSS):
        for action in (READ, WRITE):
            for each in search(app, "resource", asked(subject, action, {"type": "record"}))["results"]:
                assert post(app, ONE, asked(subject, action, each)).json["decision"] is True


def test_nothing_is_decided_without_a_fresh_state():
    source = HeldSource(None)
    point = point_of(source)
    app, body = point.app(), asked({"type": "User", "id": "a"}, READ, {"type": "topic", "id": "t"})
    for path in (ONE, MANY, "/v1/data/kafka/authz"):
        assert post(app, path, {"input": body} if "data" in path else body).status == 503
    assert ask(app, "GET", "/readyz").status == 503
    assert ask(app, "GET", "/healthz").status == 200
    source.current = image_of(acl("t", "User:a"))
    look(point)
    assert post(app, ONE, body).json["decision"] is True
    assert ask(app, "GET", "/readyz").status == 200
    source.current = None
    look(point)
    assert post(app, ONE, body).json["decision"] is True, "it was read a moment ago"
    point.deciders.max_age = -1.0
    assert post(app, ONE, body).status == 503
    assert ask(app, "GET", "/readyz").status == 503


def test_a_change_of_the_state_and_of_the_mapping_is_seen():
    source = HeldSource(image_of())
    point = point_of(source)
    app, body = point.app(), asked({"type": "User", "id": "a"}, READ, {"type": "topic", "id": "t"})
    assert post(app, ONE, body).json["decision"] is False
    source.current = image_of(acl("t", "User:a"))
    look(point)
    assert post(app, ONE, body).json["decision"] is True
    assert post(app, ONE, body | {"context": {"as_of": 0}}).json["decision"] is False
    assert post(app, ONE, body | {"context": {"as_of": "latest"}}).json["decision"] is True
    assert post(app, ONE, body | {"context": {"as_of": 7}}).status == 400
    assert post(app, ONE, body | {"context": {"as_of": "someday"}}).status == 400
    point.deciders.mapping = parse_mapping({"subject": {"user": "User"}}, "it")
    assert post(app, ONE, body).json["decision"] is False


@pytest.mark.parametrize("key", ["as_of", r"as\u005fof", r"\u0061s_of"])
@pytest.mark.parametrize("path", [ONE, MANY, "/v1/data/kafka/authz", "/v1/data/kafka/authz/allow"])
def test_the_past_is_never_read_between_requests(key, path):
    source = HeldSource(image_of())
    app, body = point_of(source).app(), asked({"type": "User", "id": "a"}, READ, {"type": "topic", "id": "t"})
    data = json.dumps({"input": body | {"context": {"KEY": 0}}} if "data" in path else body | {"context": {"KEY": 0}})
    assert post(app, path, data.replace("KEY", key).encode()).status == 200
    (thread,) = source.asked_in
    assert thread is not threading.main_thread(), "where a test's event loop is"


def test_the_moments_of_one_request_are_bounded():
    source = HeldSource(image_of(acl("t", "User:a")))
    app, body = point_of(source).app(), asked({"type": "User", "id": "a"}, READ, {"type": "topic", "id": "t"})
    moments = [None, *range(20), 3, 8, 0, None, "latest"]
    answers = post(app, MANY, body | {"evaluations": [{"context": {"as_of": each}} for each in moments]}).json
    found = dict(zip(map(str, moments), answers["evaluations"], strict=True))
    assert found["None"]["decision"] is True
    assert found["0"]["context"]["offset"] == 0
    assert "no such state" in found["7"]["context"]["error"]["message"]
    for each in ("8", "19", "latest"):
        assert "at most 8" in found[each]["context"]["error"]["message"]
        assert found[each]["decision"] is False
    assert len(source.asked_in) == 8
    assert post(app, ONE, body | {"context": {"as_of": 0}}).status == 200, "one request has one moment"


WELL_KNOWN = "/.well-known/authzen-configuration"
ROUTES = {"subject": {"user": "User"}, "resource": {"route": "TOPIC"}, "action": {"route": {"GET": "READ"}},
          "envoy": {"subject": "user", "header": "X-User", "resource": "route"}}  # fmt: skip


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("127.0.0.1:8180", True), ("localhost:1", True), ("[::1]:8180", True), ("pdp.example", True),
        ("evil.example", False), ("evil.example:8180", False), ("127.0.0.1.evil.example", False), ("", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_local", [True, False])
def test_where_nothing_but_this_machine_is_asked_for_only_its_names_are_answered(host, is_own, is_local):
    hosts = Hosts.of(listen="127.0.0.1", is_local=is_local, base_url="https://pdp.example/")
    source = HeldSource(image_of(acl("/t", "User:a")))
    app = point_of(source, parse_mapping(ROUTES, "it"), hosts=hosts).app()
    who, what = {"type": "user", "id": "a"}, {"type": "route", "id": "/t"}
    for path, body in (
        (ONE, asked(who, {"name": "GET"}, what)),
        ("/access/v1/search/action", {"subject": who, "resource": what}),
        (WELL_KNOWN, None),
        ("/healthz", None),
        ("/readyz", None),
        ("/metrics", None),
    ):
        reply = ask(app, "GET" if body is None else "POST", path, body or b"", {"Host": host})
        assert reply.status == (200 if is_own or not is_local else 421), path
    assert ask(app, "GET", "/ext_authz/t", headers={"Host": host, "X-User": "a"}).status == 200
    assert ask(app, "GET", "/ext_authz/other", headers={"Host": host, "X-User": "a"}).status == 403


def test_metadata_names_the_endpoints(app):
    reply = ask(app, "GET", WELL_KNOWN)
    assert reply.json["policy_decision_point"] == "http://127.0.0.1:1"
    assert reply.json["access_evaluation_endpoint"] == "http://127.0.0.1:1/access/v1/evaluation"
    assert ask(app, "GET", "/nothing", headers={"X-Request-ID": "n"}).headers["x-request-id"] == "n"
    assert ask(app, "GET", ONE).status == 405


def test_who_has_no_token_is_told_nothing():
    point = point_of(HeldSource(image_of(acl("t", "User:a"))), tokens=Tokens.of(["a-long-secret-token"]))
    app, body = point.app(), asked({"type": "User", "id": "a"}, READ, {"type": "topic", "id": "t"})
    for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": "Basic a-long-secret-token"}):
        reply = post(app, ONE, body, headers)
        assert (reply.status, reply.headers["www-authenticate"]) == (401, "Bearer")
    assert ask(app, "GET", "/metrics").status == 401
    assert post(app, ONE, body, {"Authorization": "Bearer a-long-secret-token"}).json["decision"] is True
    assert "a-long" not in repr(point.tokens)


def test_tokens_that_are_no_text_are_refused_by_name(tmp_path):
    path = tmp_path / "tokens"
    path.write_bytes(b"a-long-secret-token\xff\n")
    path.chmod(0o600)
    with pytest.raises(ConfigError) as caught:
        read_tokens(path)
    assert str(caught.value).startswith(f"{path}: not UTF-8")
    assert "secret" not in str(caught.value)


def test_what_is_answered_is_written_down(tmp_path):
    point = point_of(HeldSource(image_of(acl("t", "User:a"))), audit=tmp_path / "audit")
    body = asked({"type": "User", "id": "a\u202e"}, READ, {"type": "topic", "id": "t"})
    post(point.app(), ONE, body, {"X-Request-ID": "r-7"})
    line = json.loads((tmp_path / "audit").read_text())
    assert (line["requestId"], line["path"], line["answer"]["decision"]) == ("r-7", ONE, False)
    assert line["asked"]["subject"]["id"] == "a\u202e"
    assert "\u202e" not in (tmp_path / "audit").read_text()
    point.audit.file.close()
    metrics = ask(point.app(), "GET", "/metrics").body.decode()
    assert 'aclog_pdp_decisions_total{decision="false"} 1.0' in metrics


PLUGIN = {
    "action": {
        "operation": "READ",
        "resourcePattern": {"name": "t", "patternType": "LITERAL", "resourceType": "TOPIC"},
    },
    "requestContext": {"clientAddress": "10.0.0.1", "principal": {"name": "a", "principalType": "User"}},
}


def test_opas_kafka_plugin_is_answered():
    app = point_of(HeldSource(image_of(acl("t", "User:a", "10.0.0.1")))).app()
    reply = post(app, "/v1/data/kafka/authz", {"input": PLUGIN}).json
    assert reply["result"]["allow"] is True
    assert len(reply["decision_id"]) == 36
    assert post(app, "/v1/data/kafka/authz/allow", {"input": PLUGIN}).json["result"] is True
    other = PLUGIN | {"requestContext": PLUGIN["requestContext"] | {"clientAddress": "10.0.0.2"}}
    assert post(app, "/v1/data/kafka/authz/allow", {"input": other}).json["result"] is False
    question = asked({"type": "User", "id": "a"}, READ, {"type": "topic", "id": "t"}, context={"ip": "10.0.0.1"})
    assert post(app, "/v1/data/kafka/authz/allow", {"input": question}).json["result"] is True
    both = question | {"context": {"host": None, "ip": "10.0.0.1"}}
    assert post(app, ONE, both).json["decision"] is True
    forged = PLUGIN["requestContext"] | {"principal": {"name": "", "principalType": "User:a"}}
    for bad in (
        {"input": PLUGIN | {"requestContext": forged}},
        {},
        {"input": 5},
        {"input": {}},
        {"input": {"action": {}}},
        {"input": {"subject": 5}},
    ):
        assert post(app, "/v1/data/kafka/authz", bad).json["result"]["allow"] is False


NO_ADDRESSES = (
    "10.0.0.1 ", " 10.0.0.1", "10.0.0.1\n", "10.0.0.1:5555", "10.0.0.01", "[10.0.0.1]", "//10.0.0.1", "10.0.0.1/",
    "host/10.0.0.1", "10.0.0.1, 1.2.3.4", "10.0.0.1/32", "localhost", "*", "", "/", "fe80::1%", "\uff110.0.0.1",
)  # fmt: skip


def closed_to_one():
    deny = acl("t", "User:a", "10.0.0.1", permission_type=AclPermissionType.DENY)
    return point_of(HeldSource(image_of(acl("t", "User:a"), deny))).app()


@pytest.mark.parametrize("key", ["host", "ip"])
@pytest.mark.parametrize("address", [*NO_ADDRESSES, "/10.0.0.1"])
def test_what_is_no_address_of_a_client_gets_past_no_deny(key, address):
    app, context = closed_to_one(), {key: address}
    question = asked({"type": "User", "id": "a"}, {"name": "READ"}, {"type": "topic", "id": "t"})
    odd = question | {"context": context}
    assert f"context.{key}" in post(app, ONE, odd).json["error"]
    assert post(app, ONE, odd).status == 400
    one, other = post(app, MANY, {"evaluations": [odd, question]}).json["evaluations"]
    assert (one["decision"], one["context"]["error"]["status"], other["decision"]) == (False, 400, True)
    for kind in ("subject", "resource", "action"):
        assert post(app, f"/access/v1/search/{kind}", odd).status == 400
    assert post(app, "/v1/data/kafka/authz", {"input": odd}).json["result"]["allow"] is False


@pytest.mark.parametrize("address", NO_ADDRESSES)
def test_an_address_of_no_kafka_is_not_allowed_to_opas_plugin(address):
    given = {"input": PLUGIN | {"requestContext": PLUGIN["requestContext"] | {"clientAddress": address}}}
    assert post(closed_to_one(), "/v1/data/kafka/authz/allow", given).json["result"] is False


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("10.0.0.1", False), ("::ffff:10.0.0.1", False), ("::FFFF:a00:1", False),
        ("10.0.0.2", True), ("::1", True), ("[::1]", True), ("fe80::1%eth0", True),
    ],
)  # fmt: skip
def test_addresses_are_those_of_rules_however_they_are_written(address, allowed):
    app = closed_to_one()
    question = asked({"type": "User", "id": "a"}, {"name": "READ"}, {"type": "topic", "id": "t"})
    assert post(app, ONE, question | {"context": {"host": address}}).json["decision"] is allowed
    for written in (address, f"/{address}"):
        given = {"input": PLUGIN | {"requestContext": PLUGIN["requestContext"] | {"clientAddress": written}}}
        assert post(app, "/v1/data/kafka/authz/allow", given).json["result"] is allowed


def test_envoy_is_answered_by_method_and_path():
    methods = {"route": {"GET": "READ", "POST": "WRITE"}}
    envoy = {"subject": "user", "header": "X-User", "resource": "route"}
    table = {"subject": {"user": "User"}, "resource": {"route": "TOPIC"}, "action": methods, "envoy": envoy}
    mapping = parse_mapping(table, "it")
    app = point_of(HeldSource(image_of(acl("/orders", "User:a"))), mapping).app()
    for method, path, headers, status in (
        ("GET", "/orders", {"X-User": "a"}, 200),
        ("GET", "/orders?x=/../y", {"X-User": "a"}, 200),
        ("POST", "/orders", {"X-User": "a"}, 403),
        ("GET", "/orders", {"X-User": "b"}, 403),
        ("GET", "/orders", {}, 403),
        ("GET", "/other", {"X-User": "a"}, 403),
        ("GET", "/x/../orders", {"X-User": "a"}, 403),
        ("GET", "//orders", {"X-User": "a"}, 403),
        ("GET", "/x%2f..%2forders", {"X-User": "a"}, 403),
        ("GET", "/orders/%252e%252e/x", {"X-User": "a"}, 403),
        ("GET", "/orders/..;/x", {"X-User": "a"}, 403),
        ("GET", "/orders/..%3bx/x", {"X-User": "a"}, 403),
        ("GET", "/orders", {"X-User": "\xff"}, 403),
    ):
        assert ask(app, method, f"/ext_authz{path}", headers=headers).status == status, (method, path, headers)
    assert ask(certified().app(), "GET", "/ext_authz/orders", headers={"X-User": "a"}).status == 403


def closed_below_admin():
    prefixed = {"pattern_type": PatternType.PREFIXED, "permission_type": AclPermissionType.DENY}
    rules = image_of(acl("*", "User:a"), acl("/admin/", "User:a", **prefixed))
    return point_of(HeldSource(rules), parse_mapping(ROUTES, "it")).app()


@pytest.mark.parametrize(
    "path",
    [
        "/admin/users", "/admin;x=1/users", "/admin;/users", "/x;/admin/users", "/admin%3Bx/users", "/admin%09/users",
        "/admin%00/users", "/%0aadmin/users", "/admin%7f/users", "/admin%c2%85/users", "/admin#/users", "/admin%/users",
        "/admin%u002fusers", "/./admin/users", "/admin%2fusers", "/admin\\users", "//admin/users", "/x/../admin/users",
    ],
)  # fmt: skip
def test_no_way_to_write_a_path_gets_past_a_deny_of_its_beginning(path):
    app, who = closed_below_admin(), {"X-User": "a"}
    assert ask(app, "GET", f"/ext_authz{path}", headers=who).status in {403, 404}
    for open_one in ("/orders", "/admin", "/orders/a%20b", "/orders/%c3%a9", "/orders/..a?x=;%zz"):
        assert ask(app, "GET", f"/ext_authz{open_one}", headers=who).status == 200, open_one


@pytest.mark.parametrize("prefix", ["/ext%5fauthz", "/%65xt_authz", "/ext_auth%7A", "/ext_authz%2f"])
def test_no_way_to_write_the_prefix_gets_past_a_deny(prefix):
    for path in ("/admin/users", "/orders"):
        assert ask(closed_below_admin(), "GET", f"{prefix}{path}", headers={"X-User": "a"}).status == 403


KEYS = (
    "subject", "action", "resource", "type", "id", "name", "properties", "evaluations", "context", "options", "page",
    "input",
)  # fmt: skip
WORDS = st.sampled_from(["user", "alice", "record", "read"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
PATHS = (
    ONE,
    MANY,
    *(f"/access/v1/search/{kind}" for kind in ("subject", "resource", "action")),
    "/v1/data/kafka/authz",
)


@settings(max_examples=examples(200), deadline=None)
@given(body=JSON | st.binary(max_size=40), path=st.sampled_from(PATHS))
def test_no_body_fails_it_and_none_of_these_is_allowed(app_of_nobody, body, path):
    reply = post(app_of_nobody, path, body if isinstance(body, bytes) else json.dumps(body).encode())
    assert reply.status in {200, 400}
    assert not any(told in reply.body for told in (b'"decision":true', b'"allow":true', b'"result":true'))


@pytest.fixture(scope="module")
def app_of_nobody():
    return point_of(HeldSource(image_of())).app()


def test_what_is_remembered_is_bounded():
    point = point_of(HeldSource(image_of(acl("t", "User:a"))))
    app, decider = point.app(), point.deciders.at(None)
    for name in ("x" * 2_000, "x" * 900):
        for _ in range(2):
            assert post(app, ONE, asked({"type": "User", "id": "a"}, READ, {"type": "topic", "id": name})).json
    assert len(decider._answers) + len(decider._by_key) == 1  # without the native core, or with it
    assert (
        post(app, ONE, asked({"type": "U" * 300, "id": "a"}, READ, {"type": "topic", "id": "t"}))
        .json["context"]["reason"]
        .endswith("is not mapped")
    )
