from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclog.metalog import control_records as c
from aclog.metalog.batches import decode_batch, iter_batches, read_header
from aclog.metalog.errors import DecodeError, EncodeError
from tests.support.builders.records import CONTROL_RECORDS, check_error, mutations
from tests.support.kafka.dump_log import METADATA_FILES
from tests.support.runs.profiles import examples

VOTERS = c.KRaftVoters(
    voters=(
        c.Voter(
            voter_id=1,
            voter_directory_id=UUID(int=5),
            endpoints=(c.Endpoint(name="CONTROLLER", host="localhost", port=20093),),
            kraft_version_feature=c.SupportedVersions(min_supported_version=0, max_supported_version=1),
        ),
    )
)
EXAMPLES = (
    c.LeaderChange(
        leader_id=1,
        voters=(c.LeaderChangeVoter(voter_id=1), c.LeaderChangeVoter(voter_id=2)),
        granting_voters=(c.LeaderChangeVoter(voter_id=1),),
    ),
    c.SnapshotHeader(last_contained_log_timestamp=1795227817715),
    c.SnapshotFooter(),
    c.KRaftVersion(kraft_version=1),
    VOTERS,
)


@pytest.mark.parametrize("path", METADATA_FILES, ids=lambda path: f"{path.parts[-3]}/{path.name}")
def test_every_control_batch_of_a_real_kafka_is_built_again(path):
    data = path.read_bytes()
    for position, header in iter_batches(data):
        if header.is_control:
            records = c.decode_control_batch(data, position, header)
            assert not any(isinstance(record, c.OpaqueControlRecord) for record in records)
            built = c.control_batch(
                *records,
                base_offset=header.base_offset,
                leader_epoch=header.leader_epoch,
                timestamp=header.max_timestamp,
            )
            assert built == data[position : position + header.size]


@given(CONTROL_RECORDS)
def test_round_trip_of_every_type(record):
    key, value = c.encode_control(record)
    assert c.decode_control(key, value) == record
    assert c.encode_control(c.decode_control(key, value)) == (key, value)


def test_there_is_an_example_of_every_type():
    assert {example.control_type for example in EXAMPLES} == set(c.ControlType)


@pytest.mark.parametrize(("key", "code"), [("00000000", 0), ("00000007", 7), ("00010002", 2), ("0000ffff", -1)])
def test_an_unknown_type_is_kept_verbatim(key, code):
    record = c.decode_control(bytes.fromhex(key), b"whatever")
    assert record == c.OpaqueControlRecord(control_type=code, key=bytes.fromhex(key), value=b"whatever")
    assert c.encode_control(record) == (bytes.fromhex(key), b"whatever")


@pytest.mark.parametrize("key", [b"", b"\x00\x00\x00", b"\x00\x00\x00\x02\x00"])
def test_a_key_of_another_size_is_refused(key):
    with pytest.raises(DecodeError, match="key of"):
        c.decode_control(key, b"\x00\x00\x00")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: type(example).__name__)
def test_truncated_extended_and_newer_records_are_refused(example):
    key, value = c.encode_control(example)
    for size in range(len(value)):
        with pytest.raises(DecodeError):
            c.decode_control(key, value[:size])
    with pytest.raises(DecodeError, match="1 trailing bytes after"):
        c.decode_control(key, value + b"\x00")
    with pytest.raises(DecodeError, match="version above 0, written by a newer Kafka"):
        c.decode_control(key, b"\x00\x01" + value[2:])


def test_an_error_in_a_batch_tells_position_and_offset():
    good = c.encode_control(EXAMPLES[1])
    batch = bytearray(c.control_batch(*EXAMPLES[1:3], base_offset=5, leader_epoch=1, timestamp=1))
    at = batch.index(good[1])
    batch[at + len(good[1]) - 1] = 9
    header = read_header(batch)
    with pytest.raises(DecodeError) as caught:
        c.decode_control_batch(batch, 0, header)
    assert (caught.value.offset, caught.value.position) == (5, at + len(good[1]))


def test_the_header_records_of_a_checkpoint():
    header = c.SnapshotHeader(last_contained_log_timestamp=9)
    assert c.snapshot_header_records(last_contained_log_timestamp=9, kraft_version=0, voters=None) == (header,)
    assert c.snapshot_header_records(last_contained_log_timestamp=9, kraft_version=1, voters=VOTERS) == (
        header,
        c.KRaftVersion(kraft_version=1),
        VOTERS,
    )


def test_a_voter_that_does_not_fit_is_refused():
    with pytest.raises(EncodeError):
        c.encode_control(c.KRaftVersion(kraft_version=1 << 15))
    with pytest.raises(EncodeError):
        c.control_batch(base_offset=0, leader_epoch=0, timestamp=0)


@settings(max_examples=examples(20))
@given(st.integers(0, 1 << 40))
def test_hostile_bytes_raise_only_our_errors(seed):
    for example in EXAMPLES:
        key, value = c.encode_control(example)
        for damaged in mutations(value, seed, 100):
            try:
                record = c.decode_control(key, damaged)
            except DecodeError as e:
                check_error(e)
            else:
                assert c.encode_control(record) == (key, damaged)


@settings(max_examples=examples(10))
@given(st.integers(0, 1 << 40))
def test_hostile_control_batches_raise_only_our_errors(seed):
    data = c.control_batch(*EXAMPLES, base_offset=0, leader_epoch=1, timestamp=1)
    for damaged in mutations(data[61:], seed, 100):
        batch = data[:61] + damaged
        header = read_header(batch[:8] + (len(batch) - 12).to_bytes(4) + batch[12:])
        try:
            c.decode_control_batch(batch, 0, header)
        except DecodeError as e:
            check_error(e)
    assert len(decode_batch(data).records) == len(EXAMPLES)
