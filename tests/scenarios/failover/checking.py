"""The topic looked through, message by message, by Kafka's own client: nothing of our readers is trusted here."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing

from attrs import frozen
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from aclog.authorizer.acl import StandardAcl
from aclog.metalog.codec import decode_record
from aclog.metalog.control_records import LeaderChange, decode_control
from aclog.metalog.records import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from aclog.metalog.topic_message import Placement, decode_headers
from aclog.metalog.topiclog import TopicSettings
from tests.support.builders.acls import acl_of
from tests.support.models.ledger import Ledger

_SILENCE_SECONDS = 30.0


@frozen
class Written:
    """One message: where it says that it stands, and its value."""

    place: Placement
    value: bytes


def committed_messages(settings: TopicSettings) -> Iterator[Written]:
    """Every committed message of the topic, in Kafka's order, to the last stable offset there is when it is called."""
    consumer = Consumer(
        {
            **settings.properties,
            "group.id": "checking",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    with closing(consumer):
        consumer.assign([TopicPartition(settings.topic, 0, OFFSET_BEGINNING)])
        while True:
            message = consumer.poll(_SILENCE_SECONDS)
            assert message is not None, "nothing came, and not the end"
            error = message.error()
            if error is None:
                yield Written(decode_headers(message.headers()), message.value())
            elif error.name() == "_PARTITION_EOF":
                return
            elif not error.retriable():
                raise KafkaException(error)


def check_epochs(messages: Sequence[Written]) -> dict[int, int]:
    """See that offsets have no gap, epochs never go back, and each has one leader; who led them, by epoch.

    So nothing of a deposed leader stands behind its successor's LeaderChange, and no two were active at once.
    """
    leaders: dict[int, int] = {}
    last = 0
    for expected, each in enumerate(messages):
        place = each.place
        assert place.offset == expected, f"offset {place.offset} where {expected} was to come"
        assert place.epoch >= last, f"epoch {place.epoch} after epoch {last}, at offset {place.offset}"
        if place.epoch > last:
            change = None if place.control is None else decode_control(place.control, each.value)
            assert isinstance(change, LeaderChange), f"epoch {place.epoch} does not begin with a LeaderChange"
            leaders[place.epoch] = change.leader_id
        elif place.control is not None:
            assert not isinstance(decode_control(place.control, each.value), LeaderChange), (
                f"epoch {place.epoch} has a second leader, at offset {place.offset}"
            )
        last = place.epoch
    return leaders


def check_rules(messages: Sequence[Written], ledger: Ledger) -> set[StandardAcl]:
    """See that every rule was created and deleted once at most, as it was acknowledged; what stands in the end."""
    rules: dict[object, StandardAcl] = {}
    added: Counter[StandardAcl] = Counter()
    removed: Counter[StandardAcl] = Counter()
    for record in (decode_record(each.value) for each in messages if each.place.control is None):
        if isinstance(record, AccessControlEntryRecord):
            assert record.id not in rules, "an id was given twice"
            rules[record.id] = rule = acl_of(record)
            added[rule] += 1
        elif isinstance(record, RemoveAccessControlEntryRecord):
            removed[rules.pop(record.id)] += 1
    ledger.check(_of_campaign(added), _of_campaign(removed))
    return set(rules.values())


def _of_campaign(counts: Mapping[StandardAcl, int]) -> dict[StandardAcl, int]:
    """Leave out the ACLs that a cluster of the tests is set up with."""
    return {
        rule: count
        for rule, count in counts.items()
        if rule.principal == "User:app" and rule.resource_name.startswith(("w", "ghost"))
    }
