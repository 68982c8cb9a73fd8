"""How many entries of a state may be removed at once before an operator has to accept it."""

from attrs import frozen

DEFAULT_PERCENT = 20.0
_ALWAYS_FINE = 9
"""Fewer removals than ten are what people do, unless nothing is left."""


@frozen(kw_only=True)
class RemovalLimit:
    """A share of all entries, in percent: more than that, if it is ten or more, or all of them, is suspicious.

    A source that answers "none" for "I do not know" looks like a removal of everything. `accepted` is how many may go
    nevertheless, once.
    """

    percent: float = DEFAULT_PERCENT
    accepted: int | None = None

    def is_exceeded(self, removed: int, total: int) -> bool:
        """Return whether the removal of so many of all entries has to be accepted."""
        if removed <= 0:
            return False
        return removed >= total or (removed > _ALWAYS_FINE and 100 * removed > self.percent * total)

    def is_accepted(self, removed: int) -> bool:
        """Return whether an operator has accepted the removal of so many."""
        return self.accepted is not None and removed <= self.accepted
