"""Changes between recorded and polled ACLs, and their records."""

from itertools import count
from uuid import UUID

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from aclog.authorizer.acls_image import content_of, ids_by_content
from aclog.client.requests import check_acls, check_contents
from aclog.metalog.batches import build_batch
from aclog.metalog.errors import DecodeError
from aclog.ops.sync import AclChanges, acl_changes
from aclog.snapshots.applier import Applier
from tests.support.builders.acls import acl
from tests.support.models import estates

RULES = st.lists(estates.rules(), max_size=12)


def contents(rules):
    return set(map(content_of, rules))


def replayed(polls):
    """Replay the batches of `acl_changes`; yield the ACLs before each poll, the changes, and the ACLs after it."""
    applier, numbers = Applier(), count(2)
    for polled in polls:
        recorded = {rule.acl: rule.id for rule in applier.image.acls}
        by_content = ids_by_content(applier.image.acls)
        assert by_content == {content_of(rule): rule_id.bytes for rule, rule_id in recorded.items()}
        changes = acl_changes(by_content, contents(polled), lambda: UUID(int=next(numbers)))
        if changes:
            batch = build_batch(
                changes.values(), base_offset=applier.next_offset, leader_epoch=1, timestamp=applier.next_offset
            )
            applier.apply(batch)
        yield recorded, changes, {rule.acl: rule.id for rule in applier.image.acls}


@given(st.lists(RULES, max_size=5))
def test_a_replay_yields_the_acls_of_each_poll(polls):
    for polled, (_, _, after) in zip(polls, replayed(polls), strict=True):
        assert after.keys() == set(polled)


@given(st.lists(RULES, max_size=5))
def test_unchanged_acls_keep_their_ids_and_ids_are_unique(polls):
    ever: set[UUID] = set()
    for before, changes, after in replayed(polls):
        assert all(after[rule] == before[rule] for rule in before.keys() & after.keys())
        new = {rule.id for rule in changes.added}
        assert len(new) == len(changes.added)
        assert not new & ever
        ever |= new


@given(RULES, RULES)
def test_only_changes_are_written(first, second):
    (_, _, recorded), (_, changes, _) = replayed([first, second])
    assert {rule.acl for rule in changes.removed} == set(first) - set(second)
    assert {rule.acl for rule in changes.added} == set(second) - set(first)
    assert len(changes) == len(set(first) ^ set(second)) == len(changes.values())
    assert [rule.id for rule in changes.removed] == [recorded[rule.acl] for rule in changes.removed]


@given(RULES, st.randoms(use_true_random=False))
def test_the_order_of_a_response_is_irrelevant(polled, random):
    shuffled = random.sample(polled * 2, len(polled) * 2)
    numbers, others = count(2), count(2)
    assert acl_changes({}, contents(polled), lambda: UUID(int=next(numbers))) == acl_changes(
        {}, contents(shuffled), lambda: UUID(int=next(others))
    )


def test_no_changes_are_empty():
    rule = acl("orders")
    assert not acl_changes({content_of(rule): UUID(int=2).bytes}, contents([rule, rule]), UUID)
    assert AclChanges().values() == []


@given(RULES)
def test_valid_acls(polled):
    check_acls(polled)
    check_contents(contents(polled))


@pytest.mark.parametrize(
    "change",
    [
        {"resource_type": 0}, {"resource_type": 1}, {"pattern_type": 0}, {"pattern_type": 1}, {"pattern_type": 2},
        {"operation": 0}, {"operation": 1}, {"permission_type": 0}, {"permission_type": 1}, {"operation": -1},
        {"resource_name": "x" * 32_768}, {"principal": "€" * 10_923}, {"host": "😀" * 8_192},
    ],
    ids=lambda change: " ".join(f"{key} {str(value)[:6]}" for key, value in change.items()),
)  # fmt: skip
def test_invalid_acls(change):
    with pytest.raises(DecodeError, match="expected"):
        check_acls([acl("orders"), evolve(acl("orders"), **change)])
    if not {"resource_name", "principal", "host"} & change.keys():  # a longer text has no content
        with pytest.raises(DecodeError, match="expected"):
            check_contents(contents([acl("orders"), evolve(acl("orders"), **change)]))


def test_codes_of_a_newer_kafka_the_longest_strings_and_odd_texts_are_valid():
    newer = [evolve(acl("orders"), **change) for change in ({"resource_type": 8}, {"operation": 99})]
    longest = [evolve(acl("orders"), **change) for change in ({"resource_name": "x" * 32_767}, {"host": "€" * 10_922})]
    odd = [acl("", pattern_type=4), acl("orders", "no-colon"), acl("foo", resource_type=4)]  # Kafka describes them
    check_acls([*newer, *longest, *odd])
    check_contents(contents([*newer, *longest, *odd]))
    for rule in (*newer, *longest, *odd):
        assert next(after for *_, after in replayed([[rule]])).keys() == {rule}
