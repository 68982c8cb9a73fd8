"""Metrics of the index of last use that a node keeps."""

from collections.abc import Callable
from typing import Self

from attrs import frozen
from prometheus_client import CollectorRegistry, Counter, Gauge


@frozen(kw_only=True)
class UsageMetrics:
    """A node without aclog.usage.index has none of them."""

    accesses: Counter
    failures: Counter

    @classmethod
    def registered(cls, registry: CollectorRegistry, age: Callable[[], float]) -> Self:
        """Register them; `age` returns how many seconds of decisions are not in the index yet."""
        Gauge(
            "aclog_usage_index_age_seconds", "Seconds since the last decision that is in the index.", registry=registry
        ).set_function(age)
        return cls(
            accesses=Counter(
                "aclog_usage_index_accesses",
                "Decisions by what the index of last use made of them; only judged ones are in it, dropped ones are "
                "lost.",
                ["kind"],
                registry=registry,
            ),
            failures=Counter(
                "aclog_usage_index_failures",
                "Attempts to write the index of last use that failed; the log says why.",
                registry=registry,
            ),
        )
