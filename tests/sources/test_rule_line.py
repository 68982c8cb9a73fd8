"""Rules in a line: what plans print comes back, what people write is understood, and the rest says why not."""

from contextlib import suppress

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import StandardAcl, acl_text
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.metalog.errors import ConfigError
from aclog.sources.rule_line import RuleLine, parse_rule_line
from tests.support.builders.acls import acl

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
WORD = st.text(st.characters(exclude_categories=["Cs", "Z", "C"], exclude_characters="'\"\\"), min_size=1, max_size=12)
ACLS = st.builds(
    StandardAcl,
    resource_type=st.sampled_from([each for each in ResourceType if each > ResourceType.ANY]),
    resource_name=TEXT,
    pattern_type=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    principal=WORD.map("User:{}".format),
    host=st.sampled_from(["*", "10.0.0.1", "2001:db8::1", "10.0.0.0/8"]),
    operation=st.sampled_from([each for each in AclOperation if each > AclOperation.ANY]),
    permission_type=st.sampled_from([AclPermissionType.ALLOW, AclPermissionType.DENY]),
)


@given(ACLS, st.sampled_from(["", "+ ", "-", "3: - ", "add ", "removing "]), st.sampled_from(["", " (a b.jsonl:3)"]))
def test_what_is_printed_comes_back(rule: StandardAcl, mark: str, place: str) -> None:
    found = parse_rule_line(f"{mark}{acl_text(rule)}{place}")
    assert found == RuleLine(added="-" not in mark and "remov" not in mark, acl=rule)


ODD = st.sampled_from(
    ["User:a ", "User:a\u00a0", "User:a\t", " User:a", "'User:a'", '"User:a', "User:a READ on TOPIC t", "User:on on (x"]
)


@given(ACLS, TEXT | ODD, st.sampled_from(["", " (a b.jsonl:3)"]))
def test_any_principal_comes_back(rule: StandardAcl, name: str, place: str) -> None:
    whole = evolve(rule, principal=name)
    assert parse_rule_line(acl_text(whole) + place).acl == whole


@given(st.text(max_size=80))
def test_any_text_is_a_rule_or_refused(text: str) -> None:
    for line in (text, f"ALLOW {text} on TOPIC x", f"+ DENY User:x READ on TOPIC {text}"):
        with suppress(ConfigError):
            assert isinstance(parse_rule_line(line), RuleLine)


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("ALLOW User:a READ on TOPIC orders", acl("orders", "User:a")),
        ("+allow User:a read ON topic prefixed ord FROM *", acl("ord", "User:a", pattern_type=PatternType.PREFIXED)),
        ("add: ALLOW User:CN=a b, O=c READ on TOPIC 'x y'", acl("x y", "User:CN=a b, O=c")),
        ("+ ALLOW 'User:READ on TOPIC x' READ on TOPIC t", acl("t", "User:READ on TOPIC x")),
        ("ALLOW User:a Read on Topic LITERAL ord* from 10.0.0.1", acl("ord*", "User:a", "10.0.0.1")),
        ("ALLOW User:a READ on TOPIC *", acl("*", "User:a")),
        (
            "ALLOW User:a alter-configs on cluster",
            acl("kafka-cluster", "User:a", operation=AclOperation.ALTER_CONFIGS, resource_type=ResourceType.CLUSTER),
        ),
    ],
)
def test_what_people_write(line: str, rule: StandardAcl) -> None:
    assert parse_rule_line(line) == RuleLine(added=True, acl=rule)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "neither ALLOW nor DENY"),
        ("User:a READ on TOPIC x", "neither ALLOW nor DENY: expected such as"),
        ("ALLOW User:a reads TOPIC x", "no operation `on` a resource"),
        ("ALLOW User:a REDA on TOPIC x", "'REDA': expected one of ALL, READ"),
        ("ALLOW User:a READ on QUEUE x", "'QUEUE': expected one of TOPIC"),
        ("ALLOW User:a ANY on TOPIC x", "'ANY': expected one of"),
        ("ALLOW User:a READ on TOPIC ord*", "expected PREFIXED 'ord', or LITERAL 'ord\\*'"),
        ("ALLOW User:a READ on TOPIC a b", "a name with blanks is quoted"),
        ("ALLOW User:a READ on TOPIC x from", "not NAME from HOST"),
        ("ALLOW User:a  READ on TOPIC x", "more than one blank beside the principal: quote the principal"),
        ("ALLOW User:a\u00a0 READ on TOPIC x", "more than one blank"),
        ("ALLOW User:a\u00a0READ on TOPIC x", "more than one blank"),
        ("ALLOW  User:a READ on TOPIC x", "more than one blank"),
        ("ALLOW User:a READ on TOPIC 'x", "not NAME from HOST"),
        ("ALLOW User:a READ on TOPIC '\\q'", "no such escape"),
        ("ALLOW User:a READ on TOPIC '\\ud800'", "surrogate"),
        ("ALLOW User:a READ on TOPIC '\\U00110000'", "no such character"),
        ("ALLOW User:a READ on TOPIC x from * WRITE on TOPIC y", "not NAME from HOST"),
    ],
)
def test_what_is_no_rule_says_what_is_expected(line: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        parse_rule_line(line)
