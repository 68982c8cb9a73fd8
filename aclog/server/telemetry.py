"""Metrics and logging of a node."""

import logging
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Self

from attrs import Factory, evolve, field
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from aclog.authorizer.acl import AclBindingFilter, StandardAcl, StandardAclWithId
from aclog.authorizer.interface import (
    AclCreateResult,
    AclDeleteResult,
    Action,
    AuthorizationResult,
    Authorizer,
    AuthorizerNotReadyError,
    AuthorizerSession,
    InvalidRequestError,
    RequestContext,
    ResourceGroups,
    UndecidedSession,
)
from aclog.authorizer.standard import Counts, StandardAuthorizer, new_counts
from aclog.metalog.native import native
from aclog.metalog.values import define, frozen

# Counters for hot paths, where prometheus_client's would cost more than the operation they count.


@define(eq=False)
class Decisions(Collector):
    """Authorization decisions by outcome. A cached decision takes less than 1 us, so counting is plain addition.

    Any thread may count: large requests are decided off the event loop.
    """

    allowed: int = field(default=0, init=False)
    denied: int = field(default=0, init=False)
    not_ready: int = field(default=0, init=False)
    failed: int = field(default=0, init=False)
    of_sessions: Counts = field(factory=new_counts, init=False)
    """More of the allowed and denied ones, counted without a call of Python."""
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def count(self, allowed: int = 0, denied: int = 0, *, not_ready: int = 0, failed: int = 0) -> None:
        """Add to the counters."""
        with self._lock:
            self.allowed += allowed
            self.denied += denied
            self.not_ready += not_ready
            self.failed += failed

    def describe(self) -> Iterable[CounterMetricFamily]:
        """Return the name, so that the registry can detect duplicates."""
        return [self._family()]

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Yield the current counts."""
        family = self._family()
        allowed, denied = self.of_sessions
        more = {"allowed": allowed, "denied": denied}
        for outcome in ("allowed", "denied", "not_ready", "failed"):
            family.add_metric([outcome], getattr(self, outcome) + more.get(outcome, 0))
        yield family

    @staticmethod
    def _family() -> CounterMetricFamily:
        return CounterMetricFamily(
            "aclog_authorizer_decisions",
            "Decisions of the authorizer; not_ready: refused because the log had not been replayed (KIP-801).",
            labels=["outcome"],
        )


# An authorizer that counts decisions.


_ALLOWED = AuthorizationResult.ALLOWED


@frozen(kw_only=True, eq=False)
class CountingAuthorizer(Authorizer):
    """Delegates to another authorizer and counts its decisions, one per action."""

    authorizer: Authorizer
    decisions: Decisions

    def configure(self, properties: Mapping[str, str]) -> None:
        """See Authorizer.configure."""
        self.authorizer.configure(properties)

    def authorize(self, context: RequestContext, actions: Sequence[Action]) -> list[AuthorizationResult]:
        """See Authorizer.authorize."""
        decisions = self.decisions
        try:
            results = self.authorizer.authorize(context, actions)
        except AuthorizerNotReadyError:
            decisions.count(not_ready=len(actions))
            raise
        except InvalidRequestError:
            decisions.count(failed=len(actions))
            raise
        allowed = results.count(_ALLOWED)
        decisions.count(allowed, len(results) - allowed)
        return results

    def session(self, principal: str, host: str) -> AuthorizerSession:
        """See Authorizer.session."""
        if isinstance(self.authorizer, StandardAuthorizer):
            return self.authorizer.session(principal, host, self.decisions.of_sessions)
        return UndecidedSession()

    def pinned(self) -> Authorizer:
        """See Authorizer.pinned."""
        return evolve(self, authorizer=self.authorizer.pinned())

    def authorize_by_resource_type(
        self, context: RequestContext, operation: int, resource_type: int
    ) -> AuthorizationResult:
        """See Authorizer.authorize_by_resource_type."""
        decisions = self.decisions
        try:
            result = self.authorizer.authorize_by_resource_type(context, operation, resource_type)
        except AuthorizerNotReadyError:
            decisions.count(not_ready=1)
            raise
        except InvalidRequestError:
            decisions.count(failed=1)
            raise
        decisions.count(int(result is _ALLOWED), int(result is not _ALLOWED))
        return result

    def acls(self, acl_filter: AclBindingFilter) -> Iterable[StandardAclWithId]:
        """See Authorizer.acls."""
        return self.authorizer.acls(acl_filter)

    def acl_groups(self, acl_filter: AclBindingFilter) -> ResourceGroups | None:
        """See Authorizer.acl_groups."""
        return self.authorizer.acl_groups(acl_filter)

    def create_acls(self, context: RequestContext, acls: Sequence[StandardAcl]) -> "Future[list[AclCreateResult]]":
        """See Authorizer.create_acls."""
        return self.authorizer.create_acls(context, acls)

    def delete_acls(
        self, context: RequestContext, filters: Sequence[AclBindingFilter]
    ) -> "Future[list[AclDeleteResult]]":
        """See Authorizer.delete_acls."""
        return self.authorizer.delete_acls(context, filters)

    def acl_count(self) -> int:
        """See Authorizer.acl_count."""
        return self.authorizer.acl_count()


# The Prometheus metrics of a node: base units, `_total` on counters, prefix aclog_.


_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Histogram buckets, from a group commit on a fast disk to a request timeout."""

