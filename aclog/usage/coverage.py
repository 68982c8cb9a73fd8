"""Coverage: the brokers and hours of an access log."""

from collections.abc import Iterable
from typing import Final, Self

import numpy as np
from attrs import frozen

from aclog.metalog.vectors import Int64s

HOUR: Final = 3_600_000_000
"""In us."""

_DENSE: Final = 1 << 22
"""The largest product of brokers and hours for which lines are counted without sorting."""


@frozen(eq=False, kw_only=True)
class Coverage:
    """The lines of a log by broker and hour: columns by row, in order of broker and hour."""

    brokers: tuple[str | None, ...]
    """Sorted, None first: for lines without a broker."""
    broker: Int64s
    """The position in `brokers`."""
    hour: Int64s
    """Since 1970, UTC."""
    rows: Int64s
    """The number of lines."""
    first: Int64s
    last: Int64s
    """The times of the first and the last line, in us since 1970."""

    def __len__(self) -> int:
        """Return the number of hours, counted per broker."""
        return len(self.hour)

    @classmethod
    def nothing(cls) -> Self:
        """Return the coverage of an empty log."""
        none = np.zeros(0, np.int64)
        return cls(brokers=(), broker=none, hour=none, rows=none, first=none, last=none)

    @classmethod
    def of_lines(cls, times: Int64s, broker: Int64s, brokers: tuple[str | None, ...]) -> Self:
        """Return the coverage of lines, given their times in us since 1970 and the positions of their brokers."""
        if not len(times):
            return cls.nothing()
        hour = times // HOUR
        least, hours = int(hour.min()), int(hour.max()) - int(hour.min()) + 1
        keys = broker * hours + (hour - least)
        if len(brokers) * hours > _DENSE:
            return cls._added_up(broker, hour, np.ones(len(times), np.int64), times, times, brokers)
        rows = np.bincount(keys, minlength=len(brokers) * hours)
        limits = np.iinfo(np.int64)
        first, last = np.full(len(rows), limits.max), np.full(len(rows), limits.min)
        np.minimum.at(first, keys, times)
        np.maximum.at(last, keys, times)
        at = np.flatnonzero(rows)
        return cls._added_up(at // hours, at % hours + least, rows[at], first[at], last[at], brokers)

    @classmethod
    def sum(cls, parts: Iterable[Self]) -> Self:
        """Add up the coverage of parts of a log."""
        all_parts = [part for part in parts if len(part)]
        if not all_parts:
            return cls.nothing()
        names = list[str | None]()
        broker = []
        for part in all_parts:
            broker.append(part.broker + len(names))
            names += part.brokers
        hour, rows, first, last = (
            np.concatenate([getattr(part, name) for part in all_parts]) for name in ("hour", "rows", "first", "last")
        )
        return cls._added_up(np.concatenate(broker), hour, rows, first, last, tuple(names))

    @classmethod
    def _added_up(
        cls, broker: Int64s, hour: Int64s, rows: Int64s, first: Int64s, last: Int64s, brokers: tuple[str | None, ...]
    ) -> Self:
        used = {brokers[at] for at in np.unique(broker).tolist()}
        names = sorted(used, key=lambda name: (name is not None, name or ""))
        place = {name: at for at, name in enumerate(names)}
        rank = np.array([place.get(name, -1) for name in brokers], np.int64)[broker] if len(broker) else broker
        order = np.lexsort((hour, rank))
        rank, hour = rank[order], hour[order]
        # ranks begin at 0, so that the first row begins a run
        starts = np.flatnonzero((np.diff(rank, prepend=-1) != 0) | (np.diff(hour, prepend=0) != 0))
        if not len(starts):
            return cls.nothing()
        return cls(
            brokers=tuple(names),
            broker=rank[starts],
            hour=hour[starts],
            rows=np.add.reduceat(rows[order], starts),
            first=np.minimum.reduceat(first[order], starts),
            last=np.maximum.reduceat(last[order], starts),
        )

    def of_broker(self, broker: str | None) -> Self:
        """Return the rows of one broker."""
        which = self.broker == self.brokers.index(broker)
        return type(self)(
            brokers=(broker,),
            broker=np.zeros(int(which.sum()), np.int64),
            hour=self.hour[which],
            rows=self.rows[which],
            first=self.first[which],
            last=self.last[which],
        )
