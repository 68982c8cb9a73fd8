"""Lives of ACLs, in columns by number."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple, Self

import numpy as np

from aclog.metalog.columns import Bools, Bytes, Int64s
from aclog.metalog.errors import DecodeError
from aclog.metalog.values import frozen
from aclog.usage.index.database import deflated, inflated, packed, unpacked

# The ACLs by which accesses were evaluated, as the index identifies them.


UNKNOWN: Final = -(1 << 62)
"""A begin that is unknown."""
STILL: Final = (1 << 62) - 1
"""The end of an ACL that is in force."""

RuleText = dict[str, str]
"""The seven keys of `acls list --format jsonl`."""


@frozen(eq=False, kw_only=True)
class SeenRules:
    """The ACLs of a run, numbered by ordinal."""

    ids: Bytes | None
    """The (n, 16) bytes of ids; None if the source has none."""
    digests: Bytes
    """(n, 16): of the ACLs without their ids (`digests`)."""
    denies: Bools
    texts: Callable[[Sequence[int]], list[RuleText]]
    """Returns the texts of some ordinals; called for new lives."""
    begins: Int64s
    """When each ACL came into force, in us since 1970; UNKNOWN without a log."""
    ends: Int64s
    """When it was removed; STILL while it is in force."""
    is_history: bool
    """Whether the begins and ends are from a log; if not, the ACLs count as in force for all accesses of the run."""
    known_from: int | None = None
    """With a history: since when the ACLs are known, in us since 1970; None: always."""
    is_whole: bool = True
    """Whether these are all ACLs of the state: all others are then gone."""

    def __len__(self) -> int:
        """Return the number of ACLs."""
        return len(self.digests)

    @property
    def keys(self) -> Bytes:
        """The (n, 16) bytes by which a life is known: the id, or else the digest."""
        return self.digests if self.ids is None else self.ids


def always(count: int) -> tuple[Int64s, Int64s]:
    """Return `begins` and `ends` of ACLs from a state without times."""
    return np.full(count, UNKNOWN, np.int64), np.full(count, STILL, np.int64)


# An ACL without its id, as its digest and as text.


KEY_BYTES: Final = 16
_HEAD_BYTES: Final = 3 + 16
"""The head of an ACL record: frame version, type, version of the record; and the id."""


def digests(records: Iterable[bytes]) -> Bytes:
    """Return the digests, as (n, 16) bytes, of ACLs given as records of a metadata log, without their ids."""
    joined = b"".join(blake2b(record[_HEAD_BYTES:], digest_size=KEY_BYTES).digest() for record in records)
    return np.frombuffer(joined, np.uint8).reshape(-1, KEY_BYTES)


# The lives of ACLs, in columns by number.


HAS_ID: Final = 1
DENIES: Final = 2
BEGIN_IS_EXACT: Final = 4
"""The begin is from a log; otherwise it is the earliest access of the first run that saw the ACL."""
END_IS_EXACT: Final = 8


@frozen(eq=False, kw_only=True)
class Lives:
    """Lives: the periods in which an ACL was in force; the number of a life is its row."""

    keys: Bytes
    """(n, 16): the id, or the digest of the ACL if no source had one."""
    digests: Bytes
    """(n, 16): of the ACL without its id."""
    begins: Int64s
    """In us since 1970."""
    ends: Int64s
    """In us since 1970; STILL if the last run saw it in force."""
    flags: Bytes
    judged_since: Int64s
    """In us since 1970: earlier accesses may not have been evaluated with it, by runs that did not know it or by a log
    that begins later."""

    def __len__(self) -> int:
        """Return the number of lives."""
        return len(self.begins)

    @classmethod
    def none(cls) -> Self:
        """Return an empty table of lives."""
        keys, times = np.zeros((0, KEY_BYTES), np.uint8), np.zeros(0, np.int64)
        return cls(keys=keys, digests=keys, begins=times, ends=times, flags=np.zeros(0, np.uint8), judged_since=times)

    def has(self, flag: int) -> Bools:
        """Return which lives have a flag."""
        flagged: Bools = self.flags & np.uint8(flag) > 0
        return flagged

    @property
    def is_open(self) -> Bools:
        """Which lives have not ended."""
        open_lives: Bools = self.ends == STILL
        return open_lives

    def newest_of_ids(self, ids: Bytes) -> Int64s:
        """Return the number of the newest life of each (n, 16) id, -1 if it has none."""
        return latest_rows(self.keys, self.has(HAS_ID), ids)

    def open_of_digests(self, digests: Bytes) -> Int64s:
        """Return the number of the open life of each (n, 16) digest, with an id or without, or -1."""
        return latest_rows(self.digests, self.is_open, digests)


def latest_rows(
    keys: Bytes, eligible: Bools, targets: Bytes, *, times: Int64s | None = None, target_times: Int64s | None = None
) -> Int64s:
    """Return for each target key (16 bytes) the last eligible row with it, or -1; with `times`, also of that time."""
    rows = np.flatnonzero(eligible)
    if not len(rows) or not len(targets):
        return np.full(len(targets), -1, np.int64)
    columns, target_columns = [*_halves(keys[rows])], [*_halves(targets)]
    if times is not None and target_times is not None:
        columns.append(times[rows])
        target_columns.append(target_times)
    numbers, sought = columns[0], target_columns[0]
    for column, target_column in zip(columns[1:], target_columns[1:], strict=True):
        # Numbered again for each column, so that pairs fit 64 bits. Ids are not always random: halves may be alike.
        known, numbers = np.unique(numbers, return_inverse=True)
        of_column, parts = np.unique(column, return_inverse=True)
        numbers = numbers * len(of_column) + parts
        first, second = _positions(known, sought), _positions(of_column, target_column)
        sought = np.where((first < 0) | (second < 0), -1, first * len(of_column) + second)
    order = np.argsort(numbers, kind="stable")
    in_order = numbers[order]
    at = np.maximum(np.searchsorted(in_order, sought, "right") - 1, 0)
    latest: Int64s = np.where(in_order[at] == sought, rows[order[at]], -1)
    return latest


def _positions(known: Int64s, values: Int64s) -> Int64s:
    """Return the position of each value in sorted ones, or -1."""
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    positions: Int64s = np.where(known[at] == values, at, -1)
    return positions


def _halves(keys: Bytes) -> tuple[Int64s, Int64s]:
    numbers = np.ascontiguousarray(keys).view(">u8").astype(np.uint64).view(np.int64)
    return numbers[:, 0], numbers[:, 1]


# Mapping of the ACLs of a run to lives: existing, new, extended and ended ones. Pure.


class AccessTimes(NamedTuple):
    """The times of the first and last access of runs, in us since 1970."""

    first: int
    last: int


@frozen(eq=False, kw_only=True)
class RuleNumbers:
    """The ACLs of a run as lives."""

    numbers: Int64s
    """By ordinal: the number of the ACL's life."""
    new: Int64s
    """The ordinals whose lives are new, in the order of their numbers, which follow those of all others."""


