"""ACLs and the intervals in which they were in force."""

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, field
from numpy.typing import NDArray

from aclog.analysis.rows.rule_tables import rules_arrow
from aclog.authorizer.acl import AclBindingFilter, is_cidr
from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.codes import AclOperation, AclPermissionType, PatternType, ResourceType
from aclog.authorizer.index.base import Base
from aclog.authorizer.index.layout import ALLOWED, DENIED, OPERATIONS, TYPES, Int32s, compact, expanded, rule_mask
from aclog.authorizer.index.name_resources import NameResources
from aclog.authorizer.index.scan_order import levels_of, ranks_of
from aclog.authorizer.index.subjects import Matcher
from aclog.authorizer.settings import Settings, controllers_decide
from aclog.metalog.columns import AclColumns, Bools, Int64s, read_acls
from aclog.metalog.records import FRAME_VERSION, RecordType
from aclog.metalog.values import define, frozen
from aclog.usage.arrow import ACL_FIELDS
from aclog.usage.decisions.access_columns import AccessColumns
from aclog.usage.decisions.decisions import (
    DecidingGenerations,
    DecisionTexts,
    KafkaTimes,
    ParsedAccess,
    Ranges,
    StepColumns,
)

# ACLs and the intervals in which they were in force, in the compact form that is broadcast to workers.


RULE_COLUMNS = (*ACL_FIELDS, "id")
"""The columns of a table of ACLs, all of them text; `id` may be null."""

ALWAYS, FOREVER = -(1 << 62), 1 << 62
"""In place of null in `visible_from` and `visible_to`, in ms since 1970; times 1000 they would overflow int64."""

_NUMBER_BYTES = 8
_REST_OF_ID = bytes(16 - _NUMBER_BYTES)
_HEAD = bytes((FRAME_VERSION, RecordType.ACCESS_CONTROL_ENTRY_RECORD, 0))
_NO_TAGS = b"\0"


@frozen(eq=False, kw_only=True)
class AclIntervals:
    """n intervals, numbered by ordinal: the row of the table that they were made from.

    A content (an ACL without its id) is held once, however often it was added and removed: as the record of a metadata
    log, with the content's number in place of the id. All of it is flat buffers, quick to broadcast and to unpickle: a
    million ACLs take about 100 MB.
    """

    records: bytes
    record_ends: Int64s
    content_of: Int32s
    """By ordinal: the number of the ACL's content."""
    visible_from: Int64s
    visible_to: Int64s
    """By ordinal, in ms since 1970: an access at time T is decided by the ACLs with from <= T < to."""
    known_from: int = ALWAYS
    """The time since which the ACLs are known, in ms since 1970."""
    kafka: KafkaTimes | None = None
    """Which Kafka decided when; None: the settings name it."""

    def __len__(self) -> int:
        return len(self.content_of)

    @property
    def is_history(self) -> bool:
        """Whether the ACLs were not all in force at all times."""
        always = bool((self.visible_from == ALWAYS).all() and (self.visible_to == FOREVER).all())
        return self.known_from != ALWAYS or not always

    @classmethod
    def of_table(cls, table: pa.Table, *, known_from: int | None = None) -> Self:
        """Make intervals from the columns RULE_COLUMNS and, unless the ACLs are permanent, visible_from and visible_to.

        Unknown names of enum values become UNKNOWN, as unknown codes do in Kafka.
        """
        content_of, rows = _numbered(table)
        records = _records(table.select(ACL_FIELDS).take(rows))
        return cls(
            records=b"".join(records),
            record_ends=_ends(records),
            content_of=content_of,
            visible_from=_times(table, "visible_from", ALWAYS),
            visible_to=_times(table, "visible_to", FOREVER),
            known_from=ALWAYS if known_from is None else known_from,
        )

    @property
    def columns(self) -> AclColumns:
        """The contents, by number, as columns over `records`; the number is in the first bytes of the id."""
        starts = np.concatenate((np.zeros(min(len(self.record_ends), 1), np.int64), self.record_ends[:-1]))
        return read_acls(self.records, starts, self.record_ends)[0]


