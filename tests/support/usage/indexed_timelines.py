"""Timelines in a real index of last use, as runs of `aclog usage-index` would bring them there."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from aclog.authorizer.acl import StandardAclWithId
from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.settings import Settings
from aclog.usage.counting import AccessCounter, DayTallies, SeenAccesses
from aclog.usage.decisions.bulk_authorizer import NecessaryAcls
from aclog.usage.decisions.intervals import Rules, change_times
from aclog.usage.index.usage_index import Batch, Run, UsageIndex
from aclog.usage.rules import seen_rules
from aclog.usage.window import Coverage
from tests.support.usage.timelines import Access, Timeline
from tests.usage.decisions.test_bulk_authorizer import Interval, table_of


def history_of(timeline: Timeline, until: int | None = None) -> Rules:
    """The rules that a log tells that ends at a time, us since 1970; None: at the end."""
    lives = [life for life in timeline.lives if until is None or life.begin <= until]
    intervals = [
        Interval(
            life.rule,
            life.begin // 1000,
            None if life.end is None or (until is not None and life.end > until) else life.end // 1000,
        )
        for life in lives
    ]
    return Rules.of_table(table_of(intervals))


def state_of(rules: Sequence[StandardAclWithId]) -> Rules:
    """The rules of a state, which is all that is known."""
    return Rules.of_table(table_of([Interval(rule, None, None) for rule in rules]))


def take(
    index: UsageIndex,
    accesses: Sequence[Access],
    rules: Rules,
    settings: Settings = Settings(),  # noqa: B008  # frozen
    *,
    own_time: bool,
    batch: Batch | None = None,
) -> None:
    """Add accesses to an index, judged by these rules."""
    names = sorted({each.broker for each in accesses}, key=str)
    times = np.array([each.time for each in accesses], np.int64)
    requests = [
        (r.principal, r.host, AclOperation(r.operation).name, ResourceType(r.resource_type).name, r.resource_name)
        for r in (each.request for each in accesses)
    ]
    acls = NecessaryAcls.of(rules.intervals, settings) if own_time else None
    counter = AccessCounter(SeenAccesses(acls, version=len(change_times(rules.intervals))), by_day=True)
    counter.add([pa.array(column, pa.string()) for column in zip(*requests, strict=True)], times)
    run = Run(
        rules=seen_rules(rules, own_time=own_time),
        source="a test",
        settings={"allow_everyone": settings.allow_everyone},
        at=0,
        coverage=Coverage.of_lines(
            times, np.array([names.index(each.broker) for each in accesses], np.int64), tuple(names)
        ),
        batch=batch,
    )
    tallies = DayTallies.of(rules.intervals, settings, own_time=own_time)
    index.take(run, tallies.tallies(counter.table()))
