"""What clients did and saw, and whether one order of it explains everything (Wing and Gong 1993, Lowe 2017).

A resource pattern is one object: its state is the set of its ACLs, and requests of a pattern change no other one. So a
history is linearizable if that of every pattern is (Herlihy and Wing 1990, theorem 1), and each is small.
"""

from collections import deque
from collections.abc import Sequence
from math import inf
from typing import TypeAlias

from attrs import define, evolve, field, frozen

State = frozenset[int]
"""The ACLs of a pattern, by number."""
NONE: State = frozenset()
Configurations: TypeAlias = dict[tuple[State, frozenset[int]], list[frozenset[int]]]
"""By state, and the calls with an answer that have taken effect: least sets of calls without one that have, as well."""

MOST_STEPS = 20_000
"""Configurations after which a history is split by ACL: many requests whose outcome is unknown."""


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

    def of_rule(self, number: int) -> "Call":
        """Return what the call means for one ACL."""
        only = frozenset((number,))
        return evolve(self, acls=self.acls & only, answer=None if self.answer is None else self.answer & only)


@define
class History:
    """The calls to one pattern. A call of unknown outcome takes effect within `latest` seconds, or never."""

    calls: list[Call] = field(factory=list)
    latest: float = inf
    was_split: bool = False
    """Whether it had too many configurations, so that each ACL was checked by itself."""
    most_steps: int = MOST_STEPS
    undecided: bool = False
    """Whether even that was too much."""
    _steps: int = 0

    def first_violation(self, initial: State = frozenset()) -> Call | None:
        """Return the first call whose answer no order of the calls explains; None if the history is linearizable.

        If that has too many configurations, the history of each ACL has to be linearizable: necessary, not sufficient.
        """
        violation = self._first_violation(initial)
        if not self.undecided:
            return violation
        self.was_split, self.undecided = True, False
        for number in sorted({each for call in self.calls for each in call.acls}):
            of_one = [call.of_rule(number) for call in self.calls]
            part = History([each for each in of_one if each.acls], self.latest)
            violation = part._first_violation(initial & {number})
            if violation is not None:
                return violation
            self.undecided |= part.undecided
        return None

    def _first_violation(self, initial: State) -> Call | None:
        """Keep the configurations that the returned calls allow.

        At the return of a call those remain in which it has taken effect.
        """
        events: list[tuple[float, int, int]] = []
        for number, call in enumerate(self.calls):
            if call.answer is None and call.kind == "describe":
                continue  # says nothing
            events.append((call.begun, 0, number))
            if call.answer is not None:
                events.append((call.ended, 1, number))
            elif self.latest < inf:
                events.append((call.begun + self.latest, 2, number))
        open_calls: list[int] = []
        configurations: Configurations = {(initial, NONE): [NONE]}
        for _, kind, number in sorted(events):
            if not kind:
                open_calls.append(number)
                continue
            reached = self._closure(configurations, open_calls)
            if reached is None:
                self.undecided = True
                return None
            open_calls.remove(number)
            if kind == 2:  # what it may have done is done: whether it was guessed makes no difference any more
                configurations = {
                    at: list(dict.fromkeys(guess - {number} for guess in guessed)) for at, guessed in reached.items()
                }
                continue
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
            if self._steps > self.most_steps:
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
