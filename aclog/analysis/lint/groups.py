"""Rows grouped by equal numbers."""

from collections.abc import Iterator

import numpy as np

from aclog.authorizer.index.arrays import Int32s
from aclog.metalog.vectors import Bools, Int64s


def groups_of(
    keys: Int32s | Int64s, rows: Bools, more_keys: Int64s | None = None, *, least: int = 1
) -> Iterator[list[int]]:
    """Yield the chosen rows in groups with equal keys, of at least so many rows, ascending by key."""
    chosen = np.flatnonzero(rows)
    if not len(chosen):
        return
    first = keys[chosen]
    second = first if more_keys is None else more_keys[chosen]
    order = np.lexsort((chosen, second, first))
    differs = (np.diff(first[order]) != 0) | (np.diff(second[order]) != 0)
    starts = np.concatenate(([0], np.flatnonzero(differs) + 1))
    ends = np.append(starts[1:], len(chosen))
    large = ends - starts >= least
    for start, end in zip(starts[large].tolist(), ends[large].tolist(), strict=True):
        yield chosen[order[start:end]].tolist()
