"""Kafka's messages in JSON objects: of layouts, containers, shippers and exports; and other authorizers' records."""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import tzinfo
from typing import Final, NamedTuple

from aclog.authorizer.audit import MESSAGE, ParsedLine, Reason, read_message
from aclog.usage.accesses.layouts import Profile, cleaned, compile_layout, read_text_line
from aclog.usage.accesses.lines import JsonObject, once
from aclog.usage.accesses.times import KNOWN_FORMATS, epoch_micros

TIME_KEYS: Final = (
    "@timestamp", "timestamp", "time", "ts", "instant", "timeMillis", "timestampMillis", "timestamp_ms",
    "timestampSeconds", "_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP", "_time", "date", "datetime", "asctime",
    "eventTime", "event_time", "log_time", "logTime", "@t", "t", "_timestamp", "TimeGenerated",
)  # fmt: skip
"""Keys of the time beside a message; the first of them that has a time is taken."""
_DEPTH: Final = 8
_OWN: Final = compile_layout("%m", is_bare=True)
_BARE: Final = Profile(layouts=(_OWN,), is_stated=True)


class WrappedText(NamedTuple):
    """A text with a message in an object."""

    text: str
    around: tuple[object, ...]
    """The objects and lists that it is in, the innermost first."""
    path: tuple[str | int, ...]
    """Its keys and positions; not into a text that has an object itself."""


def texts_in(value: object) -> list[WrappedText]:
    """Return the texts in an object that contain the beginning of a message."""
    return list(_texts(value, (), ()))


def _texts(value: object, around: tuple[object, ...], path: tuple[str | int, ...]) -> Iterator[WrappedText]:
    if len(around) > _DEPTH:
        return
    if isinstance(value, str):
        if MESSAGE not in value and MESSAGE.replace("=", "\\u003d") not in value:
            return
        inner = _object_in(value)
        if inner is None:
            yield WrappedText(value, around, path)
        else:
            yield from _texts(inner, around, path)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _texts(each, (value, *around), (*path, key))
    elif isinstance(value, list):
        for at, each in enumerate(value):
            yield from _texts(each, (value, *around), (*path, at))


def _object_in(text: str) -> JsonObject | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def read_wrapped(wrapped: WrappedText, zone: tzinfo, profile: Profile) -> tuple[int | None, ParsedLine]:
    """Return the time (us since 1970) and the message of a text in an object, or the reason why it has none.

    The text may be a message alone, or a line in a layout; its own time comes before one beside it.
    """
    text = cleaned(wrapped.text.rstrip("\r\n"))
    if text.startswith(MESSAGE) and not profile.is_stated:
        read = read_message(text)
        if read.reason is None:
            return _dated(None, read, wrapped, zone)
    time, read = read_text_line(text, zone, profile)
    if read.reason is Reason.BAD_TIMESTAMP:
        found = profile.read(text, zone)
        if found is not None and found[1].reason is None and all(each.time is None for each in profile.layouts):
            return _dated(None, found[1], wrapped, zone)
    return time, read


def _dated(time: int | None, read: ParsedLine, wrapped: WrappedText, zone: tzinfo) -> tuple[int | None, ParsedLine]:
    micros = time_beside(wrapped.around, zone) if time is None else time
    return micros, ParsedLine(reason=Reason.BAD_TIMESTAMP) if micros is None else read


def time_beside(around: Sequence[object], zone: tzinfo) -> int | None:
    """Return the time (us since 1970) of a text: of the innermost object around it that has one; None without one."""
    for value in around:
        time = None
        if isinstance(value, dict):
            times = (micros_of_value(value[key], zone) for key in TIME_KEYS if key in value)
            time = next((each for each in times if each is not None), None)
        elif isinstance(value, list) and len(value) == 2:  # Loki's pair of a time in ns and a line
            time = micros_of_value(value[0], zone)
        if time is not None:
            return time
    return None


def micros_of_value(value: object, zone: tzinfo) -> int | None:
    """Return the us since 1970 of a value that names a time: text, a number, or log4j's instant; None for another."""
    if isinstance(value, dict):
        seconds, nanos = (
            value.get("epochSecond", value.get("seconds")),
            value.get("nanoOfSecond", value.get("nanos", 0)),
        )
        if isinstance(seconds, int) and isinstance(nanos, int) and not isinstance(seconds, bool):
            whole = epoch_micros(str(seconds))
            return None if whole is None else whole + nanos // 1000
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = value.strip() if isinstance(value, str) else repr(value)
    for each in KNOWN_FORMATS:
        if re.fullmatch(each.regex, text, re.ASCII):
            return each.parse(text, zone)
    return epoch_micros(text)


# Audit records of other authorizers that are not read, by name.


_FOREIGN: Final = (
    (re.compile(rb"\[(?:DENY|ALLOW)\] Auth request \w+ on "), "Aiven's AivenAclAuthorizer",
     "its lines have no host: with StandardAuthorizer or AclAuthorizer, pass kafka-authorizer.log"),
    (re.compile(rb'"repoType"\s*:\s*9\b|"enforcer"\s*:\s*"ranger-acl"'), "Ranger's Kafka plugin",
     "its policies decided, and not ACLs"),
    (re.compile(rb'"decision_id"\s*:\s*"'), "Open Policy Agent's decision log", "its policies decided, and not ACLs"),
    (re.compile(rb'"eventSource"\s*:\s*"kafka(?:-cluster)?\.amazonaws\.com"'), "CloudTrail (IAM access control of MSK)",
     "IAM policies decided, and not ACLs: pass the broker logs of MSK"),
)  # fmt: skip


def foreign_authorizer(text: bytes) -> str | None:
    """Return the authorizer whose audit records these are, and why they are not read; None for other text."""
    return next((f"{name}: not read: {why}" for mark, name, why in _FOREIGN if mark.search(text)), None)
