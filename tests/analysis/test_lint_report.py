"""The catalogue of lints, and a run."""

import re

import pytest

from aclog.analysis.lint.finding import Lint, LintContext
from aclog.analysis.lint_report import ALL, LINTS, lint, parse_lints
from aclog.analysis.policy import Policy
from aclog.analysis.regions import ExistingNames
from aclog.authorizer.settings import Settings
from aclog.metalog.errors import ConfigError
from tests.support.analysis.lint import found_by, ids, rule
from tests.support.analysis.policies import entry_of, image_of
from tests.support.builders.acls import record_of, removal_of

TOPICS = ExistingNames.of(["orders", "pay.in", "payroll.out", "big.a"])

PINNED = """
01 prefixed-star error exact
02 glob-in-name error exact
03 host-not-an-address error exact
04 cidr-host error exact
05 principal-without-type error exact
06 near-miss-principal error heuristic (--accesses)
07 unknown-principal-type error exact
08 shadowed warning exact
09 overridden-allow error exact
10 dead-deny warning exact
11 implied warning exact
12 unsupported-operation error exact
13 consumer-without-group warning heuristic
14 transaction-without-write warning heuristic
15 idempotent-write warning exact
16 everyone-may-write error exact
17 cluster-rights error exact
18 no-such-name warning heuristic (--topics or --groups)
19 shared-group warning heuristic
20 shared-transactional-id warning heuristic
21 prefix-without-separator warning heuristic (--topics)
22 closes-open-resource error heuristic (--accesses)
23 name-below-star error exact
24 illegal-topic-name error exact
25 many-literals warning heuristic
26 grown-reach warning heuristic (a source with a history)
27 everyone-reaches-far error exact
"""
"""What programs read of the lints: ids, names, severities, kinds and needs."""


def test_the_lints_are_numbered_from_1_and_named_in_kebab_case():
    assert [lint.id for lint in LINTS] == [f"{number:02}" for number in range(1, len(LINTS) + 1)]
    assert len({lint.name for lint in LINTS}) == len(ALL) == len(LINTS)
    assert all(re.fullmatch("[a-z]+(-[a-z]+)*", lint.name) for lint in LINTS)


def test_what_programs_read_of_a_lint_stays():
    lines = [
        f"{lint.id} {lint.name} {lint.severity.value} {'exact' if lint.exact else 'heuristic'}"
        + (f" ({lint.needs})" if lint.needs else "")
        for lint in LINTS
    ]
    pinned = PINNED.split("\n")[1:-1]
    assert lines[: len(pinned)] == pinned


def test_each_lint_is_a_class_of_its_own():
    assert len({type(lint) for lint in LINTS}) == len(LINTS)
    assert all(type(lint).__doc__ and (lint.of_history or type(lint).find is not Lint.find) for lint in LINTS)


@pytest.mark.parametrize(
    ("texts", "ids"), [(["08"], {"08"}), (["8", " Shadowed "], {"08"}), (["dead-deny", "25"], {"10", "25"})]
)
def test_lints_are_chosen_by_id_or_by_name(texts, ids):
    assert parse_lints(texts) == ids


def test_an_unknown_lint_is_refused_with_the_ones_that_exist():
    with pytest.raises(
        ConfigError, match=r"'99' is no lint: expected one of 01 prefixed-star, .*, 27 everyone-reaches-far"
    ):
        parse_lints(["99"])


@pytest.mark.parametrize(
    ("lint_id", "one", "expected"),
    [
        ("13", rule("*"), "User:a may READ every topic, but cannot join a consumer group"),
        (
            "13",
            rule("a.", prefixed=True),
            "User:a may READ topics whose names start with 'a.', but cannot join a consumer group",
        ),
        (
            "14",
            rule("tx", "WRITE", kind="TRANSACTIONAL_ID"),
            "User:a has WRITE on transactional id 'tx', but no WRITE on topics: its transactions are empty",
        ),
        (
            "03",
            rule(host="localhost", deny=True),
            "no client has the address 'localhost': the rule denies nothing",
        ),
        (
            "07",
            rule(who="Group:a", deny=True),
            "clients have the type User, not 'Group': the rule denies nothing",
        ),
    ],
)
def test_the_impact_is_one_clause(lint_id, one, expected):
    (found,) = lint(Policy(image_of([one]), Settings()), select={lint_id})
    assert found.lost == expected


def test_estates_without_anything_to_judge():
    assert ids() == []
    assert found_by("08", rule(who="nobody"), rule("x", kind="CLUSTER"), cidr=True, allow_everyone=True) == []
    assert list(lint(Policy(image_of([])), LintContext(topics=TOPICS), select={"13", "18", "21"})) == []


def test_progress_counts_and_only_the_selected_lints_run():
    steps = []
    policy = Policy(image_of([rule("*", prefixed=True)]))
    found = list(lint(policy, select={"01", "24", "26"}, progress=lambda done, of: steps.append((done, of))))
    assert [each.lint for each in found] == ["01", "24"]
    assert steps == [(0, 2), (1, 2), (2, 2)]


def test_rules_of_an_overlay_count_like_others():
    image = image_of([rule("a.", prefixed=True), rule("gone")])
    gone = next(entry for entry in image if entry.acl.resource_name == "gone")
    changed = image.apply([removal_of(gone), record_of(entry_of(rule("a.b")))])
    assert [each.rules for each in lint(Policy(changed), select={"08"})] == [(rule("a.b"),)]
