"""Rates that are bounded by key: so many at once, and then one more after each interval."""

from collections import OrderedDict
from collections.abc import Hashable

from attrs import define, field, frozen

_REMEMBERED = 10_000
"""Keys that are kept; the one that was not used for longest goes first."""


@frozen
class Budget:
    """So many at once, and one more each time that so many seconds have passed."""

    burst: int
    seconds: float


@define(eq=False)
class RateBudget:
    """What is left of a budget, by key. Memory is bounded."""

    budget: Budget
    _left: "OrderedDict[Hashable, tuple[float, float]]" = field(factory=OrderedDict, init=False)
    """What was left, and when."""

    def left(self, key: Hashable, now: float) -> float:
        """Return how much is left, as a fraction."""
        left, then = self._left.get(key, (float(self.budget.burst), now))
        return min(left + max(now - then, 0.0) / self.budget.seconds, float(self.budget.burst))

    def wait(self, key: Hashable, now: float) -> float:
        """Return for how many seconds nothing is left; 0 if something is."""
        return max(1.0 - self.left(key, now), 0.0) * self.budget.seconds

    def spend(self, key: Hashable, now: float, number: float) -> None:
        """Take from a budget, or give back."""
        self._left[key] = min(self.left(key, now) - number, float(self.budget.burst)), now
        self._left.move_to_end(key)
        if len(self._left) > _REMEMBERED:
            self._left.popitem(last=False)
