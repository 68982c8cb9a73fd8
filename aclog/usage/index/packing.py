"""Columns of numbers as one blob, small, and checked when it is read."""

import zlib
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from aclog.metalog.errors import DecodeError
from aclog.metalog.vectors import Int64s

_HEAD = np.dtype([("rows", "<u4"), ("width", "u1"), ("least", "<i8")])
_BYTES = 8
_LEVEL = 1
"""Of zlib: more takes several times as long for a tenth less."""

Numbers: TypeAlias = "NDArray[np.integer] | Sequence[int]"


def packed(*columns: NDArray[np.generic]) -> bytes:
    """Return columns of integers of up to 64 bits, each of its own length, as bytes.

    A column is what its numbers exceed its least one by, in as few bytes as the largest takes: all low bytes, then all
    second bytes and so on, which zlib makes the most of.
    """
    parts = []
    for column in columns:
        values = column.astype(np.int64)
        least = int(values.min()) if len(values) else 0
        beyond = values.view(np.uint64) - np.uint64(least & 0xFFFFFFFFFFFFFFFF)
        width = (int(beyond.max()).bit_length() + 7) // 8 if len(values) else 0
        planes = beyond.astype("<u8").view(np.uint8).reshape(-1, _BYTES)[:, :width]
        parts += [np.array([(len(values), width, least)], _HEAD).tobytes(), planes.T.tobytes()]
    return zlib.compress(b"".join(parts), _LEVEL)


def unpacked(blob: bytes) -> list[Int64s]:
    """Return the columns.

    Raises:
        DecodeError: these are not the bytes that `packed` returned.

    """
    data, at, columns = inflated(blob), 0, list[Int64s]()
    while at < len(data):
        if at + _HEAD.itemsize > len(data):
            raise DecodeError("a column is cut off", position=at)
        rows, width, least = np.frombuffer(data, _HEAD, 1, at)[0].tolist()
        at += _HEAD.itemsize
        if width > _BYTES or at + rows * width > len(data):
            raise DecodeError("a column is cut off", position=at)
        planes = np.frombuffer(data, np.uint8, rows * width, at).reshape(width, rows)
        values = np.zeros((rows, _BYTES), np.uint8)
        values[:, :width] = planes.T
        columns.append((values.view("<u8")[:, 0] + np.uint64(least & 0xFFFFFFFFFFFFFFFF)).view(np.int64))
        at += rows * width
    return columns


def deflated(data: bytes) -> bytes:
    """Return bytes made smaller."""
    return zlib.compress(data, _LEVEL)


def inflated(blob: bytes) -> bytes:
    """Return what was deflated; its checksum has been checked.

    Raises:
        DecodeError: the bytes are damaged.

    """
    try:
        return zlib.decompress(blob)
    except (zlib.error, TypeError) as error:
        raise DecodeError(f"damaged: {error}") from error
