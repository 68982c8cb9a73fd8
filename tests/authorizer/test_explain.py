"""Explanations against the naive reference: their contents, and that the suggested changes reverse the decision."""

import json
import shlex
import subprocess
from uuid import UUID

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from aclog.authorizer.acl import ChangePlace, ResourcePattern, StandardAcl, StandardAclWithId, acl_flags, shell_word
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, AclPermissionType
from aclog.authorizer.explain import ExplainOptions, Role, explain, explanation_lines
from aclog.authorizer.interface import Action, InvalidRequestError, RequestContext
from aclog.authorizer.settings import parse_allow_everyone, parse_super_users
from aclog.authorizer.standard import StandardAuthorizer, build_authorizer
from tests.support.builders import acls
from tests.support.models import estates
from tests.support.models.reference import ReferenceAuthorizer
from tests.support.runs.profiles import examples

READ, WRITE, DESCRIBE, ALL = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALL
ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY


def acl(permission=ALLOW, operation=READ, *, name="t", pattern=3, principal="User:a", host="*", kind=2) -> StandardAcl:
    return acls.acl(
        name, principal, host, operation, resource_type=kind, pattern_type=pattern, permission_type=permission
    )


def ask(
    acls, principal="User:a", host="10.0.0.1", operation=READ, name="t", kind=2, *,
    super_users=None, everyone=None, cidr=False, documented=False, limit=1000, **options,
):  # fmt: skip
    """Return the explanation of one request."""
    authorizer = StandardAuthorizer(cidr=cidr, documented=documented)
    authorizer.configure(
        {
            key: value
            for key, value in (("super.users", super_users), ("allow.everyone.if.no.acl.found", everyone))
            if value is not None
        }
    )
    image = AclsImage.from_acls(StandardAclWithId(id=UUID(int=i), acl=rule) for i, rule in enumerate(acls, 2))
    authorizer.load(image)
    authorizer.complete_initial_load()
    context = RequestContext(principal=principal, host=host)
    action = Action(operation=operation, resource_pattern=ResourcePattern(resource_type=kind, name=name))
    return explain(
        image.with_options(documented=documented, cidr=cidr),
        authorizer.decide(context, action),
        context,
        action,
        options=ExplainOptions(allow_everyone=parse_allow_everyone(everyone), limit=limit, **options),
    )


def roles(explanation):
    return [(examined.role, examined.rule.acl) for examined in explanation.rules]


def test_each_rule_has_its_role():
    rules = {
        acl(DENY): Role.DECIDES,
        acl(ALLOW): Role.MATCHES,
        acl(DENY, principal="User:*", host="10.0.0.1"): Role.MATCHES,
        acl(ALLOW, WRITE): Role.OTHER_OPERATION,
        acl(ALLOW, host="10.0.0.2"): Role.OTHER_HOST,
        acl(ALLOW, principal="User:b"): Role.OTHER_PRINCIPAL,
    }
    other = [acl(name="u"), acl(kind=3), acl(name="tt", pattern=4)]
    shown = ask([*rules, *other])
    # Kafka names the DENY with the lower principal.
    first = acl(DENY, principal="User:*", host="10.0.0.1")
    rules[first], rules[acl(DENY)] = Role.DECIDES, Role.MATCHES
    assert {rule: role for role, rule in roles(shown)} == rules
    assert [role for role, _ in roles(shown)] == sorted((role for role, _ in roles(shown)), key=list(Role).index)
    assert shown.decision.rule.acl == first
    assert (shown.allowed, shown.left_off, shown.implied_by) == (False, 0, None)


def test_an_implied_operation_is_named():
    shown = ask([acl(ALLOW, WRITE)], operation=DESCRIBE)
    assert (shown.allowed, shown.implied_by) == (True, WRITE)
    assert "A permission to WRITE implies DESCRIBE." in list(explanation_lines(shown))
    assert ask([acl(ALLOW, ALL)], operation=DESCRIBE).implied_by is None


def test_denying_read_leaves_describe_alone_and_that_is_said():
    shown = ask([acl(DENY, READ), acl(ALLOW, WRITE)], operation=DESCRIBE)
    assert shown.allowed
    (note,) = next(examined.notes for examined in shown.rules if examined.role is Role.OTHER_OPERATION)
    assert "a DENY does not imply other operations" in note


