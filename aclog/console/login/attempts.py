"""How often somebody may try to log in: a budget for each address and for each name."""

from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256

from attrs import define, field, frozen

from aclog.metalog.clock import elapsed_seconds
from aclog.nodes.connection_budget import network_of

_REMEMBERED = 10_000
"""Budgets that are kept of each kind; the one that was not used for longest goes first."""


@frozen
class Budget:
    """So many at once, and one more each time that so many seconds have passed."""

    burst: int
    seconds: float


OF_ADDRESS, OF_NAME = Budget(20, 6.0), Budget(10, 30.0)


@define(eq=False)
class _Spent:
    """What is left of the budgets of one kind."""

    budget: Budget
    _left: "OrderedDict[bytes, tuple[float, float]]" = field(factory=OrderedDict, init=False)
    """What was left, and when."""

    def left(self, key: bytes, now: float) -> float:
        """Return how many attempts are left, as a fraction."""
        left, then = self._left.get(key, (float(self.budget.burst), now))
        return min(left + max(now - then, 0.0) / self.budget.seconds, float(self.budget.burst))

    def wait(self, key: bytes, now: float) -> float:
        """Return for how many seconds nothing is left; 0 if something is."""
        return max(1.0 - self.left(key, now), 0.0) * self.budget.seconds

    def spend(self, key: bytes, now: float, number: float) -> None:
        """Take from a budget, or give back."""
        self._left[key] = min(self.left(key, now) - number, float(self.budget.burst)), now
        self._left.move_to_end(key)
        if len(self._left) > _REMEMBERED:
            self._left.popitem(last=False)


@define(eq=False, kw_only=True)
class Attempts:
    """The attempts of late; owned by the login. Memory is bounded."""

    clock: Callable[[], float] = elapsed_seconds
    _addresses: _Spent = field(factory=lambda: _Spent(OF_ADDRESS), init=False)
    _names: _Spent = field(factory=lambda: _Spent(OF_NAME), init=False)

    def begin(self, address: str, name: str) -> float:
        """Take one attempt, before it is tried; return 0, or for how many seconds there is none and none was taken."""
        now, where, who = self.clock(), _network(address), _digest(name)
        wait = max(self._addresses.wait(where, now), self._names.wait(who, now))
        if wait == 0:
            self._addresses.spend(where, now, 1.0)
            self._names.spend(who, now, 1.0)
        return wait

    def succeeded(self, address: str, name: str) -> None:
        """Give an attempt back: it was good."""
        now = self.clock()
        self._addresses.spend(_network(address), now, -1.0)
        self._names.spend(_digest(name), now, -1.0)


def _network(address: str) -> bytes:
    return _digest(network_of(address))


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]
