"""Decisions as numbers, texts and step functions of the version.

Also which generation of Kafka decided when.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from heapq import heappop, heappush
from itertools import count as count_from
from typing import Any, NamedTuple, Protocol, Self, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import Factory, field
from numpy.typing import NDArray

from aclog.authorizer.acl import host_address, logged_address
from aclog.authorizer.acls_image import Basis
from aclog.authorizer.audit import operation_name, resource_type_name
from aclog.authorizer.codes import WILDCARD_PRINCIPAL, AclOperation, ResourceType
from aclog.authorizer.index.layout import Int32s
from aclog.authorizer.index.scan_order import EMPTY, NAMED, ODD, STAR
from aclog.authorizer.settings import Generation
from aclog.metalog.columns import Int64s
from aclog.metalog.errors import ConfigError, DecodeError
from aclog.metalog.values import define, frozen
from aclog.usage.arrow import ACL_FIELDS

# Decisions as one number each: the ordinal of the determining ACL, or a negative code without one.


class DecisionCode(IntEnum):
    """Decisions without a determining ACL; a code >= 0 is the ordinal of the ACL, whose permission type decides."""

    DEFAULT_DENY = -1
    DEFAULT_ALLOW = -2
    SUPER_USER = -3
    # everything below is an error: code that compares with DEFAULT_ALLOW or SUPER_USER relies on the order
    MISSING = -4
    NO_OPERATION = -5
    NO_RESOURCE_TYPE = -6
    NO_HOST = -7
    NO_PRINCIPAL = -8
    WILDCARD_PRINCIPAL = -9
    RULE_WITHOUT_COLON = -10
    NO_TIME = -11
    BEFORE_THE_LOG = -12
    UNKNOWN_KAFKA = -13


UNRESOLVED = -14
"""Internal to this package: the scan rank does not determine which ACL Kafka names, or whether it throws."""

ALLOWED = frozenset({DecisionCode.DEFAULT_ALLOW, DecisionCode.SUPER_USER})
"""The negative codes that allow."""

BASES = {
    DecisionCode.DEFAULT_DENY: Basis.DEFAULT_DENY.value,
    DecisionCode.DEFAULT_ALLOW: Basis.DEFAULT_ALLOW.value,
    DecisionCode.SUPER_USER: Basis.SUPER_USER.value,
}
"""The text of the audit log in place of an ACL."""

ERRORS = {
    DecisionCode.MISSING: "principal, host, operation, resourceType or resourceName is missing",
    DecisionCode.NO_OPERATION: "not an operation of Kafka",
    DecisionCode.NO_RESOURCE_TYPE: "not a resource type of Kafka",
    DecisionCode.NO_HOST: "the host is not an IPv4 or IPv6 address",
    DecisionCode.NO_PRINCIPAL: "the principal has no colon: expected Type:name",
    DecisionCode.WILDCARD_PRINCIPAL: "User:* is not a principal: in ACLs it matches all users",
    DecisionCode.RULE_WITHOUT_COLON: "an ACL on the resource has a principal with no colon: Kafka's authorizer throws",
    DecisionCode.NO_TIME: "the access has no timestamp, as of which to decide it",
    DecisionCode.BEFORE_THE_LOG: "the log does not reach back to the time of the access",
    DecisionCode.UNKNOWN_KAFKA: "Kafka 4.3 and 4.4 decide it by different ACLs, and which of them decided is not known",
}
"""The reason why there is no decision."""


# Decisions on many accesses as step functions of the version, in columns for fast lookups by row.


Steps: TypeAlias = Sequence[tuple[int, int]]
"""The (version, decision code) pairs of one access, ascending: the decision from that version on. The first is 0."""

_FIRST_SIZE = 1 << 12


class StepColumns(NamedTuple):
    """The steps of several accesses, by number and version, ascending; each of these accesses has one of version 0."""

    access: Int64s
    version: Int64s
    code: Int32s

    @classmethod
    def of(cls, steps: Mapping[int, Steps]) -> Self:
        """Return the steps of accesses by their numbers."""
        rows = [(access, *step) for access in sorted(steps) for step in steps[access]]
        access, version, code = np.array(rows, np.int64).reshape(-1, 3).T
        return cls(access, version, code.astype(np.int32))

    @classmethod
    def at(cls, keys: Int64s, stride: int) -> Self:
        """Return steps whose codes are 0, by access * stride + version: in any order, some of them repeated."""
        once = np.unique(keys)
        return cls(once // stride, once % stride, np.zeros(len(once), np.int32))

    def joined(self, other: Self) -> Self:
        """Return the steps of both, which have no access in common."""
        order = np.argsort(np.concatenate((self.access, other.access)), kind="stable")
        pairs: Iterable[Any] = zip(self, other, strict=True)
        return type(self)(*(np.concatenate(each)[order] for each in pairs))


@define(eq=False)
class DecisionSteps:
    """The steps of accesses 0, 1, ... one after another in each column. Columns only grow, by doubling."""

    _stride: int
    """More than the highest version."""
    _count: int = field(default=0, init=False)
    _size: int = field(default=0, init=False)
    """The number of steps in use; columns are longer."""
    _first: Int64s = field(factory=lambda: np.zeros(_FIRST_SIZE, np.int64), init=False)
    """By access: the position of its first step; one more entry than accesses."""
    _keys: Int64s = field(factory=lambda: np.zeros(_FIRST_SIZE, np.int64), init=False)
    """access * stride + version of each step: ascending over all accesses, so that one bisection serves a batch."""
    _codes: Int32s = field(factory=lambda: np.zeros(_FIRST_SIZE, np.int32), init=False)

    def __len__(self) -> int:
        return self._count

    @property
    def size(self) -> int:
        """The number of steps."""
        return self._size

    def append(self, codes: Int32s, changing: StepColumns) -> None:
        """Append accesses: each with one decision code for all versions, or with its steps in `changing`."""
        steps = np.bincount(changing.access, minlength=len(codes))
        counts = np.maximum(steps, 1)
        starts = np.concatenate(([0], np.cumsum(counts)))
        owner = np.repeat(np.arange(len(codes)), counts)
        keys, values = (owner + self._count) * self._stride, codes[owner]
        changes = np.flatnonzero(steps[owner])
        keys[changes] += changing.version
        values[changes] = changing.code
        self._first = _grown(self._first, self._count + len(codes) + 1)
        self._keys, self._codes = (_grown(column, self._size + len(keys)) for column in (self._keys, self._codes))
        self._first[self._count : self._count + len(starts)] = starts + self._size
        self._keys[self._size : self._size + len(keys)] = keys
        self._codes[self._size : self._size + len(keys)] = values
        self._count += len(codes)
        self._size += len(keys)

    def steps(self, access_of: Int64s, version: Int64s | int) -> Int64s:
        """Return the index of each row's step, for its access at its version."""
        step = self._first[access_of]
        # most accesses have a single step: bisect only for the rows of others
        rows = np.flatnonzero(self._first[access_of + 1] - step > 1)
        if len(rows):
            at = version if isinstance(version, int) else version[rows]
            keys = access_of[rows] * self._stride + at
            step[rows] = np.searchsorted(self._keys[: self._size], keys, "right") - 1
        return step

    def codes(self, steps: Int64s) -> Int32s:
        """Return the decision code of each step."""
        return self._codes[steps]

    def versions(self, steps: Int64s) -> Int64s:
        """Return the version at which each step begins."""
        return self._keys[steps] % self._stride


