"""All ACLs that were ever in force, indexed once: which of them match an access, and between which versions."""

from typing import NamedTuple, Self

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.arrays import Int32s, expanded
from aclog.authorizer.index.base import Base
from aclog.authorizer.index.matches import Matcher, NameResources, RequestCodes
from aclog.authorizer.index.scan_rank import levels_of, ranks_of
from aclog.metalog.acl_columns import AclColumns
from aclog.metalog.vectors import Bools, Int64s
from aclog.usage.decisions.accesses import ParsedAccess
from aclog.usage.decisions.acl_intervals import AclIntervals, numbers_of_ids
from aclog.usage.decisions.kafka_times import Ranges
from aclog.usage.decisions.versions import Versions

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
    """By row of the base (authorizer.index.scan_rank)."""
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

        If the intervals say which Kafka decided when, `cidr` does not count.
        """
        columns, cidr = intervals.columns, cidr or intervals.kafka is not None
        image = AclsImage.from_columns(columns).with_options(documented=documented, cidr=cidr)
        base = image.index.base
        contents = len(columns)
        interval_starts = np.zeros(contents + 1, np.int64)
        np.cumsum(np.bincount(intervals.content_of, minlength=contents), out=interval_starts[1:])
        return cls(
            image=image,
            matcher=Matcher.of(base, documented=documented, cidr=cidr),
            columns=columns,
            versions=Versions.of(intervals),
            ranks=ranks_of(base),
            levels=levels_of(base),
            content_of_row=numbers_of_ids(np.frombuffer(base.ids.ids, np.uint8).reshape(-1, 16)),
            range_rows=_range_rows(base),
            interval_starts=interval_starts,
            intervals=np.argsort(intervals.content_of, kind="stable"),
            past=_PastImages(),
        )

    def matches(self, accesses: list[ParsedAccess]) -> IntervalMatches:
        """Return what matches these accesses."""
        asked, operations = _columns(accesses)
        places = self.matcher.resources_on(asked)
        found = self.matcher.matches(asked, operations, places)
        content = self.content_of_row[found.row]
        at, interval = expanded(self._interval_starts[content], self._interval_starts[content + 1])
        ordinal = self._intervals[interval]
        matches = IntervalMatches(
            access=found.request[at],
            row=found.row[at],
            ordinal=ordinal,
            start=self.versions.starts[ordinal],
            end=self.versions.ends[ordinal],
            unsure=np.zeros(len(ordinal), np.bool_),
            places=places,
            place_of=asked.name_of,
        )
        return matches if self.versions.ranges is None else self._by_kafka(matches, self.versions.ranges)

    def _by_kafka(self, matches: IntervalMatches, ranges: NDArray[np.uint8]) -> IntervalMatches:
        """Return the matches through ranges at the versions only at which a Kafka may have decided that knows them."""
        chosen = np.flatnonzero(self.range_rows[matches.row])
        if not len(chosen):
            return matches
        kept = np.flatnonzero(~self.range_rows[matches.row])
        places, starts, ends, unsure = [kept], [matches.start[kept]], [matches.end[kept]], [matches.unsure[kept]]
        begins = np.flatnonzero(np.diff(ranges, prepend=ranges[0] ^ 1)).tolist()
        for begin, end in zip(begins, [*begins[1:], len(ranges)], strict=True):
            if ranges[begin] == Ranges.NO:
                continue
            start, stop = np.maximum(matches.start[chosen], begin), np.minimum(matches.end[chosen], end)
            some = start < stop
            places.append(chosen[some])
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


def _range_rows(base: Base) -> Bools:
    is_range = np.isin(np.asarray(base.cell_pairs), np.asarray(base.range_pairs))
    return np.repeat(is_range, np.diff(np.asarray(base.cell_rows)))


def _columns(accesses: list[ParsedAccess]) -> tuple[RequestCodes, NDArray[np.uint8]]:
    """Return accesses in the form of the matcher, by number, and their operations."""
    principals: dict[str, int] = {}
    hosts: dict[str, int] = {}
    places: dict[tuple[int, str], int] = {}
    count = len(accesses)
    principal_of = np.fromiter((principals.setdefault(a.principal, len(principals)) for a in accesses), np.int32, count)
    host_of = np.fromiter((hosts.setdefault(a.host, len(hosts)) for a in accesses), np.int32, count)
    place_of = np.fromiter(
        (places.setdefault((a.resource_type, a.resource_name), len(places)) for a in accesses), np.int32, count
    )
    asked = RequestCodes(
        principals=list(principals),
        principal_of=principal_of,
        hosts=list(hosts),
        host_of=host_of,
        types=[kind for kind, _ in places],
        names=[name for _, name in places],
        name_of=place_of,
    )
    return asked, np.fromiter((a.operation for a in accesses), np.uint8, count)
