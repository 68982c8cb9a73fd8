"""How often nodes look for work by themselves: as in production, or a tenth as often in a lull.

Most of what an idle cluster does is to look again: at its directory, its election, the deadlines of its connections.
Each of these costs as much as an event that matters. In a lull, when neither clients nor faults do anything for a
while, they happen less often, and virtual time passes faster; before the next burst they are usual again. After the
last fault there is a lull as soon as everything has settled.
"""

from collections.abc import Callable
from types import ModuleType

from attrs import define, field

from aclog.client import follower, quorum_log
from aclog.metalog.topiclog import reader, topic_log
from aclog.server import storage
from aclog.server.controller import leadership, shared
from aclog.server.network import listeners
from tests.simulation import kafka_clients
from tests.simulation.scheduler import Scheduler

_INTERVALS: tuple[tuple[ModuleType, str, float], ...] = (
    (storage, "_SECONDS", 30.0),
    (listeners, "_EXPIRY_SECONDS", 30.0),
    (follower, "_WAIT_SECONDS", 15.0),
    (quorum_log, "_MIRROR_WAIT_SECONDS", 15.0),
    (shared, "_STANDBY_POLL_SECONDS", 10.0),
    (leadership, "_POLL_SECONDS", 10.0),
    (leadership, "_RECORD_SECONDS", 10.0),
    (reader, "_WAKE_SECONDS", 5.0),
    (topic_log, "_WAKE_SECONDS", 5.0),
    (kafka_clients, "heartbeats_per_session", 3.0),
)
"""Module, name, and the value in a lull."""

BURST = 60.0
"""Seconds of faults and requests before each lull."""
_FADE = 40.0
"""Seconds after a burst in which its faults end, and what they have broken is noticed."""
_ONSET = 30.0
"""Seconds before the next burst from which on everything is usual: longer than any interval of a lull."""


@define(eq=False)
class Tempo:
    """The bursts and lulls of a world; `lull` is the length of each lull in seconds, 0 for none."""

    scheduler: Scheduler
    lull: float = 0.0
    calm_until: float = 0.0
    """The end of the lull in which nothing is requested; in the past outside of one."""
    _usual: list[float] = field(factory=list, init=False)

    def moment(self, at: float) -> float:
        """Return when something happens that is due after so many seconds of bursts."""
        return at + self.lull * int(at // BURST)

    def length(self, seconds: float) -> float:
        """Return how long the bursts last, with the lulls between them."""
        return seconds + self.lull * max(int((seconds - 1.0) // BURST), 0)

    @property
    def is_calm(self) -> bool:
        """Whether it is a lull."""
        return self.scheduler.now < self.calm_until

    def begin(self, seconds: float) -> None:
        """Plan the lulls between so many seconds of bursts."""
        self._usual = [getattr(module, name) for module, name, _ in _INTERVALS]
        if not self.lull:
            return
        for number in range(1, int((seconds - 1.0) // BURST) + 1):
            start = number * BURST + (number - 1) * self.lull
            self.scheduler.at(start + _FADE, self.rest, start + self.lull - _ONSET)

    def end(self) -> None:
        """Restore the usual intervals."""
        for (module, name, _), value in zip(_INTERVALS, self._usual, strict=True):
            setattr(module, name, value)

    def rest(self, until: float) -> None:
        """Begin a lull."""
        self.scheduler.note("lull")
        self.calm_until = until
        for module, name, value in _INTERVALS:
            setattr(module, name, value)
        self.scheduler.at(until, self.end)

    def pause(self, usual: Callable[[], float], calm: Callable[[], float]) -> float:
        """Draw how long a client or a check waits: a lull's pause ends with the lull."""
        seconds = usual()
        if not self.is_calm:
            return seconds
        return min(calm(), self.calm_until - self.scheduler.now + seconds)
