"""Notes on a source: the gaps in the log of its state, and how callers are notified."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from aclog.authorizer.standard import Premise
from aclog.snapshots.image import NewerKafka

# Notes of a state source for its user.


Notify: TypeAlias = Callable[[str], None]
"""Called once with each note of a recovery: a torn tail, a lowered offset, a skipped checkpoint."""


# Gaps of a state in its log: premises of every answer about it.
#
# A command and a live server read them once, at the start, with the first state.


STATE = "the state"
"""The name of the premise."""


def newer_gaps(newer: NewerKafka) -> tuple[Premise, ...]:
    """Return the gap of records that were skipped because a newer Kafka wrote them, or decides by its own rules."""
    return _gap(newer.warnings(), "an aclog that supports the Kafka that wrote it")


def tail_gaps(missing: Iterable[str], torn: str | None) -> tuple[Premise, ...]:
    """Return the gap at the end of a log.

    `missing`: the notes of records that were committed and are not there (CommittedMark.notes). `torn`: that of the
    reader about bytes that are not a whole batch (FileLogReader.torn_note).
    """
    return _gap((*missing, *(() if torn is None else (torn,))), "the whole log")


def _gap(problems: Iterable[str], settled_by: str) -> tuple[Premise, ...]:
    problem = "; ".join(problems)
    if not problem:
        return ()
    return (
        Premise(
            name=STATE,
            problem=problem,
            unless="the missing records decide otherwise",
            settled_by=settled_by,
            denies=True,
        ),
    )
