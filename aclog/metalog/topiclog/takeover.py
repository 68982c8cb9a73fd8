"""Become the one writer of a topic log."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from aclog.metalog.control_records import LeaderChange, LeaderChangeVoter
from aclog.metalog.errors import LogError
from aclog.metalog.topiclog.committed import Committed
from aclog.metalog.topiclog.historical_reads import PastReads
from aclog.metalog.topiclog.settings import TopicSettings
from aclog.metalog.topiclog.topic_log import TopicLog
from aclog.metalog.topiclog.transactions import begin_transactions

WINDOW_BYTES = 32 << 20


def open_topic_log(
    settings: TopicSettings,
    *,
    node_id: int,
    timestamp: int | None = None,
    voters: Sequence[int] = (),
    on_failure: Callable[[LogError], None] | None = None,
    timeout: float = 60.0,
) -> TopicLog:
    """Fence whoever wrote before, read to the end, and begin the next leader epoch with a LeaderChange. Blocks.

    The topic must be there (`ensure_topic`). The LeaderChange names `node_id` as leader and `voters` (`node_id` alone
    by default); it is committed when this returns. `timestamp` is its, ms since 1970, now by default. `on_failure` is
    called once, in the log's own thread, when the log is dead: not by a close, and not by `abandon`.

    Raises:
        FencedError: another writer opened it in the meantime.
        LogError: no broker answers within `timeout` seconds, or refuses.
        DecodeError: the last message is no record's.
        ConfigError: a property that the client refuses; confluent-kafka is not installed.

    """
    deadline = time.monotonic() + timeout
    with ExitStack() as stack:
        past = PastReads(settings, threading.Event())
        stack.callback(past.close)
        past.connect(timeout)
        transactions = begin_transactions(settings, _left(deadline))
        stack.callback(transactions.close)
        found = past.survey_decided(_left(deadline))  # only now: the last writer is fenced
        committed = Committed(name=settings.name, window_bytes=WINDOW_BYTES)
        committed.begin(found.start_offset, found.end_offset, found.end_offset)
        log = TopicLog(settings, found.epoch + 1, committed, past, transactions, on_failure)
        stack.callback(log.close)
        _begin_epoch(log, node_id, voters, timestamp)
        stack.pop_all()
    return log


def _left(deadline: float) -> float:
    return max(deadline - time.monotonic(), 1.0)


def _begin_epoch(log: TopicLog, node_id: int, voters: Sequence[int], timestamp: int | None) -> None:
    change = LeaderChange(
        leader_id=node_id,
        voters=tuple(LeaderChangeVoter(voter_id=voter) for voter in voters or (node_id,)),
        granting_voters=(LeaderChangeVoter(voter_id=node_id),),
    )
    begun = time.time_ns() // 1_000_000 if timestamp is None else timestamp
    log.append_control(change, timestamp=begun).result()
