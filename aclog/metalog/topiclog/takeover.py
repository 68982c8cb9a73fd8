"""Become the one writer of a topic log."""

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from time import monotonic

from aclog.metalog.clock import current_time_ms
from aclog.metalog.control_records import LeaderChange, LeaderChangeVoter
from aclog.metalog.errors import LogError
from aclog.metalog.topiclog.fencing import fence_previous_writer
from aclog.metalog.topiclog.historical_reads import HistoricalReads
from aclog.metalog.topiclog.settings import TopicSettings
from aclog.metalog.topiclog.tail_cache import TailCache
from aclog.metalog.topiclog.topic_log import TopicLog

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
    deadline = monotonic() + timeout
    with ExitStack() as stack:
        historical = HistoricalReads(settings, threading.Event())
        stack.callback(historical.close)
        historical.connect(timeout)
        transactions = fence_previous_writer(settings, _left(deadline))
        stack.callback(transactions.close)
        found = historical.survey_stable(_left(deadline))  # only now: the last writer is fenced
        tail = TailCache(name=settings.name, window_bytes=WINDOW_BYTES)
        tail.begin(found.start_offset, found.end_offset, found.end_offset)
        log = TopicLog(
            settings,
            found.epoch + 1,
            tail=tail,
            historical=historical,
            transactions=transactions,
            on_failure=on_failure,
        )
        stack.callback(log.close)
        _begin_epoch(log, node_id, voters, timestamp)
        stack.pop_all()
    return log


def _left(deadline: float) -> float:
    return max(deadline - monotonic(), 1.0)


def _begin_epoch(log: TopicLog, node_id: int, voters: Sequence[int], timestamp: int | None) -> None:
    change = LeaderChange(
        leader_id=node_id,
        voters=tuple(LeaderChangeVoter(voter_id=voter) for voter in voters or (node_id,)),
        granting_voters=(LeaderChangeVoter(voter_id=node_id),),
    )
    begun = current_time_ms() if timestamp is None else timestamp
    log.append_control(change, timestamp=begun).result()
