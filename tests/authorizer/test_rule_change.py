"""A change of rules gives the same set of rules, whether these have ids or not."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.acls_image import AclsImage, RuleChange, changed_acls, changes_between, net_changes
from aclog.metalog.errors import ConfigError
from tests.support.builders.acls import acl

RULES = [acl(name, principal) for name in ("a", "b", "*") for principal in ("User:x", "User:*")]


def image(rules, *, ids=True):
    return AclsImage.from_acls(
        StandardAclWithId(id=UUID(int=number + 1) if ids else None, acl=rule) for number, rule in enumerate(rules)
    )


def change(rule, *, added=True):
    return RuleChange(added=added, acl=rule, where="change.jsonl: line 3")


@given(st.sets(st.sampled_from(RULES)), st.lists(st.tuples(st.booleans(), st.sampled_from(RULES))), st.booleans())
def test_changes_apply_in_order(rules, steps, ids):
    wanted, changes = set(rules), []
    for added, rule in steps:
        if added is (rule not in wanted):
            wanted ^= {rule}
            changes.append(change(rule, added=added))
    found = [rule.acl for rule in changed_acls(image(sorted(rules, key=str), ids=ids), changes)]
    assert len(found) == len(wanted)
    assert set(found) == wanted


@pytest.mark.parametrize("ids", [True, False])
def test_a_change_that_was_made_for_another_state_is_refused(ids):
    [first, second, *_] = RULES
    with pytest.raises(ConfigError, match=r"change\.jsonl: line 3: the ACL exists already: ALLOW User:x READ on TOPIC"):
        changed_acls(image([first], ids=ids), [change(first)])
    with pytest.raises(
        ConfigError, match=r"change\.jsonl: line 3: no such ACL: ALLOW User:\* READ on TOPIC LITERAL 'a'"
    ):
        changed_acls(image([first], ids=ids), [change(second, added=False)])


def test_the_options_of_the_image_stay():
    for ids in (True, False):
        found = changed_acls(image(RULES[:1], ids=ids).with_options(documented=True, cidr=True), [change(RULES[1])])
        assert (found.documented, found.cidr) == (True, True)


@given(st.sets(st.sampled_from(RULES)), st.sets(st.sampled_from(RULES)), st.booleans())
def test_the_changes_between_two_images_make_one_of_the_other(old, new, ids):
    before, after = image(sorted(old, key=str), ids=ids), image(sorted(new, key=str))
    changes = changes_between(before, after)
    assert {change.acl for change in changes} == old ^ new
    assert {rule.acl for rule in changed_acls(before, changes)} == new


def test_what_came_and_went_is_no_change():
    [first, second, *_] = RULES
    steps = [change(first), change(second, added=False), change(first, added=False)]
    assert net_changes(steps) == [change(second, added=False)]
