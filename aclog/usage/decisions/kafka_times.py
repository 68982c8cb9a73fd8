"""Which Kafka decided when: from 4.4 on, an ACL whose host is a range of addresses matches (KIP-1276)."""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Self

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from aclog.authorizer.generation import Generation
from aclog.metalog.vectors import Int64s


class Ranges(IntEnum):
    """Whether ACLs match whose host is a range."""

    NO = 0
    YES = 1
    UNKNOWN = 2
    """Several generations of Kafka may have decided."""


@frozen(kw_only=True)
class KafkaTimes:
    """What may have decided, from each of some times to the next one; ACLs count alike at all times without it."""

    begins: tuple[int, ...]
    """In ms since 1970, ascending; before the first one, what it begins holds, too."""
    ranges: tuple[Ranges, ...]
    """Whether they match; two neighbours differ."""

    @classmethod
    def of(cls, parts: Iterable[tuple[int, Sequence[Generation]]]) -> Self:
        """Return it, given from when on which generations may have decided: in order, of one time the last counts."""
        found: list[tuple[int, Ranges]] = []
        for begin, generations in parts:
            while found and found[-1][0] >= begin:
                found.pop()
            has_ranges = _ranges_of(generations)
            if not found or found[-1][1] is not has_ranges:
                found.append((begin, has_ranges))
        return cls(begins=tuple(begin for begin, _ in found), ranges=tuple(has_ranges for _, has_ranges in found))

    @property
    def only(self) -> Ranges | None:
        """What holds at all times; None if it changes."""
        return self.ranges[0] if len(self.ranges) == 1 else None

    @property
    def changes(self) -> tuple[int, ...]:
        """The times of changes, in ms since 1970."""
        return self.begins[1:]

    def at(self, times: Int64s) -> NDArray[np.uint8]:
        """Return whether ACLs with ranges match at each of these times, in ms since 1970 (Ranges)."""
        return np.array(self.ranges, np.uint8)[np.searchsorted(np.array(self.changes, np.int64), times, "right")]


def _ranges_of(generations: Sequence[Generation]) -> Ranges:
    if len(generations) > 1:
        return Ranges.UNKNOWN
    return Ranges.YES if generations[0].has_ranges else Ranges.NO
