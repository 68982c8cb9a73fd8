"""Whether a journal and the record beside a log tell of the same applies, or one of the two is an older copy."""

from pathlib import Path

from aclog.places.applies_file import APPLIES_FILE, read_applies
from aclog.planning.errors import JournalError
from aclog.planning.journal.entry import Entry, EntryKind, JournalAction
from aclog.planning.journal.journal import Journal

_WRITTEN = (JournalAction.ADD, JournalAction.REMOVE)


def check_applied(directory: Path, identity: str | None, journal: Journal) -> None:
    """Check that the log has what the journal says was applied, and the journal what was applied to the log with it.

    An older copy of the log would seem to have lost rules, which then nobody owned any more; one of the journal owns
    too little. To the log of a cluster, changes also come through its nodes, which keep no record of applies.

    Raises:
        JournalError: one of them lacks an apply. DecodeError, LogError: as read_applies.

    """
    kept = read_applies(directory)
    if kept is None:
        return
    begun = {entry.apply for entry in journal.entries}
    for each in reversed(kept.applied):
        if each.note.journal == journal.id and each.note.apply not in begun:
            raise JournalError(
                f"{journal.path}: does not have apply {each.note.apply} of {each.note.at}, which {directory} has: an "
                "older copy of the journal: expected the newest one"
            )
    noted = {each.note.apply for each in kept.applied}
    lost = next((each for each in reversed(journal.entries) if _wrote(each) and each.apply not in noted), None)
    if lost is not None and identity == kept.id:
        raise JournalError(
            f"{directory / APPLIES_FILE}: does not have apply {lost.apply} of {lost.at}, which {journal.path} has: an "
            "older copy of the log: expected the newest one. If it was put back on purpose, begin a new journal, with "
            "--adopt"
        )


def _wrote(entry: Entry) -> bool:
    """Return whether an apply ended that wrote to the place; one that was settled later may have been killed before."""
    return entry.kind is EntryKind.DONE and not entry.settled and any(step.action in _WRITTEN for step in entry.steps)
