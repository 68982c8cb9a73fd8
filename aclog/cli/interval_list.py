"""Prints the intervals of a log in which something was allowed."""

from collections.abc import Iterable, Iterator

from aclog.analysis.answers.timeline import Event, Interval
from aclog.analysis.regions.region_json import JsonObject, decided_by_object
from aclog.authorizer.explanation_text import acl_text
from aclog.cli.flags.answer import AnswerFormat
from aclog.metalog.printable import printable
from aclog.snapshots.rule_history import Change, ChangeKind
from aclog.sources.change_lines import Action
from aclog.terminal.json_text import json_text
from aclog.terminal.output import emit, say
from aclog.terminal.timestamps import utc_text


def print_intervals(found: Iterable[Interval], form: AnswerFormat) -> None:
    """Print intervals in the order of the log; `never` as text if there is none."""
    if form is AnswerFormat.JSONL:
        for interval in found:
            emit(json_text(interval_object(interval)))
        return
    any_found = False
    for interval in found:
        any_found = True
        for line in interval_lines(interval):
            say(printable(line))
    if not any_found:
        say("never")


def interval_object(interval: Interval) -> JsonObject:
    """Return an interval as a JSON object; `to` is null if it has not ended."""
    end = interval.end
    return {"from": _event_object(interval.start), "to": None if end is None else _event_object(end)}


def interval_lines(interval: Interval) -> Iterator[str]:
    """Yield the two ends of an interval."""
    yield f"from {_event_text(interval.start)}"
    yield "  until now" if interval.end is None else f"  to {_event_text(interval.end)}"


def _event_object(event: Event) -> JsonObject:
    return {
        "offset": event.offset,
        "endOffset": event.end_offset,
        "timestamp": None if event.timestamp < 0 else event.timestamp,
        "change": None if event.change is None else _change_object(event.change),
    }


def _change_object(change: Change) -> JsonObject:
    return {"action": _action(change).value, "rule": decided_by_object(change.rule.acl)}


def _action(change: Change) -> Action:
    return Action.ADD if change.kind is ChangeKind.ADDED else Action.REMOVE


def _event_text(event: Event) -> str:
    time = "" if event.timestamp < 0 else f", {utc_text(event.timestamp)}"
    if event.change is None:
        before = " or before" if event.offset else ""
        return f"offset {event.offset}{before}{time}: as the history begins"
    word = "added" if event.change.kind is ChangeKind.ADDED else "removed"
    return f"offset {event.offset}{time}: {word} {acl_text(event.change.rule.acl)}"
