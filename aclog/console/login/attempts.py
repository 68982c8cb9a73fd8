"""How often somebody may try to log in: a budget for each address and for each name."""

from collections.abc import Callable
from hashlib import sha256

from attrs import define, field

from aclog.console.rate_budget import Budget, RateBudget
from aclog.metalog.clock import elapsed_seconds
from aclog.nodes.connection_budget import network_of

OF_ADDRESS, OF_NAME = Budget(20, 6.0), Budget(10, 30.0)


@define(eq=False, kw_only=True)
class Attempts:
    """The attempts of late; owned by the login. Memory is bounded."""

    clock: Callable[[], float] = elapsed_seconds
    _addresses: RateBudget = field(factory=lambda: RateBudget(OF_ADDRESS), init=False)
    _names: RateBudget = field(factory=lambda: RateBudget(OF_NAME), init=False)

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
