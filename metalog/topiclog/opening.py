"""Become the one writer of a topic log."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial

from metalog.control import LeaderChange, LeaderChangeVoter
from metalog.errors import DecodeError, LogError
from metalog.topiclog.committed import Committed
from metalog.topiclog.leaders import Leader
from metalog.topiclog.partition import Partition, connect_reader
from metalog.topiclog.past_reads import PastReads
from metalog.topiclog.settings import TopicSettings
from metalog.topiclog.survey import Survey, survey
from metalog.topiclog.topic_log import TopicLog
from metalog.topiclog.transactions import begin_transactions

WINDOW_BYTES = 32 << 20
_FETCH_WAIT_MS = 10
"""The end of the topic is known after that: whoever takes over is waited for."""


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
        partition = connect_reader(settings, fetch_wait_ms=_FETCH_WAIT_MS, timeout=timeout)
        stack.callback(partition.close)
        transactions = begin_transactions(settings, max(deadline - time.monotonic(), 1.0))
        stack.callback(transactions.close)
        found = _survey(partition, max(deadline - time.monotonic(), 1.0))
        epoch = found.epoch + 1
        log = TopicLog(
            settings=settings,
            leader_epoch=epoch,
            committed=_committed(settings, found),
            past=PastReads(partial(connect_reader, settings, fetch_wait_ms=_FETCH_WAIT_MS), partition, found),
            transactions=transactions,
            on_failure=on_failure,
        )
        stack.pop_all()
        stack.callback(log.close)
        _begin_epoch(log, node_id, voters, timestamp)
        log._committed.led_by(Leader(node_id=node_id, epoch=epoch, start_offset=found.end_offset))
        stack.pop_all()
    return log


def _survey(partition: Partition, timeout: float) -> Survey:
    """What is committed: the last stable offset is asked for now, with the last writer fenced."""
    try:
        return survey(partition, timeout)
    except DecodeError as error:
        raise error.at(path=partition.name) from None


def _committed(settings: TopicSettings, found: Survey) -> Committed:
    committed = Committed(name=settings.name, window_bytes=WINDOW_BYTES)
    committed.begin(found.start_offset, found.end_offset, found.end_offset)
    return committed


def _begin_epoch(log: TopicLog, node_id: int, voters: Sequence[int], timestamp: int | None) -> None:
    change = LeaderChange(
        leader_id=node_id,
        voters=tuple(LeaderChangeVoter(voter_id=voter) for voter in voters or (node_id,)),
        granting_voters=(LeaderChangeVoter(voter_id=node_id),),
    )
    begun = time.time_ns() // 1_000_000 if timestamp is None else timestamp
    log.append_control(change, timestamp=begun).result()
