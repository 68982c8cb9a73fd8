"""Stretches of time in which a broker logged lines, and the holes between them."""

from collections.abc import Iterator

import numpy as np
from attrs import frozen

from aclog.usage.coverage import Coverage
from aclog.usage.unused.silence import HeardHours, silences


@frozen(kw_only=True)
class Stretch:
    """Lines of a broker without a hole among them, or a hole."""

    broker: str | None
    is_hole: bool
    start: int
    """In us since 1970: of lines the first and the last."""
    end: int
    hours: int = 0
    """The hours with any line."""
    lines: int = 0


def stretches(covered: Coverage, *, gap: int) -> list[Stretch]:
    """Return all of them, by broker and time; brokers are expected to log from the first line of any to the last."""
    start, until = int(covered.first.min()), int(covered.last.max())
    return [each for broker in covered.brokers for each in _of_broker(covered.of_broker(broker), start, until, gap)]


def _of_broker(mine: Coverage, start: int, until: int, gap: int) -> Iterator[Stretch]:
    (broker,) = mine.brokers
    heard = {broker: HeardHours(first=mine.first, last=mine.last)}
    at = 0
    for hole in silences(heard, start, until, gap=gap):
        since, to = start if hole.since is None else hole.since, until if hole.to is None else hole.to
        end = int(np.searchsorted(mine.first, since, "right")) if hole.since is not None else 0
        yield from _lines(mine, at, end)
        yield Stretch(broker=broker, is_hole=True, start=since, end=to)
        at = end
    yield from _lines(mine, at, len(mine))


def _lines(mine: Coverage, at: int, end: int) -> Iterator[Stretch]:
    if end > at:
        yield Stretch(
            broker=mine.brokers[0],
            is_hole=False,
            start=int(mine.first[at]),
            end=int(mine.last[end - 1]),
            hours=end - at,
            lines=int(mine.rows[at:end].sum()),
        )