def _grown(column: "np.ndarray[tuple[int], np.dtype[np.generic]]", size: int) -> "np.ndarray":
    if size <= len(column):
        return column
    return np.concatenate((column, np.zeros(max(size - len(column), len(column)), column.dtype)))


# How the decision on one access changes over time, as ACLs are added and removed.


LEVELS = (NAMED, STAR, EMPTY, ODD)


class MatchingInterval(NamedTuple):
    """An ACL that matches an access, from version `start` until before version `end`.

    `rank` and `level` are its position in the order of Kafka's scan (authorizer.index.scan_order). `matches` is False
    for an ACL on the resource for another principal, host or operation; `unsure`: whether it matches is unknown.
    """

    start: int
    end: int
    rank: int
    level: int
    denies: bool
    ordinal: int
    matches: bool = True
    unsure: bool = False


def timeline(
    intervals: Iterable[MatchingInterval], *, below_star: bool, is_star: bool, allow_everyone: bool
) -> Iterator[tuple[int, int]]:
    """Yield (version, decision code) at every version at which an ACL is added or removed; the first is version 0.

    `below_star`: the resource's name sorts below `*`; `is_star`: it is `*`. With `allow_everyone`, `intervals` must
    include the ACLs on the resource that do not match.
    """
    starts = sorted(intervals)
    versions = sorted({0} | {interval.start for interval in starts} | {interval.end for interval in starts})
    sweep = _Sweep(below_star=below_star, is_star=is_star, allow_everyone=allow_everyone)
    at = 0
    for version in versions:
        while at < len(starts) and starts[at].start <= version:
            sweep.add(starts[at])
            at += 1
        sweep.drop(version)
        yield version, sweep.decision()


