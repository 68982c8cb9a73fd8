"""Fencing of the topic log's previous writer, by Kafka's transactional id."""

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Producer

from aclog.metalog.topiclog.clients import ClientErrors, new_producer
from aclog.metalog.topiclog.kafka_errors import RAISED, kafka_error, retriable
from aclog.metalog.topiclog.settings import TopicSettings
from aclog.metalog.topiclog.transactions import (
    PRODUCER_DEFAULTS,
    PRODUCER_FIXED,
    SLICE_SECONDS,
    DeliveryReports,
    Transactions,
    serve_callbacks,
)


def fence_previous_writer(settings: TopicSettings, timeout: float) -> Transactions:
    """Fence whoever has written before; what it had not committed is aborted when this returns.

    Raises:
        FencedError: somebody else did the same at the same time, and was later.
        LogError: no broker answers within `timeout` seconds, or refuses.
        ConfigError: properties that the client refuses.

    """
    errors, reports = ClientErrors(settings.name), DeliveryReports()
    properties: Mapping[str, Any] = {
        **PRODUCER_DEFAULTS,
        **settings.properties,
        **PRODUCER_FIXED,
        "transactional.id": settings.transactional_id,
        "on_delivery": reports.note,
    }
    producer = new_producer(settings.name, properties, errors)
    _init_transactions(producer, settings.name, errors, timeout)
    return Transactions(settings, producer, errors, reports)


def _init_transactions(producer: Producer, name: str, errors: ClientErrors, timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while True:
        left = deadline - time.monotonic()
        try:
            producer.init_transactions(min(SLICE_SECONDS, max(left, 0.05)))
        except RAISED as error:
            serve_callbacks(producer)
            if errors.refused and errors.latest is not None:
                raise errors.latest from error
            if left <= 0 or not retriable(error):
                raise (errors.latest if retriable(error) else None) or kafka_error(error, name) from error
        else:
            return
