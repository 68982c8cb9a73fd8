"""A row for each attempt that is refused."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from aclog.authorizer.acl import StandardAcl, StandardAclWithId
from aclog.cli.region_columns import rules_text
from aclog.terminal.columns import Column, Row
from aclog.terminal.timestamps import time_text
from aclog.usage.decisions.rules import Rules
from aclog.usage.denied.attempts import Attempt

_FEW: Final = 3


def few(texts: Sequence[str]) -> str:
    """Return the first of some texts, and how many more there are."""
    more = f" and {len(texts) - _FEW:,} more" if len(texts) > _FEW else ""
    return ", ".join(texts[:_FEW]) + more


DENIED_COLUMNS: Final = (
    Column(key="principal", cut=True),
    Column(key="intent"),
    Column(key="operations", text=few),
    Column(key="resourceType", title="TYPE"),
    Column(key="resourceName", title="NAME", cut=True),
    Column(key="hosts", text=few, spare=True),
    Column(key="attempts"),
    Column(key="accesses", spare=True),
    Column(key="firstAt", title="FIRST", spare=True, text=lambda time: "" if time is None else time_text(time)),
    Column(key="lastAt", title="LAST", spare=True, text=lambda time: "" if time is None else time_text(time)),
    Column(key="missing", text=lambda rules: rules_text(rules[:_FEW])),
    Column(key="denies", flows=True, text=lambda rules: rules_text(rules[:_FEW])),
)


def denied_row(attempt: Attempt, rules: Rules) -> Row:
    """Return the row; times are in ms since 1970."""
    return {
        "principal": attempt.principal,
        "intent": None if attempt.intent is None else attempt.intent.value,
        "operations": [operation.name for operation in attempt.operations],
        "resourceType": attempt.resource_type.name,
        "resourceName": attempt.resource_name,
        "hosts": list(attempt.hosts),
        "attempts": attempt.attempts,
        "accesses": attempt.accesses,
        "firstAt": None if attempt.first is None else attempt.first // 1000,
        "lastAt": None if attempt.last is None else attempt.last // 1000,
        "missing": [missing_row(rule) for rule in attempt.missing],
        "denies": deny_rows(attempt, rules),
    }


def missing_row(rule: StandardAcl) -> dict[str, Any]:
    """Return a rule that is not there yet, so that it has no id."""
    row: dict[str, Any] = {**StandardAclWithId(id=None, acl=rule).to_dict()}
    del row["id"]
    return row


def deny_rows(attempt: Attempt, rules: Rules) -> list[dict[str, Any]]:
    """Return the DENY rules in the way."""
    found: list[dict[str, Any]] = rules.table.take(np.array(attempt.denies, np.int64)).to_pylist()
    return found
