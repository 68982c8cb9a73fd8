"""Counted uses of ACLs, by days and spans of days, and their table."""

import pickle
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Final, NamedTuple, Self

import numpy as np
from attrs import field
from pyroaring import BitMap

from aclog.metalog.columns import Int64s
from aclog.metalog.errors import ConfigError, DecodeError
from aclog.metalog.values import define, frozen
from aclog.usage.index.database import deflated, inflated, packed, unpacked
from aclog.usage.index.used import LEVELS, LastUse, Span, Used, spans
from aclog.usage.window import AccessSets, UnreadAccesses

# Uses by day and by spans of days, in the table `used`: bitmaps of numbers, with counts.


TABLES: Final = """
CREATE TABLE used (kind INTEGER, level INTEGER, span INTEGER, chunk INTEGER, matched BLOB NOT NULL,
    needed BLOB NOT NULL, counts BLOB NOT NULL, PRIMARY KEY (kind, level, span, chunk));
"""

_BITMAPS: Final = "SELECT matched, needed FROM used WHERE kind = ? AND level = ? AND span = ?"
_COUNTS: Final = "SELECT matched, needed, counts FROM used WHERE kind = ? AND level = ? AND span = ?"

_CHUNK_BITS = 16
"""A chunk is the numbers that share all higher bits: those of one container of a bitmap."""

_MOST_PENDING = 1 << 21
"""How many rows are held before they are merged into the table; about 50 bytes each."""


class Kind(IntEnum):
    """The kind of a number."""

    LIVES = 0
    SETS = 1


class DayRows(NamedTuple):
    """How often numbers were used, by day: columns of the same length."""

    day: Int64s
    """Since 1970, UTC."""
    number: Int64s
    matched: Int64s
    needed: Int64s


