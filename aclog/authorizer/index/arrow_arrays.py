"""Keys and texts of a base as Arrow arrays: for the pipeline and for lints, which join and sort them in bulk."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from aclog.authorizer.index.arrays import INT32_BYTES
from aclog.authorizer.index.keys import KeyTable
from aclog.metalog.primitives import Buffer
from aclog.metalog.vectors import Bytes, Int64s

Binary: TypeAlias = "pa.Array[Any]"
"""A binary or large_binary array without nulls."""


def key_array(table: KeyTable) -> Binary:
    """Return the keys of a table by number; the bytes are shared."""
    offsets = np.asarray(table.offsets)
    # Offsets of a base are unsigned: below 2 GiB they are the same as Arrow's.
    wide = len(table.data) >= INT32_BYTES
    kind = pa.large_binary() if wide else pa.binary()
    positions = offsets.astype(np.int64) if wide else offsets.astype(np.int32)
    return pa.Array.from_buffers(kind, len(table), [None, pa.py_buffer(positions.data), pa.py_buffer(table.data)])


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


def text_array(texts: Sequence[str], kind: "pa.DataType | None" = None) -> Binary:
    """Return texts as an array of `kind` (string unless given); pa.array would import pandas."""
    encoded = [text.encode() for text in texts]
    kind = kind or pa.string()
    positions = np.zeros(len(encoded) + 1, np.int64 if kind == pa.large_string() else np.int32)
    np.cumsum([len(text) for text in encoded], out=positions[1:])
    return pa.Array.from_buffers(
        kind, len(encoded), [None, pa.py_buffer(positions.data), pa.py_buffer(b"".join(encoded))]
    )


def vector(array: "pa.Array[Any]") -> Any:
    """Return the numbers or truth values of an array without nulls; np.asarray would import pandas."""
    if pa.types.is_boolean(array.type):
        return np.from_dlpack(array.cast(pa.uint8())).astype(np.bool_)
    return np.from_dlpack(array)


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
    return interleaved.take(pa.Array.from_buffers(pa.int64(), len(slot), [None, pa.py_buffer(slot.data)]))  # as vector
