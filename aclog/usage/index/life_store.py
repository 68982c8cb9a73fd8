"""Lives in the database: their columns in segments, and the texts of their rules apart, read only to be shown."""

import json
import sqlite3
from collections.abc import Sequence
from typing import Final

import numpy as np

from aclog.metalog.errors import DecodeError
from aclog.usage.index.lives import Lives
from aclog.usage.index.packing import deflated, inflated, packed, unpacked
from aclog.usage.index.rule_texts import KEY_BYTES
from aclog.usage.index.seen_rules import RuleText

TABLES: Final = """
CREATE TABLE lives (segment INTEGER PRIMARY KEY, keys BLOB NOT NULL, columns BLOB NOT NULL);
CREATE TABLE rule_texts (segment INTEGER PRIMARY KEY, texts BLOB NOT NULL);
"""

_SEGMENT = 1 << 14
"""Lives in a segment."""
_COLUMNS = 4
_TEXTS = 1 << 10
"""Texts in a segment."""


def read_lives(database: sqlite3.Connection) -> Lives:
    """Return all lives."""
    segments = database.execute("SELECT keys, columns FROM lives ORDER BY segment").fetchall()
    if not segments:
        return Lives.none()
    keys = np.concatenate([np.frombuffer(each, np.uint8).reshape(-1, 2 * KEY_BYTES) for each, _ in segments])
    columns = [unpacked(each) for _, each in segments]
    if any(len(each) != _COLUMNS for each in columns):
        raise DecodeError("lives without their times: damaged")
    begins, ends, flags, judged_since = (np.concatenate(column) for column in zip(*columns, strict=True))
    if len(begins) != len(keys):
        raise DecodeError("lives without their keys: damaged")
    return Lives(
        keys=keys[:, :KEY_BYTES],
        digests=keys[:, KEY_BYTES:],
        begins=begins,
        ends=ends,
        flags=flags.astype(np.uint8),
        judged_since=judged_since,
    )


def write_lives(database: sqlite3.Connection, before: Lives, now: Lives) -> None:
    """Write the segments that have changed."""
    for start in range(0, len(now), _SEGMENT):
        part = slice(start, start + _SEGMENT)
        if _same(before, now, part):
            continue
        keys = np.concatenate((now.keys[part], now.digests[part]), 1).tobytes()
        columns = packed(now.begins[part], now.ends[part], now.flags[part], now.judged_since[part])
        database.execute("INSERT OR REPLACE INTO lives VALUES (?, ?, ?)", (start // _SEGMENT, keys, columns))


def append_texts(database: sqlite3.Connection, count: int, texts: Sequence[RuleText]) -> None:
    """Add the texts of new lives, which follow `count` others."""
    at = 0
    while at < len(texts):
        segment, known = divmod(count + at, _TEXTS)
        held = _texts(database, segment)[:known] if known else []
        held += texts[at : at + _TEXTS - known]
        blob = deflated(json.dumps([list(text.values()) for text in held], ensure_ascii=False).encode())
        database.execute("INSERT OR REPLACE INTO rule_texts VALUES (?, ?)", (segment, blob))
        at += _TEXTS - known


def read_texts(database: sqlite3.Connection, numbers: Sequence[int]) -> list[RuleText]:
    """Return the texts of some lives."""
    segments = {number // _TEXTS: list[RuleText]() for number in numbers}
    for segment in segments:
        segments[segment] = _texts(database, segment)
    try:
        return [segments[number // _TEXTS][number % _TEXTS] for number in numbers]
    except IndexError:
        raise DecodeError("lives without their texts: damaged") from None


def _texts(database: sqlite3.Connection, segment: int) -> list[RuleText]:
    row = database.execute("SELECT texts FROM rule_texts WHERE segment = ?", (segment,)).fetchone()
    if row is None:
        return []
    try:
        return [dict(zip(_KEYS, values, strict=True)) for values in json.loads(inflated(row[0]))]
    except (ValueError, TypeError) as error:
        raise DecodeError(f"texts of rules that are none: {error}") from error


_KEYS = ("resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType")


def _same(before: Lives, now: Lives, part: slice) -> bool:
    # keys never change
    names = ("begins", "ends", "flags", "judged_since")
    return all(np.array_equal(getattr(before, name)[part], getattr(now, name)[part]) for name in names)
