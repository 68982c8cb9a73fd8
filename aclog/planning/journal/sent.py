"""How far an apply had come that has not ended: which of its steps it had sent, and which it had read back."""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

import numpy as np
from attrs import frozen

from aclog.metalog.errors import ConfigError


class Made(Enum):
    """What a place that keeps a record of its own knows of an apply: it makes all steps at once, or none."""

    ALL = "ALL"
    NONE = "NONE"


@frozen(kw_only=True)
class Sent:
    """Steps of an apply, by their numbers from 0; it had not begun with those that are in neither set."""

    made: frozenset[int] = frozenset()
    """They were read back."""
    unsure: frozenset[int] = frozenset()
    """They were sent, and not read back: nobody knows whether they were made."""

    def of(self, made: Made | None, steps: int) -> "Sent":
        """Return how far it had come, by what the place knows; None: it knows nothing."""
        if made is None:
            return self
        return Sent(made=frozenset(range(steps))) if made is Made.ALL else NOTHING_SENT

    def sending(self, made: Iterable[int], piece: Iterable[int]) -> "Sent":
        """Return how far it has come when it sends a piece, after these steps were made.

        What was sent once and not read back may still be carried out.
        """
        known = frozenset(made)
        return Sent(made=known, unsure=(self.unsure | frozenset(piece)) - known)


NOTHING_SENT = Sent()


def sent_object(apply: str, sent: Sent) -> dict[str, object]:
    """Return the JSON object of the line that says how far an apply has come; steps as ranges, both ends included."""
    return {"kind": "SENT", "apply": apply, "made": _ranges(sent.made), "unsure": _ranges(sent.unsure)}


def parse_sent(value: Mapping[str, Any], steps: int) -> Sent:
    """Return how far an apply of so many steps has come. Raises ConfigError: it lacks something."""
    try:
        found = Sent(made=_numbers(value["made"]), unsure=_numbers(value["unsure"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"not the line of a journal that says what was sent: {error}") from error
    if any(not 0 <= each < steps for each in found.made | found.unsure):
        raise ConfigError(f"expected steps from 0 to {steps - 1}")
    return found


def _ranges(numbers: frozenset[int]) -> list[list[int]]:
    # A place with many small batches asks for these before each of them.
    ordered = np.sort(np.fromiter(numbers, np.int64, len(numbers)))
    is_first = np.diff(ordered, prepend=-2) != 1
    begins = np.flatnonzero(is_first)
    ends = np.append(begins, len(ordered))[1:] - 1
    found: list[list[int]] = np.column_stack((ordered[begins], ordered[ends])).tolist()
    return found


def _numbers(ranges: Iterable[tuple[int, int]]) -> frozenset[int]:
    return frozenset(number for first, last in ranges for number in range(first, last + 1))
