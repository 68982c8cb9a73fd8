"""Fencing of the topic log's previous writer, by Kafka's transactional id (KIP-98)."""

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
    """Fence the previous writer and abort its open transaction; return this process's transactions.

    init_transactions increments the transactional id's producer epoch: from then on, brokers reject the previous
    producer's writes and commits with INVALID_PRODUCER_EPOCH or PRODUCER_FENCED.

    Raises:
        FencedError: another process did the same, later.
        LogError: no broker responds within `timeout` seconds, or one refuses.
        ConfigError: the client rejects the properties.

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
            # A refused login is only reported by callback: without this, the call would last until its timeout.
            serve_callbacks(producer)
            if errors.refused and errors.latest is not None:
                raise errors.latest from error
            if left <= 0 or not retriable(error):
                raise (errors.latest if retriable(error) else None) or kafka_error(error, name) from error
        else:
            return