@pytest.mark.parametrize(
    ("host", "part"),
    [
        ("10.0.0.0/8", "contains 10.0.0.1"),
        ("11.0.0.0/8", "does not contain"),
        ("::ffff:10.0.0.1", "is the same address"),
        ("", "not an address"),
        ("example.org", "not an address"),
    ],
)
def test_why_a_host_does_not_match(host, part):
    shown = ask([acl(ALLOW, host=host)])
    assert not shown.allowed
    assert part in shown.rules[0].notes[0]


def test_a_range_that_denies_fails_open():
    rules = [acl(DENY, host="10.0.0.0/8"), acl(ALLOW)]
    shown = ask(rules)
    assert shown.allowed
    assert "denies nothing" in shown.quirks[0]
    enabled = ask(rules, cidr=True)
    assert (enabled.allowed, enabled.quirks) == (False, ())
    assert enabled.rules[0].role is Role.DECIDES


def test_only_user_star_is_everyone():
    shown = ask([acl(ALLOW, principal="Group:*")], principal="Group:x")
    assert "only User:* matches everyone" in shown.rules[0].notes[0]


def test_star_does_not_cover_a_name_that_begins_with_it():
    shown = ask([acl(ALLOW, name="*")], name="*foo")
    assert not shown.allowed
    assert "the result would be ALLOW instead of NO_CANDIDATE" in shown.quirks[0]
    assert ask([acl(ALLOW, name="*")], name="*").quirks == ()
    documented = ask([acl(ALLOW, name="*")], name="*foo", documented=True)
    assert (documented.allowed, documented.quirks) == (True, ())
    same = ask([acl(ALLOW, name="*", principal="User:z"), acl(ALLOW, name="*foo")], name="*foo")
    assert "would be the same" in same.quirks[0]


@pytest.mark.parametrize(("name", "what"), [("!a", "never returns"), ("!ba", "throws StringIndexOutOfBounds")])
def test_where_a_real_kafka_gives_no_answer(name, what):
    shown = ask([acl(ALLOW, name="!bc" if name == "!ba" else "!b", kind=3)], name=name, kind=3)
    assert what in shown.quirks[0]
    assert not shown.allowed


def test_a_super_user():
    shown = ask([acl(DENY)], super_users="User:a")
    assert shown.allowed
    assert shown.remedy.notes == ("remove User:a from super.users, so that ACLs decide",)
    assert shown.rules[0].role is Role.MATCHES


def test_no_rule_at_all():
    shown = ask([], everyone="true")
    assert (shown.allowed, shown.decision.text) == (True, "DefaultAllow")
    assert "No ACL covers this resource." in list(explanation_lines(shown))
    assert "or turn off allow.everyone.if.no.acl.found" in shown.remedy.notes


def test_thousands_of_rules_are_counted_not_shown():
    many = [acl(DENY, principal="User:*", host="*", name="t" * n, pattern=4) for n in range(1, 300)]
    others = [acl(ALLOW, principal=f"User:{n}") for n in range(700)]
    shown = ask([*many, *others], name="t" * 299, limit=10)
    assert len(shown.rules) == 10
    assert shown.counts == {Role.DECIDES: 1, Role.MATCHES: 298}
    assert (shown.left_off, len(shown.remedy.changes), shown.remedy.left_off) == (289, 11, 289)
    assert "  ... and 289 more" in list(explanation_lines(shown))
    assert len(list(explanation_lines(shown))) < 60
    hidden = ask(others, limit=5)
    assert (len(hidden.rules), hidden.left_off) == (5, 695)


