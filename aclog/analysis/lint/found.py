"""Findings made from rows of a table, with what the catalogue says about their lint."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from aclog.analysis.lint.catalogue import BY_ID
from aclog.analysis.lint.finding import Finding
from aclog.analysis.lint.rule_table import RuleTable
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.index.arrow_arrays import Binary, text_array, vector
from aclog.authorizer.rule_change import RuleChange
from aclog.metalog.vectors import Bools


class Told(NamedTuple):
    """What a lint tells about a rule: what is lost, and the mend if changes can express it."""

    lost: str
    fix: tuple[RuleChange, ...] = ()


def finding(lint: str, rules: Sequence[StandardAcl], told: Told, *, neutral: bool = False) -> Finding:
    """Return a finding of a lint about some rules."""
    about = BY_ID[lint]
    return Finding(
        lint=lint,
        severity=about.severity,
        rules=tuple(rules),
        lost=told.lost,
        fix=told.fix,
        advice=about.mend,
        neutral=neutral,
    )


def findings(
    lint: str, table: RuleTable, rows: Bools, tell: Callable[[StandardAcl], Told], *, neutral: bool = False
) -> Iterator[Finding]:
    """Yield a finding for each of the chosen rows."""
    for row in np.flatnonzero(rows).tolist():
        rule = table.rule(row)
        yield finding(lint, (rule,), tell(rule), neutral=neutral)


def replaced(rule: StandardAcl, *by: StandardAcl) -> tuple[RuleChange, ...]:
    """Return the changes that put some rules in the place of one: an added DENY comes before a removal."""
    added = tuple(RuleChange(added=True, acl=each) for each in by if each != rule)
    return (*added, RuleChange(added=False, acl=rule))


def texts_matching(texts: Binary, pattern: str) -> Bools:
    """Return which texts a regular expression (RE2) finds itself in."""
    found: Bools = vector(pc.match_substring_regex(texts, pattern))
    return found


def texts_among(texts: Binary, wanted: Iterable[str]) -> Bools:
    """Return which texts are some of these."""
    found: Bools = vector(pc.is_in(texts, value_set=text_array(list(wanted), texts.type)))
    return found


def one_of(characters: str) -> str:
    """Return these characters as they stand in a class of a regular expression."""
    return "".join(f"\\x{{{ord(each):x}}}" for each in characters)


def types_of(principals: Binary) -> Binary:
    """Return the type of each principal: what stands before the first colon."""
    return pc.replace_substring_regex(principals, "(?s):.*$", "")
