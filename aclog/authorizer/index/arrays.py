"""Arrow's binary arrays as numpy columns, and back."""

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
"""Called between short pieces of a long work, where other threads are to have the interpreter."""

_PIECE = 1 << 20

INT32_BYTES = 1 << 31
"""Beyond this many bytes, positions need 64 bits."""


def go_on() -> None:
    """No pause."""


def copied(data: Bytes, pause: Pause = go_on) -> bytes:
    """As bytes. One long copy would keep other threads waiting for the interpreter, so it is made in pieces."""
    copy = BytesIO()
    for start in range(0, len(data), _PIECE):
        copy.write(data[start : start + _PIECE].data)
        pause()
    return copy.getvalue()


def values(array: Binary) -> list[bytes]:
    """The values as objects."""
    found: list[bytes] = array.to_pylist()  # type: ignore[assignment]  # there are no nulls
    return found


def binary_columns(array: Binary) -> tuple[Int64s, Bytes]:
    """A binary array's n + 1 offsets, from 0, and its bytes."""
    _, positions, data = array.buffers()
    kind: type[np.int64 | np.int32] = np.int64 if pa.types.is_large_binary(array.type) else np.int32
    if positions is None or not positions.size:
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    offsets = np.frombuffer(memoryview(positions), kind)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    content = np.frombuffer(memoryview(data), np.uint8) if data is not None else np.zeros(0, np.uint8)
    return offsets - offsets[0], content[offsets[0] : offsets[-1]]


def slices(source: Buffer, starts: Int64s, ends: Int64s) -> Binary:
    """The bytes [start, end) of each row as a binary array, copied."""
    buffer = pa.py_buffer(source)
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
        slot[order] = slot.copy()
    return interleaved.take(slot)
