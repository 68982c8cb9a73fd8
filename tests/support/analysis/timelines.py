"""Random logs of rules, and random questions of them."""

from collections.abc import Sequence
from random import Random

from aclog.analysis.regions import EVERYONE, REQUESTED, Query, everyone_but, only
from aclog.authorizer.acl import ResourcePattern
from aclog.authorizer.codes import AclOperation, PatternType, ResourceType
from aclog.metalog.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    MetadataRecord,
    NoOpRecord,
    UnregisterBrokerRecord,
)
from tests.support.analysis.policies import entry_of, random_rule
from tests.support.builders.acls import record_of, removal_of
from tests.support.builders.state_records import registration

READ = 1 << AclOperation.READ


def batches_of(random: Random, count: int, *, odd: int = 3, cidr: bool = False) -> list[list[MetadataRecord]]:
    """Batches of additions and removals, some in transactions, of which some are aborted.

    `odd` of 100 rules are such as only a record can carry; with `cidr` the hosts of some are ranges.
    """
    live: dict[object, object] = {}
    before: dict[object, object] | None = None
    batches = []
    for _ in range(count):
        records: list[MetadataRecord] = []
        for _ in range(random.choice((1, 1, 2, 4))):
            turn = random.random()
            if turn < 0.1:
                if before is None:
                    before = dict(live)
                    records.append(BeginTransactionRecord())
                else:
                    aborted = random.random() < 0.4
                    live, before = (before if aborted else live), None
                    records.append(AbortTransactionRecord() if aborted else EndTransactionRecord())
            elif turn < 0.45 and live:
                entry = random.choice(list(live.values()))
                del live[entry.id]
                records.append(removal_of(entry))
            else:
                entry = entry_of(random_rule(random, odd=odd, cidr=cidr))
                if entry.id not in live:
                    live[entry.id] = entry
                    records.append(record_of(entry))
        batches.append(records or [NoOpRecord()])
    return batches


def with_brokers(random: Random, batches: Sequence[list[MetadataRecord]]) -> list[list[MetadataRecord]]:
    """The batches, and between them registrations of two brokers whose Kafka changes; outside of transactions."""
    result, is_open = [], False
    there: set[int] = set()
    for batch in batches:
        result.append(batch)
        for record in batch:
            is_open = isinstance(record, BeginTransactionRecord) or (
                is_open and not isinstance(record, EndTransactionRecord | AbortTransactionRecord)
            )
        if not is_open and random.random() < 0.4:
            number = random.choice((1, 2))
            if number in there and random.random() < 0.3:
                there.discard(number)
                result.append([UnregisterBrokerRecord(broker_id=number, broker_epoch=number)])
            else:
                there.add(number)
                result.append([registration(number, random.choice((30, 33)))])
    return result


def random_query(random: Random) -> Query:
    names = ["a", "ab", "b.x", "*", "*a", ""]
    resources = tuple(
        ResourcePattern(
            resource_type=random.choice([ResourceType.TOPIC, ResourceType.TOPIC, ResourceType.GROUP]),
            name=random.choice(names),
            pattern_type=random.choice([PatternType.LITERAL, PatternType.PREFIXED]),
        )
        for _ in range(random.randint(1, 2))
    )
    principals = random.choice([EVERYONE, only("User:a"), only("User:b", "Group:g"), everyone_but("User:a", "User:b")])
    operations = random.choice([READ, REQUESTED, 1 << AclOperation.DESCRIBE])
    host = random.choice([None, "10.0.0.1"])
    return Query(resources=resources, operations=operations, principals=principals, host=host)
