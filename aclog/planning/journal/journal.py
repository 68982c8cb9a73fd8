"""What a journal says: every apply of a source, and what the source owns."""

from collections.abc import Set as AbstractSet
from functools import cached_property

from attrs import define

from aclog.planning.errors import JournalError, RefusedError
from aclog.planning.journal.entry import Entry, EntryKind, owned_after
from aclog.planning.journal.sent import NOTHING_SENT, Sent


@define(eq=False, slots=False, kw_only=True)
class Journal:
    """The entries of a journal. Immutable by convention."""

    path: str
    id: str
    entries: tuple[Entry, ...] = ()
    sent: Sent = NOTHING_SENT
    """How far the apply has come that has not ended."""
    is_new: bool = False
    """Whether there is no file yet."""
    checksum: int = 0
    """Of all lines of its file."""

    @property
    def open(self) -> Entry | None:
        """The BEGIN of an apply that has not ended, if there is one; it is the last entry."""
        last = self.entries[-1] if self.entries else None
        return last if last is not None and last.kind is EntryKind.BEGIN else None

    @cached_property
    def owned(self) -> AbstractSet[bytes]:
        """What is owned by the applies that have ended."""
        return owned_after(self.entries)

    @property
    def place(self) -> str | None:
        """The identity of the place that it was last applied to; None before that."""
        return next((entry.place for entry in reversed(self.entries) if entry.place is not None), None)

    def check_place(self, identity: str | None, name: str) -> None:
        """Check that a place is the one that the journal is of.

        Raises:
            JournalError: it is another one, or nothing tells that it is the same.

        """
        known = self.place
        if known is None or identity == known:
            return
        found = f"is {identity}" if identity is not None else "has no identity: it is new, or was replaced"
        raise JournalError(
            f"{self.path}: the journal of {known}, and {name} {found}: expected the same place, or a journal of its own"
        )

    def check_rules_there(self, contents: AbstractSet[bytes], name: str) -> None:
        """Check that a place does not answer with nothing, though this journal owns rules there.

        Every apply of the journal has ended: one that was ended on its way may have removed them all.

        Raises:
            RefusedError: it does.

        """
        owned = len(self.owned)
        if owned and not contents:
            raise RefusedError(
                f"{name}: answers that it has no rules at all, and {self.path} owns {owned:,} there: it may not be "
                "ready, or not the same place. If all were really removed, begin a new journal"
            )
