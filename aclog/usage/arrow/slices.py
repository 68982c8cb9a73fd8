"""Slices of a buffer as a binary Arrow array, without an object for each."""

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from aclog.authorizer.index.arrays import INT32_BYTES
from aclog.metalog.primitives import Buffer
from aclog.metalog.vectors import Int64s

Binary: TypeAlias = "pa.Array[Any]"
"""A binary or large_binary array without nulls."""


def slices(source: Buffer, starts: Int64s, ends: Int64s) -> Binary:
    """Return the bytes [start, end) of each row as a binary array; the bytes are copied."""
    buffer = pa.py_buffer(source)
    # Arrow wants non-decreasing offsets, so the buffer is viewed as an array of alternating slots
    # [start0, end0), [end0, start1), [start1, end1), ... and `take` picks the even ones: no Python object per row.
    ascending = bool((starts[1:] >= ends[:-1]).all())
    order = None if ascending else np.argsort(starts, kind="stable")
    wide = buffer.size >= INT32_BYTES
    positions = np.empty(2 * len(starts) + 1, np.int64 if wide else np.int32)
    positions[0:-1:2] = starts if order is None else starts[order]
    positions[1::2] = ends if order is None else ends[order]
    positions[-1] = positions[-2] if len(starts) else 0
    kind = pa.large_binary() if wide else pa.binary()
    interleaved = pa.Array.from_buffers(kind, 2 * len(starts), [None, pa.py_buffer(positions.data), buffer])
    slot = np.arange(0, 2 * len(starts), 2)
    if order is not None:
        slot[order] = slot.copy()  # back to the caller's row order
    # pa.array would import pandas
    return interleaved.take(pa.Array.from_buffers(pa.int64(), len(slot), [None, pa.py_buffer(slot.data)]))
