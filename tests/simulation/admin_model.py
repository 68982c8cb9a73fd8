"""A model of a Kafka cluster as its admin clients see it: a controller that commits, and brokers that follow it.

Each ACL that a request adds or removes is one record, and a broker may show the state between any two, as Kafka does.
A broker applies records in order, some time after the commit, and not at all without a connection to the controller.
What a request has changed is known here independently of any broker: `states` has every state, none ever changes.
"""

from collections.abc import Callable, Iterable, Sequence

from attrs import define, field, frozen

from aclog.authorizer.acl import AclBindingFilter, StandardAcl
from aclog.authorizer.index.queries import filter_matches
from aclog.protocol import error_codes
from tests.simulation.scheduler import Scheduler

_POLICY_VIOLATION = 44
FIRST = 10
"""The offset after the records of a new cluster."""
MOST_LAG = 1.0
"""A broker that reaches its controller has applied a record after so many seconds."""
FENCED_SECONDS = 9.0
"""After so many seconds without a heartbeat, the controller fences a broker."""


@frozen(kw_only=True)
class Change:
    """The last change of an ACL: by which host, by a request that its broker received when, and its offset."""

    by: str
    received: float
    offset: int
    added: bool


@define(eq=False)
class Controller:
    """The active controller; ACLs are known by their numbers."""

    scheduler: Scheduler
    rules: Sequence[StandardAcl]
    lag: float = 0.05
    """The usual time until a broker has applied a record, in seconds."""
    brokers: list["Broker"] = field(factory=list)
    states: list[frozenset[int]] = field(factory=lambda: [frozenset()])
    """The state after each record."""
    changes: dict[int, Change] = field(factory=dict)
    away_until: float = 0.0
    """Until when an election takes."""
    refused: frozenset[int] = frozenset()
    """ACLs that a policy refuses to add or to remove."""
    on_change: Callable[[int, Change], object] = lambda _number, _change: None
    numbers: dict[StandardAcl, int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.numbers = {rule: number for number, rule in enumerate(self.rules)}

    @property
    def end(self) -> int:
        """The offset after the last record: the high-water mark."""
        return FIRST + len(self.states) - 1

    @property
    def state(self) -> frozenset[int]:
        """The newest state."""
        return self.states[-1]

    def at(self, offset: int) -> frozenset[int]:
        """Return the state at an end offset."""
        return self.states[offset - FIRST]

    def _append(self, number: int, change: Change) -> None:
        state = self.state
        self.states.append(state | {number} if change.added else state - {number})
        self.changes[number] = change
        self.on_change(number, change)

    def _committed(self) -> None:
        for broker in self.brokers:
            broker.follow()

    def create(self, by: str, received: float, acls: Iterable[StandardAcl]) -> list[int]:
        """Add ACLs in the order of the request; return an error code for each."""
        codes = []
        for acl in acls:
            number = self.numbers[acl]
            if number in self.refused:
                codes.append(_POLICY_VIOLATION)
                self.scheduler.cover("refused rule")
                continue
            codes.append(0)
            if number not in self.state:
                self._append(number, Change(by=by, received=received, offset=self.end, added=True))
        self._committed()
        return codes

    def delete(self, by: str, received: float, filters: Iterable[AclBindingFilter]) -> list[tuple[int, list[int]]]:
        """Remove ACLs, in any order; return an error code and the removed ACLs for each filter."""
        results: list[tuple[int, list[int]]] = []
        before, removed = self.state, set[int]()
        for acl_filter in filters:
            matching = sorted(each for each in before if filter_matches(acl_filter, self.rules[each]))
            if self.refused.intersection(matching):
                results.append((error_codes.UNKNOWN_SERVER_ERROR, []))
                self.scheduler.cover("refused rule")
            else:
                results.append((0, matching))
                removed.update(matching)
        order = sorted(removed)
        self.scheduler.random.shuffle(order)
        for number in order:
            self._append(number, Change(by=by, received=received, offset=self.end, added=False))
        self._committed()
        return results

    def is_fenced(self, broker: "Broker") -> bool:
        """Whether the controller has fenced a broker."""
        return self.scheduler.now - broker.last_reached > FENCED_SECONDS and not broker.reaches()

    def least_offset(self, state: frozenset[int], since: int) -> int | None:
        """Return the first end offset from `since` on with a state; None if there is none."""
        states = self.states
        return next((FIRST + at for at in range(since - FIRST, len(states)) if states[at] == state), None)


@define(eq=False)
class Broker:
    """A broker; `applied` is the end offset of its image."""

    controller: Controller
    number: int
    name: str
    reaches: Callable[[], bool] = field(default=lambda: True)
    """Whether it is up, and reaches the controller."""
    applied: int = FIRST
    last_reached: float = 0.0
    empty_until: float = 0.0
    """Until when it answers without its metadata."""
    _is_following: bool = field(default=False, init=False)

    @property
    def is_empty(self) -> bool:
        """Whether it answers without its metadata."""
        return self.controller.scheduler.now < self.empty_until

    @property
    def state(self) -> frozenset[int]:
        """The ACLs that it shows."""
        return frozenset() if self.is_empty else self.controller.at(self.applied)

    def restart(self) -> None:
        """Begin again with an image that it had at some time before."""
        random = self.controller.scheduler.random
        self.applied = max(FIRST, self.applied - random.choice((0, 0, 1, 3, 10)))
        self.follow()

    def follow(self) -> None:
        """Apply records soon, if there are any."""
        scheduler = self.controller.scheduler
        if self.reaches():
            self.last_reached = scheduler.now
        if not self._is_following and self.applied < self.controller.end:
            self._is_following = True
            lag = min(self.controller.lag * scheduler.random.uniform(0.1, 2.0), MOST_LAG / 2)
            scheduler.after(lag, self._apply)

    def _apply(self) -> None:
        scheduler, end = self.controller.scheduler, self.controller.end
        if not self.reaches():
            scheduler.after(0.2, self._apply)
            return
        self.last_reached = scheduler.now
        if end - self.applied > 1 and scheduler.random.random() < 0.5:  # each record becomes visible by itself
            self.applied = scheduler.random.randint(self.applied + 1, end - 1)
            scheduler.after(0.01 * scheduler.random.random(), self._apply)
            return
        self.applied, self._is_following = end, False
