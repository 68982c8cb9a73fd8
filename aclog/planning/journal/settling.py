"""Ending an apply that was killed, in its journal: by what it had noted, what the place knows, and what is there.

What is there tells nothing by itself: somebody else may have added a rule that the apply was to add, or added again one
that it had removed. So it only decides on steps that were sent and not read back.
"""

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet

from attrs import evolve, frozen

from aclog.authorizer.acl import acl_text
from aclog.authorizer.rule_content import acl_of_content
from aclog.planning.journal.entry import EntryKind, JournalAction, JournalStep, written_steps
from aclog.planning.journal.journal import Journal
from aclog.planning.journal.sent import NOTHING_SENT, Made, Sent

_TOLD = 20
"""How many rules are named; the rest is counted."""


@frozen(eq=False, kw_only=True)
class Settled:
    """A journal in which every apply has ended, in memory only."""

    journal: Journal
    unsure: tuple[JournalStep, ...] = ()
    """Steps whose rules are there, and nobody knows who added them: the apply, or somebody else."""


def settle(journal: Journal, contents: AbstractSet[bytes], made: Callable[[str], Made | None]) -> Settled:
    """Return a journal with the apply that has not ended settled; `made` is WritablePlace.made. Raises as that."""
    entry = journal.open
    if entry is None:
        return Settled(journal=journal)
    known = sent_of(journal, made)
    steps = tuple(step for number, step in enumerate(entry.steps) if _is_made(number, step, known, contents))
    done = evolve(entry, kind=EntryKind.DONE, settled=True, at_once=False, steps=steps)
    return Settled(
        journal=evolve(journal, entries=(*journal.entries, done), sent=NOTHING_SENT),
        unsure=tuple(entry.steps[number] for number in sorted(known.unsure) if entry.steps[number].content in contents),
    )


def sent_of(journal: Journal, made: Callable[[str], Made | None]) -> Sent:
    """Return how far the apply has come that has not ended. Raises as WritablePlace.made."""
    entry = journal.open
    if entry is None:
        return NOTHING_SENT
    steps = written_steps(entry.steps)
    noted = Sent(unsure=frozenset(range(steps))) if entry.at_once else journal.sent
    return noted.of(made(entry.apply), steps)


def unsure_texts(journal: Journal, unsure: tuple[JournalStep, ...]) -> Iterator[str]:
    """Yield what to tell of rules of which nobody knows who added them."""
    for step in unsure[:_TOLD]:
        if step.action is JournalAction.ADD:
            what = "is there, and it was ended while it added this: counted as its own; somebody else may have added it"
        else:
            what = "is there, and it was ended while it deleted this: its own; somebody else may have added it again"
        yield f"{journal.path}: {_apply_of(journal)}: {acl_text(acl_of_content(step.content))} {what}"
    if len(unsure) > _TOLD:
        yield f"{journal.path}: {_apply_of(journal)}: so are {len(unsure) - _TOLD:,} more rules"


def _apply_of(journal: Journal) -> str:
    return f"apply {journal.entries[-1].apply}"


def _is_made(number: int, step: JournalStep, known: Sent, contents: AbstractSet[bytes]) -> bool:
    is_there = step.content in contents
    match step.action:
        case JournalAction.RELEASE:
            return True
        case JournalAction.ADOPT:
            return is_there
        case action:
            return number in known.made or (number in known.unsure and is_there is (action is JournalAction.ADD))
