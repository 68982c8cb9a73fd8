"""Where keys of 16 bytes stand among others: a million in a tenth of a second."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from aclog.metalog.vectors import Bytes, Int64s


def places_of(keys: Bytes, among: Bytes) -> Int64s:
    """Return for each row of `keys` the row of `among` that equals it, -1 if none does; (n, 16) and (m, 16).

    The rows of `among` are distinct.
    """
    if not len(among):
        return np.full(len(keys), -1, np.int64)
    (known, known_low), (wanted, wanted_low) = _halves(among), _halves(keys)
    order = np.argsort(known)
    ordered = known[order]
    # Random keys hardly ever share their first halves; numbered ones do.
    if (ordered[1:] == ordered[:-1]).any():
        order = np.argsort(_whole(among))
        at = np.searchsorted(_whole(among)[order], _whole(keys))
    else:
        by_key = np.argsort(wanted)  # bisections in ascending order stay in the cache
        at = np.empty(len(keys), np.int64)
        at[by_key] = np.searchsorted(ordered, wanted[by_key])
    found = order[np.minimum(at, len(among) - 1)]
    return np.where((known[found] == wanted) & (known_low[found] == wanted_low), found, -1)


def _halves(keys: Bytes) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    numbers = np.ascontiguousarray(keys).view(">u8").reshape(-1, 2)
    return numbers[:, 0].astype(np.uint64), numbers[:, 1].astype(np.uint64)


def _whole(keys: Bytes) -> NDArray[Any]:
    return np.ascontiguousarray(keys).view("S16").reshape(-1)
