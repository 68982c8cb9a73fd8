"""A row for each suggested rule: the rule, and what stands for it."""

from collections.abc import Iterator
from typing import Final

from aclog.authorizer.acl import StandardAclWithId
from aclog.cli.rule_columns import ACL_COLUMNS
from aclog.cli.usage_summary import time_text
from aclog.terminal.columns import Column, Row
from aclog.usage.suggestion.suggestion import SuggestedRule, Suggestion
from aclog.usage.window import of_micros


def _texts(values: list[str]) -> str:
    return ", ".join(values)


SUGGESTED_COLUMNS: Final = (
    *ACL_COLUMNS,
    Column(key="accesses"),
    Column(key="names", spare=True),
    Column(key="firstAt", title="FIRST", spare=True),
    Column(key="lastAt", title="LAST"),
    Column(key="intents", spare=True, text=_texts),
    Column(key="replaces", spare=True, text=lambda rules: str(len(rules))),
    Column(key="why", flows=True),
)


def suggested_rows(suggestion: Suggestion) -> Iterator[Row]:
    """Return the rows."""
    return map(_row, suggestion.rules)


def _row(rule: SuggestedRule) -> Row:
    evidence = rule.evidence
    plain = StandardAclWithId(id=None, acl=rule.acl).to_dict()
    return {
        **{column.key: plain[column.key] for column in ACL_COLUMNS},
        "accesses": evidence.accesses,
        "names": rule.names,
        "firstAt": shown_time(evidence.first),
        "lastAt": shown_time(evidence.last),
        "intents": [intent.value for intent in rule.intents],
        "replaces": [_plain(StandardAclWithId(id=None, acl=acl)) for acl in rule.replaces],
        "why": rule.why or None,
    }


def _plain(rule: StandardAclWithId) -> dict[str, str | None]:
    found = rule.to_dict()
    return {column.key: found[column.key] for column in ACL_COLUMNS}


def shown_time(micros: int | None) -> str | None:
    """Return a time in us since 1970 as text."""
    return None if micros is None else time_text(of_micros(micros))