def number_rules(lives: Lives, rules: SeenRules) -> RuleNumbers:
    """Find the lives of the ACLs of a run, and number the new ones."""
    life_numbers = _of_history(lives, rules) if rules.is_history else _of_state(lives, rules)
    unknown = np.flatnonzero(life_numbers < 0)
    # an ACL that was added and removed between two batches was never visible, and may be repeated
    first = latest_rows(
        rules.keys, life_numbers < 0, rules.keys[unknown], times=rules.begins, target_times=rules.begins[unknown]
    )
    new, at = np.unique(first, return_inverse=True)
    numbers = life_numbers.copy()
    numbers[unknown] = len(lives) + at
    return RuleNumbers(numbers=numbers, new=new)


def lives_after(
    lives: Lives, rules: SeenRules, numbering: RuleNumbers, *, run: AccessTimes, before: AccessTimes | None
) -> Lives:
    """Return the lives after a run; `before` are the times of all earlier runs."""
    grown = _grown(lives, rules, numbering.new)
    begins, ends, flags = grown.begins.copy(), grown.ends.copy(), grown.flags.copy()
    if rules.is_whole:
        unseen = np.ones(len(grown), np.bool_)
        unseen[numbering.numbers] = False
        # a log that ends before an ACL was added has no information about it
        over = unseen & grown.is_open & ~(grown.has(BEGIN_IS_EXACT) & (grown.begins > run.last))
        ends[over] = np.maximum(begins[over], run.first if before is None else before.last)
    _note_begins(begins, flags, numbering.numbers, rules, run)
    _note_ends(ends, flags, numbering.numbers, rules)
    return Lives(
        keys=grown.keys,
        digests=grown.digests,
        begins=begins,
        ends=ends,
        flags=flags,
        judged_since=_judged_since(grown, numbering, rules, run=run, before=before),
    )


def _of_state(lives: Lives, rules: SeenRules) -> Int64s:
    return lives.open_of_digests(rules.digests) if rules.ids is None else lives.newest_of_ids(rules.ids)


