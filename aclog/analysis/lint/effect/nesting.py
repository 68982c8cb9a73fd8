"""Intervals that are nested in one another, or apart."""

from collections.abc import Iterator

import numpy as np

from aclog.metalog.vectors import Int64s


def nested(opens: Int64s, closes: Int64s) -> Iterator[tuple[Int64s, Int64s]]:
    """Yield the intervals that lie in others, and the narrowest one around each: those in one, in two, and so on.

    They are numbered by where they open, ascending; of two that open together the wider one is first.
    """
    depths = np.arange(len(opens)) - np.searchsorted(np.sort(closes), opens, side="right")
    by_depth = np.argsort(depths, kind="stable")
    bounds = np.searchsorted(depths[by_depth], np.arange(depths.max(initial=0) + 2)).tolist()
    for depth in range(1, len(bounds) - 1):
        above, here = by_depth[bounds[depth - 1] : bounds[depth]], by_depth[bounds[depth] : bounds[depth + 1]]
        yield here, above[np.searchsorted(above, here) - 1]
