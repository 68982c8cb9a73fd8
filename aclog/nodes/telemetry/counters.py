"""Counts that are kept where a counter of the client library would cost more than what it counts."""

from collections.abc import Iterable, Iterator

from attrs import define, field
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector


@define(eq=False)
class Decisions(Collector):
    """Decisions by outcome, counted by plain additions, since a remembered decision takes less than a microsecond.

    Only one thread may count: a node's event loop. Any thread may read.
    """

    allowed: int = field(default=0, init=False)
    denied: int = field(default=0, init=False)
    not_ready: int = field(default=0, init=False)
    failed: int = field(default=0, init=False)

    def describe(self) -> Iterable[CounterMetricFamily]:
        """The name, for the registry to see that nobody else has it."""
        return [self._family()]

    def collect(self) -> Iterator[CounterMetricFamily]:
        """The counts as they stand."""
        family = self._family()
        for outcome in ("allowed", "denied", "not_ready", "failed"):
            family.add_metric([outcome], getattr(self, outcome))
        yield family

    @staticmethod
    def _family() -> CounterMetricFamily:
        return CounterMetricFamily(
            "aclog_authorizer_decisions",
            "Decisions of the authorizer; not_ready: refused because the log had not been replayed (KIP-801).",
            labels=["outcome"],
        )