def _of_history(lives: Lives, rules: SeenRules) -> Int64s:
    """Find lives by key and begin; a life seen without a log's times is the last one in the log."""
    keys = rules.keys
    eligible = lives.has(HAS_ID) if rules.ids is not None else ~lives.has(HAS_ID)
    exact = eligible & lives.has(BEGIN_IS_EXACT)
    numbers = latest_rows(lives.keys, exact, keys, times=lives.begins, target_times=rules.begins)
    # without ids, an ACL that was removed and added again has another life
    adoptable = eligible & ~exact if rules.ids is not None else eligible & ~exact & lives.is_open
    numbers = np.where((numbers < 0) & _is_last(rules), latest_rows(lives.keys, adoptable, keys), numbers)
    # the log begins at a checkpoint: it has the ACL, but not its begin
    since_ever = (numbers < 0) & (rules.begins == UNKNOWN)
    return np.where(since_ever, latest_rows(lives.keys, eligible, keys), numbers)


def _is_last(rules: SeenRules) -> Bools:
    """Return which ACLs are the last ones of their key."""
    order = np.argsort(rules.begins, kind="stable")
    keys = rules.keys[order]
    last = np.zeros(len(rules), np.bool_)
    last[order[latest_rows(keys, np.ones(len(keys), np.bool_), keys)]] = True
    return last


def _grown(lives: Lives, rules: SeenRules, new: Int64s) -> Lives:
    flags = np.where(rules.denies[new], DENIES, 0) | (0 if rules.ids is None else HAS_ID)
    return Lives(
        keys=np.concatenate((lives.keys, rules.keys[new])),
        digests=np.concatenate((lives.digests, rules.digests[new])),
        begins=np.concatenate((lives.begins, np.full(len(new), STILL, np.int64))),
        ends=np.concatenate((lives.ends, np.full(len(new), STILL, np.int64))),
        flags=np.concatenate((lives.flags, flags.astype(np.uint8))),
        judged_since=np.concatenate((lives.judged_since, np.full(len(new), UNKNOWN, np.int64))),
    )


def _judged_since(
    grown: Lives, numbering: RuleNumbers, rules: SeenRules, *, run: AccessTimes, before: AccessTimes | None
) -> Int64s:
    """Return since when each life was evaluated: a new or returning one was not in earlier runs."""
    since = grown.judged_since.copy()
    if before is not None:
        joined = numbering.numbers[~grown.is_open[numbering.numbers]]
        since[joined] = np.maximum(since[joined], before.last + 1)
        since[numbering.numbers[numbering.new]] = before.last + 1
    if rules.is_history and rules.known_from is not None and run.first < rules.known_from:
        # accesses before the checkpoint with which the log begins are not evaluated, also not by known lives
        since[numbering.numbers] = np.maximum(since[numbering.numbers], rules.known_from)
    return since


def _note_begins(begins: Int64s, flags: Bytes, numbers: Int64s, rules: SeenRules, run: AccessTimes) -> None:
    dated = rules.begins != UNKNOWN
    begins[numbers[dated]] = rules.begins[dated]
    flags[numbers[dated]] |= BEGIN_IS_EXACT
    # in force for all accesses of the run, as far as known
    since = run.first if rules.known_from is None else max(run.first, rules.known_from)
    rest = numbers[~dated]
    rest = rest[flags[rest] & BEGIN_IS_EXACT == 0]
    begins[rest] = np.minimum(begins[rest], since)


def _note_ends(ends: Int64s, flags: Bytes, numbers: Int64s, rules: SeenRules) -> None:
    ended = rules.ends != STILL
    ends[numbers[ended]] = rules.ends[ended]
    flags[numbers[ended]] |= END_IS_EXACT
    # an ACL that a log has removed does not return under its id
    rest = numbers[~ended]
    rest = rest[flags[rest] & END_IS_EXACT == 0]
    ends[rest] = STILL


# Lives in the database: their columns in segments, and the texts of their ACLs separately.


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
        segment, offset = divmod(count + at, _TEXTS)
        segment_texts = _texts(database, segment)[:offset] if offset else []
        segment_texts += texts[at : at + _TEXTS - offset]
        blob = deflated(json.dumps([list(text.values()) for text in segment_texts], ensure_ascii=False).encode())
        database.execute("INSERT OR REPLACE INTO rule_texts VALUES (?, ?)", (segment, blob))
        at += _TEXTS - offset


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
        raise DecodeError(f"invalid ACL texts: {error}") from error


_KEYS = ("resourceType", "resourceName", "patternType", "principal", "host", "operation", "permissionType")


def _same(before: Lives, now: Lives, part: slice) -> bool:
    # keys never change
    names = ("begins", "ends", "flags", "judged_since")
    return all(np.array_equal(getattr(before, name)[part], getattr(now, name)[part]) for name in names)