def rule_table(image: AclsImage) -> pa.Table:
    """Return all ACLs of an image in the columns RULE_COLUMNS; the id is null if the source has no ids."""
    columns = image.columns(AclBindingFilter())
    assert columns is not None  # noqa: S101 - the filter has no name
    table = rules_arrow(columns).select(RULE_COLUMNS)
    if image.index.base.has_ids:
        return table
    # the ids of changes to a base without ids are made up, and must not be shown
    return table.set_column(len(RULE_COLUMNS) - 1, "id", pa.nulls(len(table), pa.string()))


def numbers_of_ids(ids: Any) -> Int32s:
    """Return the numbers of contents from the (n, 16) bytes of their ids."""
    return np.ascontiguousarray(ids[:, :_NUMBER_BYTES]).view(">u8")[:, 0].astype(np.int32)


def _records(contents: pa.Table) -> list[bytes]:
    """Return the contents as records, assembled from encoded parts: ten times as fast as encoding object by object."""
    kinds, names, patterns, principals, hosts, operations, permissions = (
        [encoded[code] for code in codes]
        for encoded, codes in (
            _parts(contents, "resourceType", lambda name: _code(ResourceType, name)),
            _parts(contents, "resourceName", compact),
            _parts(contents, "patternType", lambda name: _code(PatternType, name)),
            _parts(contents, "principal", compact),
            _parts(contents, "host", compact),
            _parts(contents, "operation", lambda name: _code(AclOperation, name)),
            _parts(contents, "permissionType", lambda name: _code(AclPermissionType, name)),
        )
    )
    ids = (number.to_bytes(_NUMBER_BYTES) + _REST_OF_ID for number in range(len(contents)))
    parts = (ids, kinds, names, patterns, principals, hosts, operations, permissions)  # in the order of the schema
    rows = zip(*parts, strict=True)
    return [b"".join((_HEAD, *row, _NO_TAGS)) for row in rows]


def _parts(contents: pa.Table, name: str, encode: Callable[[str], bytes]) -> tuple[list[bytes], list[int]]:
    """Return the encoded distinct values of a column, and the index of each row's value."""
    column = contents.column(name).combine_chunks().dictionary_encode()
    texts: list[str] = column.dictionary.to_pylist()  # type: ignore[assignment]  # there are no nulls
    return [encode(text) for text in texts], np.asarray(column.indices).tolist()


def _code(kind: type[IntEnum], name: str) -> bytes:
    return bytes((kind.__members__.get(name, 0),))


def _numbered(table: pa.Table) -> tuple[Int32s, Int64s]:
    """Return the number of each row's content, and a row for each content."""
    codes = np.zeros(len(table), np.int64)
    for name in ACL_FIELDS:
        column = table.column(name).combine_chunks().dictionary_encode()
        size = max(len(column.dictionary), 1)
        codes = codes * size + np.asarray(column.indices).astype(np.int64)
        _, codes = np.unique(codes, return_inverse=True)
    _, rows = np.unique(codes, return_index=True)
    return codes.astype(np.int32), rows.astype(np.int64)


def _ends(values: list[bytes]) -> Int64s:
    return np.cumsum(np.fromiter(map(len, values), np.int64, len(values)))


def _times(table: pa.Table, name: str, missing: int) -> Int64s:
    if name not in table.schema.names:
        return np.full(len(table), missing, np.int64)
    return np.asarray(table.column(name).cast(pa.int64()).fill_null(pa.scalar(missing))).astype(np.int64)


# The ACLs that decide accesses, as text and with the intervals in which they were in force.


