"""Where the names that begin with a prefix stand among sorted ones."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Any


def prefix_range(
    rows: Any, prefix: str, name_of: Callable[[Any], str] = str, *, low: int = 0, high: int | None = None
) -> tuple[int, int]:
    """Return the first place, and the one after the last, of the rows whose names begin with a prefix.

    `rows` is a sequence that is sorted by `name_of`; only those from `low` to `high` are looked at.
    """
    size = len(prefix)

    def head(row: Any) -> str:
        """Return as much of a name as is compared: no text comes after all that begin so."""
        return name_of(row)[:size]

    first = bisect_left(rows, prefix, low, high, key=head)
    return first, bisect_right(rows, prefix, first, high, key=head)
