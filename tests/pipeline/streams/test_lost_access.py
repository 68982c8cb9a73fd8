"""Lost permissions, by a loop over every millisecond and the naive authorizer."""

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from aclog.authorizer.acl import acl_of
from aclog.authorizer.codes import AclOperation, AclPermissionType, ResourceType
from aclog.authorizer.settings import Settings
from aclog.metalog.columns import Int64s
from aclog.metalog.records import AccessControlEntryRecord
from aclog.pipeline.authorize import decide
from aclog.pipeline.session import Enclosed
from aclog.pipeline.streams.decisions import lost_times
from aclog.usage.decisions.decisions import REQUEST_COLUMNS
from aclog.usage.rules import FollowedRules
from tests.support.builders.state_logs import write_log
from tests.support.builders.state_records import acl, removal
from tests.support.models.reference import ALLOWED, ReferenceAuthorizer

WITHIN, LAST = 40, 160
USERS, TOPICS = ("User:alice", "User:bob"), ("orders", "orders.eu", "payments")


def changing_log(tmp_path, draw: Random):
    """A log whose ACLs come and go, and the records of each batch by its time."""
    batches, there, number = [], [], 0
    for _ in range(30):
        records = []
        for _ in range(draw.randrange(1, 4)):
            if there and draw.random() < 0.5:
                records.append(removal(there.pop(draw.randrange(len(there)))))
            else:
                number += 1
                there.append(number)
                records.append(
                    acl(number, name=draw.choice(TOPICS), principal=draw.choice(USERS), host=f"10.0.0.{number}",
                        permission=draw.choice((AclPermissionType.ALLOW,) * 3 + (AclPermissionType.DENY,)))
                    if draw.random() < 0.1 else
                    acl(number, name=f"{draw.choice(TOPICS)}", principal=draw.choice(USERS),
                        operation=draw.choice((AclOperation.READ, AclOperation.WRITE, AclOperation.ALL)),
                        permission=draw.choice((AclPermissionType.ALLOW,) * 3 + (AclPermissionType.DENY,)),
                        resource_type=ResourceType.TOPIC)
                )  # fmt: skip
        batches.append(records)
    times = sorted(draw.sample(range(1, LAST), len(batches)))
    return batches, times


def unique(batches):
    """Leave out ACLs with the content of one that exists, and removals of these."""
    there, left = {}, []
    for records in batches:
        kept = []
        for record in records:
            if isinstance(record, AccessControlEntryRecord):
                content = (
                    record.resource_name,
                    record.principal,
                    record.host,
                    record.operation,
                    record.permission_type,
                )
                if content not in there.values():
                    there[record.id] = content
                    kept.append(record)
            elif there.pop(record.id, None) is not None:
                kept.append(record)
        left.append(kept)
    return left


def states_of(batches, times):
    """The naive authorizer of each millisecond; none before the log, where nothing is known to be allowed."""
    rules, states, now = {}, {}, None
    for moment in range(LAST + WITHIN + 1):
        for record in batches[times.index(moment)] if moment in times else ():
            if isinstance(record, AccessControlEntryRecord):
                rules[record.id] = acl_of(record)
            else:
                del rules[record.id]
        if moment in times:
            now = ReferenceAuthorizer(list(rules.values()))
        states[moment] = now
    return states


def naive(states, moment, request):
    """Whether a request is allowed at a moment."""
    if moment < 0 or states[moment] is None:
        return False
    principal, host, operation, _, name = request
    answer = states[moment].decide(principal, host, AclOperation[operation], ResourceType.TOPIC, name)
    return answer[0] == ALLOWED


@pytest.mark.parametrize("seed", range(6))
def test_the_change_since_which_an_access_is_denied(tmp_path, seed):
    draw = Random(seed)
    batches, times = changing_log(tmp_path, draw)
    batches = unique(batches)
    kept = [(records, time) for records, time in zip(batches, times, strict=True) if records]
    batches, times = [records for records, _ in kept], [time for _, time in kept]
    followed = FollowedRules.of(write_log(tmp_path / "log", *batches, times=times), Settings())
    requests = [
        (draw.choice(USERS), "10.0.0.1", draw.choice(("READ", "WRITE")), "TOPIC", draw.choice(TOPICS), time * 1000)
        for time in range(1, LAST + WITHIN, 2) for _ in range(4)
    ]  # fmt: skip
    table = pa.table(dict(zip([*REQUEST_COLUMNS, "micros"], map(list, zip(*requests, strict=True)), strict=True)))
    sent = Enclosed(followed.rules.intervals)
    codes = decide(table, sent, Settings())
    allows = followed.rules.texts.allowing()
    lost = lost_times(table, codes, sent, Settings(), within=WITHIN, allows=allows).to_pylist()
    states = states_of(batches, times)
    expected = [expected_loss(states, request) for request in requests]
    assert lost == expected
    assert len({*lost} - {None}) > 3


def expected_loss(states, request):
    """The first moment since the last one at which it was allowed, of those within; in us."""
    time = request[5] // 1000
    if naive(states, time, request[:5]):
        return None
    allowed = [moment for moment in range(time - WITHIN, time) if naive(states, moment, request[:5])]
    return (max(allowed) + 1) * 1000 if allowed else None


def test_what_is_denied_for_want_of_a_decision_is_no_loss(tmp_path):
    followed = FollowedRules.of(write_log(tmp_path / "log", [acl(1)], [removal(1)], times=[10, 20]), Settings())
    rows = [("User:alice", "10.0.0.1", "READ", "TOPIC", "1"), ("User:alice", "10.0.0.1", "REED", "TOPIC", "1")]
    micros: Int64s = np.array([25_000, 25_000])
    columns = [*map(list, zip(*rows, strict=True)), micros]
    table = pa.table(dict(zip([*REQUEST_COLUMNS, "micros"], columns, strict=True)))
    sent = Enclosed(followed.rules.intervals)
    codes = decide(table, sent, Settings())
    allows = followed.rules.texts.allowing()
    for within, at in ((5, None), (6, 20_000)):
        lost = lost_times(table, codes, sent, Settings(), within=within, allows=allows)
        assert lost.to_pylist() == [at, None]