@frozen(eq=False, kw_only=True)
class Rules:
    """The ACLs to decide by, as text and in the form that decides; row n of `table` is ordinal n."""

    table: pa.Table
    intervals: AclIntervals

    @cached_property
    def texts(self) -> DecisionTexts:
        """The texts of decision codes."""
        return DecisionTexts.of_rules(self.table)

    def texts_of(self, codes: Int32s) -> list[Any]:
        """Return the columns TEXT_COLUMNS of a few codes, without the texts of all other ACLs."""
        ordinals, number = np.unique(codes[codes >= 0], return_inverse=True)
        renumbered = codes.copy()
        renumbered[codes >= 0] = number
        return DecisionTexts.of_rules(self.table.take(ordinals.astype(np.int64))).of_codes(pa.array(renumbered))

    @property
    def ranges(self) -> list[str]:
        """The hosts that are ranges of addresses, each once."""
        return [host for host in self.table.column("host").unique().to_pylist() if host is not None and is_cidr(host)]

    def with_kafka(self, kafka: KafkaTimes | None) -> Self:
        """Return the same ACLs, and which Kafka decided when."""
        return evolve(self, intervals=evolve(self.intervals, kafka=kafka))

    def _concern_controllers(self) -> bool:
        """Return whether an ACL whose host is a range could matter to an access that a controller decides."""
        columns = self.table.select(["host", "resourceType", "operation", "permissionType"])
        ranges = columns.filter(pc.is_in(columns.column("host"), pa.array(self.ranges, pa.string()))).to_pylist()
        rules = {(row["resourceType"], row["operation"], row["permissionType"]) for row in ranges}
        return any(
            controllers_decide(ResourceType[kind], operation)
            and rule_mask(AclOperation[of], AclPermissionType[permission]) >> operation & (ALLOWED | DENIED)
            for kind, of, permission in rules
            for operation in AclOperation
        )

    def by_kafka(
        self, settings: Settings, kafkas: Callable[[bool], Iterable[tuple[int, DecidingGenerations]]]
    ) -> tuple[Self, Settings]:
        """Return the ACLs and the settings by which accesses are decided, if the settings name no Kafka.

        `kafkas` returns which Kafka may have decided from which times on (KafkaTimes.of), given whether an ACL with a
        range could matter to an access that controllers decide; it is only called if an ACL has a range.
        """
        if settings.is_kafka_stated or not self.ranges:
            return self, settings
        kafka = KafkaTimes.of(kafkas(self._concern_controllers()))
        if kafka.only in (Ranges.NO, Ranges.YES):
            return self, evolve(settings, cidr=kafka.only is Ranges.YES, is_kafka_stated=True)
        return self.with_kafka(kafka), evolve(settings, cidr=False, is_kafka_stated=True)

    @classmethod
    def of_image(cls, image: AclsImage) -> Self:
        """Take the ACLs of one state, as in force at all times."""
        return cls.of_table(rule_table(image))

    @classmethod
    def of_table(cls, table: pa.Table, *, known_from: int | None = None) -> Self:
        """Take the ACLs of a history, each with its interval (aclog.pipeline.history.intervals).

        `known_from` is the time since which they are known, in ms since 1970; None for at all times.
        """
        return cls(table=table.select(RULE_COLUMNS), intervals=AclIntervals.of_table(table, known_from=known_from))


# Versions of a set of ACLs: the states that it went through, numbered in order of time.


def change_times(intervals: AclIntervals) -> Int64s:
    """Return the times at which versions 1, 2, ... begin, ascending, in ms since 1970.

    A change of the Kafka that decides also makes a version.
    """
    of_kafka = np.array(() if intervals.kafka is None else intervals.kafka.changes, np.int64)
    times = np.unique(np.concatenate((intervals.visible_from, intervals.visible_to, of_kafka)))
    return times[(times > ALWAYS) & (times < FOREVER)]


@frozen(eq=False, kw_only=True)
class Versions:
    """The versions between which each ACL was in force.

    Version v holds from the v-th time at which any ACL was added or removed, or another Kafka decided; version 0 holds
    before the first such time.
    """

    times: Int64s
    """When versions 1, 2, ... begin, ascending, in ms since 1970."""
    starts: Int64s
    ends: Int64s
    """By ordinal: the first version with the ACL, and the first one without it."""
    permanent: Bools
    """By ordinal: whether the ACL is in force at all versions."""
    ranges: NDArray[np.uint8] | None = None
    """By version: whether ACLs match whose host is a range (Ranges); None: the settings decide."""
    ranges_of_controllers: NDArray[np.uint8] | None = None
    """The same for accesses that controllers may decide: as above, or unknown."""

    @classmethod
    def of(cls, intervals: AclIntervals) -> Self:
        """Number the versions of these intervals."""
        times = change_times(intervals)
        end = len(times) + 1
        starts = np.searchsorted(times, intervals.visible_from, "right")
        ends = np.where(intervals.visible_to < FOREVER, np.searchsorted(times, intervals.visible_to, "right"), end)
        kafka = intervals.kafka
        begins = np.concatenate(([ALWAYS], times))
        return cls(
            times=times,
            starts=starts,
            ends=ends,
            permanent=(starts == 0) & (ends == end),
            ranges=None if kafka is None else kafka.at(begins),
            ranges_of_controllers=None if kafka is None else kafka.at(begins, controllers=True),
        )

    @property
    def end(self) -> int:
        """The number after the last version."""
        return len(self.times) + 1

    def at(self, times: Int64s) -> Int64s:
        """Return the version at each of these times, in us since 1970."""
        return np.searchsorted(self.times * 1000, times, "right")

    def kafka_changes(self) -> Int64s:
        """Return the versions at which ranges begin or cease to match any access."""
        arrays = [each for each in (self.ranges, self.ranges_of_controllers) if each is not None]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *(np.flatnonzero(np.diff(e)) + 1 for e in arrays)]))

    def in_force(self, version: int) -> Bools:
        """Return by ordinal whether the ACL is in force at a version."""
        in_force: Bools = (self.starts <= version) & (version < self.ends)
        return in_force


