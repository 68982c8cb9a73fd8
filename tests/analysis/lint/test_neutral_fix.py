"""Removals that change no decision, all together."""

from random import Random

import pytest

from aclog.analysis.comparison import differences
from aclog.analysis.lint.related import neutral_fix
from aclog.analysis.lint_report import lint
from aclog.analysis.policy import Policy
from aclog.authorizer.settings import Settings
from tests.support.analysis.lint import decides_without, dense_policy, odd_policy, rule, without
from tests.support.analysis.policies import image_of

NEEDLESS = {"08", "09", "10", "11"}


def fixed(*rules, **settings):
    """The rules that the fix removes."""
    policy = Policy(image_of(rules), Settings(**settings))
    return {change.acl for change in neutral_fix(policy, lint(policy, select=NEEDLESS))}


@pytest.mark.parametrize("make", [dense_policy, odd_policy])
@pytest.mark.parametrize("seed", range(20))
def test_the_removals_are_neutral_together_and_leave_no_needless_allow(make, seed):
    policy = make(Random(seed))
    changes = neutral_fix(policy, lint(policy, select=NEEDLESS))
    assert not any(change.added for change in changes)
    removed = [change.acl for change in changes]
    left = without(policy, *removed)
    assert not any(differences(policy, left))
    again = neutral_fix(left, lint(left, select=NEEDLESS))
    assert again == ()


def test_the_wider_rule_stays():
    prefix, literal, all_, read = rule("a.", prefixed=True), rule("a.b"), rule("x", "ALL"), rule("x")
    assert fixed(prefix, literal) == {literal}
    assert fixed(all_, read) == {read}
    assert fixed(rule("a"), rule("a", "DESCRIBE")) == {rule("a", "DESCRIBE")}
    assert fixed(rule("a"), rule("a", who="User:*")) == {rule("a")}
    wide, narrow = rule("a", host="10.0.0.0/24"), rule("a", host="10.0.0.77/24")
    assert len(fixed(wide, narrow, cidr=True)) == 1


def test_a_deny_stays_as_a_guard_unless_another_one_denies_the_same():
    guard, inside = rule("a", "ALL", deny=True, prefixed=True), rule("a.b", "WRITE", deny=True)
    assert fixed(guard) == set()
    assert fixed(guard, inside) == {inside}


def test_one_rule_stays_to_keep_names_closed():
    one, other = rule("a", deny=True), rule("a", "WRITE", deny=True)
    assert fixed(one, rule("a", deny=True, who="User:*"), allow_everyone=True) == {one}
    policy = Policy(image_of([one, other]), Settings(allow_everyone=True))
    assert decides_without(policy, one)
    assert fixed(one, other, allow_everyone=True) == set()