def test_the_text():
    shown = ask([acl(DENY, ALL, principal="User:*"), acl(ALLOW, READ, host="10.0.0.9")], name="t")
    assert list(explanation_lines(shown)) == [
        "DENIED: User:a READ TOPIC 't' from 10.0.0.1",
        f"based on MatchingAcl(acl={acl(DENY, ALL, principal='User:*')})",
        "",
        "2 ACLs whose pattern matches this resource (1 decides, 1 is for another host)",
        "  decides     DENY User:* ALL on TOPIC LITERAL 't' from *",
        "  other host  ALLOW User:a READ on TOPIC LITERAL 't' from 10.0.0.9",
        "",
        "To allow it:",
        "  remove DENY User:* ALL on TOPIC LITERAL 't' from *",
        (
            "    kafka-acls.sh --bootstrap-server HOST:PORT --remove "
            "--deny-principal 'User:*' --deny-host '*' --operation All --topic t"
        ),
        "  add ALLOW User:a READ on TOPIC LITERAL 't' from 10.0.0.1",
        (
            "    kafka-acls.sh --bootstrap-server HOST:PORT --add "
            "--allow-principal User:a --allow-host 10.0.0.1 --operation Read --topic t"
        ),
    ]
    rules = [acl(DENY, ALL, principal="User:*"), acl(ALLOW, READ, host="10.0.0.9")]
    shown = ask(rules, place=ChangePlace(log="my logs/0"))
    commands = [line.strip() for line in explanation_lines(shown) if "aclog" in line]
    assert commands == [
        "aclog acls remove --log 'my logs/0' --deny-principal 'User:*' --deny-host '*' --operation All --topic t",
        "aclog acls add --log 'my logs/0' --allow-principal User:a --allow-host 10.0.0.1 --operation Read --topic t",
    ]


def test_a_hostile_name_forges_no_line():
    shown = ask([acl(ALLOW, name="x\nALLOWED", principal="User:\x1b[31m")], name="x\nALLOWED")
    assert all(line.isprintable() for line in explanation_lines(shown))


@pytest.mark.parametrize(
    ("rule", "flags"),
    [
        (acl(kind=4, name="kafka-cluster", operation=AclOperation.ALTER_CONFIGS), "--operation AlterConfigs --cluster"),
        (acl(kind=3, name="g", pattern=4), "--operation Read --group g --resource-pattern-type prefixed"),
        (acl(kind=5, name="a b", operation=WRITE), "--operation Write --transactional-id 'a b'"),
        (acl(kind=7, name="User:x", operation=ALL), "--operation All --user-principal User:x"),
        (acl(kind=6, name="id", operation=DESCRIBE), "--operation Describe --delegation-token id"),
    ],
)
def test_flags(rule, flags):
    assert acl_flags(rule) == f"--allow-principal User:a --allow-host '*' {flags}"


@pytest.mark.parametrize(
    "rule",
    [acl(name=""), acl(name=" t"), acl(kind=0), acl(kind=99), acl(pattern=2), acl(9), acl(operation=1),
     acl(kind=4, name="kafka-cluster", pattern=4), acl(kind=4, name="other"), acl(principal="x"),
     acl(name="line\n"), acl(principal="User:\x1b"), acl(host=" h"), acl(host=""),
     acl(name="a\0b"), acl(name="\udc80"), acl(kind=6, name="id"), acl(kind=3, operation=WRITE)],
)  # fmt: skip
def test_no_flags_can_name_it(rule):
    assert acl_flags(rule) is None


@pytest.mark.parametrize(
    ("place", "command"),
    [
        (ChangePlace(), "kafka-acls.sh --bootstrap-server HOST:PORT --add"),
        (ChangePlace(bootstrap_server="a:1,b:2"), "kafka-acls.sh --bootstrap-server a:1,b:2 --add"),
        (
            ChangePlace(bootstrap_controller="[::1]:1", command_config="my c"),
            "kafka-acls.sh --bootstrap-controller [::1]:1 --command-config 'my c' --add",
        ),
        (ChangePlace(log="d\n"), "aclog acls add --log $'d\\n'"),
        (ChangePlace(log="d\0"), None),
        (ChangePlace(bootstrap_server="a:1", command_config="\udcff"), None),
    ],
)
def test_the_place_of_a_change(place, command):
    assert place.command("add") == command
    found = ask([], place=place).remedy.changes[0].command
    assert found is None if command is None else found.startswith(f"{command} --allow-principal User:a ")


def test_without_a_host_the_advice_is_for_any_host():
    shown = ask([acl(DENY, host="10.0.0.1")], host_given=False)
    lines = list(explanation_lines(shown))
    assert lines[0] == "DENIED: User:a READ TOPIC 't' from 10.0.0.1 (assumed: no host given)"
    removal, addition = shown.remedy.changes
    assert (removal.acl.host, addition.acl.host) == ("10.0.0.1", "*")
    assert "--allow-host '*' " in addition.command
    assert ask([acl()], host_given=False).remedy.changes[0].acl == acl(DENY)
    assert (shown.to_dict()["hostGiven"], ask([]).to_dict()["hostGiven"]) == (False, True)


