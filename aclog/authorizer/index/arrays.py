"""What the columns of an index are made of."""

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from aclog.metalog.vectors import Int64s

Int32s: TypeAlias = NDArray[np.int32]
UInt32s: TypeAlias = NDArray[np.uint32]
_Number = TypeVar("_Number", bound=np.integer)

Pause: TypeAlias = Callable[[], None]
"""Called between short steps of a long computation, so that other threads can take the GIL."""

INT32_BYTES = 1 << 31
"""From this many bytes on, signed offsets need 64 bits."""


def no_pause() -> None:
    """Return at once: for callers that share the interpreter with nobody."""


def expanded(starts: Int64s, ends: Int64s) -> tuple[Int64s, Int64s]:
    """Return (i, position) for each i and each position in [starts[i], ends[i])."""
    counts = ends - starts
    owner = np.repeat(np.arange(len(starts)), counts)
    first = np.cumsum(counts) - counts
    return owner, np.arange(len(owner)) - first[owner] + starts[owner]


def changes(*columns: NDArray[np.generic]) -> Int64s:
    """Return the rows at which a value differs from the row before; the first row is one of them."""
    if not len(columns[0]):
        return np.zeros(0, np.int64)
    differs = np.ones(len(columns[0]), np.bool_)
    differs[1:] = False
    for column in columns:
        differs[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(differs)


def starts_of(numbers: NDArray[np.signedinteger], count: int) -> Int32s:
    """Return where each number 0..count-1 begins in a sorted column, and at the end the column's length."""
    starts = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(numbers, minlength=count), out=starts[1:])
    return starts


def distinct(values: NDArray[_Number]) -> NDArray[_Number]:
    """Return the distinct values, ascending. np.unique would import numpy.ma."""
    ordered = np.sort(values)
    found: NDArray[_Number] = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    return found
