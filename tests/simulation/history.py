"""What clients did and saw, and whether one order of it explains everything (Wing and Gong 1993, Lowe 2017).

A resource pattern is one object: its state is the set of its ACLs, and requests of a pattern change no other one. So a
history is linearizable if that of every pattern is (Herlihy and Wing 1990, theorem 1), and each is small.
"""

from collections import deque
from collections.abc import Sequence
from math import inf
from typing import TypeAlias

from attrs import define, field, frozen

State = frozenset[int]
"""The ACLs of a pattern, by number."""
NONE: State = frozenset()
Configurations: TypeAlias = dict[tuple[State, frozenset[int]], list[frozenset[int]]]
"""By state, and the calls with an answer that have taken effect: least sets of calls without one that have, as well."""

MOST_STEPS = 20_000
"""Configurations after which a history is given up as undecided: many requests whose outcome is unknown."""


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
    _steps: int = 0

    def first_violation(self, initial: State = frozenset()) -> Call | None:
        """Return the first call whose answer no order of the calls explains; None if the history is linearizable.

        Keeps the configurations that the returned calls allow. At the return of a call those remain in which it has
        taken effect.
        """
        events: list[tuple[float, int, int]] = []
        for number, call in enumerate(self.calls):
            if call.answer is None and call.kind == "describe":
                continue  # says nothing
            events.append((call.begun, 0, number))
            if call.answer is not None:
                events.append((call.ended, 1, number))
        open_calls: list[int] = []
        configurations: Configurations = {(initial, NONE): [NONE]}
        for _, is_return, number in sorted(events):
            if not is_return:
                open_calls.append(number)
                continue
            reached = self._closure(configurations, open_calls)
            if reached is None:
                self.undecided = True
                return None
            open_calls.remove(number)
            configurations = {
                (state, done - {number}): guessed for (state, done), guessed in reached.items() if number in done
            }
            if not configurations:
                return self.calls[number]
        return None

    def _closure(self, configurations: Configurations, open_calls: Sequence[int]) -> Configurations | None:
        """Return the configurations that are reached when any open calls take effect, in any order; None if too many.

        Calls of unknown outcome take effect only where they change the state, the first of equal ones first, and never
        more of them than necessary: what remains may take effect later, so that nothing is lost.
        """
        reached: Configurations = {}
        # By the number of calls of unknown outcome, so that no later configuration needs fewer of them.
        begun = [(state, done, guess) for (state, done), guessed in configurations.items() for guess in guessed]
        rest = deque(sorted(begun, key=lambda each: len(each[2])))
        while rest:
            state, done, guess = rest.popleft()
            guessed = reached.setdefault((state, done), [])
            if any(other <= guess for other in guessed):
                continue
            self._steps += 1
            if self._steps > MOST_STEPS:
                return None
            guessed.append(guess)
            tried = set()
            for number in open_calls:
                call = self.calls[number]
                if number in done or number in guess:
                    continue
                after = call.apply(state)
                if after is None:
                    continue
                if call.answer is not None:
                    rest.appendleft((after, done | {number}, guess))
                elif after != state and (call.kind, call.acls) not in tried:
                    tried.add((call.kind, call.acls))
                    rest.append((after, done, guess | {number}))
        return reached
