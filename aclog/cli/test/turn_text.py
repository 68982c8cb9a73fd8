"""A case that turned red or green, as lines for people and as JSON."""

from collections.abc import Iterator

from aclog.analysis.regions.region_json import JsonObject, decided_by_object, request_object
from aclog.analysis.rule_tests.outcome import Failure
from aclog.authorizer.acl import acl_text
from aclog.authorizer.origin import origin_text
from aclog.authorizer.rule_change import Action, RuleChange
from aclog.cli.test.verdicts import Turn
from aclog.terminal.timestamps import time_text

_SHOWN = 3
"""Failures and changes of a case as text; the JSON has more."""
_MOST = 100
"""In a JSON line, whose receiver has to take it whole."""


def turn_lines(turn: Turn, *, offset: int, timestamp: int) -> Iterator[str]:
    """Yield the lines; `offset` and `timestamp` (ms) are those of the newest record of the state."""
    place = f"{time_text(timestamp)} offset {offset}"
    yield f"{turn.color.value:<7} {place}: {turn.case.test}: {turn.case.text} ({origin_text(turn.case.origin)})"
    yield from (f"  {failure.found}" for failure in turn.failures[:_SHOWN])
    if len(turn.failures) > _SHOWN:
        yield f"  and {len(turn.failures) - _SHOWN:,} more"
    if turn.problem:
        yield f"  {turn.problem}"
    if turn.software:
        yield f"  by: {turn.software}"
    yield from (f"  by: {_change_text(change)}" for change in turn.changes[:_SHOWN])
    if len(turn.changes) > _SHOWN:
        yield f"  by: {len(turn.changes) - _SHOWN:,} more changes of the same record batch or transaction"


def turn_object(turn: Turn, *, offset: int, end_offset: int, timestamp: int) -> JsonObject:
    """Return the JSON line of a turn: what `--format jsonl` prints and `--webhook` posts."""
    line: JsonObject = {
        "event": turn.color.value,
        "test": turn.case.test,
        "case": turn.case.text,
        "file": turn.case.origin.file,
        "line": turn.case.origin.line,
        "offset": offset,
        "endOffset": end_offset,
        "timestamp": timestamp,
        "failures": [_failure_object(failure) for failure in turn.failures[:_MOST]],
        "changes": [
            {"action": (Action.ADD if change.added else Action.REMOVE).value, "rule": decided_by_object(change.acl)}
            for change in turn.changes[:_MOST]
        ],
    }
    more = {"problem": turn.problem, "software": turn.software}
    return {**line, **{key: text for key, text in more.items() if text}}


def _failure_object(failure: Failure) -> JsonObject:
    found: JsonObject = {"found": failure.found}
    if failure.request is not None:
        found["request"] = request_object(failure.request)
        found["decidedBy"] = decided_by_object(failure.decided_by)
    return found


def _change_text(change: RuleChange) -> str:
    return f"{'added' if change.added else 'removed'} {acl_text(change.acl)}"