@define(kw_only=True)
class _Sweep:
    """The intervals in force at one version, which only moves forward.

    Heaps keep an ACL that is added and removed n times at O(n log n): its timeline has 2n steps.
    """

    below_star: bool
    is_star: bool
    allow_everyone: bool
    _denying: list[tuple[int, int, int, int]] = field(factory=list, init=False)
    _allowing: list[tuple[int, int, int, int]] = field(factory=list, init=False)
    """Heaps of (rank, end, level, ordinal) with the determining ACL on top: Kafka names the first ACL that denies, or
    else the last that allows, so the ranks of ALLOWs are negated."""
    _ends: list[tuple[int, bool, int, bool, bool]] = field(factory=list, init=False)
    _counts: dict[tuple[bool, int], int] = field(factory=dict, init=False)
    """The number of matching ACLs by (denies, level)."""
    _present: int = field(default=0, init=False)
    """The number of ACLs on the resource, matching or not."""
    _unsure: int = field(default=0, init=False)
    """The number of ACLs whose match is unknown."""

    def add(self, interval: MatchingInterval) -> None:
        """Add an ACL that was added."""
        if interval.end <= interval.start:
            return
        matches = interval.matches and not interval.unsure
        heappush(self._ends, (interval.end, interval.denies, interval.level, matches, interval.unsure))
        self._present += 1
        self._unsure += interval.unsure
        if matches:
            heap, rank = (self._denying, interval.rank) if interval.denies else (self._allowing, -interval.rank)
            heappush(heap, (rank, interval.end, interval.level, interval.ordinal))
            key = interval.denies, interval.level
            self._counts[key] = self._counts.get(key, 0) + 1

    def drop(self, version: int) -> None:
        """Drop the ACLs that are removed at or before this version."""
        while self._ends and self._ends[0][0] <= version:
            _, denies, level, matches, unsure = heappop(self._ends)
            self._present -= 1
            self._unsure -= unsure
            if matches:
                self._counts[denies, level] -= 1
        # an ended interval below the top stays in its heap: it is dropped when it surfaces
        for heap in (self._denying, self._allowing):
            while heap and heap[0][1] <= version:
                heappop(heap)

    def decision(self) -> int:
        """Return the decision code at this version."""
        if self._unsure:
            return DecisionCode.UNKNOWN_KAFKA
        if self._denying:
            return UNRESOLVED if self._is_order_ambiguous(denies=True) else self._denying[0][3]
        if self._allowing:
            return UNRESOLVED if self._is_order_ambiguous(denies=False) else self._allowing[0][3]
        if self.allow_everyone and not self._present:
            return DecisionCode.DEFAULT_ALLOW
        return DecisionCode.DEFAULT_DENY

    def _is_order_ambiguous(self, *, denies: bool) -> bool:
        levels = {level for level in LEVELS if self._counts.get((denies, level))}
        return is_order_ambiguous(levels, denies=denies, below_star=self.below_star, is_star=self.is_star)


