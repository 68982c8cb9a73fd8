"""How many entries `aclog sync` and `migrate` may remove at once before an operator has to accept it.

A source that returns nothing where it does not know, such as a broker without its metadata, looks like a removal of
everything. In a module of its own, since the flags of every command are built with its default.
"""

from aclog.metalog.errors import ConfigError
from aclog.metalog.values import frozen

DEFAULT_PERCENT = 20.0
_ALWAYS_FINE = 9
"""Fewer removals than ten are what people do, unless nothing is left."""


@frozen(kw_only=True)
class RemovalLimit:
    """A share of all entries, in percent: more than that, if it is ten or more, or all of them, is suspicious.

    `accepted` is how many may go nevertheless, once.
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

    def check(self, name: str = "--max-removal", accepted_name: str = "--accept-removal") -> None:
        """Raise ConfigError unless both numbers are possible; the names are those of the flags or arguments."""
        if self.accepted is not None and self.accepted < 1:
            raise ConfigError(f"{accepted_name} {self.accepted}: expected 1 or more")
        if not 0 < self.percent <= 100:
            raise ConfigError(f"{name} {self.percent:g}: expected a percentage above 0 and at most 100")
