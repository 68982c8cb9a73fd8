"""Taking over a topic log: fence the previous writer, find the end, begin a leader epoch."""

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from time import monotonic

from aclog.metalog.clock import current_time_ms
from aclog.metalog.control_records import LeaderChange, LeaderChangeVoter
from aclog.metalog.errors import LogError
from aclog.metalog.log import LogReader
from aclog.metalog.topiclog.fencing import fence_previous_writer
from aclog.metalog.topiclog.historical_reads import HistoricalReads
from aclog.metalog.topiclog.read_back import ReadBack
from aclog.metalog.topiclog.reader import TopicReader
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
    reader: LogReader | None = None,
    on_failure: Callable[[LogError], None] | None = None,
    timeout: float = 60.0,
) -> TopicLog:
    """Open a topic log for writing: fence the previous writer, and begin the next leader epoch. Blocks.

    The topic must exist (`ensure_topic`). The epoch's LeaderChange names `node_id` as leader and `voters` (by default
    `node_id` alone), and is committed on return. `timestamp`, in ms since 1970, defaults to the current time.
    What is written is acknowledged once `reader`, which follows this topic, has read it; by default the log has one of
    its own. `on_failure` is called once, in the log's own thread, when the log is dead, but not after `close` or
    `abandon`.

    Raises:
        FencedError: another writer has opened it since.
        LogError: no broker responds within `timeout` seconds, or one refuses.
        DecodeError: the last message is not a record.
        ConfigError: the client rejects a property, or confluent-kafka is not installed.

    """
    deadline = monotonic() + timeout
    with ExitStack() as stack:
        historical = HistoricalReads(settings, threading.Event())
        stack.callback(historical.close)
        historical.connect(timeout)
        transactions = fence_previous_writer(settings, _left(deadline))
        stack.callback(transactions.close)
        found = historical.survey_stable(_left(deadline))  # after fencing, so that nobody can append behind the end
        read_back = ReadBack(reader or TopicReader(settings), owned=reader is None)
        stack.callback(read_back.close)
        tail = TailCache(name=settings.name, window_bytes=WINDOW_BYTES)
        tail.begin(found.start_offset, found.end_offset, found.end_offset)
        log = TopicLog(
            settings,
            found.epoch + 1,
            tail=tail,
            historical=historical,
            transactions=transactions,
            read_back=read_back,
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