def is_order_ambiguous(levels: set[int], *, denies: bool, below_star: bool, is_star: bool) -> bool:
    """Return whether the scan rank does not determine which ACL Kafka names, given the levels of the candidates.

    That is so if LITERAL `*` or an odd pattern type on the empty name is among them and Kafka may visit it earlier or
    later than its rank (authorizer.index.scan_order).
    """
    if ODD in levels:
        return len(levels) > 1
    if STAR not in levels or levels == {STAR}:
        return False
    if is_star and NAMED in levels:
        return True
    if denies:
        return NAMED not in levels
    return EMPTY not in levels and below_star


# The generations of Kafka that decided, by time: from 4.4 on, an ACL whose host is a range matches (KIP-1276).


class Ranges(IntEnum):
    """Whether ACLs match whose host is a range."""

    NO = 0
    YES = 1
    UNKNOWN = 2
    """Several generations of Kafka may have decided."""


class DecidingGenerations(Protocol):
    """The generations of Kafka that may decide (snapshots.deciding_kafka.DecidingKafka)."""

    @property
    def generations(self) -> tuple[Generation, ...]:
        """All that may."""
        ...

    @property
    def of_brokers(self) -> tuple[Generation, ...]:
        """Those that may decide what no controller decides."""
        ...


@frozen(kw_only=True)
class KafkaTimes:
    """The generation of Kafka that may have decided, from each of some times to the next one."""

    begins: tuple[int, ...]
    """In ms since 1970, ascending; the first entry also applies before its time."""
    ranges: tuple[Ranges, ...]
    """Whether ranges match an access that brokers decide."""
    of_controllers: tuple[Ranges, ...]
    """Whether they match one that controllers may also decide: as above, or unknown. Two neighbours differ in either.
    """

    @classmethod
    def of(cls, parts: Iterable[tuple[int, DecidingGenerations]]) -> Self:
        """Return it for generations that may have decided from some times on, in order; the last wins."""
        steps: list[tuple[int, tuple[Ranges, Ranges]]] = []
        for begin, kafka in parts:
            while steps and steps[-1][0] >= begin:
                steps.pop()
            has_ranges = _ranges_of(kafka.of_brokers), _ranges_of(kafka.generations)
            if not steps or steps[-1][1] != has_ranges:
                steps.append((begin, has_ranges))
        return cls(
            begins=tuple(begin for begin, _ in steps),
            ranges=tuple(of_brokers for _, (of_brokers, _) in steps),
            of_controllers=tuple(of_any for _, (_, of_any) in steps),
        )

    @property
    def only(self) -> Ranges | None:
        """The constant value; None if it changes, or is not the same for all accesses."""
        return self.ranges[0] if len({*self.ranges, *self.of_controllers}) == 1 else None

    @property
    def changes(self) -> tuple[int, ...]:
        """The times of changes, in ms since 1970."""
        return self.begins[1:]

    def at(self, times: Int64s, *, controllers: bool = False) -> NDArray[np.uint8]:
        """Return whether ACLs with ranges match at each of these times, in ms since 1970 (Ranges).

        `controllers`: for accesses that controllers may decide.
        """
        ranges = self.of_controllers if controllers else self.ranges
        return np.array(ranges, np.uint8)[np.searchsorted(np.array(self.changes, np.int64), times, "right")]


def _ranges_of(generations: Sequence[Generation]) -> Ranges:
    if len(generations) > 1:
        return Ranges.UNKNOWN
    return Ranges.YES if generations[0].has_ranges else Ranges.NO


# The accesses that decisions are about, and decisions as texts.


# Accesses as data: numbered in order of appearance, and parsed into what ACLs are matched against.


REQUEST_COLUMNS = ("principal", "host", "operation", "resourceType", "resourceName")
"""The columns of an authorization request, all of them text; the resource is LITERAL."""

