"""The catalogue of lints."""

import re

import pytest

from aclog.analysis.lint.finding import ALL, LINTS, parse_lints
from aclog.metalog.errors import ConfigError

HEURISTIC = {"06", "13", "14", "18", "19", "20", "21", "22", "25", "26"}


def test_the_lints_are_numbered_from_1_to_27_and_named_in_kebab_case():
    assert [lint.id for lint in LINTS] == [f"{number:02}" for number in range(1, 28)]
    assert len({lint.name for lint in LINTS}) == 27
    assert all(re.fullmatch("[a-z]+(-[a-z]+)*", lint.name) for lint in LINTS)
    assert {lint.id for lint in LINTS if not lint.exact} == HEURISTIC
    assert len(ALL) == 27


@pytest.mark.parametrize(
    ("texts", "ids"), [(["08"], {"08"}), (["8", " Shadowed "], {"08"}), (["dead-deny", "25"], {"10", "25"})]
)
def test_lints_are_chosen_by_id_or_by_name(texts, ids):
    assert parse_lints(texts) == ids


def test_an_unknown_lint_is_refused_with_the_ones_that_exist():
    with pytest.raises(
        ConfigError, match=r"'28' is no lint: expected one of 01 prefixed-star, .*, 27 everyone-reaches-far"
    ):
        parse_lints(["28"])
