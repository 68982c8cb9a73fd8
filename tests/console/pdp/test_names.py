r"""Ids of resources that end in a star are all names that begin so: true only if each of them is; `\*` is a star."""

import pytest

from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.console.pdp.mapping import parse_mapping
from tests.support.builders.acls import acl
from tests.support.web.asgi import ask, post
from tests.support.web.points import HeldSource, image_of, point_of

EVALUATION, SEARCH = "/access/v1/evaluation", "/access/v1/search"
RULES = (
    acl("pii-", "User:audit", pattern_type=PatternType.PREFIXED),
    acl("pii-card", "User:app"),
    acl("pub-", "User:*", pattern_type=PatternType.PREFIXED),
    acl("pub-x", "User:eve", permission_type=AclPermissionType.DENY),
    acl("a*b", "User:app", resource_type=ResourceType.GROUP),
    acl("pii-*", "User:app"),
)


@pytest.fixture(scope="module")
def app():
    return point_of(HeldSource(image_of(*RULES))).app()


def asked(who, kind, name):
    return {
        "subject": {"type": "User", "id": who},
        "action": {"name": "READ"},
        "resource": {"type": kind, "id": name},
    }


@pytest.mark.parametrize(
    ("who", "kind", "name", "decision", "reason"),
    [
        ("audit", "topic", "pii-*", True, "MatchingAcl"),
        ("eve", "topic", "pii-*", False, "DefaultDeny"),
        ("app", "topic", "pii-*", False, "ALLOWED on 'pii-card' and DENIED on 'pii-'"),
        ("bob", "topic", "pub-*", True, "MatchingAcl"),
        ("eve", "topic", "pub-*", False, "DENIED on 'pub-x'"),
        ("audit", "topic", "*", False, "ALLOWED on 'pii-' and DENIED on"),
        ("app", "topic", r"pii-\*", False, "a topic name cannot contain *"),
        ("app", "topic", "p*i", False, "has a * before its end"),
        ("app", "group", r"a\*b", True, "MatchingAcl"),
        ("app", "group", r"a\b", False, "DefaultDeny"),
        ("app", "group", "a*", False, "the decision differs between names"),
        ("app", "ship", "a*", False, "'ship' is not mapped"),
    ],
)
def test_a_set_of_names_is_true_only_if_all_of_them_are(app, who, kind, name, decision, reason):
    found = post(app, EVALUATION, asked(who, kind, name)).json
    assert found["decision"] is decision
    assert reason in found["context"]["reason"]


def test_a_template_with_text_behind_the_id_has_no_prefixes():
    mapping = parse_mapping({"resource": {"in": "TOPIC:pii-{id}", "out": "GROUP:{id}-out"}}, "it")
    app = point_of(HeldSource(image_of(*RULES)), mapping).app()
    assert post(app, EVALUATION, asked("audit", "in", "c*")).json["decision"]
    assert post(app, EVALUATION, asked("audit", "in", "*")).json["decision"]
    assert (
        post(app, EVALUATION, asked("audit", "out", "pii-*")).json["context"]["reason"]
        == "resource 'out' is not mapped"
    )


def test_a_prefix_below_which_is_another_thing_is_not_mapped():
    """As of single ids: a table `v.a` is a view, so that not all tables are mapped."""
    kinds = {"table": "TOPIC:{id}", "view": "TOPIC:v.{id}"}
    app = point_of(HeldSource(image_of(acl("*", "User:a"))), parse_mapping({"resource": kinds}, "it")).app()
    for kind, name, decision in (
        ("table", "v.a", False),
        ("table", "v*", False),
        ("table", "v.x*", False),
        ("table", "*", False),
        ("table", "w*", True),
        ("view", "*", True),
    ):
        assert post(app, EVALUATION, asked("a", kind, name)).json["decision"] is decision, (kind, name)
    cases = [{"when": {"tier": "gold"}, "to": "TOPIC:g-{id}"}, {"to": "TOPIC:{id}"}]
    app = point_of(HeldSource(image_of(acl("*", "User:a"))), parse_mapping({"resource": {"t": cases}}, "it")).app()
    for name, decision in (("g-x", False), ("g*", False), ("x*", True)):
        assert post(app, EVALUATION, asked("a", "t", name)).json["decision"] is decision, name


def test_what_a_search_finds_is_allowed_when_it_is_asked_about(app):
    found = post(app, f"{SEARCH}/resource", {**asked("app", "group", "x"), "resource": {"type": "group"}}).json[
        "results"
    ]
    assert found == [{"type": "group", "id": r"a\*b"}]
    topics = post(app, f"{SEARCH}/resource", {**asked("app", "topic", "x"), "resource": {"type": "topic"}}).json[
        "results"
    ]
    assert {each["id"] for each in topics} == {"pii-card", "pub-x"}, "a rule on the topic pii-* is on none"
    for each in (*found, *topics):
        assert post(app, EVALUATION, asked("app", each["type"], each["id"])).json["decision"]
    whole = {**asked("x", "topic", "pii-*"), "subject": {"type": "User"}}
    assert post(app, f"{SEARCH}/subject", whole).json["results"] == [{"type": "User", "id": "audit"}]


def plugin(name, pattern="LITERAL"):
    return {
        "input": {
            "action": {
                "operation": "READ",
                "resourcePattern": {"resourceType": "GROUP", "name": name, "patternType": pattern},
            },
            "requestContext": {
                "principal": {"principalType": "User", "name": "app"},
                "clientAddress": "127.0.0.1",
            },
        }
    }


def test_names_that_clients_ask_for_are_names_as_they_are(app):
    """What OPA's plugin and Envoy send is a request, which no client can turn into another one by a backslash."""
    assert post(app, "/v1/data/kafka/authz/allow", plugin("a*b")).json["result"] is True
    assert post(app, "/v1/data/kafka/authz/allow", plugin(r"a\*b")).json["result"] is False
    question = {"input": asked("app", "group", r"a\*b")}
    assert post(app, "/v1/data/kafka/authz/allow", question).json["result"] is True
    mapping = parse_mapping(
        {
            "subject": {"user": "User:{id}"},
            "resource": {"route": "GROUP:{id}"},
            "action": {"route": {"GET": "READ"}},
            "envoy": {"subject": "user", "header": "x-user", "resource": "route"},
        },
        "it",
    )
    rules = (
        acl("/a*", "User:app", resource_type=ResourceType.GROUP),
        acl(
            "/",
            "User:all",
            operation=AclOperation.READ,
            resource_type=ResourceType.GROUP,
            pattern_type=PatternType.PREFIXED,
        ),
    )
    envoy = point_of(HeldSource(image_of(*rules)), mapping).app()
    assert ask(envoy, "GET", "/ext_authz/a*", headers={"Host": "127.0.0.1:8180", "x-user": "app"}).status == 200
    assert ask(envoy, "GET", "/ext_authz/b*", headers={"Host": "127.0.0.1:8180", "x-user": "all"}).status == 200
