"""All rules that ever were, indexed once: which of them match an access, and between which versions of the rules."""

from typing import NamedTuple, Self

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from aclog.authorizer.acls_image import AclsImage
from aclog.authorizer.index.arrays import Int32s
from aclog.authorizer.index.batch import Askings
from aclog.authorizer.index.matches import Matcher, Places, expanded
from aclog.authorizer.index.scan_rank import levels_of, ranks_of
from aclog.metalog.acl_columns import AclColumns
from aclog.metalog.vectors import Bools, Int64s
from aclog.pipeline.decisions.accesses import ParsedAccess
from aclog.pipeline.decisions.acl_intervals import AclIntervals, numbers_of_ids
from aclog.pipeline.decisions.content_intervals import change_times, interval_versions

_IMAGES = 4
"""How many images of past versions are kept."""


class Parts(NamedTuple):
    """What takes part in deciding some accesses: (access, row of the base, ordinal of the interval), by access.

    `places` has the resources on each name, and `place_of` the place of each access.
    """

    access: Int64s
    row: Int64s
    ordinal: Int64s
    places: Places
    place_of: Int32s


@frozen(eq=False, kw_only=True)
class IntervalIndex:
    """Spans of rules by what they say.

    Versions number the states that the rules went through: version v holds from the v-th time at which anything changed
    on, version 0 before the first. They are what intervals begin and end at; `end` is beyond the last one.
    """

    image: AclsImage
    """Whatever a rule ever said, as if all stood at once; a rule's number is at the head of its id."""
    matcher: Matcher
    columns: AclColumns
    times: Int64s
    """ms since 1970, ascending: when version 1 begins, version 2, ..."""
    starts: Int64s
    ends: Int64s
    """By ordinal: the first version with the rule, and the first one without it."""
    ranks: Int32s
    levels: NDArray[np.uint8]
    """By row of the base."""
    content_of_row: Int32s
    _interval_starts: Int64s
    _intervals: Int64s
    """By content: the ordinals of its intervals."""
    _past: "_Past"

    @classmethod
    def of(cls, intervals: AclIntervals, *, documented: bool) -> Self:
        """Index them; `documented` as AclsImage has it."""
        columns = intervals.columns
        image = AclsImage.from_columns(columns).with_options(documented=documented, cidr=False)
        base = image.state.base
        times = change_times(intervals)
        starts, ends = interval_versions(intervals, times)
        contents = len(columns)
        interval_starts = np.zeros(contents + 1, np.int64)
        np.cumsum(np.bincount(intervals.content_of, minlength=contents), out=interval_starts[1:])
        return cls(
            image=image,
            matcher=Matcher.of(base, star_always=documented),
            columns=columns,
            times=times,
            starts=starts,
            ends=ends,
            ranks=ranks_of(base),
            levels=levels_of(base),
            content_of_row=numbers_of_ids(np.frombuffer(base.ids.ids, np.uint8).reshape(-1, 16)),
            interval_starts=interval_starts,
            intervals=np.argsort(intervals.content_of, kind="stable"),
            past=_Past(),
        )

    @property
    def end(self) -> int:
        """The version after the last."""
        return len(self.times) + 1

    def parts(self, parsed: list[ParsedAccess]) -> Parts:
        """What takes part in deciding these, at whatever version."""
        asked, operations = _columns(parsed)
        places = self.matcher.places(asked)
        found = self.matcher.matches(asked, operations, places)
        content = self.content_of_row[found.row]
        at, interval = expanded(self._interval_starts[content], self._interval_starts[content + 1])
        return Parts(found.request[at], found.row[at], self._intervals[interval], places, asked.place_of)

    def intervals_of_resource(self, resource: int) -> Int64s:
        """The ordinals of all rules on a resource of the base, whomever they are for."""
        base = self.image.state.base
        rows = base.rows(*base.cells(resource))
        content = self.content_of_row[rows.start : rows.stop]
        _, interval = expanded(self._interval_starts[content], self._interval_starts[content + 1])
        return self._intervals[interval]

    def denies(self, rows: Int64s) -> Bools:
        """Whether these rows of the base deny."""
        denies: Bools = self.matcher.masks[rows] >> np.uint32(16) != 0
        return denies

    def in_force(self, version: int) -> Bools:
        """By ordinal: whether the rule stands at a version."""
        there: Bools = (self.starts <= version) & (version < self.ends)
        return there

    def ordinal(self, number: int, version: int) -> int:
        """The interval of what is said under this number that stands at a version."""
        intervals = self._intervals[self._interval_starts[number] : self._interval_starts[number + 1]]
        return int(intervals[(self.starts[intervals] <= version) & (version < self.ends[intervals])][0])

    def image_at(self, version: int) -> AclsImage:
        """The rules of one version alone."""
        return self._past.image(self, version)


@define
class _Past:
    """Images of some versions, made when they are asked for; the oldest is let go of first."""

    _images: dict[int, AclsImage] = field(factory=dict, init=False)

    def image(self, index: IntervalIndex, version: int) -> AclsImage:
        """The rules of one version, indexed."""
        known = self._images.get(version)
        if known is None:
            alive = np.zeros(len(index.columns), np.bool_)
            numbers = np.repeat(np.arange(len(index.columns)), np.diff(index._interval_starts))
            alive[numbers[index.in_force(version)[index._intervals]]] = True
            known = AclsImage.from_columns(index.columns.take(alive)).with_options(
                documented=index.image.documented, cidr=False
            )
            if len(self._images) >= _IMAGES:
                del self._images[next(iter(self._images))]
            self._images[version] = known
        return known


def _columns(parsed: list[ParsedAccess]) -> tuple[Askings, NDArray[np.uint8]]:
    """Askings as numbers, and their operations."""
    principals: dict[str, int] = {}
    hosts: dict[str, int] = {}
    places: dict[tuple[int, str], int] = {}
    count = len(parsed)
    principal_of = np.fromiter((principals.setdefault(a.principal, len(principals)) for a in parsed), np.int32, count)
    host_of = np.fromiter((hosts.setdefault(a.host, len(hosts)) for a in parsed), np.int32, count)
    place_of = np.fromiter(
        (places.setdefault((a.resource_type, a.resource_name), len(places)) for a in parsed), np.int32, count
    )
    asked = Askings(
        principals=list(principals),
        principal_of=principal_of,
        hosts=list(hosts),
        host_of=host_of,
        types=[kind for kind, _ in places],
        names=[name for _, name in places],
        place_of=place_of,
    )
    return asked, np.fromiter((a.operation for a in parsed), np.uint8, count)
