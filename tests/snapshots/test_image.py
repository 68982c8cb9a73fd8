"""Uninterpreted records: only what can no longer matter is dropped."""

import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclog.metalog.codec import encode_record
from aclog.metalog.errors import DecodeError
from aclog.metalog.primitives import compact_string, unsigned_varint
from aclog.metalog.records import OpaqueRecord, UnregisterControllerRecord
from aclog.snapshots.image import OpaqueChange, OpaqueImage, effect_of
from aclog.snapshots.publisher import recover
from tests.support.builders.acls import acl, acl_record
from tests.support.builders.ids import uuid_of
from tests.support.builders.long_log import batch, begin_log
from tests.support.builders.random_log import RandomLog
from tests.support.models.naive_replay import opaque_step

ID, OTHER = uuid_of(1).bytes, uuid_of(2).bytes


def record(key, body):
    return bytes((1, key, 0)) + body


def topic(name, topic_id=ID):
    return record(2, compact_string(name) + topic_id + b"\0")


def partition(topic_id=ID, number=0):
    return record(3, struct.pack(">i", number) + topic_id + b"rest")


def partition_change(topic_id=ID):
    return record(5, struct.pack(">i", 0) + topic_id + b"rest")


def remove_topic(topic_id=ID):
    return record(9, topic_id + b"\0")


def clear_elr(name):
    return record(28, compact_string(name) + b"\0")


def config(kind, resource, key, value):
    text = b"\0" if value is None else compact_string(value)
    return record(4, bytes((kind,)) + compact_string(resource) + compact_string(key) + text + b"\0")


def changes(values):
    opaque = (OpaqueRecord(api_key=value[1], version=value[2], value=value) for value in values)
    return [OpaqueChange(effect=effect_of(each), value=each.value) for each in opaque]


def kept(*values):
    image = OpaqueImage.EMPTY.apply(changes(values))
    found = list(image.values())
    assert (image.count, image.size) == (len(found), sum(map(len, found)))
    return found


@given(seed=st.integers(0, 2**32), count=st.integers(0, 120))
def test_agrees_with_a_naive_list(seed, count):
    log = RandomLog(random.Random(seed))
    values = [log.opaque() for _ in range(count)]
    naive, image = [], OpaqueImage.EMPTY
    for value in values:
        before, was = image, list(image.values())
        naive = opaque_step(naive, value)
        image = image.apply(changes([value]))
        assert list(image.values()) == naive
        assert (image.count, image.size) == (len(naive), sum(map(len, naive)))
        assert list(before.values()) == was
    assert list(OpaqueImage.EMPTY.apply(changes(values)).values()) == naive


def test_log_order_is_kept():
    values = [
        topic("a"),
        record(27, b"controller"),
        partition(),
        record(21, b"\0\0"),
        partition_change(),
        record(99, b"?"),
    ]
    assert kept(*values) == values


def test_removing_a_topic_drops_all_its_records():
    other = [topic("b", OTHER), partition(OTHER), config(2, "b", "k", "v"), config(4, "a", "k", "v"), clear_elr("b")]
    own = [
        topic("a"),
        partition(),
        partition_change(),
        config(2, "a", "k", "v"),
        config(2, "a", "l", "v"),
        clear_elr("a"),
    ]
    assert kept(*own, *other, remove_topic()) == other


def test_a_topic_recreated_under_its_name_starts_empty():
    again = [topic("a", OTHER), partition(OTHER), config(2, "a", "k", "new")]
    assert kept(topic("a"), partition(), config(2, "a", "k", "old"), remove_topic(), *again) == again


def test_removing_an_unknown_subject_has_no_effect():
    assert kept(remove_topic(), topic("b", OTHER)) == [topic("b", OTHER)]


def test_a_config_replaces_the_previous_one():
    assert kept(config(4, "", "k", "1"), topic("a"), config(4, "", "k", "2")) == [
        topic("a"),
        config(4, "", "k", "2"),
    ]
    assert kept(config(4, "", "k", "1"), config(4, "", "k", None)) == []


@pytest.mark.parametrize("key", [2, 3, 4, 5, 9, 14, 28])
def test_a_truncated_record_is_refused(key):
    with pytest.raises(DecodeError):
        changes([record(key, b"")])


@pytest.mark.parametrize("announced", [400, 2**31 - 1, 2**32 - 1])
def test_more_quota_entities_than_there_are_bytes_are_refused_at_once(announced):
    entities = b"\1\0\0" * 300
    with pytest.raises(DecodeError, match=f"{announced - 1} quota entities, but only 900 bytes remain"):
        changes([record(14, unsigned_varint(announced) + entities)])


def test_a_long_chain_neither_slows_nor_crashes():
    image = OpaqueImage.EMPTY.apply(changes([topic("a")] + [partition_change()] * 50_000))
    assert image.count == 50_001
    assert image.apply(changes([remove_topic()])).count == 0
    del image


def test_the_repr_is_short():
    assert repr(OpaqueImage.EMPTY.apply(changes([topic("a")]))) == "OpaqueImage(count=1, size=22)"


def test_the_registrations_of_an_unregistered_controller_are_dropped(tmp_path):
    """Kafka 4.4 lets a live controller register again at once: the log has its newest registration only."""
    first, other, again = (registration(number, body) for number, body in ((2, b"one"), (3, b"two"), (2, b"again")))
    gone = encode_record(UnregisterControllerRecord(controller_id=2))
    unknown = encode_record(UnregisterControllerRecord(controller_id=9))
    assert gone.hex() == "011d000000000200"
    begin_log(tmp_path, batch([first, other, unknown, gone, again]))
    image = recover(tmp_path).image
    assert list(image.opaque.values()) == [other, again]
    assert [image.opaque.has_controller(number) for number in (2, 3, 9)] == [True, True, False]
    assert image.opaque.size == len(other) + len(again)


def registration(controller_id, body):
    return record(27, struct.pack(">i", controller_id) + body)


def test_rules_outlive_the_topic_that_they_name(tmp_path):
    """ACLs are no part of a topic, and a topic of that name finds them again (KIP-11)."""
    begin_log(tmp_path, batch([topic("orders"), acl_record(1, acl("orders"))]), batch([remove_topic()], base_offset=2))
    image = recover(tmp_path).image
    assert [entry.acl.resource_name for entry in image.acls] == ["orders"]
    assert image.opaque.count == 0
