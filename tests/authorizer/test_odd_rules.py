"""ACLs that only a record can hold, against what a real Kafka 4.3.1 did with each, and those that match nobody."""

import json
from pathlib import Path
from uuid import UUID

import pytest
from attrs import evolve

from aclog.authorizer.acl import listed_principals, reasons_unmatched
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import PatternType
from aclog.authorizer.control import create_acls, failure_in_kafka, refusal
from tests.support.builders.acls import acl
from tests.support.builders.unmatched import OWNER, UNMATCHED
from tests.support.models.golden import acl_of

RECORDED = Path(__file__).parents[1] / "data" / "kafka-4.3.1-admin" / "odd-rules.json"
CASES = [(case["rule"], case["answers"]) for case in json.loads(RECORDED.read_text("utf-8"))]
OTHERS = ("listOther", "removeOther")


@pytest.mark.parametrize(("row", "answers"), CASES, ids=[str(number) for number in range(len(CASES))])
def test_what_kafka_throws_on_is_what_is_told(row, answers):
    rule = acl_of(row)
    every = all(answers[key] for key in ("listAll", "remove", *OTHERS))
    selected = bool(answers["listAll"] and answers["remove"]) and not any(answers[key] for key in OTHERS)
    wanted = {
        "every listing and every removal of ACLs, with any filter": every,
        "every listing and every removal that selects it": selected,
        "every decision that reaches it": bool(answers["decide"]),
        None: not any(answers.values()),
    }
    assert [text for text, is_so in wanted.items() if is_so] == [failure_in_kafka(rule)]


def test_only_the_odd_ones_are_refused_as_create_acls_does():
    refused = [refusal(acl_of(row)) for row, _ in CASES]
    assert refused[0] is None
    assert all(refused[1:])
    for (row, _), message in zip(CASES, refused, strict=True):
        (result,) = create_acls(AclsImage.empty(), [acl_of(row)], lambda: UUID(int=7)).results
        assert (result.error is None) is (message is None)
        if result.error is not None and result.error.code == 42:
            assert result.error.message == message


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        ("User:bob,User:eve", ("User:bob", "User:eve")),
        ("User:bob, eve", ("User:bob", "User:eve")),
        ("User:CN=bob,User:CN=eve", ("User:CN=bob", "User:CN=eve")),
        ("User:CN=bob,OU=x:y,O=acme", ()),
        (r"User:CN=Duke\, Inc,O=acme", ()),
        ("User:bob", ()),
        ("bob,eve", ()),
    ],
)
def test_a_list_is_told_from_a_distinguished_name(text, listed):
    assert listed_principals(text) == listed


MATCHED = [
    acl(),
    acl(host="10.0.0.1"),
    acl(host="2001:db8:0:0:0:0:0:1"),
    acl(host="fe80:0:0:0:0:0:0:1%eth0"),
    acl(principal="User:CN=bob,O=acme"),
    evolve(OWNER, resource_name="User:owner1"),
    evolve(OWNER, resource_name="*"),
    evolve(OWNER, resource_name="User", pattern_type=PatternType.PREFIXED),
]


@pytest.mark.parametrize(("rule", "reason"), UNMATCHED)
def test_why_a_rule_matches_nobody(rule, reason):
    (told,) = reasons_unmatched(rule, cidr=False)
    assert reason in told


@pytest.mark.parametrize("rule", [*MATCHED, pytest.param(acl(host="::/0"), id="a range, where ranges are enabled")])
def test_a_rule_that_may_match_is_left_alone(rule):
    assert list(reasons_unmatched(rule, cidr=True)) == []
