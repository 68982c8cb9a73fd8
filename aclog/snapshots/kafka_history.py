"""The history of what decides: when the generations of Kafka that may decide changed, as brokers registered."""

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from attrs import frozen

from aclog.metalog.errors import DecodeError
from aclog.metalog.log import LogReader
from aclog.metalog.records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RecordType,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)
from aclog.snapshots.cluster import ClusterImage
from aclog.snapshots.deciding_kafka import SOME_RANGE, DecidingKafka, kafka_of_levels, kafka_text, registered_levels
from aclog.snapshots.image import Image
from aclog.snapshots.visible_records import VisibleRecord, visible_records

_BROKER_RECORDS: Final = (
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
    FenceBrokerRecord,
    UnfenceBrokerRecord,
    BrokerRegistrationChangeRecord,
)
_MARKERS: Final = (
    RecordType.BEGIN_TRANSACTION_RECORD,
    RecordType.END_TRANSACTION_RECORD,
    RecordType.ABORT_TRANSACTION_RECORD,
)
_WANTED: Final = frozenset((*(record.api_key for record in _BROKER_RECORDS), *_MARKERS))


@frozen(kw_only=True)
class KafkaChange:
    """What may decide from a state on.

    `offset` and `timestamp` (ms since 1970; -1: unknown) are those of the record that changed it, or those of the state
    with which the history begins; `end_offset` is that of the first state that includes it.
    """

    offset: int
    end_offset: int
    timestamp: int
    kafka: DecidingKafka

    def __str__(self) -> str:
        return kafka_text(self.kafka)


def kafka_history(begin: Image, reader: LogReader) -> Iterator[KafkaChange]:
    """Yield what may decide in the state with which a history begins, and each change of it, in the order of the log.

    That there are brokers at all is a change, too: before the first one, any may decide as far as the log says.

    Raises:
        LogError: the log cannot be read.
        DecodeError: damage, a ReplayError if its records are inconsistent; with path and offset.

    """
    kafka = _kafka_of(begin.cluster)
    yield KafkaChange(offset=begin.end_offset, end_offset=begin.end_offset, timestamp=begin.timestamp, kafka=kafka)
    try:
        yield from _changes(begin, kafka, reader)
    except DecodeError as e:
        raise type(e)(e.what, offset=e.offset, path=e.path or reader.name) from None


def _changes(begin: Image, kafka: DecidingKafka, reader: LogReader) -> Iterator[KafkaChange]:
    """Yield each change after the state with which a history begins, and what may decide in that."""
    cluster = begin.cluster
    seen = (each for each in visible_records(begin.provenance, reader, _is_wanted) if _is_of_broker(each))
    for end_offset, step in groupby(seen, lambda each: each.end_offset):
        records = list(step)
        cluster = cluster.apply((each.offset, each.record) for each in records)  # type: ignore[misc]  # _is_of_broker
        found = _kafka_of(cluster)
        if (found.generations, bool(found.nodes.of_generation)) != (
            kafka.generations,
            bool(kafka.nodes.of_generation),
        ):
            last = records[-1]
            yield KafkaChange(offset=last.offset, end_offset=end_offset, timestamp=last.timestamp, kafka=found)
        kafka = found


def _kafka_of(cluster: ClusterImage) -> DecidingKafka:
    return kafka_of_levels(registered_levels(cluster), SOME_RANGE)


def _is_wanted(value: bytes) -> bool:
    return len(value) > 1 and value[1] in _WANTED  # behind the frame version; all of these apiKeys take one byte


def _is_of_broker(seen: VisibleRecord) -> bool:
    return isinstance(seen.record, _BROKER_RECORDS)
