"""What Kafka's scan order needs of all names is there with the base: no decision passes over all rules."""

import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import ResourcePattern, StandardAclWithId
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.authorizer.index.layout import first_unit, utf16
from aclog.authorizer.index.scan_order import _counts_by_first_unit
from aclog.authorizer.interface import Action, RequestContext
from aclog.authorizer.standard import build_authorizer
from aclog.metalog.records import RemoveAccessControlEntryRecord
from tests.support.builders.acls import acl, acl_of, acl_record

NAMES = st.text(
    st.sampled_from("!*-az~\x7f\x80\u00e9\u07ff\u0800\u4e2d\ud7ff\ue000\uffff\U00010000\U0010ffff"), max_size=2
)


def counted(rules):
    """The counts by definition."""
    names = ((each.resource_type, each.resource_name) for each in rules)
    found = Counter((kind, int.from_bytes(utf16(name)[:2])) for kind, name in names if name not in ("", "*"))
    return {unit: count for unit, count in found.items() if count}


@given(
    st.lists(st.tuples(NAMES, st.sampled_from(PatternType)), unique=True, max_size=12), st.integers(0, 12), st.data()
)
def test_units_are_counted_in_base_and_overlay(patterns, cut, data):
    rules = [acl_record(number + 1, acl(name, pattern_type=kind)) for number, (name, kind) in enumerate(patterns)]
    image = AclsImage.from_acls(StandardAclWithId(id=each.id, acl=acl_of(each)) for each in rules[:cut])
    image = image.apply(rules[cut:])
    gone = data.draw(st.lists(st.sampled_from(rules), unique_by=lambda each: each.id)) if rules else []
    image = image.apply(RemoveAccessControlEntryRecord(id=each.id) for each in gone)
    left = counted(each for each in rules if each not in gone)
    for each in (image, image.merged()):
        assert {unit: count for unit, count in _counts_by_first_unit(each.index).items() if count} == left


@given(NAMES)
def test_a_first_unit_is_that_of_utf_16(name):
    assert first_unit(name) == int.from_bytes(utf16(name)[:2])


def steps(rules, name, operation, *, cidr):
    """How many functions are called to decide, and to name the rule, on a base that nobody has asked yet."""
    authorizer, calls = build_authorizer(AclsImage.from_acls(rules), super_users="User:admin", cidr=cidr), 0
    authorizer.set_audit(lambda *_: None)
    pattern = ResourcePattern(resource_type=ResourceType.TOPIC, name=name)
    context = RequestContext(principal="User:a", host="10.0.0.1", request_type=3)

    def called(*_):
        nonlocal calls
        calls += 1

    sys.setprofile(called)
    try:
        authorizer.authorize(context, [Action(operation=operation, resource_pattern=pattern)])
    finally:
        sys.setprofile(None)
    memo = authorizer._view.image.index.base.memo
    assert (memo.columns, memo.ranks, memo.tables) == (None, None, None), "nothing is built that takes all rules"
    return calls


@pytest.mark.parametrize("cidr", [False, True])
@pytest.mark.parametrize("permission", [2, 3])
@pytest.mark.parametrize("name", ["!x", "", "*", "*foo", "a", "topic-7", "zz", "\U0001f600"])
def test_the_first_decision_on_a_base_does_not_pass_over_its_rules(name, permission, cidr):
    def rules(count):
        yield StandardAclWithId(id=None, acl=acl("*", principal="User:a", permission_type=permission))
        yield StandardAclWithId(id=None, acl=acl("", principal="User:a", pattern_type=PatternType.PREFIXED))
        for number in range(count):
            yield StandardAclWithId(id=None, acl=acl(f"topic-{number}", principal=f"User:{number}"))
            yield StandardAclWithId(id=None, acl=acl("ranges", principal=f"User:{number}", host="10.0.0.0/8"))
            yield StandardAclWithId(id=None, acl=acl(f"!{number}", principal=f"User:{number}"))

    few, many = (steps(list(rules(count)), name, AclOperation.READ, cidr=cidr) for count in (50, 1000))
    assert many < few + 50, (few, many)
