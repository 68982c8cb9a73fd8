"""The catalogue of lints."""

import re

import pytest

from aclog.analysis.lint.finding import Lint
from aclog.analysis.lint_report import ALL, LINTS, parse_lints
from aclog.metalog.errors import ConfigError

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
