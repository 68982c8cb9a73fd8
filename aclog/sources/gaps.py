"""What a state lacks of the log that it was read from: premises of every answer about it."""

from collections.abc import Iterable

from aclog.authorizer.premises import Premise
from aclog.metalog.filelog.reader import NOT_WHOLE
from aclog.snapshots.newer_kafka import NewerKafka

STATE = "the state"
"""The name of the premise."""


def newer_gaps(newer: NewerKafka) -> tuple[Premise, ...]:
    """Return what was left out because a newer Kafka wrote it, or decides by its own rules."""
    return _gap(newer.warnings(), "an aclog that knows the Kafka that wrote it")


def tail_gaps(missing: Iterable[str], notes: Iterable[str]) -> tuple[Premise, ...]:
    """Return what the end of a log lacks.

    `missing`: the notes of records that were committed and are not there (CommittedMark.notes). `notes`: those of the
    reader, of which some tell of bytes that are not a whole batch.
    """
    return _gap((*missing, *(note for note in notes if NOT_WHOLE in note)), "the whole log")


def _gap(problems: Iterable[str], settled_by: str) -> tuple[Premise, ...]:
    problem = "; ".join(problems)
    if not problem:
        return ()
    return (
        Premise(
            name=STATE, problem=problem, unless="what is missing decides otherwise", settled_by=settled_by, denies=True
        ),
    )
