"""Removals replayed over accesses, against the engine."""

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from aclog.authorizer.codes import AclOperation, ResourceType
from aclog.authorizer.settings import Settings
from aclog.usage.counting import AccessCounter, SeenAccesses
from aclog.usage.decisions.bulk_authorizer import NecessaryAcls
from aclog.usage.simulation import replay
from tests.support.usage.indexed_timelines import history_of, state_of
from tests.support.usage.timelines import Life, Timeline, letter, random_timeline


def counted(timeline: Timeline, rules, *, own_time: bool) -> pa.Table:
    asked = [
        (r.principal, r.host, AclOperation(r.operation).name, ResourceType(r.resource_type).name, r.resource_name)
        for r in (each.request for each in timeline.accesses)
    ]
    acls = NecessaryAcls.of(rules.intervals, Settings()) if own_time else None
    counter = AccessCounter(SeenAccesses(acls))
    times = np.array([each.time for each in timeline.accesses], np.int64)
    counter.add([pa.array(column, pa.string()) for column in zip(*asked, strict=True)], times)
    return counter.table()


def row(life: Life) -> tuple[str | None, ...]:
    return tuple(life.rule.to_dict().values())


@pytest.mark.parametrize("seed", range(6))
def test_a_removal_replayed(seed):
    random = Random(seed)
    timeline = random_timeline(random)
    now = [life for life in timeline.lives if life.end is None]
    # only what is there all the while is ever removed
    gone = [life for life in now if life.begin == 0 and random.random() < 0.4]
    rules = frozenset(life.rule for life in gone)
    first, last = timeline.accesses[0].time, timeline.accesses[-1].time
    history = history_of(timeline)
    found = replay(counted(timeline, history, own_time=True), history, [*map(row, gone)], Settings(), own_time=True)
    flips = {(each.request, each.time) for each in timeline.flips(rules, first, last)}
    assert found.decided == len(timeline.accesses)
    assert sum(found.flipped.column("count").to_pylist()) == len(flips)
    state = state_of([life.rule for life in now])
    found = replay(counted(timeline, state, own_time=False), state, [*map(row, gone)], Settings(), own_time=False)
    flips = {
        each for each in timeline.accesses
        if letter(timeline.now(), each.request) != letter(timeline.now() - rules, each.request)
    }  # fmt: skip
    assert sum(found.flipped.column("count").to_pylist()) == len(flips)