def test_commands_from_the_past_say_so():
    shown = ask([], as_of="2026-11-20T10:00:00Z")
    *_, said, _, command = explanation_lines(shown)
    assert said.startswith("  (for the state as of 2026-11-20T10:00:00Z; the commands change the newest one")
    assert "kafka-acls.sh" in command
    assert (shown.to_dict()["asOf"], ask([]).to_dict()["asOf"]) == ("2026-11-20T10:00:00Z", None)
    assert not [line for line in explanation_lines(ask([], name="", as_of="5")) if "as of" in line]


@pytest.mark.parametrize("name", ["*x", "**"])
def test_a_hidden_star_rule_whose_principal_has_no_colon(name):
    """authorize answers, since Kafka does not look at the rule: so does explain."""
    shown = ask([acl(name="*", principal="alice"), acl(name=name)], name=name)
    assert shown.allowed
    [quirk] = shown.quirks
    assert quirk.startswith("1 ACL on LITERAL * does not cover this resource")
    assert "As documented they would, and there would be no answer: " in quirk


@settings(max_examples=examples(100), deadline=None)
@given(estates.estates(odd=True), estates.requests(), st.booleans(), st.booleans())
def test_what_is_decided_is_explained(estate, request_, documented, everyone):
    assume(request_.resource_name is not None)
    r = request_
    options = {"documented": documented, "everyone": str(everyone).lower(), "super_users": estate.super_users}
    authorizer = build_authorizer(
        AclsImage.from_acls(StandardAclWithId(id=UUID(int=i), acl=rule) for i, rule in enumerate(estate.acls, 2)),
        super_users=estate.super_users or "", allow_everyone=everyone, documented=documented,
    )  # fmt: skip
    resource = ResourcePattern(resource_type=r.resource_type, name=r.resource_name)
    try:
        authorizer.decide(
            RequestContext(principal=r.principal, host=r.host), Action(operation=r.operation, resource_pattern=resource)
        )
    except InvalidRequestError:
        assume(False)
    asked = (r.principal, r.host, r.operation, r.resource_name, r.resource_type)
    assert list(explanation_lines(ask(estate.acls, *asked, **options)))


NASTY = st.text(st.sampled_from("ab *?$`\"'!\\;&|<>#~=-%\n\t\r\x01\x1b\x7f\x9b\u202e\u2066é😀0123456789"), min_size=1)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(NASTY, min_size=1, max_size=12))
def test_words_are_safe_to_paste(texts):
    """A real bash reads the texts back, and sees no more than words."""
    words = list(map(shell_word, texts))
    assert all(word.isprintable() for word in words)
    done = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {' '.join(words)}"], capture_output=True, check=True, env={"LC_ALL": "C"}
    )
    assert done.stdout.decode().split("\0")[:-1] == texts


def test_an_interactive_bash_expands_no_history():
    done = subprocess.run(
        ["bash", "--norc", "-i"], input=f"printf '%s' {shell_word('a!!b' + chr(27))}\n".encode(), capture_output=True,
        check=True, env={"LC_ALL": "C"}, start_new_session=True,
    )  # fmt: skip
    assert done.stdout == b"a!!b\x1b"


def test_words_that_no_argument_can_hold():
    assert [shell_word(text) for text in ("a\0", "\udc80", "", "plain")] == [None, None, "''", "plain"]


def test_a_request_that_no_rule_can_be_made_for():
    assert ask([], name="").remedy.notes == ("no ACL can be created for such a request",)
    assert ask([acl(ALLOW)], operation=AclOperation.UNKNOWN).remedy.changes == ()
    denied = ask([acl(DENY, name="*")], name="")
    assert denied.remedy.changes == ()  # removing it would not do
    assert denied.remedy.notes == ("no ACL can be created for such a request",)


