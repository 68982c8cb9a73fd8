"""The lives of rules, in columns by number."""

from typing import Final, Self

import numpy as np
from attrs import frozen

from aclog.metalog.vectors import Bools, Bytes, Int64s
from aclog.usage.index.rule_texts import KEY_BYTES
from aclog.usage.index.seen_rules import STILL

HAS_ID: Final = 1
DENIES: Final = 2
BEGIN_IS_EXACT: Final = 4
"""A log says when it began; else it is the earliest access of the first run that saw it."""
END_IS_EXACT: Final = 8


@frozen(eq=False, kw_only=True)
class Lives:
    """A life: a rule from when it came to when it went; its number is its row."""

    keys: Bytes
    """(n, 16): the id, or the digest of the rule if no source had one."""
    digests: Bytes
    """(n, 16): of the rule without its id."""
    begins: Int64s
    """In us since 1970."""
    ends: Int64s
    """In us since 1970; STILL if the last run saw it in force."""
    flags: Bytes
    judged_since: Int64s
    """In us since 1970: accesses up to then may have been judged without it, by runs that did not know it."""

    def __len__(self) -> int:
        """Return the number of lives."""
        return len(self.begins)

    @classmethod
    def none(cls) -> Self:
        """Return no lives."""
        keys, times = np.zeros((0, KEY_BYTES), np.uint8), np.zeros(0, np.int64)
        return cls(keys=keys, digests=keys, begins=times, ends=times, flags=np.zeros(0, np.uint8), judged_since=times)

    def has(self, flag: int) -> Bools:
        """Return which lives have a flag."""
        found: Bools = self.flags & np.uint8(flag) > 0
        return found

    @property
    def is_open(self) -> Bools:
        """Which lives have not ended."""
        found: Bools = self.ends == STILL
        return found

    def newest_of_ids(self, ids: Bytes) -> Int64s:
        """Return by (n, 16) id the number of its newest life, -1 if it has none."""
        return latest_rows(self.keys, self.has(HAS_ID), ids)

    def open_of_digests(self, digests: Bytes) -> Int64s:
        """Return by (n, 16) digest the number of the open life of that rule, with an id or without, or -1."""
        return latest_rows(self.digests, self.is_open, digests)


def latest_rows(
    keys: Bytes, eligible: Bools, wanted: Bytes, *, times: Int64s | None = None, wanted_times: Int64s | None = None
) -> Int64s:
    """Return for each wanted key (16 bytes) the last eligible row with it, or -1; with `times`, also of that time.

    Keys are compared as two numbers of 64 bits: the first are bisected, the second compared.
    """
    rows = np.flatnonzero(eligible)
    found = np.full(len(wanted), -1, np.int64)
    if not len(rows) or not len(wanted):
        return found
    high, low = _halves(keys[rows])
    order = np.argsort(high, kind="stable")
    rows, high, low = rows[order], high[order], low[order]
    wanted_high, wanted_low = _halves(wanted)
    at = np.searchsorted(high, wanted_high, "left")
    ends = np.searchsorted(high, wanted_high, "right")
    # nearly always one step: ids are random and digests as good as random
    for step in range(int(np.max(ends - at, initial=0))):
        asked = np.flatnonzero(at + step < ends)
        place = at[asked] + step
        same = low[place] == wanted_low[asked]
        if times is not None and wanted_times is not None:
            same &= times[rows[place]] == wanted_times[asked]
        found[asked[same]] = rows[place[same]]
    return found


def _halves(keys: Bytes) -> tuple[Int64s, Int64s]:
    numbers = np.ascontiguousarray(keys).view(">u8").astype(np.uint64).view(np.int64)
    return numbers[:, 0], numbers[:, 1]