# Intervals by ACL content: which interval of a content is in force at a version, and when contents change.


@frozen(eq=False, kw_only=True)
class ContentIntervals:
    """The intervals of contents (ACLs without their ids); those of one content do not overlap."""

    versions: Versions
    content_of: Int32s
    """By ordinal."""
    permanent: Bools
    """By content: whether it is in force at all versions."""
    _order: Int64s
    """Ordinals by content and start."""
    _keys: Int64s
    """content * end + start of these: one sorted array, so that one bisection finds both."""
    _content_starts: Int64s
    """By content: where its intervals begin in `_order`; one more entry than contents."""

    @classmethod
    def of(cls, intervals: AclIntervals) -> Self:
        """Index the intervals."""
        contents, versions = len(intervals.record_ends), Versions.of(intervals)
        # an ACL added and removed at one time was never visible, and its key would shadow that of its successor
        visible = np.flatnonzero(versions.starts < versions.ends)
        keys = intervals.content_of[visible] * np.int64(versions.end) + versions.starts[visible]
        order = np.argsort(keys)
        permanent = np.zeros(contents, np.bool_)
        permanent[intervals.content_of[versions.permanent]] = True
        return cls(
            versions=versions,
            content_of=intervals.content_of,
            permanent=permanent,
            order=visible[order],
            keys=keys[order],
            content_starts=np.searchsorted(keys[order], np.arange(contents + 1) * np.int64(versions.end)),
        )

    def in_force(self, contents: Int64s, versions: Int64s) -> Int64s:
        """Return the ordinal of each content's interval at its version, -1 if the content is not in force."""
        if not len(self._keys):
            return np.full(len(contents), -1, np.int64)
        at = np.searchsorted(self._keys, contents * self.versions.end + versions, "right") - 1
        ordinal = self._order[at]
        # the last key below may belong to another content, or to an interval that has ended
        valid = (at >= 0) & (self.content_of[ordinal] == contents) & (versions < self.versions.ends[ordinal])
        return np.where(valid, ordinal, -1)

    def changes(self, owners: Int64s, contents: Int64s) -> StepColumns:
        """Return for each owner the versions at which any of its contents is added or removed, and the first version.

        The n-th content is one of the n-th owner. The codes of the steps are 0.
        """
        of, at = expanded(self._content_starts[contents], self._content_starts[contents + 1])
        ordinals, stride = self._order[at], self.versions.end
        owner = np.concatenate((owners, owners[of], owners[of]))
        starts, ends = self.versions.starts[ordinals], self.versions.ends[ordinals]
        versions = np.concatenate((np.zeros(len(owners), np.int64), starts, ends))
        return StepColumns.at((owner * stride + versions)[versions < stride], stride)


# All ACLs that were ever in force, indexed once: which of them match an access, and between which versions.


_IMAGES = 4
"""The number of images of past versions that are kept."""


class IntervalMatches(NamedTuple):
    """The ACLs that match some accesses: (access, row of the base, ordinal), by access, from version `start` to `end`.

    `unsure`: whether it matches is not known, as several generations of Kafka may have decided. `places` has the
    resources that cover each name, and `place_of` the place of each access.
    """

    access: Int64s
    row: Int64s
    ordinal: Int64s
    start: Int64s
    end: Int64s
    unsure: Bools
    places: NameResources
    place_of: Int32s

    def resources(self, access: int) -> list[int]:
        """Return the resources of the base that cover the name of an access."""
        starts, place = self.places.starts, self.place_of[access]
        resources: list[int] = self.places.resources[starts[place] : starts[place + 1]].tolist()
        return resources


