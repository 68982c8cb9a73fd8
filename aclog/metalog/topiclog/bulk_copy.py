"""A copy of a whole log, written into an empty topic in one transaction."""

import threading
from collections.abc import Iterable
from contextlib import closing

from attrs import evolve

from aclog.metalog.errors import LogError
from aclog.metalog.topic_message import MessageBatch
from aclog.metalog.topiclog.fencing import fence_previous_writer
from aclog.metalog.topiclog.historical_reads import HistoricalReads
from aclog.metalog.topiclog.settings import TopicSettings
from aclog.metalog.topiclog.survey import Survey

FILL_SECONDS = 900.0
"""How long the copy may take: the largest transaction timeout that brokers accept by default
(transaction.max.timeout.ms).
"""


def fill_topic(settings: TopicSettings, batches: Iterable[MessageBatch], *, timeout: float = 60.0) -> None:
    """Write batches, control batches included, into an existing empty topic, in one transaction.

    So the topic holds all of them or none, and nobody can take half a copy for a log. The batches keep their offsets
    and epochs, and must be contiguous.

    Raises:
        LogError: the topic is not empty; no broker responds within `timeout` seconds, or one refuses.
        FencedError: another writer has taken over.
        DecodeError: as `batches` raises.

    """
    properties = {**settings.properties, "transaction.timeout.ms": str(int(FILL_SECONDS * 1000))}
    with closing(HistoricalReads(settings, threading.Event())) as reads:
        reads.connect(timeout)
        _check_empty(reads.survey(), settings)  # before fencing, which would stop a live controller
        with closing(fence_previous_writer(evolve(settings, properties=properties), timeout)) as transactions:
            # Again: the previous writer may have committed something before it was fenced.
            _check_empty(reads.survey_stable(timeout), settings)
            try:
                transactions.commit(batches, FILL_SECONDS)
            except BaseException:
                transactions.abort()
                raise


def _check_empty(found: Survey, settings: TopicSettings) -> None:
    end = found.end_offset
    if end:
        raise LogError(f"{settings.name}: not empty: it holds a log that ends at offset {end}; nothing is written")
