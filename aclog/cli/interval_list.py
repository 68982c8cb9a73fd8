"""Prints the intervals of a log in which something was allowed."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from aclog.analysis.answers.timeline import Event, Interval
from aclog.analysis.by_generation import generation_object, only_on
from aclog.analysis.regions.region_json import JsonObject, decided_by_object
from aclog.authorizer.acl import acl_text
from aclog.authorizer.premises import ALL_KNOWN, Premises
from aclog.authorizer.rule_change import Action
from aclog.cli.flags.output import Output
from aclog.cli.region_columns import GENERATION, rule_text
from aclog.metalog.printable import printable
from aclog.snapshots.kafka_history import KafkaChange
from aclog.snapshots.rule_history import Change, ChangeKind
from aclog.terminal.columns import Column
from aclog.terminal.notices import note
from aclog.terminal.output import say
from aclog.terminal.output_format import OutputFormat
from aclog.terminal.rows import print_rows
from aclog.terminal.timestamps import time_text


def _change_text(change: Mapping[str, Any] | None) -> str:
    if not change:
        return ""
    return f"{change['action']} {rule_text(change['rule']) if 'rule' in change else change['text']}"


def _end_columns(end: str) -> tuple[Column, ...]:
    return (
        Column(key=f"{end}.offset"),
        Column(key=f"{end}.endOffset", spare=True),
        Column(key=f"{end}.timestamp", text=lambda time: "" if time is None else time_text(time)),
        Column(key=f"{end}.change", cut=True, text=_change_text),
    )


INTERVAL_COLUMNS = (*_end_columns("from"), *_end_columns("to"))
"""Of `interval_object`."""


def print_intervals(
    found: Iterable[Interval],
    output: Output,
    *,
    begin: int,
    last: str = "until now",
    premises: Premises = ALL_KNOWN,
) -> None:
    """Print intervals in the order of the log; `never` as text if there is none.

    `begin`: the offset where the history begins; of the time before one above 0 nothing is known, and it is said so.
    `last`: how an interval ends as text that has not ended. `premises`: what is unknown of the settings.
    """
    if output.is_rows:
        is_streamed = output.form is OutputFormat.JSONL
        intervals = found if is_streamed else list(found)
        by_one = is_streamed or any(interval.only is not None for interval in intervals)
        columns = (*INTERVAL_COLUMNS, GENERATION) if by_one else INTERVAL_COLUMNS
        print_rows(columns, map(interval_object, intervals), output.form, chosen=output.columns)
    else:
        _print_text(found, begin, last, premises.turning(allowed=False))
    if begin:
        note(f"the history begins at offset {begin}: what was before it is unknown")


def _print_text(found: Iterable[Interval], begin: int, last: str, more: Premises) -> None:
    any_found = False
    for interval in found:
        any_found = True
        for line in interval_lines(interval, last):
            say(printable(line))
    if not any_found:
        never = f"never since offset {begin}, with which the history begins" if begin else "never"
        say(printable(more.decided(never)))


def interval_object(interval: Interval) -> JsonObject:
    """Return an interval as a JSON object; `to` is null if it has not ended."""
    end = interval.end
    ends = {"from": _event_object(interval.start), "to": None if end is None else _event_object(end)}
    return {**ends, **generation_object(interval.only)}


def interval_lines(interval: Interval, last: str) -> Iterator[str]:
    """Yield the two ends of an interval; `last` is that of one that has not ended."""
    yield f"from {_event_text(interval.start)}{only_on(interval.only)}"
    yield f"  {last}" if interval.end is None else f"  to {_event_text(interval.end)}"


def _event_object(event: Event) -> JsonObject:
    return {
        "offset": event.offset,
        "endOffset": event.end_offset,
        "timestamp": None if event.timestamp < 0 else event.timestamp,
        "change": None if event.change is None else _change_object(event.change),
    }


def _change_object(change: Change | KafkaChange) -> JsonObject:
    if isinstance(change, KafkaChange):
        generations = [each.value for each in change.kafka.generations]
        return {"action": "KAFKA", "generations": generations, "text": str(change)}
    return {"action": _action(change).value, "rule": decided_by_object(change.rule.acl)}


def _action(change: Change) -> Action:
    return Action.ADD if change.kind is ChangeKind.ADDED else Action.REMOVE


def _event_text(event: Event) -> str:
    time = "" if event.timestamp < 0 else f", {time_text(event.timestamp)}"
    if event.change is None:
        before = " or before" if event.offset else ""
        return f"offset {event.offset}{before}{time}: as the history begins"
    if isinstance(event.change, KafkaChange):
        return f"offset {event.offset}{time}: {event.change}"
    word = "added" if event.change.kind is ChangeKind.ADDED else "removed"
    return f"offset {event.offset}{time}: {word} {acl_text(event.change.rule.acl)}"
