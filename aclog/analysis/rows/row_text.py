"""The parts of a row as text for people, where they are more than those of a region."""

from collections.abc import Sequence

from aclog.analysis.regions.names import ANY_NAME, Names
from aclog.analysis.regions.region import Direction
from aclog.analysis.regions.region_text import requests_text
from aclog.analysis.rows.extent import is_allow
from aclog.analysis.rows.row import Bound, Cause, Clause, Row, Setting, Summary
from aclog.authorizer.acl import ResourceType

_VERBS = {Direction.GAINED: "gain", Direction.LOST: "lose"}
_RULES_TEXTS = {
    (True, True, True): "they gain what they lacked of it and no rule denies",
    (False, True, False): "they lose what no other rule allows of it",
    (True, False, False): "they lose all they had of it",
    (False, False, True): "they gain what other rules allow of it",
    # with allow.everyone.if.no.acl.found:
    (True, True, False): "the first rules there: they lose what no rule allows of it",
    (False, True, True): "no rules are left there: they gain what they lacked of it",
}
"""What a summary says, by whether the rules came, whether they allow, and whether requests were gained."""


def directions_text(row: Row) -> str:
    """Return `GAINED`, `LOST` or `GAINED, LOST`."""
    return ", ".join(direction.value for direction in row.directions)


def claim_text(row: Row) -> str:
    """Return what a row is about, such as `READ on TOPIC a` or, if it may be too much, `up to READ on TOPIC *`."""
    what = what_text(row.clauses)
    return what if row.bound is Bound.NONE else f"up to {what}"


def bound_text(row: Row) -> str:
    """Return of what a row may claim too much, such as ` (a bound on who and hosts)`; empty if it is exact."""
    return "" if row.bound is Bound.NONE else f" (a bound on {row.bound.value})"


def what_text(clauses: Sequence[Clause]) -> str:
    """Return such as `READ, DESCRIBE on TOPIC orders.* but orders.pii.*; READ on GROUP app`."""
    return "; ".join(clause_texts(clauses))


def clause_texts(clauses: Sequence[Clause]) -> list[str]:
    """Return what each clause says, or several that differ in their resource type only."""
    types: dict[tuple[int, Names], list[str]] = {}
    for clause in clauses:
        names = ANY_NAME if clause.resource_type == ResourceType.CLUSTER else clause.names
        types.setdefault((clause.operations, names), []).append(clause.resource_type.name)
    return [requests_text(operations, kinds, names) for (operations, names), kinds in types.items()]


def summary_text(row: Row, summary: Summary) -> str:
    """Return such as `they lose all they had of it: 412 principals, 100,000 rules`."""
    named = f"{summary.principals:,} principal{'s' * (summary.principals != 1)}"
    who = f"{named} and everyone else" if summary.everyone_else else named
    rules = "" if summary.cause.setting else f", {summary.rules:,} rule{'s' * (summary.rules != 1)}"
    return f"{_change_text(row, summary.cause)}: {who}{rules}"


def _change_text(row: Row, cause: Cause) -> str:
    if len(row.directions) > 1:
        return "they gain some of it and lose some"
    gained = row.directions == (Direction.GAINED,)
    if cause.setting is Setting.SUPER_USERS:
        return "super users: they gain all they lacked" if gained else "no super users: they lose all no rule gives"
    if cause.setting is not None:
        return f"{cause.setting.value}: they {_VERBS[row.directions[0]]} some of it"
    allows = {is_allow(rule) for rule in cause.rules}
    if len(allows) > 1:
        return f"they {_VERBS[row.directions[0]]} some of it"
    return _RULES_TEXTS[cause.is_added, allows.pop(), gained]