_HOSTS_REMEMBERED = 1 << 16
_SPARSE = 16
"""With more numbers than this per row, the rows are sorted instead of marking each number."""
OPERATION_CODES = {name: int(code) for name, code in AclOperation.__members__.items()}
RESOURCE_TYPE_CODES = {name: int(code) for name, code in ResourceType.__members__.items()}


class Access(NamedTuple):
    """An access as it appears in a table; None for a missing value."""

    principal: str | None
    host: str | None
    operation: str | None
    resource_type: str | None
    resource_name: str | None


class ParsedAccess(NamedTuple):
    """A well-formed access: the host in canonical form, operation and resource type as codes."""

    principal: str
    host: str
    operation: int
    resource_type: int
    resource_name: str


T = TypeVar("T")


class _Numbers(dict[T, int]):
    """Numbers keys 0, 1, ... on first use; `ordered` has the keys in this order."""

    def __init__(self, spelling: Callable[[T], T] | None = None) -> None:
        super().__init__()
        self.ordered: list[T] = []
        """As `spelling` returns them."""
        self._spelling = spelling

    def of(self, keys: Sequence[T]) -> Int64s:
        """Return the numbers of these keys."""
        # a look-up in C for each key, and no call of Python for each new one
        new = list(dict.fromkeys([key for key in keys if key not in self]))
        self.update(zip(new, count_from(len(self)), strict=False))
        self.ordered += new if self._spelling is None else map(self._spelling, new)
        return np.fromiter(map(self.__getitem__, keys), np.int64, len(keys))


_FIRST_SLOTS = 1 << 10
_MIX = np.uint64(0x9E3779B97F4A7C15)
"""The golden ratio of 2^64: a multiplication by it spreads numbers that are near each other."""


