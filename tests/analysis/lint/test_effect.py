"""Whether a rule adds anything, over sets of rules: against the exact difference, and against a plain model."""

from functools import partial
from random import Random

import pytest

from aclog.analysis.lint import related
from aclog.analysis.lint.effect import Verdict, verdicts
from aclog.analysis.lint.finding import RuleTable
from aclog.analysis.lint_report import lint
from aclog.analysis.policy import Policy
from aclog.authorizer.settings import Settings
from tests.support.analysis.lint import decides_without, decides_without_by_cells, dense_policy, odd_policy, rule
from tests.support.analysis.policies import image_of


def verdict_of(policy):
    """The verdict on each rule."""
    table = RuleTable.of(policy)
    return {table.rule(row): Verdict(verdict) for row, verdict in enumerate(verdicts(table).tolist())}


def verdict_on(one, *others, **settings):
    """The verdict on one rule among others."""
    return verdict_of(Policy(image_of([one, *others]), Settings(**settings)))[one]


@pytest.mark.parametrize("make", [dense_policy, odd_policy])
@pytest.mark.parametrize("seed", range(30))
def test_a_rule_is_needed_if_the_policy_without_it_differs(make, seed):
    policy = make(Random(seed))
    for one, verdict in verdict_of(policy).items():
        if verdict is not Verdict.SET_ASIDE:
            assert (verdict is Verdict.NEEDED) is not decides_without(policy, one), one


@pytest.mark.parametrize("seed", range(1000, 1020))
def test_a_plain_model_agrees(seed):
    policy = dense_policy(Random(seed), most=8)
    for one, verdict in verdict_of(policy).items():
        if verdict is not Verdict.SET_ASIDE:
            assert (verdict is Verdict.NEEDED) is not decides_without_by_cells(policy, one), one


PREFIX = rule("a.", prefixed=True)


@pytest.mark.parametrize(
    ("one", "others", "settings", "expected"),
    [
        (rule("a.b"), [PREFIX], {}, "COVERED"),
        (rule("a.b"), [rule("a.b", who="User:*")], {}, "COVERED"),
        (rule("a.b", host="10.0.0.1"), [rule("a.b")], {}, "COVERED"),
        (rule("a.b"), [rule("a.b", host="10.0.0.1")], {}, "NEEDED"),
        (rule("a.b", "ALL"), [rule("a.b", "WRITE"), rule("a.b")], {}, "NEEDED"),
        (rule("*x"), [rule("*")], {}, "NEEDED"),
        (rule("*x"), [rule("*")], {"documented": True}, "COVERED"),
        (rule("", prefixed=True), [rule("*")], {}, "NEEDED"),
        (rule("", prefixed=True), [rule("*"), rule("*", prefixed=True)], {}, "COVERED"),
        (rule("a"), [], {"super_users": frozenset({"User:a"})}, "COVERED"),
        (rule("a.b"), [rule("a.", "ALL", deny=True, prefixed=True, who="User:*")], {}, "OVERRIDDEN"),
        (rule("a.b"), [rule("a.b", deny=True), rule("a.b", "DESCRIBE", deny=True)], {}, "OVERRIDDEN"),
        (rule("a.b"), [rule("a.b", deny=True)], {}, "NEEDED"),  # DESCRIBE is left
        (rule("a.b", kind="CLUSTER"), [], {}, "OVERRIDDEN"),
        (rule("a.b", deny=True), [rule("a.c")], {}, "DEAD"),
        (rule("a.", deny=True, prefixed=True), [rule("a.c", who="User:*")], {}, "NEEDED"),
        (rule("a.", deny=True, prefixed=True, who="User:*"), [rule("*")], {}, "NEEDED"),
        (rule("a.", deny=True, prefixed=True), [rule("a.c"), rule("a.c", deny=True)], {}, "DEAD"),
        (rule("a", deny=True, host="10.0.0.1", who="User:*"), [rule("a")], {}, "NEEDED"),
        (rule("a", deny=True, host="::1"), [rule("a")], {}, "DEAD"),
        (rule("a", host="::1"), [rule("a")], {}, "SET_ASIDE"),
        (rule("a", deny=True, who="nobody"), [], {}, "SET_ASIDE"),
        (rule("a"), [rule("a", who="nobody")], {}, "OVERRIDDEN"),
        (rule("a", host="10.0.0.0/31"), [rule("a", host=f"10.0.0.{n}") for n in (0, 1)], {"cidr": True}, "COVERED"),
        (rule("a", host="10.0.0.0/31"), [rule("a", host="10.0.0.0")], {"cidr": True}, "NEEDED"),
        (rule("a", host="10.0.0.1"), [rule("a", host="10.0.0.0/31")], {"cidr": True}, "COVERED"),
        (rule("a", host="::/127"), [rule("a", host="::/128"), rule("a", host="::1/128")], {"cidr": True}, "COVERED"),
        (rule("a", deny=True), [], {"allow_everyone": True}, "NEEDED"),
        (rule("a", deny=True), [rule("a", who="User:b")], {"allow_everyone": True}, "DEAD"),
        (rule("a", "ALL", who="User:*"), [], {"allow_everyone": True}, "COVERED"),
        (rule("a", "ALL", who="User:*", prefixed=True), [rule("ab", deny=True)], {"allow_everyone": True}, "NEEDED"),
    ],
)  # fmt: skip
def test_rules_that_others_stand_in_for(one, others, settings, expected):
    assert verdict_on(one, *others, **settings).name == expected


def test_two_equal_ranges_cover_each_other():
    wide, other = rule("a", host="10.0.0.0/24"), rule("a", host="10.0.0.77/24")
    found = verdict_of(Policy(image_of([wide, other]), Settings(cidr=True)))
    assert set(found.values()) == {Verdict.COVERED}


def test_a_deny_that_would_take_too_long_is_undecided_and_a_note_says_so(monkeypatch):
    outer, inner = rule("a.", deny=True, prefixed=True), rule("a.b", deny=True)
    allow = rule("a.b", who="User:*", host="10.0.0.1")
    policy = Policy(image_of([outer, inner, allow]))
    assert verdict_of(policy)[outer] is Verdict.DEAD
    monkeypatch.setattr(related, "verdicts", partial(verdicts, most_points=-1))
    notes = []
    assert [each.rules for each in lint(policy, select={"10"}, note=notes.append)] == [(inner,)]
    assert notes == ["lint 10: DENY rules not judged, since it would take too long: 1"]