_log = logging.getLogger(__name__)


def _gauge(name: str, text: str, *labels: str) -> Any:
    return field(init=False, default=Factory(lambda own: Gauge(name, text, labels, registry=own.registry), True))


def _counter(name: str, text: str, *labels: str) -> Any:
    return field(init=False, default=Factory(lambda own: Counter(name, text, labels, registry=own.registry), True))


def _histogram(name: str, text: str, *labels: str) -> Any:
    return field(
        init=False,
        default=Factory(lambda own: Histogram(name, text, labels, registry=own.registry, buckets=_SECONDS), True),
    )


def _decisions() -> Any:
    def make(own: "Metrics") -> Decisions:
        """Create and register the counters."""
        decisions = Decisions()
        own.registry.register(decisions)
        return decisions

    return field(init=False, default=Factory(make, True))


@define(eq=False, kw_only=True)
class Metrics:
    """The metrics of a node in a registry of their own; `process` adds memory, files and CPU time of the process.

    Gauges are evaluated when read (`set_function`), which costs nothing in between. All metrics but `decisions` may be
    used from any thread. Times are in seconds.
    """

    process: bool = True
    registry: CollectorRegistry = field(factory=CollectorRegistry, init=False)

    native: Gauge = _gauge("aclog_native_core", "1 if the native core decides (the package aclog-native), 0 if Python.")
    cidr: Gauge = _gauge("aclog_cidr_enabled", "1 if the host of an ACL may be a CIDR range (aclog.cidr.enabled).")
    event_loop: Gauge = _gauge("aclog_event_loop_info", "Always 1; kind: uvloop with its version, or asyncio.", "kind")
    ready: Gauge = _gauge("aclog_ready", "1 once the log is replayed to the first known high-water mark (KIP-801).")
    active: Gauge = _gauge("aclog_active_controller", "1 while this is the active controller (ActiveControllerCount).")
    applied_offset: Gauge = _gauge(
        "aclog_last_applied_record_offset", "Offset of the last record that readers see (LastAppliedRecordOffset)."
    )
    committed_offset: Gauge = _gauge(
        "aclog_last_committed_record_offset", "Offset of the last committed record known (LastCommittedRecordOffset)."
    )
    lag_records: Gauge = _gauge("aclog_lag_records", "Committed records known that readers do not see yet.")
    lag: Gauge = _gauge(
        "aclog_lag_seconds", "Age of the last applied record, by its batch's timestamp (LastAppliedRecordLagMs)."
    )
    append: Histogram = _histogram("aclog_append_duration_seconds", "Time from a batch's append to its fsync.")
    commit: Histogram = _histogram(
        "aclog_commit_duration_seconds", "Time from a request's arrival at the controller to its records' commit."
    )
    apply: Histogram = _histogram(
        "aclog_apply_duration_seconds", "Time to replay committed batches and to publish the image."
    )
    overlay: Gauge = _gauge(
        "aclog_overlay_changes", "ACL changes that are not merged into the index yet; merged from 32,768 on."
    )
    merges: Histogram = _histogram(
        "aclog_merge_duration_seconds", "Time to merge ACL changes into the index, in the background."
    )
    merge_failures: Counter = _counter(
        "aclog_merge_failures_total", "Failed merges of ACL changes; the log has the reasons."
    )
    decisions: Decisions = _decisions()

    access_warning: Gauge = _gauge(
        "aclog_access_warning", "1 while the node is open or locked, probably by mistake.", "warning"
    )

    connections: Gauge = _gauge("aclog_connections", "Open connections.", "listener")
    accepted: Counter = _counter("aclog_connections_accepted_total", "Connections accepted.", "listener")
    refused: Counter = _counter(
        "aclog_connections_refused_total", "Connections closed at once: a limit was reached.", "listener"
    )
    closed: Counter = _counter(
        "aclog_connections_closed_total",
        "Connections that ended, by why; client: its other end closed it.",
        "listener",
        "reason",
    )
    authentications: Counter = _counter(
        "aclog_authentications_total", "Connections that authenticated.", "listener", "mechanism"
    )
    authentication_failures: Counter = _counter(
        "aclog_authentication_failures_total", "Connections that failed to authenticate.", "listener", "mechanism"
    )
    requests: Histogram = _histogram(
        "aclog_request_duration_seconds", "Time from a request's last byte to its response's first.", "api"
    )
    request_errors: Counter = _counter(
        "aclog_request_errors_total", "Requests that failed as a whole with one error.", "api", "error_code"
    )
    in_flight_requests: Gauge = _gauge("aclog_in_flight_requests", "Requests being handled (queued.max.requests).")
    in_flight_bytes: Gauge = _gauge(
        "aclog_in_flight_bytes", "Bytes of large requests being read or handled (queued.max.request.bytes)."
    )
    unsent_bytes: Gauge = _gauge("aclog_unsent_bytes", "Bytes of responses that clients have not read yet.")

    topic_wrong: Gauge = _gauge(
        "aclog_topic_wrong",
        "1 while the log's topic is missing or another one (identity), or could lose records (settings).",
        "check",
    )
    topic_check_age: Gauge = _gauge(
        "aclog_topic_check_age_seconds", "Seconds since brokers last answered this check of the log's topic.", "check"
    )

    def __attrs_post_init__(self) -> None:
        self.native.set(native is not None)
        if self.process:
            ProcessCollector(registry=self.registry)
            PlatformCollector(registry=self.registry)

    def watch_acl_count(self, acl_count: Callable[[], int]) -> None:
        """Add the authorizer's own count (Authorizer.acl_count). A node without an authorizer has no such metric."""
        text = "ACLs in the authorizer, -1 if it does not count them (KIP-801: AclCount)."

        def count() -> float:
            """Return the count; NaN if a plugin fails to return it, which must not cost the other metrics."""
            try:
                return acl_count()
            except Exception as error:  # noqa: BLE001 - any error of a plugin
                _log.warning("the authorizer's acl_count failed: %r", error)
                return math.nan

        Gauge("aclog_acls", text, registry=self.registry).set_function(count)

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return generate_latest(self.registry)


# Metrics of the index of last use that a node keeps.


@frozen(kw_only=True)
class UsageMetrics:
    """A node without aclog.usage.index has no such metrics."""

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
                "Decisions by their handling in the index of last use; it has only judged ones, and dropped ones are "
                "lost.",
                ["kind"],
                registry=registry,
            ),
            failures=Counter(
                "aclog_usage_index_failures",
                "Failed writes of the index of last use; the log has the reasons.",
                registry=registry,
            ),
        )
