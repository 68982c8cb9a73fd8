"""Warnings on stderr that a state is old."""

from attrs import define, field

from aclog.snapshots.freshness import Freshness
from aclog.terminal.notices import warn
from aclog.terminal.timestamps import time_text

STALE_SECONDS = 5.0
"""From this age on a state is said to be old. A leader that works answers an observer at least every second."""


def age_text(found: Freshness) -> str:
    """Return how old a state is, from when, from whom, and why it is no newer."""
    time = time_text(found.time)
    if not found.followed:
        return f"this state was read {found.seconds:.0f} s ago from {found.server}, at {time}"
    why = f": {found.problem}" if found.problem else ""
    return f"the cluster has not answered for {found.seconds:.0f} s; this state is from {time}, by {found.server}{why}"


def warn_if_stale(found: Freshness | None) -> None:
    """Warn if the state may be out of date; None is the age of a state that no cluster has told."""
    if found is not None and found.seconds >= STALE_SECONDS:
        warn(age_text(found))


@define
class AgeWatch:
    """Warns when a state becomes old, and again whenever its age has doubled."""

    _next: float = field(default=0.0, init=False)

    def tell(self, found: Freshness | None) -> None:
        """Warn if it is time to."""
        if found is None or found.seconds < STALE_SECONDS:
            self._next = 0.0
        elif found.seconds >= self._next:
            self._next = 2 * found.seconds
            warn(age_text(found))
