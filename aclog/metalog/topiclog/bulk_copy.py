"""A whole log written into an empty topic at once, as a copy of another."""

import threading
from collections.abc import Iterable
from contextlib import closing

from attrs import evolve

from aclog.metalog.errors import LogError
from aclog.metalog.topiclog.fencing import fence_previous_writer
from aclog.metalog.topiclog.historical_reads import HistoricalReads
from aclog.metalog.topiclog.settings import TopicSettings
from aclog.metalog.topiclog.survey import Survey

FILL_SECONDS = 900.0
"""How long it may take: brokers allow no longer transaction (transaction.max.timeout.ms) unless they are told to."""


def fill_topic(settings: TopicSettings, batches: Iterable[bytes], *, timeout: float = 60.0) -> None:
    """Write batches, control batches too, into a topic that is there and holds none, in one transaction.

    So the topic holds all of them or none, whatever happens meanwhile: nobody takes the beginning of a copy for a log.
    They keep their offsets and epochs, and must follow one another.

    Raises:
        LogError: the topic is not empty; no broker answers within `timeout` seconds, or refuses.
        FencedError: somebody else began to write to it.
        DecodeError: what `batches` raises, or a batch that cannot be decoded.

    """
    patient = {**settings.properties, "transaction.timeout.ms": str(int(FILL_SECONDS * 1000))}
    with closing(HistoricalReads(settings, threading.Event())) as reads:
        reads.connect(timeout)
        _check_empty(reads.survey(), settings)  # before a writer who is at work is fenced
        with closing(fence_previous_writer(evolve(settings, properties=patient), timeout)) as transactions:
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
