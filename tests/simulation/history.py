"""What clients did and saw, and whether one order of it explains everything (Wing and Gong 1993, Lowe 2017).

A resource pattern is one object: its state is the set of its ACLs, and requests of a pattern change no other one. So a
history is linearizable if that of every pattern is (Herlihy and Wing 1990, theorem 1), and each is small.
"""

from collections.abc import Sequence
from math import inf

from attrs import define, field, frozen

State = frozenset[int]
"""The ACLs of a pattern, by number."""

MOST_STATES = 50_000
"""Configurations above which a history is given up as undecided: many requests whose outcome is unknown."""


@frozen(kw_only=True)
class Call:
    """A request to a pattern. `answer` is what the response had; None: its outcome is unknown."""

    kind: str
    """create, delete or describe."""
    acls: State
    """What is created, or matches the filter."""
    begun: float
    ended: float = inf
    answer: State | None = None
    client: str = ""

    def apply(self, state: State) -> State | None:
        """Return the next state; None if the answer contradicts this state."""
        if self.kind == "create":
            return state | self.acls
        matches = state & self.acls
        if self.answer is not None and matches != self.answer:
            return None
        return state - matches if self.kind == "delete" else state


@define
class History:
    """The calls to one pattern."""

    calls: list[Call] = field(factory=list)
    undecided: bool = False

    def first_violation(self, initial: State = frozenset()) -> Call | None:
        """Return the first call whose answer no order of the calls explains; None if the history is linearizable.

        Keeps every configuration (state, linearized calls that have not returned) that the returned calls allow. At
        the return of a call those remain in which it has taken effect.
        """
        events: list[tuple[float, int, int]] = []
        for number, call in enumerate(self.calls):
            if call.answer is None and call.kind == "describe":
                continue  # says nothing
            events.append((call.begun, 0, number))
            if call.answer is not None:
                events.append((call.ended, 1, number))
        open_calls: list[int] = []
        configurations: dict[tuple[State, State], None] = {(initial, frozenset()): None}
        for _, is_return, number in sorted(events):
            if not is_return:
                open_calls.append(number)
                continue
            reached = self._closure(configurations, open_calls)
            if reached is None:
                self.undecided = True
                return None
            open_calls.remove(number)
            configurations = {(state, done - {number}): None for state, done in reached if number in done}
            if not configurations:
                return self.calls[number]
        return None

    def _closure(
        self, configurations: dict[tuple[State, State], None], open_calls: Sequence[int]
    ) -> dict[tuple[State, State], None] | None:
        """Return the configurations that are reached when any open calls take effect, in any order."""
        reached = dict(configurations)
        rest = list(configurations)
        while rest:
            state, done = rest.pop()
            for number in open_calls:
                if number in done:
                    continue
                after = self.calls[number].apply(state)
                if after is None:
                    continue
                following = after, done | {number}
                if following not in reached:
                    if len(reached) >= MOST_STATES:
                        return None
                    reached[following] = None
                    rest.append(following)
        return reached
