"""Lints of spellings: principals that are alike, principals that are no name, and hosts that no client has."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.analysis.lint.finding import Finding, LintContext, Severity
from aclog.analysis.lint.spelling import is_looked_up
from aclog.analysis.lint_report import lint
from aclog.analysis.policy import Policy
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.spellings import odd_principal
from tests.support.analysis.lint import ids, rule
from tests.support.analysis.policies import image_of


def _found(lint_id: str, *rules: StandardAcl, context: LintContext | None = None) -> list[Finding]:
    return list(lint(Policy(image_of(rules)), context, select={lint_id}))


def _of(who: str, count: int = 1) -> list[StandardAcl]:
    return [rule(f"topic-{number}", who=who) for number in range(count)]


ALIKE = [
    ("User:team-a", "User:team_a"),
    ("User:team-a", "User:teama"),
    ("User:Team-A", "User:team-a"),
    ("User:teamA", "User:team-a"),
    ("User:team.a", "User:team-a"),
    ("User:team a", "User:team-a"),
    ("User:TEAM_A", "User:team-a"),
    ("User:team--a", "User:team-a"),
    ("User:a-b-c", "User:a_b-c"),
    ("User:-team-a", "User:team-a"),
    ("User:stra\u00dfe", "User:STRASSE"),
]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_principals_that_differ_in_signs_or_case_are_alike(one: str, other: str) -> None:
    (finding,) = _found("28", *_of(one, 3), *_of(other, 1))
    assert {each.principal for each in finding.rules} == {other}
    assert finding.lost.startswith(f"{one!r} (3 rules) and {other!r} (1 rule) differ only in spelling: ")
    assert not finding.fix


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("User:a", "User:b"),
        ("User:a", "Group:a"),
        ("User:team-a1", "User:team-a2"),
        ("User:-", "User:_"),
        ("User:*", "User:-*"),
        ("User:CN=a-b", "User:CN=a_b"),
        ("a-b", "a_b"),
    ],
)
def test_other_principals_are_not(one: str, other: str) -> None:
    assert not _found("28", *_of(one), *_of(other))


NAMES = [
    ("User:CN=a,O=b", "User:O=b,CN=a"),
    ("User:CN=a,O=b", "User:CN=a, O=b"),
    ("User:CN=a,O=b", "User:CN = a,O = b"),
    ("User:CN=a,O=b", "User:cn=a,o=b"),
    ("User:CN=a,O=b", "User:cn=a, o=b"),
    ("User:CN=a,O=b", "User:CN=a;O=b"),
    ("User:CN=a,OU=x,O=b", "User:O=b, OU=x, CN=a"),
    ("User:CN=a,DC=x,DC=y", "User:dc=y,dc=x,cn=a"),
    ("User:CN=a\\,b,O=c", "User:O=c,CN=a\\,b"),
    ("User:CN=a,2.5.4.5=1", "User:2.5.4.5=1, CN=a"),
]


@pytest.mark.parametrize(("one", "other"), NAMES)
def test_spellings_of_one_distinguished_name(one: str, other: str) -> None:
    (finding,) = _found("29", *_of(one, 2), *_of(other, 1))
    assert {each.principal for each in finding.rules} == {other}
    assert finding.lost.startswith(f"{one!r} (2 rules) and {other!r} (1 rule) are the same distinguished name: ")


@pytest.mark.parametrize(
    ("principal", "canonical"),
    [
        ("User:cn=a", "User:CN=a"),
        ("User:CN=a, O=b", "User:CN=a,O=b"),
        ("User:CN= a", "User:CN=a"),
        ("User:CN=a ,O=b", "User:CN=a,O=b"),
    ],
)
def test_a_name_that_no_certificate_has_is_a_finding_by_itself(principal: str, canonical: str) -> None:
    (finding,) = _found("29", rule(who=principal))
    assert [change.acl.principal for change in finding.fix] == [canonical, principal]
    assert repr(canonical) in finding.lost


@pytest.mark.parametrize(
    "principals",
    [
        ("User:CN=a,O=b", "User:CN=a,O=c"),
        ("User:CN=a,O=b", "User:CN=a"),
        ("User:CN=A", "User:CN=a"),
        ("User:CN=a", "Group:CN=a"),
        ("User:a=b,c",),
        ("User:=a",),
    ],
)
def test_other_names_are_not(principals: tuple[str, ...]) -> None:
    assert not _found("29", *(each for who in principals for each in _of(who)))


ODD = [
    "User:app-*",
    "User:*-app",
    "User:app?",
    "Group:*",
    "User:",
    "User: ",
    "User:User:x",
    "Group:Group:x",
    "User:${app}",
    "User:app-${env}",
    "User:{{ app }}",
    "User:{{.Values.app}}",
    "User:$(APP)",
    "User:<app>",
    "User:%APP%",
    "User:a,User:b",
    "User:a,b",
    "User:a, User:b",
]


@pytest.mark.parametrize("principal", ODD)
def test_a_principal_that_is_no_name(principal: str) -> None:
    (finding,) = _found("30", rule(who=principal))
    assert finding.severity is Severity.ERROR
    assert finding.rules[0].principal == principal


def test_a_list_is_split_by_its_fix() -> None:
    (finding,) = _found("30", rule(who="User:a,User:b"))
    assert [(each.added, each.acl.principal) for each in finding.fix] == [
        (True, "User:a"),
        (True, "User:b"),
        (False, "User:a,User:b"),
    ]


@pytest.mark.parametrize(
    "principal",
    [
        "User:*",
        "User:a",
        "User:CN=a,O=b",
        "User:a:b",
        "User:User",
        "User:UserUser:x",
        "User:$a",
        "a*",
        "User:a@B",
        "User:a<b",
    ],
)
def test_other_names_are_those_of_a_client(principal: str) -> None:
    assert not _found("30", rule(who=principal))


@given(st.from_regex(r"[A-Za-z0-9._@/-]+", fullmatch=True))
def test_no_usual_name_is_odd(name: str) -> None:
    assert odd_principal(f"User:{name}") is None


@pytest.mark.parametrize("host", ["0.0.0.0", "0:0:0:0:0:0:0:0", "::"])
def test_no_client_connects_from_any_address(host: str) -> None:
    (finding,) = _found("31", rule(host=host))
    assert finding.lost == f"no client connects from {host}: the rule grants nothing"


@pytest.mark.parametrize("host", ["*", "10.0.0.0", "0.0.0.1", "0:0:0:0:0:0:0:1"])
def test_other_hosts_have_clients(host: str) -> None:
    assert not _found("31", rule(host=host))


LOOKED_UP = [
    "host:80/24",
    "kafka.example:9092/8",
    "my host:1/2",
    "host/24:1",
    "host/24::",
    "x:/1",
    "z/:",
    "localhost/::1",
    "app/24:0",
    "-:1/2",
]


@pytest.mark.parametrize("host", LOOKED_UP)
def test_a_host_that_a_broker_looks_up(host: str) -> None:
    (finding,) = _found("32", rule(host=host))
    assert repr(host.partition("/")[0]) in finding.lost


@pytest.mark.parametrize(
    "host",
    [
        "*",
        "10.0.0.1",
        "::1/128",
        "fe80::1%1/64",
        "10.0.0.0/8",
        "host",
        "host:80",
        "host/24",
        "a:80/24",
        "1:2/3:4",
        "[h]:1/2",
        "/:",
    ],
)
def test_other_hosts_are_not_looked_up(host: str) -> None:
    assert not is_looked_up(host)
    assert not _found("32", rule(host=host))


def test_an_unknown_type_is_a_warning_until_types_are_stated() -> None:
    (finding,) = _found("07", rule(who="Group:a"))
    assert finding.severity is Severity.WARNING
    (stated,) = _found("07", rule(who="Group:a"), context=LintContext(states_principal_types=True))
    assert stated.severity is Severity.ERROR
    types = frozenset({"User", "Group"})
    assert not _found("07", rule(who="Group:a"), context=LintContext(principal_types=types))


def _workers(topic: str, group: str, **more: object) -> list[StandardAcl]:
    return [
        each
        for who in ("User:worker-1", "User:worker-2")
        for each in (rule(topic, "WRITE", who=who, **more), rule(group, "READ", kind="GROUP", who=who))
    ]


@pytest.mark.parametrize(
    "topic",
    [
        "_schemas",
        "schemas",
        "connect-configs",
        "connect-offsets",
        "connect-status",
        "prod-connect-config",
        "config.connect.eu",
        "team-connect-offset",
        "docker-connect-statuses",
        "eu-offsets",
    ],
)
def test_workers_of_one_application_share_their_group(topic: str) -> None:
    assert not _found("19", *_workers(topic, "workers"))


@pytest.mark.parametrize("topic", ["orders", "schemas-of-orders", "configs", "connections"])
def test_other_principals_do_not(topic: str) -> None:
    assert _found("19", *_workers(topic, "workers"))


def test_a_principal_that_is_no_worker_does_not_share_it() -> None:
    rules = _workers("connect-status", "workers")
    assert _found("19", *rules, rule("workers", "READ", kind="GROUP", who="User:other"))


def test_lists_of_all_lints_have_these() -> None:
    assert ids(rule(who="User:app-*"))[0] >= {"30"}