@settings(max_examples=examples(200), deadline=None)
@given(estates.estates(), estates.requests(), st.booleans())
def test_what_is_advised_gives_the_opposite_answer(estate, request_, documented):
    assume(request_.resource_name is not None)
    r = request_
    shown = ask(
        estate.acls, r.principal, r.host, r.operation, r.resource_name, r.resource_type,
        super_users=estate.super_users, everyone=estate.allow_everyone, documented=documented,
    )  # fmt: skip
    users, everyone = parse_super_users(estate.super_users), parse_allow_everyone(estate.allow_everyone)
    question = (r.principal, r.host, r.operation, r.resource_type, r.resource_name)
    before = ReferenceAuthorizer(estate.acls, users, everyone, documented=documented)
    assert (shown.decision.result.value, shown.decision.text) == before.decide(*question)
    assert {rule for _, rule in roles(shown)} == set(before.candidates(r.resource_type, r.resource_name))
    if r.principal in users:
        return
    stuck = before.stuck(*question)
    assert (stuck is not None) == any("A real Kafka 4.3.1" in quirk for quirk in shown.quirks)
    rules = set(estate.acls)
    for change in shown.remedy.changes:
        assert change.add != (change.acl in rules)
        rules = rules | {change.acl} if change.add else rules - {change.acl}
    if shown.remedy.changes:
        after = ReferenceAuthorizer(rules, users, everyone, documented=documented)
        assert after.decide(*question)[0] == ("DENIED" if shown.allowed else "ALLOWED")
    else:
        assert r.resource_name == ""
    assert json.loads(json.dumps(shown.to_dict())) == shown.to_dict()
    for change in shown.remedy.changes:
        assert change.command is None or len(shlex.split(change.command)) >= 9


@settings(max_examples=examples(60), deadline=None)
@given(estates.estates(odd=True), estates.requests())
def test_odd_rules_are_explained_too(estate, request_):
    assume(request_.resource_name is not None)
    rules = [rule for rule in estate.acls if ":" in rule.principal]
    r = request_
    shown = ask(rules, r.principal, r.host, r.operation, r.resource_name, r.resource_type, limit=3)
    assert shown.decision.text == ReferenceAuthorizer(rules).decide(
        r.principal, r.host, r.operation, r.resource_type, r.resource_name
    )[1]  # fmt: skip
    assert len(shown.rules) <= 3
    assert list(explanation_lines(shown))


def test_near_misses_are_rules_that_were_meant_to_match():
    listed = acl(DENY, principal="User:a,User:b")
    told = ask([acl(), listed, acl(DENY, principal="User:c,User:d")])
    (miss,) = told.near_misses
    assert miss.startswith("1 ACL on this resource does not match this request: User:a,User:b is one principal")
    assert "Near miss: 1 ACL on this resource" in "\n".join(explanation_lines(told))
    rules = [acl(host=host) for host in ("localhost", "10.0.0.0/8", "11.0.0.0/8", "::ffff:10.0.0.1", "10.0.0.2")]
    told = ask([*rules, acl(operation=WRITE, host="localhost")])
    assert {miss.partition(": ")[2] for miss in told.near_misses} == {
        "the host 'localhost' is neither * nor an address",
        "the host 10.0.0.0/8 is a CIDR range, which matches clients from Kafka 4.4 on only",
        "the host ::ffff:10.0.0.1 is compared as text: only 10.0.0.1 matches that address",
    }
    assert ask([acl(), *rules], super_users="User:a").near_misses == ()


def test_a_user_without_its_type_is_a_near_miss():
    create = {"operation": AclOperation.CREATE_TOKENS, "kind": 7}
    typeless, typed = acl(name="b", **create), acl(name="User:b", **create)
    assert ask([typeless], name="User:b", **create).near_misses == (
        "1 ACL on the USER resource 'b' does not cover 'User:b'",
    )
    assert ask([typed], name="b", **create).near_misses == (
        "the USER resource 'b' is not a principal: expected TYPE:NAME, as in User:b",
        "1 ACL on the USER resource 'User:b' does not cover 'b'",
    )
    assert ask([typed], name="User:b", **create).near_misses == ()
    for other in ({"principal": "User:z"}, {"host": "10.9.9.9"}, {"operation": AclOperation.DESCRIBE_TOKENS}):
        assert ask([acl(name="b", **create | other)], name="User:b", **create).near_misses == ()
