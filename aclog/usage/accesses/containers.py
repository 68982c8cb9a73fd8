"""Kafka's messages in JSON objects: of layouts, containers, shippers and exports; and other authorizers' records."""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import tzinfo
from typing import Final, NamedTuple, cast

from aclog.authorizer.audit import MESSAGE, ParsedLine, Reason, certain_end, is_cut, read_message
from aclog.usage.accesses.layouts import Profile, cleaned, read_text_line
from aclog.usage.accesses.lines import JsonObject, once
from aclog.usage.accesses.times import KNOWN_FORMATS, epoch_micros

TIME_KEYS: Final = (
    "@timestamp", "timestamp", "time", "ts", "instant", "timeMillis", "timestampMillis", "timestamp_ms",
    "timestampSeconds", "_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP", "_time", "date", "datetime", "asctime",
    "eventTime", "event_time", "log_time", "logTime", "@t", "t", "_timestamp", "TimeGenerated",
)  # fmt: skip
"""Keys of the time beside a message; the first of them that has a time is taken."""
_DEPTH: Final = 8
_TEXTS: Final = 100
"""Texts of one record."""


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
        if (text := _text_of_bytes(value)) is not None:
            yield from _texts(text, around, path)
            return
        for at, each in enumerate(value):
            yield from _texts(each, (value, *around), (*path, at))


def _text_of_bytes(value: list[object]) -> str | None:
    """Return the text of a list of bytes, as journald exports a text with control characters; None for another list.

    Bytes that are not UTF-8 become lone surrogates.
    """
    if len(value) < len(MESSAGE) or not all(type(each) is int and 0 <= each < 256 for each in value):
        return None
    return bytes(cast("list[int]", value)).decode(errors="surrogateescape")


def _object_in(text: str) -> JsonObject | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def read_wrapped(wrapped: WrappedText, zone: tzinfo, profile: Profile) -> tuple[int | None, ParsedLine]:
    """Return the time (us since 1970) and the message of a text in an object, or the reason why it has none.

    The text may be a message alone, or a line in a layout; its own time comes before one beside it.
    """
    text = cleaned(wrapped.text.rstrip("\r\n"))
    if _SURROGATE.search(text):
        return None, ParsedLine(reason=Reason.NOT_UTF8)
    if text.startswith(MESSAGE) and not profile.is_stated:
        read = read_message(text)
        if read.reason is None and not is_cut(read):
            return _dated(None, read, wrapped, zone)
    time, read = read_text_line(text, zone, profile)
    if read.reason is Reason.BAD_TIMESTAMP:
        by_profile = profile.read(text, zone)
        is_timeless = all(each.time is None for each in profile.layouts)
        if by_profile is not None and by_profile[1].reason is None and is_timeless:
            return _dated(None, by_profile[1], wrapped, zone)
    return time, read


def read_objects(value: object, zone: tzinfo, profile: Profile) -> "list[tuple[int | None, ParsedLine]] | Reason":
    """Return the times and messages of the texts in an object, or the reason why it has none, or one is unread.

    Texts under different keys are of one record (`message` and `event.original`): equal accesses count once, and a text
    that is part of another is not read. The elements of a list are several records. A record of many texts is
    ambiguous: no logger writes one.
    """
    records: dict[tuple[str | int, ...], list[WrappedText]] = {}
    for each in texts_in(value):
        size = max((at + 1 for at, step in enumerate(each.path) if isinstance(step, int)), default=0)
        records.setdefault(each.path[:size], []).append(each)
    accesses = list[tuple[int | None, ParsedLine]]()
    for texts in records.values():
        if len(texts) > _TEXTS:  # each is compared with all others
            return Reason.AMBIGUOUS
        read = [(each.text, *read_wrapped(each, zone, profile)) for each in texts if not _is_prefix(each.text, texts)]
        good = {each[:7]: (time, each) for _, time, each in reversed(read) if each.reason is None}
        whole = [text for text, _, each in read if each.reason is None]
        unread = [each.reason for text, _, each in read if each.reason is not None and not _repeats(text, whole)]
        if unread:
            return Reason(unread[0] or Reason.UNREADABLE)
        accesses += reversed(good.values())
    return accesses or Reason.OTHER_MESSAGE


def _is_prefix(text: str, texts: Sequence[WrappedText]) -> bool:
    """Return whether a text is the beginning of another one, cut off."""
    return certain_end(text) is None and any(
        len(text) < len(each.text) and each.text.startswith(text) for each in texts
    )


def _repeats(text: str, others: Sequence[str]) -> bool:
    """Return whether an unread text, beside others that are read, has no access, or only one of theirs."""
    if not others:
        return False
    has_access = "is Allowed" in text or "is Denied" in text
    return not has_access or any(text in each or (each in text and text.count(MESSAGE) == 1) for each in others)


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