@frozen(eq=False, kw_only=True)
class IntervalIndex:
    """The intervals of ACLs, found by what their contents match."""

    image: AclsImage
    """All contents, as if all were in force at once; the number of a content is in the first bytes of its id."""
    matcher: Matcher
    columns: AclColumns
    versions: Versions
    ranks: Int32s
    levels: NDArray[np.uint8]
    """By row of the base (authorizer.index.scan_order)."""
    content_of_row: Int32s
    range_rows: Bools
    """By row of the base: whether the host has a slash, so that it can match as a range only."""
    _interval_starts: Int64s
    """By content: where its intervals begin in `_intervals`; one more entry than contents."""
    _intervals: Int64s
    """Ordinals by content."""
    _past: "_PastImages"

    @classmethod
    def of(cls, intervals: AclIntervals, *, documented: bool, cidr: bool = False) -> Self:
        """Index the intervals; `documented` and `cidr` as for AclsImage.with_options.

        If the intervals state which Kafka decided when, `cidr` has no effect.
        """
        columns, cidr = intervals.columns, cidr or intervals.kafka is not None
        image = AclsImage.from_columns(columns).with_options(documented=documented, cidr=cidr)
        base = image.index.base
        return cls(
            image=image,
            matcher=Matcher.of(base, documented=documented, cidr=cidr),
            columns=columns,
            versions=Versions.of(intervals),
            ranks=ranks_of(base),
            levels=levels_of(base),
            content_of_row=numbers_of_ids(np.frombuffer(base.ids.ids, np.uint8).reshape(-1, 16)),
            range_rows=_range_rows(base),
            interval_starts=_interval_starts(intervals, len(columns)),
            intervals=np.argsort(intervals.content_of, kind="stable"),
            past=_PastImages(),
        )

    def with_intervals(self, intervals: AclIntervals) -> Self:
        """Return the index of the same contents in other intervals, with the same ranges."""
        return evolve(
            self,
            versions=Versions.of(intervals),
            interval_starts=_interval_starts(intervals, len(self.columns)),
            intervals=np.argsort(intervals.content_of, kind="stable"),
            past=_PastImages(),
        )

    def matches(self, accesses: Sequence[ParsedAccess]) -> IntervalMatches:
        """Return what matches these accesses."""
        accesses = AccessColumns.of(accesses)
        requests, operations = accesses.requests, accesses.operations
        places = self.matcher.resources_on(requests)
        row_matches = self.matcher.matches(requests, operations, places)
        content = self.content_of_row[row_matches.row]
        at, interval = expanded(self._interval_starts[content], self._interval_starts[content + 1])
        ordinal = self._intervals[interval]
        matches = IntervalMatches(
            access=row_matches.request[at],
            row=row_matches.row[at],
            ordinal=ordinal,
            start=self.versions.starts[ordinal],
            end=self.versions.ends[ordinal],
            unsure=np.zeros(len(ordinal), np.bool_),
            places=places,
            place_of=requests.name_of,
        )
        versions = self.versions
        if versions.ranges is None or versions.ranges_of_controllers is None:
            return matches
        return self._by_kafka(matches, accesses, (versions.ranges, versions.ranges_of_controllers))

    def _by_kafka(
        self,
        matches: IntervalMatches,
        accesses: AccessColumns,
        both_ranges: tuple[NDArray[np.uint8], NDArray[np.uint8]],
    ) -> IntervalMatches:
        """Return the matches through ranges at the versions only at which a Kafka may have decided that knows them.

        `both_ranges` are those of accesses that brokers decide, and of those that controllers may decide.
        """
        all_by_range = np.flatnonzero(self.range_rows[matches.row])
        if not len(all_by_range):
            return matches
        by_controllers = of_controllers(accesses)[matches.access[all_by_range]]
        others = np.flatnonzero(~self.range_rows[matches.row])
        places, starts, ends, unsure = (
            [others],
            [matches.start[others]],
            [matches.end[others]],
            [matches.unsure[others]],
        )
        for ranges, by_range in zip(
            both_ranges, (all_by_range[~by_controllers], all_by_range[by_controllers]), strict=True
        ):
            begins = np.flatnonzero(np.diff(ranges, prepend=ranges[0] ^ 1)).tolist()
            for begin, end in zip(begins, [*begins[1:], len(ranges)], strict=True):
                if ranges[begin] == Ranges.NO:
                    continue
                start, stop = np.maximum(matches.start[by_range], begin), np.minimum(matches.end[by_range], end)
                some = start < stop
                places.append(by_range[some])
                starts.append(start[some])
                ends.append(stop[some])
                unsure.append(np.full(int(some.sum()), ranges[begin] == Ranges.UNKNOWN))
        place = np.concatenate(places)
        order = np.argsort(place, kind="stable")  # by access again
        at = place[order]
        return matches._replace(
            access=matches.access[at],
            row=matches.row[at],
            ordinal=matches.ordinal[at],
            start=np.concatenate(starts)[order],
            end=np.concatenate(ends)[order],
            unsure=np.concatenate(unsure)[order],
        )

    def has_ranges(self, version: int) -> bool:
        """Return whether ACLs match at a version whose host is a range; not, where that is not known."""
        ranges = self.versions.ranges
        return self.image.cidr if ranges is None else ranges[version] == Ranges.YES

    def intervals_of_resource(self, resource: int) -> Int64s:
        """Return the ordinals of all ACLs on a resource of the base, for any principal, host and operation."""
        base = self.image.index.base
        rows = base.rows(*base.cells(resource))
        content = self.content_of_row[rows.start : rows.stop]
        _, interval = expanded(self._interval_starts[content], self._interval_starts[content + 1])
        return self._intervals[interval]

    def denies(self, rows: Int64s) -> Bools:
        """Return which of these rows of the base are DENY."""
        # a mask has the allowed operations in its low 16 bits and the denied ones above
        denies: Bools = self.matcher.masks[rows] >> np.uint32(16) != 0
        return denies

    def ordinal(self, content: int, version: int) -> int:
        """Return the interval of a content at a version at which it is in force."""
        intervals = self._intervals[self._interval_starts[content] : self._interval_starts[content + 1]]
        starts, ends = self.versions.starts[intervals], self.versions.ends[intervals]
        return int(intervals[(starts <= version) & (version < ends)][0])

    def image_at(self, version: int) -> AclsImage:
        """Return the ACLs of one version."""
        return self._past.image(self, version)

    def contents_at(self, version: int) -> Bools:
        """Return by content whether it is in force at a version."""
        contents = np.zeros(len(self.columns), np.bool_)
        numbers = np.repeat(np.arange(len(self.columns)), np.diff(self._interval_starts))
        contents[numbers[self.versions.in_force(version)[self._intervals]]] = True
        return contents