@define(eq=False)
class UsedWriter:
    """Adds rows to the table, inside a transaction of its caller."""

    database: sqlite3.Connection
    kind: Kind
    _pending: list[DayRows] = field(factory=list, init=False)
    _count: int = field(default=0, init=False)

    def add(self, rows: DayRows) -> None:
        """Add rows; `flush` must follow the last ones."""
        self._pending.append(rows)
        self._count += len(rows.day)
        if self._count > _MOST_PENDING:
            self.flush()

    def flush(self) -> None:
        """Merge the pending rows."""
        if not self._count:
            return
        day, *columns = (np.concatenate(each) for each in zip(*self._pending, strict=True))
        self._pending, self._count = [], 0
        order = np.argsort(day, kind="stable")
        day, number, matched, needed = day[order], *(column[order] for column in columns)
        starts = np.flatnonzero(np.diff(day, prepend=day[0] - 1))
        more: list[tuple[int, Used]] = []
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(day)], strict=True):
            part = slice(start, end)
            used = Used.of(number[part], matched[part], needed[part])
            more += ((int(day[start]), each) for each in self._merge_day(int(day[start]), used))
        for level in LEVELS[1:]:
            by_span: dict[int, list[Used]] = defaultdict(list)
            for first_day, used in more:
                by_span[first_day >> level].append(used)
            more = [(number << level, _sum(parts)) for number, parts in by_span.items()]
            for first_day, used in more:
                self._merge_span(Span(level, first_day >> level), used)

    def _merge_day(self, day: int, used: Used) -> Iterator[Used]:
        span = Span(0, day)
        for chunk, part in _chunks(used):
            both, more = self._read(span, chunk).plus_same_day(part)
            self._write(span, chunk, both)
            yield more

    def _merge_span(self, span: Span, used: Used) -> None:
        for chunk, part in _chunks(used):
            self._write(span, chunk, self._read(span, chunk).plus(part))

    def _read(self, span: Span, chunk: int) -> Used:
        row = self.database.execute(
            "SELECT matched, needed, counts FROM used WHERE kind = ? AND level = ? AND span = ? AND chunk = ?",
            (self.kind, *span, chunk),
        ).fetchone()
        return Used.nothing() if row is None else _used(span, *row)

    def _write(self, span: Span, chunk: int, used: Used) -> None:
        columns = [used.matched, used.matched - used.needed]
        if span.level:
            columns += [used.days_matched, used.days_matched - used.days_needed]
        row = (
            self.kind,
            *span,
            chunk,
            _written(used.numbers[used.matched > 0]),
            _written(used.numbers[used.needed > 0]),
            packed(*columns),
        )
        self.database.execute("INSERT OR REPLACE INTO used VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def bitmaps(database: sqlite3.Connection, kind: Kind, first_day: int, last_day: int) -> tuple[BitMap, BitMap]:
    """Return the numbers that were matched, and those needed, on any of these days (since 1970, both included)."""
    rows = (row for span in spans(first_day, last_day) for row in database.execute(_BITMAPS, (kind, *span)))
    pairs = [(_bitmap(matched), _bitmap(needed)) for matched, needed in rows]
    if not pairs:
        return BitMap(), BitMap()
    matched, needed = zip(*pairs, strict=True)
    return BitMap.union(*matched), BitMap.union(*needed)


def used(database: sqlite3.Connection, first_day: int, last_day: int) -> Used:
    """Return how often lives were used on these days (since 1970, both included)."""
    parts = []
    for span in spans(first_day, last_day):
        parts += [_used(span, *row) for row in database.execute(_COUNTS, (Kind.LIVES, *span))]
    return _sum(parts)


def days_of(database: sqlite3.Connection, number: int) -> tuple[BitMap, BitMap]:
    """Return the days (since 1970) on which a life was matched, and those on which it was needed."""
    rows = database.execute(
        "SELECT span, matched, needed FROM used WHERE kind = ? AND level = 0 AND chunk = ?",
        (Kind.LIVES, number >> _CHUNK_BITS),
    )
    matched, needed = BitMap(), BitMap()
    for day, those_matched, those_needed in rows:
        if number in _bitmap(those_matched):
            matched.add(day)
        if number in _bitmap(those_needed):
            needed.add(day)
    return matched, needed


def _chunks(used: Used) -> Iterator[tuple[int, Used]]:
    of_number = used.numbers >> _CHUNK_BITS
    for chunk in np.unique(of_number).tolist():
        yield chunk, used.where(of_number == chunk)


def _sum(parts: Iterable[Used]) -> Used:
    """Add up all parts at once: one by one, each would be copied repeatedly."""
    all_parts = [part for part in parts if len(part)]
    if len(all_parts) < 2:
        return all_parts[0] if all_parts else Used.nothing()
    end = max(int(part.numbers[-1]) for part in all_parts) + 1
    is_used = np.zeros(end, np.bool_)
    for part in all_parts:
        is_used[part.numbers] = True

    def total(name: str) -> Int64s:
        """Add up a column; each part has a number once."""
        added = np.zeros(end, np.int64)
        for part in all_parts:
            added[part.numbers] += getattr(part, name)
        return added[is_used]

    return Used(
        numbers=np.flatnonzero(is_used),
        matched=total("matched"),
        needed=total("needed"),
        days_matched=total("days_matched"),
        days_needed=total("days_needed"),
    )


def _used(span: Span, matched: bytes, needed: bytes, counts: bytes) -> Used:
    # with allow.everyone.if.no.acl.found, an ACL may be needed that did not match
    numbers, columns = _numbers(_bitmap(matched) | _bitmap(needed)), unpacked(counts)
    if len(columns) != (4 if span.level else 2) or any(len(column) != len(numbers) for column in columns):
        raise DecodeError("counts without their numbers: damaged")
    matches, needs = columns[0], columns[0] - columns[1]
    days = (columns[2], columns[2] - columns[3]) if span.level else (matches > 0, needs > 0)
    return Used(
        numbers=numbers,
        matched=matches,
        needed=needs,
        days_matched=days[0].astype(np.int64),
        days_needed=days[1].astype(np.int64),
    )


def _written(numbers: Int64s) -> bytes:
    bitmap = BitMap(numbers.astype(np.uint32))
    bitmap.run_optimize()
    return deflated(bitmap.serialize())


def _bitmap(blob: bytes) -> BitMap:
    try:
        return BitMap.deserialize(inflated(blob))
    except ValueError as error:
        raise DecodeError(f"damaged: {error}") from error


def _numbers(bitmap: BitMap) -> Int64s:
    return np.frombuffer(bitmap.to_array(), np.uint32).astype(np.int64)


# The tally of a part of an access log, by the ordinals of the ACLs of its run: passed from tasks to the index.


@frozen(eq=False, kw_only=True)
class DayTally:
    """Numpy columns, quick to pickle. Tallies of parts add up, in any order."""

    rules: DayRows
    """By day and ordinal: accesses that the ACL matched, and those that needed it."""
    last_use: LastUse
    """By ordinal."""
    sets: AccessSets
    """Sets of ordinals that matched accesses together."""
    set_rows: DayRows
    """By day and position in `sets`: accesses in `matched`; `needed` is 0."""
    first: int
    """The times of the first and the last evaluated access, in us since 1970."""
    last: int
    accesses: int
    """The number of evaluated accesses."""
    unread: UnreadAccesses = field(factory=UnreadAccesses)
    """Accesses that cannot be decided."""

    @classmethod
    def nothing(cls) -> Self:
        """Return the tally of no accesses."""
        none = np.zeros(0, np.int64)
        rows = DayRows(none, none, none, none)
        limits = np.iinfo(np.int64)
        return cls(
            rules=rows,
            last_use=LastUse.nothing(),
            sets=AccessSets.of(()),
            set_rows=rows,
            first=limits.max,
            last=limits.min,
            accesses=0,
        )


def numbered_sets(sets: AccessSets, numbers: Int64s) -> AccessSets:
    """Return sets of ordinals as sets of the lives with these numbers: members ascend, the denies after the allows."""
    owner = np.repeat(np.arange(len(sets)), np.diff(sets.starts))
    members = numbers[sets.members]
    order = np.lexsort((members, sets.denies, owner))
    return AccessSets(starts=sets.starts, members=members[order], denies=sets.denies[order])


# Tallies that are held until all are computed: a few in memory, many in an unnamed file, which does not outlive a kill.


_IN_MEMORY: Final = 1 << 26
"""The most bytes in memory."""


@define(eq=False)
class Spool:
    """The tallies of a run, which only the process that wrote them reads."""

    _file: "SpooledTemporaryFile[bytes]"
    _count: int

    @classmethod
    def of(cls, tallies: Iterable[DayTally], directory: Path) -> Self:
        """Store all tallies. Raises ConfigError: the disk of `directory` is full. Errors of `tallies` are passed on."""
        file = SpooledTemporaryFile(_IN_MEMORY, dir=str(directory))  # noqa: SIM115 - closed by `__exit__`
        count = 0
        try:
            for tally in tallies:
                with _errors(directory):
                    pickle.dump(tally, file, pickle.HIGHEST_PROTOCOL)
                count += 1
        except BaseException:
            file.close()
            raise
        return cls(file, count)

    def __iter__(self) -> Iterator[DayTally]:
        """Yield the tallies."""
        self._file.seek(0)
        for _ in range(self._count):
            yield pickle.load(self._file)  # noqa: S301 - this process has written it

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


@contextmanager
def _errors(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{directory}: {error.strerror or error}: no part of this run was written") from error
