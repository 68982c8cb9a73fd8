"""The changes of a log, each with the apply that made it."""

from collections import deque
from collections.abc import Iterable, Iterator

from aclog.places.applies_file import AppliedChange
from aclog.planning.place import ApplyNote
from aclog.snapshots.rule_history import Change


def with_applies(
    changes: Iterable[Change], applied: Iterable[AppliedChange], begin: int
) -> Iterator[tuple[Change, ApplyNote | None]]:
    """Yield the changes of a log, in order, each with the apply that made it; None if that is not known.

    The changes begin with the state at `begin`. Which are those of an apply that began before it nobody can tell, as
    how many of them came before is unknown. What the log begins with is no change of it, and left out.
    """
    known = (each for each in applied if each.done and each.offset >= begin)
    waiting = deque(sorted(known, key=lambda each: each.offset))
    left, newest = 0, None
    for change in changes:
        if change.first_seen:
            continue
        while waiting and change.offset >= waiting[0].offset:
            newest = waiting.popleft()
            left = newest.steps
        yield change, newest.note if newest is not None and left > 0 else None
        left -= 1
