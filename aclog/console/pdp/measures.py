"""What is measured of a decision point."""

from attrs import define, field
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, PlatformCollector, ProcessCollector

from aclog.console.pdp.reply import Reply
from aclog.console.refusals import Refusals

_ANSWERS = ("/access/", "/v1/data/")


@define(eq=False)
class Measures:
    """Counters in Prometheus's form."""

    registry: CollectorRegistry = field(factory=CollectorRegistry, init=False)
    _decisions: Counter = field(init=False)
    _requests: Counter = field(init=False)
    _seconds: Histogram = field(init=False)
    refusals: Refusals = field(init=False)
    age: Gauge = field(init=False)
    """Seconds since something confirmed the state."""

    def __attrs_post_init__(self) -> None:
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self.refusals = Refusals(self.registry)
        self._decisions = Counter("aclog_pdp_decisions", "Decisions.", ["decision"], registry=self.registry)
        self._requests = Counter("aclog_pdp_requests", "Requests.", ["status"], registry=self.registry)
        self._seconds = Histogram("aclog_pdp_request_seconds", "Time of a request.", registry=self.registry)
        self.age = Gauge("aclog_age_seconds", "Time since the state was confirmed.", registry=self.registry)

    def answered(self, reply: Reply) -> None:
        """Count the decisions of an answer."""
        for decision, count in (("true", reply.allowed), ("false", reply.denied)):
            if count:
                self._decisions.labels(decision).inc(count)

    def took(self, path: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(str(status)).inc()
        if path.startswith(_ANSWERS):
            self._seconds.observe(seconds)
