"""Decisions on many accesses as step functions of the version, in columns that rows are looked up in."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from attrs import define, field

from aclog.authorizer.index.arrays import Int32s
from aclog.metalog.vectors import Int64s

Steps: TypeAlias = Sequence[tuple[int, int]]
"""The (version, decision code) pairs of one access, ascending: the decision from that version on. The first is 0."""

_FIRST_SIZE = 1 << 12


@define(eq=False)
class DecisionSteps:
    """The steps of accesses 0, 1, ... one after another in each column. Columns only grow, by doubling."""

    _stride: int
    """More than the highest version."""
    _count: int = field(default=0, init=False)
    _size: int = field(default=0, init=False)
    """The number of steps in use; columns are longer."""
    _first: Int64s = field(factory=lambda: np.zeros(_FIRST_SIZE, np.int64), init=False)
    """By access: where its steps begin; one more entry than accesses."""
    _keys: Int64s = field(factory=lambda: np.zeros(_FIRST_SIZE, np.int64), init=False)
    """access * stride + version of each step: ascending over all accesses, so that one bisection serves a batch."""
    _codes: Int32s = field(factory=lambda: np.zeros(_FIRST_SIZE, np.int32), init=False)

    def __len__(self) -> int:
        return self._count

    def append(self, codes: Int32s, changing: Mapping[int, Steps]) -> None:
        """Append accesses: each with one decision code for all versions, or with the steps in `changing` by index."""
        counts = np.ones(len(codes), np.int64)
        for at, steps in changing.items():
            counts[at] = len(steps)
        starts = np.concatenate(([0], np.cumsum(counts)))
        owner = np.repeat(np.arange(len(codes)), counts)
        keys, values = (owner + self._count) * self._stride, codes[owner]
        for at, steps in changing.items():
            place = slice(starts[at], starts[at + 1])
            keys[place] += [version for version, _ in steps]
            values[place] = [code for _, code in steps]
        self._first = _grown(self._first, self._count + len(codes) + 1)
        self._keys, self._codes = (_grown(column, self._size + len(keys)) for column in (self._keys, self._codes))
        self._first[self._count : self._count + len(starts)] = starts + self._size
        self._keys[self._size : self._size + len(keys)] = keys
        self._codes[self._size : self._size + len(keys)] = values
        self._count += len(codes)
        self._size += len(keys)

    def steps(self, access_of: Int64s, version: Int64s | int) -> Int64s:
        """Return the index of each row's step, for its access at its version."""
        step = self._first[access_of]
        # most accesses have a single step: bisect only for the rows of others
        rows = np.flatnonzero(self._first[access_of + 1] - step > 1)
        if len(rows):
            at = version if isinstance(version, int) else version[rows]
            keys = access_of[rows] * self._stride + at
            step[rows] = np.searchsorted(self._keys[: self._size], keys, "right") - 1
        return step

    def codes(self, steps: Int64s) -> Int32s:
        """Return the decision code of each step."""
        return self._codes[steps]

    def versions(self, steps: Int64s) -> Int64s:
        """Return the version at which each step begins."""
        return self._keys[steps] % self._stride


def _grown(column: "np.ndarray[tuple[int], np.dtype[np.generic]]", size: int) -> "np.ndarray":
    if size <= len(column):
        return column
    return np.concatenate((column, np.zeros(max(size - len(column), len(column)), column.dtype)))
