"""Findings made from rows of a table, with what the catalogue says about their lint."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from aclog.analysis.lint.catalogue import BY_ID
from aclog.analysis.lint.finding import Finding
from aclog.analysis.lint.rule_table import RuleTable
from aclog.authorizer.acl import StandardAcl
from aclog.authorizer.rule_change import RuleChange
from aclog.metalog.vectors import Bools


class Told(NamedTuple):
    """What a lint tells about a rule: what is lost, and the mend if changes can express it."""

    lost: str
    fix: tuple[RuleChange, ...] = ()


def finding(lint: str, rules: Sequence[StandardAcl], told: Told, *, neutral: bool = False) -> Finding:
    """Return a finding of a lint about some rules, as severe and with the mend that the catalogue says."""
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


def texts_matching(texts: Sequence[str], pattern: str) -> Bools:
    """Return which texts a regular expression finds itself in."""
    search = re.compile(pattern).search
    return np.fromiter(map(search, texts), np.bool_, len(texts))  # a match is true, None is not


def texts_among(texts: Sequence[str], wanted: Iterable[str]) -> Bools:
    """Return which texts are some of these."""
    return np.fromiter(map(frozenset(wanted).__contains__, texts), np.bool_, len(texts))


def one_of(characters: str) -> str:
    """Return these characters as they stand in a class of a regular expression."""
    return "".join(f"\\U{ord(each):08x}" for each in characters)


def types_of(principals: Iterable[str]) -> list[str]:
    """Return the type of each principal: what stands before the first colon."""
    return [principal.partition(":")[0] for principal in principals]