@define
class _PastImages:
    """Images of past versions, built on demand; the one built first is dropped first."""

    _images: dict[int, AclsImage] = field(factory=dict, init=False)

    def image(self, index: IntervalIndex, version: int) -> AclsImage:
        """Return the ACLs of one version."""
        image = self._images.get(version)
        if image is None:
            columns = index.columns.take(index.contents_at(version))
            cidr = index.has_ranges(version)
            image = AclsImage.from_columns(columns).with_options(documented=index.image.documented, cidr=cidr)
            if len(self._images) >= _IMAGES:
                del self._images[next(iter(self._images))]
            self._images[version] = image
        return image


def _interval_starts(intervals: AclIntervals, contents: int) -> Int64s:
    starts = np.zeros(contents + 1, np.int64)
    np.cumsum(np.bincount(intervals.content_of, minlength=contents), out=starts[1:])
    return starts


def _range_rows(base: Base) -> Bools:
    is_range = np.isin(np.asarray(base.cell_pairs), np.asarray(base.range_pairs))
    return np.repeat(is_range, np.diff(np.asarray(base.cell_rows)))


_DECIDED = np.array(
    [[controllers_decide(kind, operation) for operation in range(OPERATIONS)] for kind in range(TYPES)], np.bool_
)
"""By resource type and operation: whether controllers may decide."""


def of_controllers(accesses: Sequence[ParsedAccess]) -> Bools:
    """Return which accesses controllers may decide."""
    columns = AccessColumns.of(accesses)
    decided: Bools = _DECIDED[columns.types(), columns.operations]
    return decided
