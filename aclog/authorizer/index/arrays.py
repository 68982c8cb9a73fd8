"""Conversions between Arrow binary arrays and numpy columns."""

from collections.abc import Callable
from io import BytesIO
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aclog.metalog.primitives import Buffer
from aclog.metalog.vectors import Bytes, Int64s

Binary: TypeAlias = "pa.Array[Any]"
"""A binary or large_binary array without nulls."""

Dictionary: TypeAlias = "pa.DictionaryArray[Any, Any]"

Int32s: TypeAlias = NDArray[np.int32]

Pause: TypeAlias = Callable[[], None]
"""Called between short steps of a long computation, so that other threads can take the GIL."""

_CHUNK_BYTES = 1 << 20

INT32_BYTES = 1 << 31
"""From this many bytes on, offsets need 64 bits."""


def no_pause() -> None:
    """Return at once: for callers that share the interpreter with nobody."""


def copy_bytes(data: Bytes, pause: Pause = no_pause) -> bytes:
    """Return a copy as bytes, made in chunks."""
    copy = BytesIO()
    for start in range(0, len(data), _CHUNK_BYTES):
        # One large memcpy would hold the GIL for its whole length.
        copy.write(data[start : start + _CHUNK_BYTES].data)
        pause()
    return copy.getvalue()


def values(array: Binary) -> list[bytes]:
    """Return the values as Python objects."""
    found: list[bytes] = array.to_pylist()  # type: ignore[assignment]  # there are no nulls
    return found


def binary_columns(array: Binary) -> tuple[Int64s, Bytes]:
    """Return the n + 1 offsets of a binary array, starting at 0, and its bytes."""
    _, positions, data = array.buffers()
    kind: type[np.int64 | np.int32] = np.int64 if pa.types.is_large_binary(array.type) else np.int32
    if positions is None or not positions.size:
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    # A sliced array shares the buffers of the whole one: its offsets begin at array.offset and not at 0.
    offsets = np.frombuffer(memoryview(positions), kind)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    content = np.frombuffer(memoryview(data), np.uint8) if data is not None else np.zeros(0, np.uint8)
    return offsets - offsets[0], content[offsets[0] : offsets[-1]]


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
    return interleaved.take(slot)


def expanded(starts: Int64s, ends: Int64s) -> tuple[Int64s, Int64s]:
    """Return (i, position) for each i and each position in [starts[i], ends[i])."""
    counts = ends - starts
    owner = np.repeat(np.arange(len(starts)), counts)
    first = np.cumsum(counts) - counts
    return owner, np.arange(len(owner)) - first[owner] + starts[owner]