@define(eq=False)
class _Rows:
    """Numbers distinct rows of int32 codes 0, 1, ... by open addressing in arrays: no object for each row."""

    width: int
    codes: Int32s = field(
        init=False, default=Factory(lambda self: np.empty((0, self.width), np.int32), takes_self=True)
    )
    """Of the rows, in their order; longer than they are."""
    _count: int = field(default=0, init=False)
    _slots: Int32s = field(factory=lambda: np.full(_FIRST_SLOTS, -1, np.int32), init=False)
    """By hash: the number of a row, or -1; at most half of them are taken."""

    def __len__(self) -> int:
        return self._count

    def number(self, rows: Int32s) -> Int64s:
        """Return the number of each of some rows, of which no two are equal; new ones get the next numbers."""
        self._reserve(self._count + len(rows))
        numbers = self._find(rows)
        new = np.flatnonzero(numbers < 0)
        numbers[new] = np.arange(self._count, self._count + len(new))
        self.codes[self._count : self._count + len(new)] = rows[new]
        self._count += len(new)
        self._insert(numbers[new])
        return numbers

    def _find(self, rows: Int32s) -> Int64s:
        numbers, left, slots = np.full(len(rows), -1, np.int64), np.arange(len(rows)), self._hashes(rows)
        while len(left):
            number = self._slots[slots]
            taken = number >= 0
            left, slots, number = left[taken], slots[taken], number[taken]
            same = (self.codes[number] == rows[left]).all(axis=1)
            numbers[left[same]] = number[same]
            left, slots = left[~same], (slots[~same] + 1) & (len(self._slots) - 1)
        return numbers

    def _insert(self, numbers: Int64s) -> None:
        slots = self._hashes(self.codes[numbers])
        while len(numbers):
            free = self._slots[slots] < 0
            # of several rows for one slot, the last that is written has it
            self._slots[slots[free]] = numbers[free]
            waiting = self._slots[slots] != numbers
            numbers, slots = numbers[waiting], (slots[waiting] + 1) & (len(self._slots) - 1)

    def _hashes(self, rows: Int32s) -> Int64s:
        mixed = np.zeros(len(rows), np.uint64)
        for at in range(self.width):
            mixed = (mixed ^ rows[:, at].astype(np.uint64)) * _MIX
            mixed ^= mixed >> np.uint64(32)
        return (mixed & np.uint64(len(self._slots) - 1)).astype(np.int64)

    def _reserve(self, count: int) -> None:
        if count > len(self.codes):
            codes = np.empty((count + count // 4, self.width), np.int32)
            codes[: self._count] = self.codes[: self._count]
            self.codes = codes
        if 2 * count > len(self._slots):
            self._slots = np.full(1 << (2 * count - 1).bit_length(), -1, np.int32)
            self._insert(np.arange(self._count))


@frozen(eq=False)
class DistinctAccesses:
    """The accesses of a batch, each once."""

    encoded: Sequence[tuple[Sequence[str | None], Int64s]]
    """By column: the distinct texts, and the index of each row's."""
    once: Int64s
    """A row of each."""
    access_of: Int64s
    """By row: its access."""

    @classmethod
    def of(cls, columns: Sequence[Any]) -> "DistinctAccesses":
        """Find the distinct accesses of the columns REQUEST_COLUMNS."""
        encoded = [_once_each(*encoded_texts(column)) for column in columns]
        once, access_of = _distinct([(len(values), codes) for values, codes in encoded])
        return cls(encoded, once, access_of.astype(np.int64, copy=False))


@define(eq=False)
class AccessNumbers:
    """Numbers distinct accesses 0, 1, ... in order of appearance, in about 40 bytes each.

    Texts are numbered per column first, so that an access is five int32s. A text takes about 140 bytes. With
    `spelled`, the texts that are returned are Kafka's spellings of those that were read (spelled_as_kafka).
    """

    spelled: bool = False
    _texts: tuple[_Numbers[str | None], ...] = field(
        init=False, default=Factory(lambda self: _text_numbers(spelled=self.spelled), takes_self=True)
    )
    _accesses: _Rows = field(factory=lambda: _Rows(len(REQUEST_COLUMNS)), init=False)

    def __len__(self) -> int:
        return len(self._accesses)

    def number(self, columns: Sequence[Any]) -> tuple[Int64s, int]:
        """Return the number of each row's access, and how many are seen for the first time: the last numbers.

        `columns` are the five columns of a batch (REQUEST_COLUMNS): Arrow arrays of text, plain or dictionary-encoded.
        """
        distinct = DistinctAccesses.of(columns)
        numbers, new = self.number_distinct(distinct)
        return numbers[distinct.access_of], new

    def number_distinct(self, distinct: DistinctAccesses) -> tuple[Int64s, int]:
        """Do the same for the accesses of a batch, each once."""
        numbers = np.empty((len(distinct.once), len(distinct.encoded)), np.int32)
        for at, ((values, codes), texts) in enumerate(zip(distinct.encoded, self._texts, strict=True)):
            numbers[:, at] = texts.of(values)[codes[distinct.once]]
        before = len(self)
        return self._accesses.number(numbers), len(self) - before

    def columns(self, accesses: Int64s | slice) -> "list[pa.DictionaryArray[Any, Any]]":
        """Return the texts of some accesses as dictionary-encoded columns."""
        codes = self._accesses.codes[: len(self)][accesses]
        return [_dictionary(texts.ordered, codes[:, at]) for at, texts in enumerate(self._texts)]


def _dictionary(texts: Sequence[str | None], codes: Int32s) -> "pa.DictionaryArray[Any, Any]":
    """Return a column of texts, without those that it has no row of: a few accesses of many have few texts."""
    used, numbers = used_numbers(codes, len(texts))
    values = [texts[number] for number in used.tolist()]
    present = np.array([value is not None for value in values], np.bool_)
    number: Any = pa.array((np.cumsum(present) - 1)[numbers].astype(np.int32), mask=~present[numbers])  # null for None
    return pa.DictionaryArray.from_arrays(number, pa.array([each for each in values if each is not None], pa.string()))


def used_numbers(of: NDArray[np.signedinteger], size: int) -> tuple[Int64s, Int64s]:
    """Return the numbers below a size that rows have, ascending, and the position of each row's among them."""
    if size > _SPARSE * len(of):
        return np.unique(of, return_inverse=True)
    is_used = np.zeros(size, np.bool_)
    is_used[of] = True
    return np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[of]


def _text_numbers(*, spelled: bool) -> tuple[_Numbers[str | None], ...]:
    spellings = (None, _host_as_kafka, _operation_as_kafka, _type_as_kafka, None)
    return tuple(_Numbers(spelling if spelled else None) for spelling in spellings)


def _host_as_kafka(text: str | None) -> str | None:
    return None if text is None else _logged_address(text)


def _operation_as_kafka(text: str | None) -> str | None:
    return None if text is None else operation_name(text) or text


def _type_as_kafka(text: str | None) -> str | None:
    return None if text is None else resource_type_name(text) or text


def encoded_texts(column: Any) -> tuple[list[str | None], Int64s]:
    """Return the distinct values, with None appended as the last, and the index of each row's value.

    Raises:
        DecodeError: a value is not UTF-8.

    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    try:
        values = column.dictionary.to_pylist()
    except UnicodeDecodeError as error:
        raise DecodeError(f"text of an access that is not UTF-8: {bytes(error.object)[:100]!r}") from error
    indices = column.indices
    if column.null_count:
        indices = indices.fill_null(len(values))
    codes = np.asarray(indices).astype(np.int64)
    if column.dictionary.null_count:
        codes = np.array([len(values) if value is None else at for at, value in enumerate([*values, None])])[codes]
    return [*values, None], codes


def _once_each(values: list[str | None], codes: Int64s) -> tuple[list[str | None], Int64s]:
    """Return values without repetition: a dictionary that was read may have a value twice."""
    place = dict.fromkeys(values)
    if len(place) == len(values):
        return values, codes
    number = {value: at for at, value in enumerate(place)}
    return list(place), np.fromiter(map(number.__getitem__, values), np.int64, len(values))[codes]


def _distinct(columns: Iterable[tuple[int, Int64s]]) -> tuple[Int64s, Int32s]:
    """Return one row for each distinct combination of codes, and the combination of each row.

    Columns are (number of values, code of each row).
    """
    codes, size = np.zeros(0, np.int64), 0
    for count, column in columns:
        if not size:
            codes, size = column, count
            continue
        # codes are mixed-radix numbers: renumber before they exceed int64
        if size * count >= 1 << 62:
            codes, size = np.asarray(pa.array(codes).dictionary_encode().indices).astype(np.int64), len(codes)
        codes, size = codes * count + column, size * count
    encoded = pa.array(codes).dictionary_encode()
    access_of = np.asarray(encoded.indices)
    rows = np.empty(len(encoded.dictionary), np.int64)
    rows[access_of] = np.arange(len(codes))
    return rows, access_of


def spelled_as_kafka(access: Access) -> Access:
    """Return an access with the spellings of its host, operation and type that have one meaning as Kafka has them.

    Logs have been through other programs: `/10.0.0.1`, `Read`, `topic` (logged_address, operation_name).
    """
    principal, host, operation, kind, name = access
    return Access(principal, _host_as_kafka(host), _operation_as_kafka(operation), _type_as_kafka(kind), name)


def parse_access(access: Access) -> ParsedAccess | DecisionCode:
    """Return what ACLs are matched against, or the error; the principal is checked later (`principal_error`)."""
    principal, host, operation, resource_type, name = access
    if principal is None or host is None or operation is None or resource_type is None or name is None:
        return DecisionCode.MISSING
    operation_code = OPERATION_CODES.get(operation)
    if operation_code is None:
        return DecisionCode.NO_OPERATION
    type_code = RESOURCE_TYPE_CODES.get(resource_type)
    if type_code is None:
        return DecisionCode.NO_RESOURCE_TYPE
    address = request_address(host)
    if address is None:
        return DecisionCode.NO_HOST
    return ParsedAccess(
        principal=principal, host=address, operation=operation_code, resource_type=type_code, resource_name=name
    )


def principal_error(principal: str) -> DecisionCode | None:
    """Return the error if Kafka's authorizer throws on a principal that is not a super user."""
    if principal == WILDCARD_PRINCIPAL:
        return DecisionCode.WILDCARD_PRINCIPAL
    return DecisionCode.NO_PRINCIPAL if ":" not in principal else None


_logged_address = lru_cache(_HOSTS_REMEMBERED)(logged_address)


@lru_cache(_HOSTS_REMEMBERED)
def request_address(host: str) -> str | None:
    """Return the address in the form that ACLs are compared with; None if the text is not an address."""
    try:
        return host_address(host)
    except ConfigError:
        return None


# Decision codes as text, in Arrow columns: the decision, the ACL as in Kafka's audit log, and its id.


TEXT_COLUMNS = ("decision", "rule", "rule_id")

_FIRST = int(min(DecisionCode))
_TEXT: Any = pa.large_string()
"""64-bit offsets: the texts of ten million ACLs exceed the 2 GiB of a string column."""


@frozen(eq=False)
class DecisionTexts:
    """The columns TEXT_COLUMNS; the row of code c is c - min(DecisionCode)."""

    table: pa.Table

    @classmethod
    def of_rules(cls, rules: pa.Table) -> "DecisionTexts":
        """Make the texts from the columns RULE_COLUMNS, in the order of the ordinals."""
        named = pa.table(
            [_decisions(rules), texts_of_rules(rules), rules.column("id").cast(_TEXT)], names=list(TEXT_COLUMNS)
        )
        return cls(pa.concat_tables([_without_rule(), named.cast(_without_rule().schema)]).combine_chunks())

    def of_codes(self, codes: "pa.Array[Any]") -> list[Any]:
        """Return the columns with one row per code, for batches whose texts stay below 2 GiB per column."""
        rows = pc.subtract(codes, pa.scalar(_FIRST, pa.int32()))
        return [column.chunk(0).take(rows).cast(pa.string()) for column in self.table.columns]

    def code_of(self, rule: str) -> int:
        """Return the first code with this text of the audit log, which one has."""
        return int(pc.index(self.table.column("rule"), pa.scalar(rule, _TEXT)).as_py()) + _FIRST

    def allowing(self) -> "NDArray[np.bool_]":
        """Return whether each code allows, from min(DecisionCode) on."""
        return np.asarray(pc.equal(self.table.column("decision"), pa.scalar("ALLOWED", _TEXT)))

    def numbered(self) -> pa.Table:
        """Return the table with each row's code as the first column, decision_code."""
        codes = pa.array(range(_FIRST, _FIRST + len(self.table)), pa.int32())
        return self.table.add_column(0, "decision_code", codes)


def _without_rule() -> pa.Table:
    rows = []
    for code in map(DecisionCode, range(_FIRST, 0)):
        decision = "ALLOWED" if code in ALLOWED else "DENIED"
        rows.append((decision, BASES[code]) if code in BASES else ("ERROR", ERRORS[code]))
    decisions, texts = zip(*rows, strict=True)
    columns: Any = [pa.array(decisions, _TEXT), pa.array(texts, _TEXT), pa.nulls(len(rows), _TEXT)]
    return pa.table(columns, names=list(TEXT_COLUMNS))


def _decisions(rules: pa.Table) -> Any:
    allows = pc.equal(rules.column("permissionType"), pa.scalar("ALLOW"))
    return pc.if_else(allows, pa.scalar("ALLOWED", _TEXT), pa.scalar("DENIED", _TEXT))


def texts_of_rules(rules: pa.Table) -> Any:
    """Return the text of each ACL in the audit log (StandardAcl.toString), given the columns RULE_COLUMNS."""
    parts: list[Any] = []
    for name in ACL_FIELDS:
        head = f"{', ' if parts else 'MatchingAcl(acl=StandardAcl['}{name}="
        parts += [pa.scalar(head, _TEXT), rules.column(name).cast(_TEXT)]
    return pc.binary_join_element_wise(*parts, pa.scalar("])", _TEXT), pa.scalar("", _TEXT))
